#include "transport/frame.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "base/sha256.h"

#define MAGIC "ree-msg"
#define CHECKSUM_AT 56
#define CHECKSUM_SIZE 16

static size_t padded(size_t n) {
    return (n + 7) / 8 * 8;
}

static void put32(unsigned char *at, uint32_t value) {
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(value >> 8 * i);
}

static void put64(unsigned char *at, uint64_t value) {
    for (int i = 0; i < 8; i++)
        at[i] = (unsigned char)(value >> 8 * i);
}

static uint32_t get32(const unsigned char *at) {
    uint32_t value = 0;
    for (int i = 0; i < 4; i++)
        value |= (uint32_t)at[i] << 8 * i;
    return value;
}

static uint64_t get64(const unsigned char *at) {
    return get32(at) | (uint64_t)get32(at + 4) << 32;
}

static void sum(const unsigned char *frame, size_t nbytes, unsigned char out[REE_SHA256_SIZE]) {
    struct ree_hasher *hasher = ree_hasher_create("ree-message/1");
    ree_hasher_update(hasher, frame, CHECKSUM_AT);
    ree_hasher_update(hasher, frame + REE_FRAME_HEADER, nbytes - REE_FRAME_HEADER);
    ree_hasher_digest(hasher, out);
}

size_t ree_frame_nbytes(const struct ree_part *parts, size_t n_parts) {
    size_t nbytes = REE_FRAME_HEADER + 8 * n_parts;
    for (size_t i = 0; i < n_parts; i++)
        nbytes += padded(parts[i].nbytes);
    return nbytes;
}

enum ree_status ree_frame_make(const struct ree_frame_fields *fields, const struct ree_part *parts,
                               unsigned char **out_frame, size_t *out_nbytes,
                               struct ree_error *err) {
    size_t n = fields->n_parts, nbytes = ree_frame_nbytes(parts, n);
    *out_frame = NULL;
    *out_nbytes = 0;
    if (n > REE_FRAME_MAX_PARTS)
        return ree_fail(err, REE_UNSUPPORTED, "a message of %zu parts; the maximum is %d", n,
                        REE_FRAME_MAX_PARTS);
    unsigned char *frame = ree_alloc_zeroed(nbytes, 1);
    if (!frame) return ree_no_memory(err);
    memcpy(frame, MAGIC, sizeof MAGIC);
    put32(frame + 8, REE_FRAME_VERSION);
    put32(frame + 12, fields->kind);
    put32(frame + 16, fields->from);
    put32(frame + 20, fields->to);
    put64(frame + 24, fields->sequence);
    put64(frame + 32, fields->step);
    put32(frame + 40, fields->slot);
    put32(frame + 44, fields->n_parts);
    put64(frame + REE_FRAME_LENGTH_AT, nbytes - REE_FRAME_HEADER);
    unsigned char *at = frame + REE_FRAME_HEADER + 8 * n, digest[REE_SHA256_SIZE];
    for (size_t i = 0; i < n; i++) {
        put64(frame + REE_FRAME_HEADER + 8 * i, parts[i].nbytes);
        if (parts[i].nbytes) memcpy(at, parts[i].data, parts[i].nbytes);
        at += padded(parts[i].nbytes);
    }
    sum(frame, nbytes, digest);
    memcpy(frame + CHECKSUM_AT, digest, CHECKSUM_SIZE);
    *out_frame = frame;
    *out_nbytes = nbytes;
    return REE_OK;
}

enum ree_status ree_frame_measure(const unsigned char header[REE_FRAME_HEADER], size_t limit,
                                  size_t *out_nbytes, struct ree_error *err) {
    *out_nbytes = 0;
    if (memcmp(header, MAGIC, sizeof MAGIC) != 0)
        return ree_fail(err, REE_INVALID, "damaged: it does not begin like a message");
    if (get32(header + 8) != REE_FRAME_VERSION)
        return ree_fail(err, REE_INVALID, "in message format version %u, expected %d",
                        get32(header + 8), REE_FRAME_VERSION);
    uint64_t behind = get64(header + REE_FRAME_LENGTH_AT);
    if (limit < REE_FRAME_HEADER || behind > limit - REE_FRAME_HEADER)
        return ree_fail(err, REE_INVALID, "%llu bytes long or damaged; the expected maximum is %zu",
                        (unsigned long long)behind, limit);
    *out_nbytes = REE_FRAME_HEADER + (size_t)behind;
    return REE_OK;
}

enum ree_status ree_frame_open(const unsigned char *frame, size_t nbytes,
                               struct ree_frame_fields *out, struct ree_part **out_parts,
                               struct ree_error *err) {
    size_t claimed;
    unsigned char digest[REE_SHA256_SIZE];
    *out_parts = NULL;
    memset(out, 0, sizeof *out);
    if (nbytes < REE_FRAME_HEADER)
        return ree_fail(err, REE_INVALID, "damaged: its %zu bytes are less than a header", nbytes);
    REE_TRY(ree_frame_measure(frame, nbytes, &claimed, err));
    if (claimed != nbytes)
        return ree_fail(err, REE_INVALID, "damaged: it has %zu bytes, but states %zu", nbytes,
                        claimed);
    sum(frame, nbytes, digest);
    if (memcmp(digest, frame + CHECKSUM_AT, CHECKSUM_SIZE) != 0)
        return ree_fail(err, REE_INVALID, "damaged: its checksum is wrong");
    uint32_t n = get32(frame + 44);
    size_t left = nbytes - REE_FRAME_HEADER;
    if (n > REE_FRAME_MAX_PARTS || 8 * (size_t)n > left)
        return ree_fail(err, REE_INVALID, "malformed: %u parts in %zu bytes", n, left);
    struct ree_part *parts = ree_alloc_zeroed(n + 1, sizeof *parts);
    if (!parts) return ree_no_memory(err);
    const unsigned char *at = frame + REE_FRAME_HEADER + 8 * (size_t)n;
    left -= 8 * (size_t)n;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t size = get64(frame + REE_FRAME_HEADER + 8 * (size_t)i);
        if (size > left || padded((size_t)size) > left) {
            ree_free(parts);
            return ree_fail(err, REE_INVALID, "malformed: part %u extends beyond its end", i);
        }
        parts[i] = (struct ree_part){at, (size_t)size};
        at += padded((size_t)size);
        left -= padded((size_t)size);
    }
    if (left) {
        ree_free(parts);
        return ree_fail(err, REE_INVALID, "malformed: %zu bytes after its parts", left);
    }
    *out = (struct ree_frame_fields){get32(frame + 12),
                                     get32(frame + 16),
                                     get32(frame + 20),
                                     get64(frame + 24),
                                     get64(frame + 32),
                                     get32(frame + 40),
                                     n};
    *out_parts = parts;
    return REE_OK;
}
