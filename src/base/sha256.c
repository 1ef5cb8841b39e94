#include "base/sha256.h"

#include "base/float_env.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "elements are hashed as they lie in memory, which must be little-endian"
#endif

// SHA-256 needs no configuration and no input can make it fail: if OpenSSL cannot do it, memory is
// exhausted or the library is broken, and going on would publish a wrong hash.
static void must(int ok) {
    if (ok == 1) return;
    fprintf(stderr, "ree: OpenSSL cannot compute SHA-256\n");
    abort();
}

static EVP_MD_CTX *begin(const char *tag, size_t tag_size) {
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    must(ctx != NULL);
    must(EVP_DigestInit_ex(ctx, EVP_sha256(), NULL));
    must(EVP_DigestUpdate(ctx, tag, tag_size));
    return ctx;
}

static void end(EVP_MD_CTX *ctx, unsigned char digest[REE_SHA256_SIZE]) {
    unsigned size = 0;
    memset(digest, 0, REE_SHA256_SIZE); // MemorySanitizer does not see what libraries write
    must(EVP_DigestFinal_ex(ctx, digest, &size));
    must(size == REE_SHA256_SIZE);
    EVP_MD_CTX_free(ctx);
}

static void update_u32(EVP_MD_CTX *ctx, uint32_t value) {
    must(EVP_DigestUpdate(ctx, &value, sizeof value));
}

void ree_hex(const unsigned char digest[REE_SHA256_SIZE], char hex[65]) {
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < REE_SHA256_SIZE; i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }
    hex[64] = 0;
}

static void update_u64(EVP_MD_CTX *ctx, uint64_t value) {
    must(EVP_DigestUpdate(ctx, &value, sizeof value));
}

static void update_strings(EVP_MD_CTX *ctx, const struct ree_tensor *tensor) {
    const char *const *strings = tensor->data;
    for (size_t i = 0; i < tensor->nbytes / sizeof *strings; i++) {
        const char *s = strings[i] ? strings[i] : "";
        update_u64(ctx, strlen(s));
        must(EVP_DigestUpdate(ctx, s, strlen(s)));
    }
}

static void dense_digest(const struct ree_tensor *tensor, unsigned char digest[REE_SHA256_SIZE]) {
    static const char tag[] = "ree-tensor/1";
    EVP_MD_CTX *ctx = begin(tag, sizeof tag);
    update_u32(ctx, (uint32_t)tensor->dtype);
    update_u32(ctx, tensor->rank);
    must(EVP_DigestUpdate(ctx, tensor->dims, tensor->rank * sizeof *tensor->dims));
    if (tensor->dtype == REE_STRING)
        update_strings(ctx, tensor);
    else if (tensor->nbytes)
        must(EVP_DigestUpdate(ctx, tensor->data, tensor->nbytes));
    end(ctx, digest);
}

void ree_tensor_digest(const struct ree_tensor *tensor, unsigned char digest[REE_SHA256_SIZE]) {
    static const char sequence_tag[] = "ree-sequence/1", absent_tag[] = "ree-absent/1";
    if (tensor->kind == REE_TENSOR) {
        dense_digest(tensor, digest);
        return;
    }
    bool sequence = tensor->kind == REE_SEQUENCE;
    EVP_MD_CTX *ctx =
        sequence ? begin(sequence_tag, sizeof sequence_tag) : begin(absent_tag, sizeof absent_tag);
    update_u32(ctx, (uint32_t)tensor->dtype);
    if (sequence) update_u64(ctx, tensor->n_items);
    for (size_t i = 0; i < tensor->n_items; i++) {
        unsigned char item[REE_SHA256_SIZE];
        dense_digest(&tensor->items[i], item);
        must(EVP_DigestUpdate(ctx, item, sizeof item));
    }
    end(ctx, digest);
}

void ree_tensor_sha256(const struct ree_tensor *tensor, char hex[65]) {
    REE_FLOAT_ENV_API();
    unsigned char digest[REE_SHA256_SIZE];
    ree_tensor_digest(tensor, digest);
    ree_hex(digest, hex);
}

void ree_tensors_sha256(const struct ree_tensor *tensors, size_t n, char hex[65]) {
    REE_FLOAT_ENV_API();
    static const char tag[] = "ree-tensors/1";
    EVP_MD_CTX *ctx = begin(tag, sizeof tag);
    for (size_t i = 0; i < n; i++) {
        unsigned char digest[REE_SHA256_SIZE];
        const char *name = tensors[i].name ? tensors[i].name : "";
        update_u32(ctx, (uint32_t)strlen(name));
        must(EVP_DigestUpdate(ctx, name, strlen(name)));
        ree_tensor_digest(&tensors[i], digest);
        must(EVP_DigestUpdate(ctx, digest, sizeof digest));
    }
    unsigned char digest[REE_SHA256_SIZE];
    end(ctx, digest);
    ree_hex(digest, hex);
}

// The context of OpenSSL itself: there is no struct ree_hasher.
static EVP_MD_CTX *context_of(struct ree_hasher *hasher) {
    void *context = hasher;
    return context;
}

struct ree_hasher *ree_hasher_create(const char *tag) {
    void *context = begin(tag ? tag : "", tag ? strlen(tag) + 1 : 0);
    return context;
}

void ree_hasher_update(struct ree_hasher *hasher, const void *bytes, size_t nbytes) {
    must(EVP_DigestUpdate(context_of(hasher), bytes, nbytes));
}

void ree_hasher_finish(struct ree_hasher *hasher, char hex[65]) {
    unsigned char digest[REE_SHA256_SIZE];
    if (!hasher) return;
    end(context_of(hasher), digest);
    ree_hex(digest, hex);
}

void ree_hasher_digest(struct ree_hasher *hasher, unsigned char digest[REE_SHA256_SIZE]) {
    end(context_of(hasher), digest);
}

void ree_hasher_next(struct ree_hasher *hasher, const char *tag,
                     unsigned char digest[REE_SHA256_SIZE]) {
    EVP_MD_CTX *ctx = context_of(hasher);
    must(EVP_DigestFinal_ex(ctx, digest, NULL));
    must(EVP_DigestInit_ex(ctx, NULL, NULL)); // NULL: the same function, not looked up again
    must(EVP_DigestUpdate(ctx, tag, strlen(tag) + 1));
}
