// base/sha256.h without OpenSSL, which is not available for ARM. The recorded digests of the CPU's
// self-test show that it is correct.
#include "base/sha256.h"

#include <stdlib.h>
#include <string.h>

struct ree_hasher {
    uint32_t state[8];
    uint64_t n; // bytes hashed so far
    unsigned char block[64];
};

// FIPS 180-4, section 4.2.2: fractional bits of the cube roots of the first 64 primes.
static const uint32_t k[64] = {
    0x428A2F98, 0x71374491, 0xB5C0FBCF, 0xE9B5DBA5, 0x3956C25B, 0x59F111F1, 0x923F82A4, 0xAB1C5ED5,
    0xD807AA98, 0x12835B01, 0x243185BE, 0x550C7DC3, 0x72BE5D74, 0x80DEB1FE, 0x9BDC06A7, 0xC19BF174,
    0xE49B69C1, 0xEFBE4786, 0x0FC19DC6, 0x240CA1CC, 0x2DE92C6F, 0x4A7484AA, 0x5CB0A9DC, 0x76F988DA,
    0x983E5152, 0xA831C66D, 0xB00327C8, 0xBF597FC7, 0xC6E00BF3, 0xD5A79147, 0x06CA6351, 0x14292967,
    0x27B70A85, 0x2E1B2138, 0x4D2C6DFC, 0x53380D13, 0x650A7354, 0x766A0ABB, 0x81C2C92E, 0x92722C85,
    0xA2BFE8A1, 0xA81A664B, 0xC24B8B70, 0xC76C51A3, 0xD192E819, 0xD6990624, 0xF40E3585, 0x106AA070,
    0x19A4C116, 0x1E376C08, 0x2748774C, 0x34B0BCB5, 0x391C0CB3, 0x4ED8AA4A, 0x5B9CCA4F, 0x682E6FF3,
    0x748F82EE, 0x78A5636F, 0x84C87814, 0x8CC70208, 0x90BEFFFA, 0xA4506CEB, 0xBEF9A3F7, 0xC67178F2,
};

static uint32_t rotated(uint32_t x, int n) {
    return x >> n | x << (32 - n);
}

static void add_block(uint32_t state[8], const unsigned char *block) {
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (rotated(a, 7) ^ rotated(a, 18) ^ a >> 3) + w[i - 7] +
               (rotated(b, 17) ^ rotated(b, 19) ^ b >> 10);
    }
    memcpy(v, state, sizeof v);
    for (int i = 0; i < 64; i++) {
        uint32_t e = v[4], a = v[0];
        uint32_t t1 = v[7] + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) +
                      ((e & v[5]) ^ (~e & v[6])) + k[i] + w[i];
        uint32_t t2 = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) +
                      ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++)
        state[i] += v[i];
}

static void begin(struct ree_hasher *hasher, const char *tag) {
    static const uint32_t initial[8] = {0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A,
                                        0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19};
    memcpy(hasher->state, initial, sizeof initial);
    hasher->n = 0;
    if (tag) ree_hasher_update(hasher, tag, strlen(tag) + 1);
}

struct ree_hasher *ree_hasher_create(const char *tag) {
    struct ree_hasher *hasher = malloc(sizeof *hasher);
    if (!hasher) abort();
    begin(hasher, tag);
    return hasher;
}

void ree_hasher_update(struct ree_hasher *hasher, const void *bytes, size_t nbytes) {
    for (size_t i = 0; i < nbytes; i++) {
        hasher->block[hasher->n++ % 64] = ((const unsigned char *)bytes)[i];
        if (hasher->n % 64 == 0) add_block(hasher->state, hasher->block);
    }
}

void ree_hasher_next(struct ree_hasher *hasher, const char *tag,
                     unsigned char digest[REE_SHA256_SIZE]) {
    const uint64_t n_bits = hasher->n * 8;
    ree_hasher_update(hasher, "\x80", 1);
    while (hasher->n % 64 != 56)
        ree_hasher_update(hasher, "", 1);
    for (int i = 56; i >= 0; i -= 8) {
        unsigned char byte = (unsigned char)(n_bits >> i);
        ree_hasher_update(hasher, &byte, 1);
    }
    for (int i = 0; i < REE_SHA256_SIZE; i++)
        digest[i] = (unsigned char)(hasher->state[i / 4] >> (24 - 8 * (i % 4)));
    begin(hasher, tag);
}

void ree_hasher_digest(struct ree_hasher *hasher, unsigned char digest[REE_SHA256_SIZE]) {
    ree_hasher_next(hasher, NULL, digest);
    free(hasher);
}

void ree_hasher_finish(struct ree_hasher *hasher, char hex[65]) {
    unsigned char digest[REE_SHA256_SIZE];
    ree_hasher_digest(hasher, digest);
    ree_hex(digest, hex);
}

void ree_hex(const unsigned char digest[REE_SHA256_SIZE], char hex[65]) {
    for (int i = 0; i < REE_SHA256_SIZE; i++) {
        hex[2 * i] = "0123456789abcdef"[digest[i] >> 4];
        hex[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
    }
    hex[64] = 0;
}
