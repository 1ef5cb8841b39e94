// Reads messages between ranks from arbitrary bytes: frames, and the steps, boundary tensors,
// logits and cache positions in them. It must return values that fit what was expected, or an error
// with a message.
//
// Format of an input: a byte of options and a frame. With OPTION_RIGHT the target corrects the
// format, length and checksum in the frame, so that the code after these checks is reached.
//
//     cmake --preset fuzz && cmake --build build-fuzz --target fuzz_message
//     build-fuzz/tests/fuzz/fuzz_message FOLDER tests/data/messages
#include <stdlib.h>
#include <string.h>

#include "ranks/codec.h"
#include "base/sha256.h"
#include "transport/frame.h"

#define OPTION_RIGHT 1

#define BATCH 3
#define LENGTH 4
#define MOST 104
#define WIDTH 8

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static struct ree_value hidden = {
    .name = "hidden", .dtype = REE_F32, .has_shape = true, .rank = 3, .dims = {-1, -1, WIDTH}};
static struct ree_value scale = {.name = "scale", .dtype = REE_F16, .has_shape = true};
static struct ree_value unknown = {.name = "unknown"};
static const struct ree_value *values[] = {&hidden, &scale, &unknown};

static void require(enum ree_status status, const struct ree_error *err) {
    if (status == REE_OK) return;
    if (err->status != status || !err->message[0] || status == REE_INTERNAL) abort();
}

static void put(uint8_t *at, uint64_t value, int n) {
    for (int i = 0; i < n; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static void put_right(uint8_t *frame, size_t size) {
    unsigned char digest[REE_SHA256_SIZE];
    memcpy(frame, "ree-msg", 8);
    put(frame + 8, REE_FRAME_VERSION, 4);
    put(frame + REE_FRAME_LENGTH_AT, size - REE_FRAME_HEADER, 8);
    struct ree_hasher *hasher = ree_hasher_create("ree-message/1");
    ree_hasher_update(hasher, frame, 56);
    ree_hasher_update(hasher, frame + REE_FRAME_HEADER, size - REE_FRAME_HEADER);
    ree_hasher_digest(hasher, digest);
    memcpy(frame + 56, digest, 16);
}

// Reads every byte of the tensor, so that sanitizers check the memory.
static void touch(const struct ree_tensor *t) {
    volatile unsigned char sum = 0;
    for (size_t i = 0; i < t->nbytes; i++)
        sum ^= ((const unsigned char *)t->data)[i];
    (void)sum;
}

static void read_step(const struct ree_message *m) {
    const struct ree_bounds bounds = {BATCH, LENGTH, MOST};
    struct ree_error err = {.message = ""};
    struct ree_step step;
    struct ree_boundary boundary;
    void *block;
    enum ree_status status = ree_decode_step(m, &bounds, &step, &block, &err);
    require(status, &err);
    if (status != REE_OK) {
        if (block) abort();
        return;
    }
    if (step.batch != BATCH || step.length < 1 || step.length > LENGTH || step.n_rows > step.length)
        abort();
    volatile int64_t sum = 0;
    for (size_t i = 0; i < step.batch; i++)
        if (step.starts[i] < 0 || step.starts[i] + (int64_t)step.length > MOST) abort();
    for (size_t i = 0; i < step.batch * step.n_rows; i++)
        if (step.rows[i] < 0 || step.rows[i] >= (int64_t)step.length) abort();
    for (size_t i = 0; i < step.batch * step.length; i++)
        sum += step.ids[i];
    (void)sum;
    for (size_t n = 1; n <= 3; n++) {
        const struct ree_cut cut = {.n_values = n, .values = values, .nbytes = 64};
        err.message[0] = 0;
        status = ree_decode_boundary(m, &cut, &step, MOST, &boundary, &err);
        require(status, &err);
        if (status != REE_OK) {
            if (boundary.tensors) abort();
            continue;
        }
        const struct ree_tensor *t = boundary.tensors;
        if (boundary.n != n || t->dtype != REE_F32 || t->rank != 3 || t->dims[2] != WIDTH) abort();
        if (t->dims[0] * t->dims[1] > (int64_t)step.batch * MOST) abort();
        if (n > 1 && (t[1].rank != 0 || t[1].dtype != REE_F16)) abort();
        for (size_t i = 0; i < n; i++)
            touch(&boundary.tensors[i]);
        ree_boundary_finish(&boundary);
    }
    free(block);
}

static void read_results(const struct ree_message *m) {
    static const int64_t rows[BATCH * 2] = {0};
    const struct ree_step step = {.batch = BATCH, .length = LENGTH, .n_rows = 2, .rows = rows};
    struct ree_error err = {.message = ""};
    for (int64_t vocabulary = 0; vocabulary <= 7; vocabulary += 7) {
        struct ree_tensor logits;
        enum ree_status status = ree_decode_logits(m, &step, vocabulary, &logits, &err);
        require(status, &err);
        if (status != REE_OK) continue;
        if (logits.dims[0] != BATCH || logits.dims[1] != 2) abort();
        touch(&logits);
        ree_tensor_finish(&logits);
    }
    struct ree_tensor kv_caches[3] = {{.name = NULL}};
    require(ree_decode_positions(m, values, 3, kv_caches, &err), &err);
    for (size_t i = 0; i < 3; i++) {
        if (kv_caches[i].name) touch(&kv_caches[i]);
        ree_tensor_finish(&kv_caches[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    if (size < 1) return 0;
    bool right = bytes[0] & OPTION_RIGHT;
    size--;
    // A copy of the exact size, so that sanitizers report a read past the end.
    uint8_t *frame = malloc(size ? size : 1);
    if (!frame) return 0;
    memcpy(frame, bytes + 1, size);
    if (right && size >= REE_FRAME_HEADER) put_right(frame, size);
    struct ree_frame_fields f;
    struct ree_message m = {.frame = frame};
    struct ree_error err = {.message = ""};
    enum ree_status status = ree_frame_open(frame, size, &f, &m.parts, &err);
    require(status, &err);
    if (status == REE_OK) {
        m.n_parts = f.n_parts;
        for (uint32_t i = 0; i < m.n_parts; i++)
            touch(&(struct ree_tensor){.data = (void *)(uintptr_t)m.parts[i].data,
                                       .nbytes = m.parts[i].nbytes});
        read_step(&m);
        read_results(&m);
    }
    ree_message_finish(&m);
    return 0;
}
