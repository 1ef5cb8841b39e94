// Launches with about 2^32 or more threads, bytes or words: indices must not wrap. On the emulator
// only the first and last blocks of a launch run, and memory that nothing touches costs nothing. A
// GPU needs 5 GiB.
#include "device/cuda/cuda.h"
#include "device/cuda/kernel_interface.h"
#include "cuda_symbol.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

static struct ree_error err;
static uint32_t n_skipped;

// One buffer per operand.
struct setup {
    struct ree_device *device;
    struct ree_dispatch dispatch;
    struct ree_device_buffer *buffers[REE_MAX_OPERANDS];
};

static void begin(struct setup *s, struct ree_device *device, enum ree_repop op) {
    memset(s, 0, sizeof *s);
    s->device = device;
    s->dispatch.op = op;
    s->dispatch.n_outputs = 1;
}

// Returns false if the device has too little memory.
static bool add(struct setup *s, uint64_t size) {
    const uint32_t i = s->dispatch.n_operands++;
    s->dispatch.operands[i] = (struct ree_operand){.slot = i, .size = size};
    return s->device->vtable->buffer_create(s->device, size, &s->buffers[i], &err) == REE_OK;
}

static void put(struct setup *s, uint32_t i, uint64_t at, const void *data, uint64_t size) {
    CHECK_MSG(s->device->vtable->buffer_write(s->device, s->buffers[i], at, data, size, &err) ==
                  REE_OK,
              "%s", err.message);
}
static void get(struct setup *s, uint32_t i, uint64_t at, void *data, uint64_t size) {
    CHECK_MSG(s->device->vtable->buffer_read(s->device, s->buffers[i], at, data, size, &err) ==
                  REE_OK,
              "%s", err.message);
}

static void run(struct setup *s, const char *what) {
    const struct ree_device_vtable *vt = s->device->vtable;
    const struct ree_program source = {
        .dispatches = &s->dispatch, .n_dispatches = 1, .n_slots = s->dispatch.n_operands};
    struct ree_device_program *program = NULL;
    CHECK_MSG(ree_dispatch_check(&s->dispatch, &err) == REE_OK, "%s: %s", what, err.message);
    CHECK_MSG(vt->program_create(s->device, &source, NULL, NULL, &program, &err) == REE_OK,
              "%s: %s", what, err.message);
    if (program)
        CHECK_MSG(vt->program_run(s->device, program, s->buffers, NULL, &err) == REE_OK, "%s: %s",
                  what, err.message);
    vt->program_destroy(s->device, program);
}

static void end(struct setup *s, bool had_memory) {
    n_skipped += !had_memory;
    for (uint32_t i = 0; i < s->dispatch.n_operands; i++)
        s->device->vtable->buffer_destroy(s->device, s->buffers[i]);
}

// Bytes, few rows, 32 threads per output: 2^27 outputs and more. B is the same for all batches.
#define N_BATCH ((1u << 14) + 1)
#define N (1u << 13)
static void multiplies(struct ree_device *device) {
    struct setup s;
    begin(&s, device, REE_REPOP_MATMUL);
    s.dispatch.params.matmul = (struct ree_matmul_params){
        .a_dtype = REE_I8,
        .b_dtype = REE_I8,
        .dtype = REE_I32,
        .n_batch = N_BATCH,
        .batch_rank = 1,
        .batch_dims = {N_BATCH},
        .m = 1,
        .n = N,
        .k = 16,
        .a_stride_m = 16,
        .a_stride_k = 1,
        .a_batch_strides = {16},
        .b_stride_k = 1,
        .b_stride_n = 16,
    };
    const uint64_t n_outputs = (uint64_t)N_BATCH * N;
    bool has_memory = add(&s, 16 * N_BATCH) && add(&s, 16 * N) && add(&s, 4 * n_outputs);
    if (has_memory) {
        const int8_t a[16] = {3}, b[16] = {-7};
        int32_t last = 0;
        put(&s, 2, 4 * (n_outputs - 1), &last, 4);
        put(&s, 0, 16 * (N_BATCH - 1), a, 16);
        put(&s, 1, 16 * (N - 1), b, 16);
        run(&s, "a product of bytes");
        get(&s, 2, 4 * (n_outputs - 1), &last, 4);
        CHECK_MSG(last == -21, "the last output of a product is %d", last);
    }
    end(&s, has_memory);
}

// A block of 256 threads per output: 2^24 outputs and more, of one repeated row.
#define ROW 2048u
static void reduces(struct ree_device *device) {
    const uint32_t n_outer = (1u << 24) + 1;
    struct setup s;
    begin(&s, device, REE_REPOP_REDUCE);
    s.dispatch.params.reduce = (struct ree_reduce_params){
        .kind = REE_REDUCE_MAX,
        .dtype = REE_I8,
        .n_outer = n_outer,
        .n_reduce = ROW,
        .outer_rank = 1,
        .outer_dims = {n_outer},
        .reduce_rank = 1,
        .reduce_dims = {ROW},
        .reduce_strides = {1},
    };
    bool has_memory = add(&s, ROW) && add(&s, n_outer);
    if (has_memory) {
        int8_t row[ROW] = {0}, last[4] = {0};
        row[ROW - 1] = 5;
        put(&s, 0, 0, row, ROW);
        put(&s, 1, n_outer - 1, last, 1);
        run(&s, "a maximum");
        get(&s, 1, n_outer - 1, last, 1);
        CHECK_MSG(last[0] == 5, "the last maximum is %d", last[0]);
    }
    end(&s, has_memory);
}

// Copies a few elements to, or from, an offset of 4 GiB.
static void copies(struct ree_device *device, uint32_t elem_size, bool to) {
    const uint32_t n = 6, offset = (uint32_t)(((uint64_t)1 << 32) / elem_size);
    const uint64_t large = (uint64_t)(offset + n) * elem_size, small = (uint64_t)n * elem_size;
    struct setup s;
    begin(&s, device, REE_REPOP_COPY);
    s.dispatch.params.copy = (struct ree_copy_params){
        .elem_size = elem_size,
        .rank = 1,
        .n_elements = n,
        .dims = {n},
        .src_offset = to ? 0 : (int32_t)offset,
        .dst_offset = to ? (int32_t)offset : 0,
        .src_strides = {1},
        .dst_strides = {1},
    };
    bool has_memory = add(&s, to ? small : large) && add(&s, to ? large : small);
    if (has_memory) {
        const uint64_t from_at = to ? 0 : large - small, to_at = to ? large - small : 0;
        uint8_t values[48], copied[48] = {0};
        for (uint32_t i = 0; i < small; i++)
            values[i] = (uint8_t)(i * 7 + 1);
        put(&s, 1, to_at, copied, small);
        put(&s, 0, from_at, values, small);
        run(&s, "a copy");
        get(&s, 1, to_at, copied, small);
        CHECK_MSG(memcmp(copied, values, small) == 0, "elements of %u bytes, %s 4 GiB", elem_size,
                  to ? "to" : "from");
    }
    end(&s, has_memory);
}

// The last words of 2^31 - 1 elements of 8 bytes, 16 GiB, more than the emulated device has: the
// kernel is launched by the emulator's own function.
static void copies_end(struct ree_cuda *cuda) {
    void *(*alloc)(uint64_t);
    int (*free_memory)(void *);
    int (*launch)(const char *, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t,
                  uint32_t, const void *, char *, size_t);
    if (!cuda_symbol(cuda, "ree_emulator_alloc", &alloc) ||
        !cuda_symbol(cuda, "ree_emulator_free", &free_memory) ||
        !cuda_symbol(cuda, "ree_emulator_launch", &launch))
        return; // a GPU
    const uint32_t n_elements = INT32_MAX, n_words = 2 * n_elements;
    const uint64_t size = 8 * (uint64_t)n_elements;
    uint8_t *from = alloc(size), *to = alloc(size);
    struct ree_cuda_args *args = calloc(1, sizeof *args);
    char text[256] = "";
    if (from && to && args) {
        memcpy(from + size - 8, "the end", 8);
        args->header.operands[0] = (uintptr_t)from;
        args->header.operands[1] = (uintptr_t)to;
        args->header.sizes[0] = args->header.sizes[1] = size;
        args->header.extra[0] = n_words;
        args->params.copy = (struct ree_cuda_copy_params){.elem_size = 8, .n_elements = n_elements};
        CHECK_MSG(launch("ree_copy_words", (n_words / 4 + 256) / 256, 1, 1, 256, 1, 1, 0, args,
                         text, sizeof text) == 0,
                  "%s", text);
        CHECK(memcmp(to + size - 8, "the end", 8) == 0);
    } else {
        n_skipped++;
    }
    free(args);
    free_memory(from);
    free_memory(to);
}

int main(void) {
    const struct ree_device_options options = {.size = sizeof options, .cache_dir = ""};
    struct ree_device *device;
    setenv("REE_EMULATOR", "blocks=256,races=off", 1); // only the emulator reads it
    enum ree_status status = ree_cuda_device_open("", &options, &device, &err);
    if (status == REE_UNAVAILABLE) return test_skip(err.message);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    if (status != REE_OK) return test_finish();
    multiplies(device);
    reduces(device);
    for (uint32_t to = 0; to < 2; to++) {
        copies(device, 4, to);
        copies(device, 8, to);
    }
    copies_end(ree_cuda_of(device));
    ree_device_destroy(device);
    const int result = test_finish();
    return result == 0 && n_skipped > 0 ? test_skip("too little memory for some launches") : result;
}
