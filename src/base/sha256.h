// SHA-256 of tensors: what ree-run prints and what receipts will bind.
//
//     tensor  = SHA-256("ree-tensor/1\0", u32 LE dtype, u32 LE rank, i64 LE dims[rank], elements)
//     tensors = SHA-256("ree-tensors/1\0", per tensor: u32 LE name length, name, tensor digest)
//
//     tokens  = SHA-256("ree-tokens/1\0", i32 LE ids)
//     logits  = SHA-256("ree-logits/1\0", f32 LE logits of position 0, of position 1, ...)
//
// The strings include their NUL; elements are row-major and little-endian; the name of a nameless
// tensor has length 0. NUMERICS.md, "Hashes". The public functions are in ree.h.
#ifndef REE_BASE_SHA256_H
#define REE_BASE_SHA256_H

#include "ree.h"

#define REE_SHA256_SIZE 32

// The digest of a tensor as bytes.
void ree_tensor_digest(const struct ree_tensor *tensor, unsigned char digest[REE_SHA256_SIZE]);
// What is hashed piece by piece. `tag` is hashed first, with its NUL; NULL: none.
struct ree_hasher;
// Never fails: when memory is exhausted the hasher is one of a small reserve. So what is made here
// must be finished soon, by the same function.
struct ree_hasher *ree_hasher_create(const char *tag);
// For hashes that go on over many calls; NULL when memory is exhausted.
struct ree_hasher *ree_hasher_try_create(const char *tag);
void ree_hasher_update(struct ree_hasher *hasher, const void *bytes, size_t nbytes);
void ree_hasher_finish(struct ree_hasher *hasher, char hex[65]); // releases it
// The same, as bytes.
void ree_hasher_digest(struct ree_hasher *hasher, unsigned char digest[REE_SHA256_SIZE]);
// Gives the digest and begins anew, with `tag`: for many short hashes, which it makes cheaper.
void ree_hasher_next(struct ree_hasher *hasher, const char *tag,
                     unsigned char digest[REE_SHA256_SIZE]);
void ree_hex(const unsigned char digest[REE_SHA256_SIZE], char hex[65]); // lower case, with a NUL

#endif
