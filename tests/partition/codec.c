// Steps, boundary tensors and cache positions in messages: a sent value arrives unchanged. No
// content of a message makes its reader return values outside the expected bounds or read beyond
// the message (sanitizers report it).
#include "ranks/codec.h"

#include <string.h>

#include "test.h"
#include "splitmix.h"

#define BATCH 3
#define LENGTH 4
#define ROWS 2

static const int32_t ids[BATCH * LENGTH] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
static const int64_t starts[BATCH] = {0, 7, 100}, rows[BATCH * ROWS] = {0, 3, 1, 2, 3, 3};
static const struct ree_step step = {BATCH, LENGTH, ids, starts, ROWS, rows};
static const struct ree_bounds bounds = {BATCH, LENGTH, 104};

static struct ree_value hidden = {
    .name = "hidden", .dtype = REE_F32, .has_shape = true, .rank = 3, .dims = {-1, -1, 8}};
static struct ree_value flags = {.name = "flags"}; // type and shape are unknown
static const struct ree_value *values[] = {&hidden, &flags};
static const struct ree_cut cut = {.n_values = 2, .values = values, .nbytes = 33};

static struct ree_boundary make_boundary(void) {
    struct ree_error err;
    struct ree_boundary p = {2, calloc(2, sizeof *p.tensors)};
    REQUIRE(p.tensors);
    REQUIRE(ree_tensor_init(&p.tensors[0], "hidden", REE_F32, 3, (int64_t[]){BATCH, LENGTH, 8},
                            &err) == REE_OK);
    REQUIRE(ree_tensor_init(&p.tensors[1], "flags", REE_BOOL, 1, (int64_t[]){5}, &err) == REE_OK);
    for (size_t i = 0; i < BATCH * LENGTH * 8; i++)
        ((float *)p.tensors[0].data)[i] = (float)i / 3;
    memcpy(p.tensors[1].data, (uint8_t[]){1, 0, 1, 1, 0}, 5);
    return p;
}

// Returns the message as it would arrive, its frame in an allocation of exactly its size.
static struct ree_message send(const struct ree_encoded *encoded) {
    struct ree_frame_fields fields = {.kind = 5, .n_parts = (uint32_t)encoded->n_parts};
    struct ree_message m = {0};
    struct ree_error err;
    size_t nbytes;
    REQUIRE(ree_frame_make(&fields, encoded->parts, &m.frame, &nbytes, &err) == REE_OK);
    REQUIRE(ree_frame_open(m.frame, nbytes, &fields, &m.parts, &err) == REE_OK);
    m.n_parts = fields.n_parts;
    return m;
}

static struct ree_message send_step(void) {
    struct ree_boundary boundary = make_boundary();
    struct ree_encoded encoded;
    struct ree_error err;
    REQUIRE(ree_encode_step(&step, &boundary, &encoded, &err) == REE_OK);
    struct ree_message m = send(&encoded);
    ree_encoded_finish(&encoded);
    ree_boundary_finish(&boundary);
    return m;
}

static void test_step(void) {
    struct ree_message m = send_step();
    struct ree_boundary sent = make_boundary(), got;
    struct ree_step s;
    struct ree_error err;
    void *block;
    REQUIRE(ree_decode_step(&m, &bounds, &s, &block, &err) == REE_OK);
    CHECK(s.batch == BATCH && s.length == LENGTH && s.n_rows == ROWS);
    CHECK(memcmp(s.ids, ids, sizeof ids) == 0 && memcmp(s.starts, starts, sizeof starts) == 0 &&
          memcmp(s.rows, rows, sizeof rows) == 0);
    free(block);
    REQUIRE(ree_decode_boundary(&m, &cut, &step, 104, &got, &err) == REE_OK);
    CHECK(got.n == 2);
    for (size_t i = 0; i < 2; i++) {
        const struct ree_tensor *a = &sent.tensors[i], *b = &got.tensors[i];
        CHECK(strcmp(b->name, values[i]->name) == 0 && a->dtype == b->dtype && a->rank == b->rank);
        CHECK(a->nbytes == b->nbytes && memcmp(a->data, b->data, a->nbytes) == 0);
    }
    ree_boundary_finish(&got);
    ree_boundary_finish(&sent);
    CHECK(ree_step_limit(&bounds, &cut) > 1000);
    ree_message_finish(&m);
}

static void test_bounds(void) {
    const struct ree_bounds wrong[] = {{2, 4, 104}, {3, 3, 104}, {3, 4, 103}, {4, 4, 104}};
    struct ree_message m = send_step();
    struct ree_step s;
    struct ree_error err;
    void *block;
    for (size_t i = 0; i < 4; i++)
        CHECK(ree_decode_step(&m, &wrong[i], &s, &block, &err) == REE_INVALID && !block);
    struct ree_boundary got;
    struct ree_value other = hidden;
    const struct ree_value *others[] = {&other, &flags};
    struct ree_cut changed = {.n_values = 2, .values = others};
    other.dims[2] = 9;
    CHECK(ree_decode_boundary(&m, &changed, &step, 104, &got, &err) == REE_INVALID && !got.tensors);
    other = hidden;
    other.dtype = REE_F16;
    CHECK(ree_decode_boundary(&m, &changed, &step, 104, &got, &err) == REE_INVALID && !got.tensors);
    // Rank 0, and a rank that is too small by one.
    other = (struct ree_value){.name = "hidden", .dtype = REE_F32, .has_shape = true};
    CHECK(ree_decode_boundary(&m, &changed, &step, 104, &got, &err) == REE_INVALID && !got.tensors);
    other = hidden;
    other.rank = 2;
    CHECK(ree_decode_boundary(&m, &changed, &step, 104, &got, &err) == REE_INVALID && !got.tensors);
    // The numbers of sequences and tokens must be those of the step.
    struct ree_step longer = step, wider = step;
    longer.length++;
    wider.batch++;
    CHECK(ree_decode_boundary(&m, &cut, &longer, 104, &got, &err) == REE_INVALID && !got.tensors);
    CHECK(ree_decode_boundary(&m, &cut, &wider, 104, &got, &err) == REE_INVALID && !got.tensors);
    other = hidden;
    changed.n_values = 1;
    CHECK(ree_decode_boundary(&m, &changed, &step, 104, &got, &err) == REE_INVALID && !got.tensors);
    ree_message_finish(&m);
}

static void test_logits(void) {
    struct ree_tensor logits, got;
    struct ree_encoded encoded;
    struct ree_error err;
    REQUIRE(ree_tensor_init(&logits, "logits", REE_F32, 3, (int64_t[]){BATCH, ROWS, 7}, &err) ==
            REE_OK);
    ((float *)logits.data)[41] = 0.5f;
    REQUIRE(ree_encode_logits(&logits, &encoded, &err) == REE_OK);
    struct ree_message m = send(&encoded);
    REQUIRE(ree_decode_logits(&m, &step, 7, &got, &err) == REE_OK);
    CHECK(got.nbytes == logits.nbytes && memcmp(got.data, logits.data, got.nbytes) == 0);
    ree_tensor_finish(&got);
    REQUIRE(ree_decode_logits(&m, &step, 0, &got, &err) == REE_OK);
    ree_tensor_finish(&got);
    CHECK(ree_decode_logits(&m, &step, 8, &got, &err) == REE_INVALID && !got.data);
    struct ree_step other = step;
    other.n_rows = 1;
    CHECK(ree_decode_logits(&m, &other, 7, &got, &err) == REE_INVALID && !got.data);
    ree_message_finish(&m);
    ree_encoded_finish(&encoded);
    ree_tensor_finish(&logits);
}

static void finish_rows(struct ree_tensor *tensors, size_t n) {
    for (size_t i = 0; i < n; i++)
        ree_tensor_finish(&tensors[i]);
}

static void test_rows(void) {
    struct ree_boundary boundary = make_boundary();
    struct ree_tensor sent[3] = {[1] = boundary.tensors[0]}, got[3] = {0};
    const struct ree_value *three[] = {&flags, &hidden, &flags};
    struct ree_encoded encoded;
    struct ree_error err;
    REQUIRE(ree_encode_positions(sent, 3, &encoded, &err) == REE_OK);
    struct ree_message m = send(&encoded);
    REQUIRE(ree_decode_positions(&m, three, 3, got, &err) == REE_OK);
    CHECK(!got[0].name && !got[2].name && got[1].nbytes == sent[1].nbytes);
    CHECK(memcmp(got[1].data, sent[1].data, got[1].nbytes) == 0);
    CHECK(ree_decode_positions(&m, three, 3, got, &err) ==
          REE_INVALID); // a cache that appears twice
    finish_rows(got, 3);
    CHECK(ree_decode_positions(&m, three, 1, got, &err) == REE_INVALID);
    finish_rows(got, 3);
    ree_message_finish(&m);
    ree_encoded_finish(&encoded);
    ree_boundary_finish(&boundary);
}

// Messages of a faulty rank: parts of other sizes and contents, under a correct checksum.
static struct splitmix rng = {20261122};

static uint64_t draw(void) {
    return splitmix_next(&rng);
}

static void test_mutated(void) {
    const struct ree_value *three[] = {&flags, &hidden, &flags};
    size_t n_good = 0, n_bad = 0;
    for (int round = 0; round < 50000; round++) {
        struct ree_message m = send_step();
        // Each part in its own allocation, so that sanitizers report a read past the end.
        unsigned char *blocks[8] = {NULL};
        for (uint32_t i = 0; i < m.n_parts; i++) {
            size_t n = m.parts[i].nbytes, kept = draw() % 8 ? n : draw() % (n + 1);
            blocks[i] = malloc(kept ? kept : 1);
            REQUIRE(blocks[i]);
            memcpy(blocks[i], m.parts[i].data, kept);
            for (uint64_t k = draw() % 3; kept && k > 0; k--)
                blocks[i][draw() % (draw() % 2 && kept > 24 ? 24 : kept)] =
                    draw() % 3 ? (unsigned char)(1u << draw() % 8) : (unsigned char)draw();
            m.parts[i] = (struct ree_part){blocks[i], kept};
        }
        uint32_t n_parts = m.n_parts;
        if (draw() % 8 == 0) m.n_parts = (uint32_t)(draw() % (m.n_parts + 1));
        struct ree_step s;
        struct ree_boundary p;
        struct ree_tensor t[3] = {0};
        struct ree_error err;
        void *block;
        bool ok = ree_decode_step(&m, &bounds, &s, &block, &err) == REE_OK;
        if (ok) CHECK(s.batch == BATCH && s.length <= LENGTH && s.n_rows <= s.length);
        for (size_t i = 0; ok && i < s.batch * s.n_rows; i++)
            CHECK(s.rows[i] >= 0 && s.rows[i] < LENGTH);
        for (size_t i = 0; ok && i < s.batch; i++)
            CHECK(s.starts[i] >= 0 && s.starts[i] + (int64_t)s.length <= bounds.most);
        free(block);
        ok = ree_decode_boundary(&m, &cut, &step, 104, &p, &err) == REE_OK;
        if (ok) CHECK(p.n == 2 && p.tensors[0].dims[2] == 8);
        if (ok) ree_boundary_finish(&p);
        n_good += ok;
        n_bad += !ok;
        if (ree_decode_logits(&m, &step, 0, &t[0], &err) == REE_OK) ree_tensor_finish(&t[0]);
        (void)ree_decode_positions(&m, three, 3, t, &err);
        finish_rows(t, 3);
        m.n_parts = n_parts;
        for (uint32_t i = 0; i < n_parts; i++)
            free(blocks[i]);
        ree_message_finish(&m);
    }
    CHECK_MSG(n_good > 1000 && n_bad > 1000, "%zu good, %zu bad", n_good, n_bad);
}

int main(void) {
    test_step();
    test_bounds();
    test_logits();
    test_rows();
    test_mutated();
    return test_finish();
}
