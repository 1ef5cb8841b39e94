// Measures one dispatch on a device, and the baselines: OpenBLAS and the bandwidth of memory.
#include "bench/bench_internal.h"

#include "base/any.h"
#include "base/clock.h"
#include "base/float_env.h"
#include "base/memory.h"
#include "base/status.h"

#include <dlfcn.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

// Idle threads of one thread pool spin for some milliseconds before they sleep. Without this rest
// they would take processor time from another pool.
void ree_bench_rest(void) {
    nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
}

void ree_bench_times_add(struct ree_bench_times *times, double seconds) {
    if (times->n == REE_BENCH_MAX_RUNS) return;
    // Insertion keeps the times sorted.
    uint32_t i = times->n++;
    for (; i > 0 && times->seconds[i - 1] > seconds; i--)
        times->seconds[i] = times->seconds[i - 1];
    times->seconds[i] = seconds;
}

double ree_bench_quantile(const struct ree_bench_times *times, double q) {
    return times->n ? times->seconds[(uint32_t)(q * (times->n - 1) + 0.5)] : 0;
}

float *ree_bench_floats(size_t n) {
    float *floats = ree_alloc_aligned(64, n * sizeof(float) + 64);
    if (!floats) return NULL;
    uint32_t state = 12345;
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        floats[i] = (float)(int32_t)state * 0x1p-31f;
    }
    return floats;
}

// Programs

// Replaces random floats in place by `size` bytes of another type. 16-bit numbers are made normal,
// with either sign, as weights are: subnormal numbers would be slow.
static void narrow(enum ree_dtype dtype, void *floats, uint64_t size) {
    uint8_t *bytes = floats;
    ree_any_u16 *halves = floats;
    for (uint64_t i = 0; i < size / 2 && (dtype == REE_F16 || dtype == REE_BF16); i++) {
        uint16_t random = (uint16_t)(i % 2 ? halves[i] << 9 : halves[i]);
        halves[i] = (random & 0x83FF) | (dtype == REE_F16 ? 0x3400 : 0x3C00);
    }
    for (uint64_t i = 0; i < size && (dtype == REE_U8 || dtype == REE_I8 || dtype == REE_U4); i++)
        bytes[i] = (uint8_t)((bytes[i] ^ i) & (dtype == REE_U4 ? 15 : 255));
}

enum ree_status ree_bench_program_create(struct ree_bench_program *bench, struct ree_device *device,
                                         enum ree_repop op, const union ree_params *params,
                                         uint32_t n_operands, const uint64_t *sizes,
                                         const enum ree_dtype *dtypes, uint32_t constants,
                                         struct ree_error *err) {
    static const char *const node_names[] = {"bench"};
    struct ree_dispatch dispatch = {.op = op, .n_operands = n_operands, .n_outputs = 1};
    struct ree_device_buffer *fixed[REE_BENCH_MAX_OPERANDS] = {0};
    float *floats = NULL;
    enum ree_status status = REE_OK;
    *bench = (struct ree_bench_program){.device = device, .n_slots = n_operands};
    dispatch.params = *params;
    for (uint32_t i = 0; i < n_operands; i++) {
        status = device->vtable->buffer_create(device, sizes[i], &bench->slots[i], err);
        if (status != REE_OK) goto fail;
        floats = ree_bench_floats(sizes[i] / sizeof(float) + 1);
        if (floats && dtypes) narrow(dtypes[i], floats, sizes[i]);
        if (!floats) {
            status = ree_no_memory(err);
            goto fail;
        }
        status = device->vtable->buffer_write(device, bench->slots[i], 0, floats, sizes[i], err);
        ree_free_aligned(floats);
        if (status != REE_OK) goto fail;
        dispatch.operands[i] = (struct ree_operand){.slot = i, .size = sizes[i]};
        if (constants >> i & 1) fixed[i] = bench->slots[i];
    }
    const struct ree_program program = {
        .dispatches = &dispatch,
        .n_dispatches = 1,
        .n_slots = n_operands,
        .node_names = node_names,
        .n_node_names = 1,
    };
    status = device->vtable->program_create(device, &program, fixed, NULL, &bench->program, err);
    if (status != REE_OK) goto fail;
    // The first run is not recorded: it touches pages, starts threads, and compiles shaders.
    status = ree_bench_program_run(bench, err);
    bench->times.n = 0;
    if (status == REE_OK) return REE_OK;

fail:
    ree_bench_program_destroy(bench);
    return status;
}

void ree_bench_program_destroy(struct ree_bench_program *bench) {
    if (!bench->device) return;
    if (bench->program) bench->device->vtable->program_destroy(bench->device, bench->program);
    for (uint32_t i = 0; i < bench->n_slots; i++)
        if (bench->slots[i]) bench->device->vtable->buffer_destroy(bench->device, bench->slots[i]);
    *bench = (struct ree_bench_program){0};
}

enum ree_status ree_bench_program_run(struct ree_bench_program *bench, struct ree_error *err) {
    const struct ree_device_vtable *vtable = bench->device->vtable;
    double before = ree_clock(), seconds;
    REE_TRY(vtable->program_run(bench->device, bench->program, bench->slots, NULL, err));
    double wall = ree_clock() - before;
    if (!vtable->program_times(bench->device, bench->program, &seconds) || seconds <= 0)
        seconds = wall;
    bench->last = seconds;
    ree_bench_times_add(&bench->times, seconds);
    return REE_OK;
}

enum ree_status ree_bench_program_run_warm(struct ree_bench_program *bench, struct ree_error *err) {
    struct ree_bench_times before = bench->times;
    REE_TRY(ree_bench_program_run(bench, err));
    bench->times = before;
    return ree_bench_program_run(bench, err);
}

// OpenBLAS

void ree_bench_openblas_open(struct ree_bench_openblas *blas, uint32_t n_threads) {
#ifdef __x86_64__
    // On a processor that is newer than this release of OpenBLAS, OpenBLAS may select a kernel that
    // is five times slower.
    if (__builtin_cpu_supports("avx512f")) setenv("OPENBLAS_CORETYPE", "SKYLAKEX", 0);
#endif
    // By default OpenBLAS's idle threads spin for 2^26 ticks, longer than ree_bench_rest, and would
    // take half of the processors from the next measurement.
    setenv("OPENBLAS_THREAD_TIMEOUT", "20", 0);
    *blas =
        (struct ree_bench_openblas){.library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL)};
    if (!blas->library) return;
    void (*set_threads)(int);
    // Converts object pointers to function pointers, as POSIX allows.
    void *symbol = dlsym(blas->library, "cblas_sgemm");
    memcpy(&blas->sgemm, &symbol, sizeof symbol);
    symbol = dlsym(blas->library, "openblas_set_num_threads");
    memcpy(&set_threads, &symbol, sizeof symbol);
    if (!blas->sgemm || !set_threads) {
        ree_bench_openblas_close(blas);
        return;
    }
    set_threads((int)n_threads);
}

void ree_bench_openblas_close(struct ree_bench_openblas *blas) {
    if (blas->library) dlclose(blas->library);
    *blas = (struct ree_bench_openblas){0};
}

// Bandwidth

#define LINE 8 // words per cache line
#define AHEAD 64

// Returns the sum of the words, so that the compiler cannot remove the loads. Software prefetching
// continues where the hardware prefetcher stops, at the end of each page.
static uint64_t read_words(const uint64_t *words, size_t n) {
    uint64_t sums[LINE] = {0};
    for (size_t i = 0; i + LINE <= n; i += LINE) {
        __builtin_prefetch(words + i + AHEAD * LINE);
        for (int j = 0; j < LINE; j++)
            sums[j] += words[i + j];
    }
    uint64_t sum = 0;
    for (int j = 0; j < LINE; j++)
        sum += sums[j];
    return sum;
}

double ree_bench_read(const void *memory, size_t size, uint32_t n_threads) {
    const uint64_t *words = memory;
    size_t n_lines = size / sizeof *words / LINE;
    uint64_t total = 0;
    double before = ree_clock();
#pragma omp parallel num_threads(n_threads) reduction(+ : total)
    {
        REE_FLOAT_ENV_WORKER();
        size_t n = (size_t)omp_get_num_threads(), t = (size_t)omp_get_thread_num();
        size_t begin = n_lines * t / n, end = n_lines * (t + 1) / n;
        total += read_words(words + begin * LINE, (end - begin) * LINE);
    }
    double seconds = ree_clock() - before;
    static volatile uint64_t sink;
    sink = total;
    (void)sink;
    return seconds;
}

double ree_bench_copy(void *to, const void *from, size_t size, uint32_t n_threads) {
    double before = ree_clock();
#pragma omp parallel num_threads(n_threads)
    {
        REE_FLOAT_ENV_WORKER();
        size_t n = (size_t)omp_get_num_threads(), t = (size_t)omp_get_thread_num();
        size_t begin = size / 64 * t / n * 64, end = size / 64 * (t + 1) / n * 64;
        memcpy((char *)to + begin, (const char *)from + begin, end - begin);
    }
    return ree_clock() - before;
}

// Bytes of a copy on a device: larger than the last-level cache of any GPU.
#define DEVICE_COPY ((uint64_t)256 << 20)

enum ree_status ree_bench_memory_create(struct ree_benchmark *bench, uint64_t bytes,
                                        uint64_t n_regions, bool copies,
                                        struct ree_bench_memory *out, struct ree_error *err) {
    *out = (struct ree_bench_memory){.bytes = bytes, .n_regions = n_regions, .copies = copies};
    if (bench->is_cpu) {
        // The memory has huge pages, as packed weights have. The destination of copies follows the
        // regions.
        uint64_t size = bytes * (n_regions + copies);
        out->name = copies ? "copying memory" : "reading memory";
        void *memory = ree_alloc_aligned((size_t)2 << 20, size);
        if (!memory) return ree_no_memory(err);
        madvise(memory, size, MADV_HUGEPAGE);
        memset(memory, 1, size);
        out->memory = memory;
        return REE_OK;
    }
    out->copies = true;
    out->name = "copying memory";
    out->bytes = DEVICE_COPY;
    union ree_params params;
    memset(&params, 0, sizeof params);
    params.copy = (struct ree_copy_params){
        .elem_size = 4,
        .rank = 1,
        .n_elements = DEVICE_COPY / 4,
        .dims = {DEVICE_COPY / 4},
        .src_strides = {1},
        .dst_strides = {1},
    };
    const uint64_t sizes[] = {DEVICE_COPY, DEVICE_COPY};
    return ree_bench_program_create(&out->copy, bench->device, REE_REPOP_COPY, &params, 2, sizes,
                                    NULL, 0, err);
}

enum ree_status ree_bench_memory_run(struct ree_benchmark *bench, struct ree_bench_memory *memory,
                                     uint64_t i, struct ree_error *err) {
    if (!memory->memory) return ree_bench_program_run(&memory->copy, err);
    const uint8_t *from = memory->memory + i % memory->n_regions * memory->bytes;
    uint8_t *to = memory->memory + memory->n_regions * memory->bytes;
    ree_bench_times_add(&memory->times,
                        memory->copies ? ree_bench_copy(to, from, memory->bytes, bench->n_threads)
                                       : ree_bench_read(from, memory->bytes, bench->n_threads));
    return REE_OK;
}

double ree_bench_memory_rate(const struct ree_bench_memory *memory) {
    const struct ree_bench_times *times = memory->memory ? &memory->times : &memory->copy.times;
    return (memory->copies ? 2e-9 : 1e-9) * (double)memory->bytes / ree_bench_quantile(times, 0.5);
}

void ree_bench_memory_destroy(struct ree_bench_memory *memory) {
    ree_free_aligned(memory->memory);
    ree_bench_program_destroy(&memory->copy);
    *memory = (struct ree_bench_memory){0};
}
