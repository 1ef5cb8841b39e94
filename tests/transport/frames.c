// Frames: every frame that was made can be opened, and no other bytes can.
#include "transport/frame.h"

#include <string.h>

#include "base/sha256.h"
#include "test.h"

static const unsigned char first[] = "hidden values of one token";
static const uint64_t second[3] = {1, 2, 3};

static unsigned char *make(size_t *out_nbytes) {
    struct ree_part parts[] = {{first, sizeof first}, {NULL, 0}, {second, sizeof second}};
    struct ree_frame_fields fields = {5, 1, 2, 77, 17, 3, 3};
    struct ree_error err;
    unsigned char *frame;
    REQUIRE(ree_frame_make(&fields, parts, &frame, out_nbytes, &err) == REE_OK);
    CHECK(*out_nbytes == ree_frame_nbytes(parts, 3));
    return frame;
}

static bool opens(const unsigned char *frame, size_t nbytes, struct ree_error *err) {
    struct ree_frame_fields fields;
    struct ree_part *parts;
    // A copy of the exact size, so that sanitizers report a read past the end.
    unsigned char *copy = malloc(nbytes + 1);
    REQUIRE(copy);
    memcpy(copy, frame, nbytes);
    copy = realloc(copy, nbytes ? nbytes : 1);
    bool ok = ree_frame_open(copy, nbytes, &fields, &parts, err) == REE_OK;
    CHECK(ok || parts == NULL);
    free(parts);
    free(copy);
    return ok;
}

static void test_round_trip(void) {
    size_t nbytes, measured;
    unsigned char *frame = make(&nbytes);
    struct ree_frame_fields f;
    struct ree_part *parts;
    struct ree_error err;
    REQUIRE(ree_frame_open(frame, nbytes, &f, &parts, &err) == REE_OK);
    CHECK(f.kind == 5 && f.from == 1 && f.to == 2 && f.sequence == 77 && f.step == 17);
    CHECK(f.slot == 3 && f.n_parts == 3);
    CHECK(parts[0].nbytes == sizeof first && memcmp(parts[0].data, first, sizeof first) == 0);
    CHECK(parts[1].nbytes == 0);
    CHECK(parts[2].nbytes == sizeof second && memcmp(parts[2].data, second, sizeof second) == 0);
    CHECK((uintptr_t)((const unsigned char *)parts[2].data - frame) % 8 == 0);
    CHECK(ree_frame_measure(frame, nbytes, &measured, &err) == REE_OK && measured == nbytes);
    CHECK(ree_frame_measure(frame, nbytes - 1, &measured, &err) == REE_INVALID);
    CHECK(strstr(err.message, "the expected maximum is") != NULL);
    free(parts);
    free(frame);
}

static void test_every_bit(void) {
    size_t nbytes;
    unsigned char *frame = make(&nbytes);
    struct ree_error err;
    CHECK(opens(frame, nbytes, &err));
    for (size_t bit = 0; bit < 8 * nbytes; bit++) {
        frame[bit / 8] ^= (unsigned char)(1 << bit % 8);
        CHECK_MSG(!opens(frame, nbytes, &err), "bit %zu may be flipped", bit);
        CHECK(err.message[0]);
        frame[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    CHECK(opens(frame, nbytes, &err));
    free(frame);
}

static void test_every_length(void) {
    size_t nbytes;
    unsigned char *frame = make(&nbytes);
    struct ree_error err;
    for (size_t n = 0; n < nbytes; n++)
        CHECK_MSG(!opens(frame, n, &err), "%zu of %zu bytes are enough", n, nbytes);
    unsigned char *longer = calloc(nbytes + 8, 1);
    REQUIRE(longer);
    memcpy(longer, frame, nbytes);
    CHECK(!opens(longer, nbytes + 8, &err));
    free(longer);
    free(frame);
}

static void put(unsigned char *at, uint64_t value, int n) {
    for (int i = 0; i < n; i++)
        at[i] = (unsigned char)(value >> 8 * i);
}

// Computes the length and the checksum again, as a faulty rank would.
static void put_right(unsigned char *frame, size_t nbytes) {
    unsigned char digest[REE_SHA256_SIZE];
    put(frame + REE_FRAME_LENGTH_AT, nbytes - REE_FRAME_HEADER, 8);
    struct ree_hasher *hasher = ree_hasher_create("ree-message/1");
    ree_hasher_update(hasher, frame, 56);
    ree_hasher_update(hasher, frame + REE_FRAME_HEADER, nbytes - REE_FRAME_HEADER);
    ree_hasher_digest(hasher, digest);
    memcpy(frame + 56, digest, 16);
}

// Takes a frame with parts of 8, 8 and 0 bytes, removes its last `n_cut` bytes and writes `value`,
// little-endian, to n bytes. It must be refused with a message that contains `expected`.
static void check_malformed(size_t n_cut, size_t at, uint64_t value, int n, const char *expected) {
    struct ree_part parts[] = {{second, 8}, {second + 1, 8}, {NULL, 0}};
    struct ree_frame_fields fields = {.kind = 1, .n_parts = 3};
    struct ree_error err = {.message = ""};
    unsigned char *frame;
    size_t nbytes;
    REQUIRE(ree_frame_make(&fields, parts, &frame, &nbytes, &err) == REE_OK);
    put_right(frame, nbytes);
    CHECK(opens(frame, nbytes, &err));
    put(frame + at, value, n);
    put_right(frame, nbytes - n_cut);
    CHECK_MSG(!opens(frame, nbytes - n_cut, &err) && strncmp(err.message, "malformed: ", 11) == 0 &&
                  strstr(err.message, expected),
              "%llu at byte %zu: %s", (unsigned long long)value, at, err.message);
    free(frame);
}

// Impossible sizes and numbers of parts under a correct checksum, and too many parts.
static void test_lying_sizes(void) {
    const uint64_t sizes[] = {9, 17, 1 << 20, UINT64_MAX, UINT64_MAX - 7, 1ull << 63};
    struct ree_error err;
    for (size_t at = 72; at <= 88; at += 8)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            check_malformed(0, at, sizes[i], 8, " extends beyond its end");
    check_malformed(3, 80, 5, 8, "part 1 extends beyond its end"); // by its padding
    check_malformed(0, 80, 0, 8, "8 bytes after its parts");
    check_malformed(0, 44, 0, 4, "40 bytes after its parts");
    check_malformed(0, 44, 2, 4, "8 bytes after its parts");
    check_malformed(0, 44, 4, 4, "part 1 extends beyond its end");
    check_malformed(0, 44, 6, 4, "6 parts in 40 bytes");
    check_malformed(0, 44, UINT32_MAX, 4, " parts in 40 bytes");
    struct ree_part *many = calloc(REE_FRAME_MAX_PARTS + 1, sizeof *many);
    REQUIRE(many);
    struct ree_frame_fields fields = {.kind = 1, .n_parts = REE_FRAME_MAX_PARTS + 1};
    unsigned char *frame;
    size_t nbytes;
    CHECK(ree_frame_make(&fields, many, &frame, &nbytes, &err) == REE_UNSUPPORTED && !frame);
    fields.n_parts--;
    REQUIRE(ree_frame_make(&fields, many, &frame, &nbytes, &err) == REE_OK);
    CHECK(opens(frame, nbytes, &err));
    unsigned char *longer = calloc(nbytes + 8, 1);
    REQUIRE(longer);
    memcpy(longer, frame, nbytes); // one more part, of 0 bytes
    put(longer + 44, REE_FRAME_MAX_PARTS + 1, 4);
    put_right(longer, nbytes + 8);
    CHECK(!opens(longer, nbytes + 8, &err) && strstr(err.message, "malformed: 4097 parts"));
    free(longer);
    free(frame);
    free(many);
}

int main(void) {
    test_round_trip();
    test_every_bit();
    test_every_length();
    test_lying_sizes();
    return test_finish();
}
