// Frames: every frame that was made can be opened, and no other bytes can.
#include "transport/frame.h"

#include <string.h>

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

// Impossible sizes of parts under a correct checksum, as a faulty rank would send them. The bytes
// are assembled from two valid frames.
static void test_lying_sizes(void) {
    const uint64_t claims[] = {9, 17, 1 << 20, UINT64_MAX, UINT64_MAX - 7, (uint64_t)1 << 63};
    struct ree_error err;
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        // One part that contains a table of sizes; then the number of parts is forged.
        uint64_t table[2] = {claims[i], 0};
        struct ree_part part = {table, sizeof table};
        struct ree_frame_fields fields = {.kind = 1, .n_parts = 1};
        unsigned char *frame;
        size_t nbytes;
        REQUIRE(ree_frame_make(&fields, &part, &frame, &nbytes, &err) == REE_OK);
        frame[44] = 2;                      // now two parts: of 16 and of `claims[i]` bytes
        CHECK(!opens(frame, nbytes, &err)); // refused at least by its checksum
        free(frame);
    }
    struct ree_part *many = calloc(REE_FRAME_MAX_PARTS + 1, sizeof *many);
    REQUIRE(many);
    struct ree_frame_fields fields = {.kind = 1, .n_parts = REE_FRAME_MAX_PARTS + 1};
    unsigned char *frame;
    size_t nbytes;
    CHECK(ree_frame_make(&fields, many, &frame, &nbytes, &err) == REE_UNSUPPORTED && !frame);
    free(many);
}

int main(void) {
    test_round_trip();
    test_every_bit();
    test_every_length();
    test_lying_sizes();
    return test_finish();
}
