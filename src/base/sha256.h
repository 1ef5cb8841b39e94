// SHA-256 of tensors, for ree-run's output and for receipts.
//
//     tensor  = SHA-256("ree-tensor/1\0", u32 LE dtype, u32 LE rank, i64 LE dims[rank], elements)
//     tensors = SHA-256("ree-tensors/1\0", per tensor: u32 LE name length, name, tensor digest)
//
//     tokens  = SHA-256("ree-tokens/1\0", i32 LE ids)
//     logits  = SHA-256("ree-logits/1\0", f32 LE logits of position 0, of position 1, ...)
//
// The strings include their NUL. Elements are row-major and little-endian. The name of an unnamed
// tensor has length 0. See NUMERICS.md, "Hashes". The public functions are in ree.h.
#ifndef REE_BASE_SHA256_H
#define REE_BASE_SHA256_H

#include "ree.h"

#define REE_SHA256_SIZE 32

// Computes the digest of a tensor as bytes.
void ree_tensor_digest(const struct ree_tensor *tensor, unsigned char digest[REE_SHA256_SIZE]);
// A SHA-256 that is computed in steps. Its `tag` is hashed first, including its NUL; NULL: no tag.
struct ree_hasher;
// Never fails: if memory is exhausted, it waits for an entry of a small static reserve and returns
// it. Therefore the function that creates the hasher must also finish it, and soon.
struct ree_hasher *ree_hasher_create(const char *tag);
// As ree_hasher_create, for hashers that live longer; returns NULL if memory is exhausted.
struct ree_hasher *ree_hasher_try_create(const char *tag);
void ree_hasher_update(struct ree_hasher *hasher, const void *bytes, size_t nbytes);
// Writes the digest as hexadecimal text with a NUL, and releases the hasher.
void ree_hasher_finish(struct ree_hasher *hasher, char hex[65]);
// As ree_hasher_finish, but returns the digest as bytes.
void ree_hasher_digest(struct ree_hasher *hasher, unsigned char digest[REE_SHA256_SIZE]);
// Returns the digest and restarts the hasher with `tag`. Cheaper than a new hasher for many short
// hashes.
void ree_hasher_next(struct ree_hasher *hasher, const char *tag,
                     unsigned char digest[REE_SHA256_SIZE]);
void ree_hex(const unsigned char digest[REE_SHA256_SIZE], char hex[65]); // lower case, with a NUL

#endif
