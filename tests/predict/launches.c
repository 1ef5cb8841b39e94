// Runs a language model on the CUDA emulator as a given GPU would run it, and prints its launches.
// tools/predict/count.py starts it.
//
//     launches MODEL [--prompt N] [--bits 0|4|8] [--blocks N] [--limits SMS,BLOCK,SM]
//
//     MODEL         a folder with a checkpoint
//     --prompt N    tokens of the prompt (default 512); then one step is run
//     --bits B      quantise the weights, in blocks of 32 (default 0: as they are)
//     --blocks N    blocks that are run of each launch of a matrix product (default 0: all);
//                   the results are then wrong, the counts of a block are not
//     --limits      the GPU: its multiprocessors, and the shared memory of a block and of a
//                   multiprocessor, in bytes
//
// The emulator's driver and the PTX come from $REE_CUDA_DRIVER and $REE_EMULATOR_PTX, as for every
// test of the CUDA backend. Standard output has a line of JSON for each dispatch:
//
//     {"label": "0.17", "node": "node 'gate' (MatMul)", "dispatch": "matmul m=512 ...", "op":
//      "matmul", "flops": 6.0e10, "bytes": 1.9e8, "scratch": 0, "launches":
//      [["ree_matmul_128x128", blocks, threads, shared bytes], ...]}
//
// label: the number of the program and of the dispatch. The emulator keeps the statistics of the
// dispatch under this label. bytes: spanned by the operands; scratch: bytes of temporary memory
// that its launches share. There are no self-tests, because the counts would include them.
#include "base/memory.h"
#include "base/strbuf.h"
#include "device/cuda/cuda.h"
#include "device/cuda/encode.h"
#include "device/program_info.h"
#include "ree.h"
#include "repops/cost.h"
#include "device/cuda_symbol.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FILLED ((uint64_t)512 << 20) // larger buffers are weights

static uint32_t n_runs, n_blocks;
static void (*set_label)(const char *text);
static int (*set_options)(const char *text);

// A program whose dispatches are programs of their own, so that each has its own statistics.
struct counted {
    uint32_t n, run;
    bool has_run;
    bool *is_product; // [n]
    struct ree_device_program *single[];
};

static void fail(const struct ree_error *err) {
    fflush(stdout);
    fprintf(stderr, "launches: %s\n", err->message);
    exit(err->status == REE_UNAVAILABLE ? 77 : 1);
}

static void print_string(const char *text) {
    putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') putchar('\\');
        if ((unsigned char)*text >= 32) putchar(*text);
    }
    putchar('"');
}

static void print_dispatch(const struct ree_program *source, uint32_t i, uint32_t run,
                           const struct ree_cuda_encoding *encoding) {
    const struct ree_dispatch *dispatch = &source->dispatches[i];
    const struct ree_cost cost = ree_dispatch_cost(dispatch);
    struct ree_strbuf text = {0};
    ree_dispatch_print(dispatch, &text);
    printf("{\"label\": \"%u.%u\", \"node\": ", run, i);
    print_string(ree_program_info_label(source, i));
    printf(", \"dispatch\": ");
    print_string(text.data ? text.data : "");
    printf(", \"op\": \"%s\", \"flops\": %.17g, \"bytes\": %.17g, \"scratch\": %llu, "
           "\"launches\": [",
           ree_repop_name(dispatch->op), cost.flops, cost.bytes,
           (unsigned long long)encoding->scratch_bytes);
    for (uint32_t s = 0; s < encoding->n_steps; s++) {
        const struct ree_cuda_step *step = &encoding->steps[s];
        printf("%s[\"%s\", %llu, %u, %u]", s ? ", " : "",
               encoding->jit ? "map_compiled" : ree_cuda_kernel_name(step->kernel),
               (unsigned long long)step->grid[0] * step->grid[1], step->threads,
               step->shared_bytes);
    }
    printf("]}\n");
    ree_strbuf_finish(&text);
}

static enum ree_status program_create(struct ree_device *device, const struct ree_program *source,
                                      struct ree_device_buffer *const *constants,
                                      uint64_t *copies_capacity, struct ree_device_program **out,
                                      struct ree_error *err) {
    (void)constants, (void)copies_capacity;
    struct ree_cuda *cuda = ree_cuda_of(device);
    struct counted *counted =
        calloc(1, sizeof *counted + source->n_dispatches * sizeof *counted->single);
    struct ree_cuda_encoding *encoding = calloc(1, sizeof *encoding);
    if (!counted || !encoding) abort();
    counted->n = source->n_dispatches;
    counted->run = n_runs++;
    counted->is_product = calloc(counted->n + 1, sizeof *counted->is_product);
    if (!counted->is_product) abort();
    REE_TRY(ree_cuda_enter(cuda, err));
    for (uint32_t i = 0; i < counted->n; i++) {
        struct ree_program one = *source;
        one.dispatches = source->dispatches + i;
        one.n_dispatches = 1;
        counted->is_product[i] = one.dispatches->op == REE_REPOP_MATMUL;
        REE_TRY(ree_cuda_encode_form(cuda, one.dispatches, REE_CUDA_COMPILED, encoding, err));
        print_dispatch(source, i, counted->run, encoding);
        REE_TRY(ree_cuda_program_assemble(cuda, &one, encoding, &counted->single[i], err));
    }
    ree_cuda_leave(cuda);
    free(encoding);
    void *program = counted; // opaque to the session
    *out = program;
    return REE_OK;
}

static struct counted *counted_of(struct ree_device_program *program) {
    void *own = program;
    return own;
}

static void program_destroy(struct ree_device *device, struct ree_device_program *program) {
    struct counted *counted = counted_of(program);
    for (uint32_t i = 0; counted && i < counted->n; i++)
        ree_cuda_vtable.program_destroy(device, counted->single[i]);
    if (counted) free(counted->is_product);
    free(counted);
}

static enum ree_status program_run(struct ree_device *device, struct ree_device_program *program,
                                   struct ree_device_buffer *const *slots,
                                   const struct ree_program_run *options, struct ree_error *err) {
    struct counted *counted = counted_of(program);
    (void)options;
    for (uint32_t i = 0; i < counted->n; i++) {
        char label[32] = "again", blocks[32];
        if (!counted->has_run) snprintf(label, sizeof label, "%u.%u", counted->run, i);
        snprintf(blocks, sizeof blocks, "blocks=%u", counted->is_product[i] ? n_blocks : 0);
        set_label(label);
        if (set_options(blocks) != 0) abort();
        REE_TRY(ree_cuda_vtable.program_run(device, counted->single[i], slots, NULL, err));
    }
    counted->has_run = true;
    return REE_OK;
}

// New memory has numbers between 1/16 and 2 in magnitude, whether it is read as float32, bfloat16
// or float16: the results of launches that run only some of their blocks are partly unwritten.
static enum ree_status buffer_create(struct ree_device *device, uint64_t size,
                                     struct ree_device_buffer **out, struct ree_error *err) {
    REE_TRY(ree_cuda_vtable.buffer_create(device, size, out, err));
    if (size > MAX_FILLED) return REE_OK;
    const uint64_t n = size / 4;
    uint32_t *words = malloc((n + 1) * sizeof *words), random = 1;
    if (!words) abort();
    for (uint64_t i = 0; i < n; i++) {
        random = random * 1664525u + 1013904223u;
        const uint32_t half = 0x3D80u + (random >> 16) % 0x280u + (random >> 8 & 0x8000u);
        words[i] = half << 16 | half;
    }
    const enum ree_status status = ree_cuda_vtable.buffer_write(device, *out, 0, words, n * 4, err);
    free(words);
    return status;
}

// Logits computed from unwritten memory may be NaN, and the text must go on.
static enum ree_status buffer_read(struct ree_device *device, struct ree_device_buffer *buffer,
                                   uint64_t offset, void *data, uint64_t size,
                                   struct ree_error *err) {
    REE_TRY(ree_cuda_vtable.buffer_read(device, buffer, offset, data, size, err));
    for (uint64_t i = 0; i + 4 <= size; i += 4) {
        uint32_t word;
        memcpy(&word, (char *)data + i, 4);
        if ((word & 0x7FFFFFFFu) > 0x7F800000u) memset((char *)data + i, 0, 4);
    }
    return REE_OK;
}

static bool program_times(struct ree_device *device, struct ree_device_program *program,
                          double *out_seconds) {
    (void)device, (void)program, (void)out_seconds;
    return false;
}

static void generate(const char *model, struct ree_device *device, size_t n_prompt, uint32_t bits) {
    struct ree_error err;
    struct ree_generator *generator;
    struct ree_generation out;
    const struct ree_model_options model_options = {
        .size = sizeof model_options, .quantize_bits = bits, .quantize_block = bits ? 32 : 0};
    const struct ree_generator_options how = {.size = sizeof how, .model = &model_options};
    if (ree_generator_create(model, device, &how, &generator, &err)) fail(&err);
    int32_t *ids = calloc(n_prompt, sizeof *ids);
    if (!ids) abort();
    const struct ree_prompt prompt = {ids, n_prompt};
    const struct ree_generate_options options = {
        .size = sizeof options, .sampling = ree_greedy, .max_new_tokens = 2};
    if (ree_generate(generator, &prompt, 1, &options, &out, NULL, &err)) fail(&err);
    ree_generation_finish(&out);
    free(ids);
    ree_generator_destroy(generator);
}

int main(int argc, char **argv) {
    const char *model = NULL;
    uint32_t n_prompt = 512, bits = 0;
    struct ree_cuda_limits limits = {0};
    for (int i = 1; i < argc; i++) {
        const bool has_value = i + 1 < argc;
        if (strcmp(argv[i], "--prompt") == 0 && has_value)
            n_prompt = (uint32_t)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--bits") == 0 && has_value)
            bits = (uint32_t)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--blocks") == 0 && has_value)
            n_blocks = (uint32_t)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--limits") == 0 && has_value &&
                 sscanf(argv[i + 1], "%u,%u,%u", &limits.n_multiprocessors, &limits.max_shared,
                        &limits.shared_per_multiprocessor) == 3)
            i++;
        else if (argv[i][0] != '-' && !model)
            model = argv[i];
        else
            model = "", i = argc;
    }
    if (!model || !*model || !n_prompt) {
        fprintf(stderr, "usage: launches MODEL [--prompt N] [--bits 0|4|8] [--blocks N] "
                        "[--limits SMS,BLOCK,SM]\n");
        return 2;
    }
    struct ree_error err;
    struct ree_device *device;
    const struct ree_device_options options = {.size = sizeof options, .cache_dir = ""};
    if (ree_device_open("cuda", &options, &device, &err)) fail(&err);
    struct ree_cuda *cuda = ree_cuda_of(device);
    if (!cuda_symbol(cuda, "ree_emulator_statistics_label", (void *)&set_label) ||
        !cuda_symbol(cuda, "ree_emulator_options", (void *)&set_options)) {
        fprintf(stderr, "launches: $REE_CUDA_DRIVER does not name the emulator\n");
        return 77;
    }
    if (set_options("races=off,async=now") != 0) abort();
    if (limits.n_multiprocessors) cuda->limits = limits;
    struct ree_device_vtable vtable = ree_cuda_vtable;
    vtable.program_create = program_create;
    vtable.program_destroy = program_destroy;
    vtable.program_run = program_run;
    vtable.program_times = program_times;
    vtable.buffer_create = buffer_create;
    vtable.buffer_read = buffer_read;
    device->vtable = &vtable;
    set_label("probe");
    generate(model, device, n_prompt, bits);
    device->vtable = &ree_cuda_vtable;
    ree_device_destroy(device);
    return 0;
}
