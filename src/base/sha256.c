#include "base/sha256.h"

// OpenSSL's EVP allocates memory for each hash; if that failed, a hash would be wrong or the
// process would have to abort. The functions below work in the caller's memory and cannot fail.
// OpenSSL 3 marks them as deprecated; their implementation is the one that EVP uses.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "base/float_env.h"
#include "base/memory.h"

#include <openssl/sha.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "elements are hashed as they lie in memory, which must be little-endian"
#endif

static void begin(SHA256_CTX *ctx, const char *tag, size_t tag_size) {
    SHA256_Init(ctx);
    SHA256_Update(ctx, tag, tag_size);
}

static void end(SHA256_CTX *ctx, unsigned char digest[REE_SHA256_SIZE]) {
    memset(digest, 0, REE_SHA256_SIZE); // MemorySanitizer does not track writes of libraries
    SHA256_Final(digest, ctx);
}

static void update_u32(SHA256_CTX *ctx, uint32_t value) {
    SHA256_Update(ctx, &value, sizeof value);
}

void ree_hex(const unsigned char digest[REE_SHA256_SIZE], char hex[65]) {
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < REE_SHA256_SIZE; i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }
    hex[64] = 0;
}

static void update_u64(SHA256_CTX *ctx, uint64_t value) {
    SHA256_Update(ctx, &value, sizeof value);
}

static void update_strings(SHA256_CTX *ctx, const struct ree_tensor *tensor) {
    const char *const *strings = tensor->data;
    for (size_t i = 0; i < tensor->nbytes / sizeof *strings; i++) {
        const char *s = strings[i] ? strings[i] : "";
        update_u64(ctx, strlen(s));
        SHA256_Update(ctx, s, strlen(s));
    }
}

static void dense_digest(const struct ree_tensor *tensor, unsigned char digest[REE_SHA256_SIZE]) {
    static const char tag[] = "ree-tensor/1";
    SHA256_CTX own, *ctx = &own;
    begin(ctx, tag, sizeof tag);
    update_u32(ctx, (uint32_t)tensor->dtype);
    update_u32(ctx, tensor->rank);
    SHA256_Update(ctx, tensor->dims, tensor->rank * sizeof *tensor->dims);
    if (tensor->dtype == REE_STRING)
        update_strings(ctx, tensor);
    else if (tensor->nbytes)
        SHA256_Update(ctx, tensor->data, tensor->nbytes);
    end(ctx, digest);
}

void ree_tensor_digest(const struct ree_tensor *tensor, unsigned char digest[REE_SHA256_SIZE]) {
    static const char sequence_tag[] = "ree-sequence/1", absent_tag[] = "ree-absent/1";
    if (tensor->kind == REE_TENSOR) {
        dense_digest(tensor, digest);
        return;
    }
    bool sequence = tensor->kind == REE_SEQUENCE;
    SHA256_CTX own, *ctx = &own;
    if (sequence)
        begin(ctx, sequence_tag, sizeof sequence_tag);
    else
        begin(ctx, absent_tag, sizeof absent_tag);
    update_u32(ctx, (uint32_t)tensor->dtype);
    if (sequence) update_u64(ctx, tensor->n_items);
    for (size_t i = 0; i < tensor->n_items; i++) {
        unsigned char item[REE_SHA256_SIZE];
        dense_digest(&tensor->items[i], item);
        SHA256_Update(ctx, item, sizeof item);
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
    SHA256_CTX own, *ctx = &own;
    begin(ctx, tag, sizeof tag);
    for (size_t i = 0; i < n; i++) {
        unsigned char digest[REE_SHA256_SIZE];
        const char *name = tensors[i].name ? tensors[i].name : "";
        update_u32(ctx, (uint32_t)strlen(name));
        SHA256_Update(ctx, name, strlen(name));
        ree_tensor_digest(&tensors[i], digest);
        SHA256_Update(ctx, digest, sizeof digest);
    }
    unsigned char digest[REE_SHA256_SIZE];
    end(ctx, digest);
    ree_hex(digest, hex);
}

// Hashers

struct ree_hasher {
    SHA256_CTX ctx;
};

// Hashers for when memory is exhausted. A hasher is used only briefly, so an entry is soon free
// again.
#define N_RESERVED 256
static struct ree_hasher reserve[N_RESERVED];
static atomic_bool is_taken[N_RESERVED];

static struct ree_hasher *take_reserved(void) {
    for (size_t i = 0; i < N_RESERVED; i++)
        if (!atomic_exchange(&is_taken[i], true)) return &reserve[i];
    return NULL;
}

static void release(struct ree_hasher *hasher) {
    if (hasher >= reserve && hasher < reserve + N_RESERVED)
        atomic_store(&is_taken[hasher - reserve], false);
    else
        ree_free(hasher);
}

struct ree_hasher *ree_hasher_try_create(const char *tag) {
    struct ree_hasher *hasher = ree_alloc(sizeof *hasher);
    if (hasher) begin(&hasher->ctx, tag ? tag : "", tag ? strlen(tag) + 1 : 0);
    return hasher;
}

struct ree_hasher *ree_hasher_create(const char *tag) {
    struct ree_hasher *hasher = ree_alloc(sizeof *hasher);
    while (!hasher && !(hasher = take_reserved())) {
        sched_yield();
        hasher = ree_alloc(sizeof *hasher);
    }
    begin(&hasher->ctx, tag ? tag : "", tag ? strlen(tag) + 1 : 0);
    return hasher;
}

void ree_hasher_update(struct ree_hasher *hasher, const void *bytes, size_t nbytes) {
    SHA256_Update(&hasher->ctx, bytes, nbytes);
}

void ree_hasher_finish(struct ree_hasher *hasher, char hex[65]) {
    unsigned char digest[REE_SHA256_SIZE];
    if (!hasher) return;
    ree_hasher_digest(hasher, digest);
    ree_hex(digest, hex);
}

void ree_hasher_digest(struct ree_hasher *hasher, unsigned char digest[REE_SHA256_SIZE]) {
    end(&hasher->ctx, digest);
    release(hasher);
}

void ree_hasher_next(struct ree_hasher *hasher, const char *tag,
                     unsigned char digest[REE_SHA256_SIZE]) {
    end(&hasher->ctx, digest);
    begin(&hasher->ctx, tag, strlen(tag) + 1);
}
