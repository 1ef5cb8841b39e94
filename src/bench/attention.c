// `ree-run bench attention`: one token against a kv cache, which is bound by reading the cache, and
// a prompt, which is bound by matrix products.
#include "bench/bench_internal.h"

#include "base/status.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// Bytes of all kv caches together, if MAX_CACHES suffice. Runs use the caches in turn, so that no
// processor cache holds the next one.
#define ROTATION ((uint64_t)192 << 20)
#define MAX_CACHES 32
#define PROMPT 1024 // maximum number of tokens

struct heads {
    uint32_t n_heads, n_kv_heads, head_dim, positions;
};

static void dense(const uint32_t dims[4], int32_t strides[4]) {
    int64_t stride = 1;
    for (int i = 4; i-- > 0; stride *= dims[i])
        strides[i] = (int32_t)stride;
}

// Creates a program that computes the attention of the last q_len of kv_len tokens.
static enum ree_status create(struct ree_benchmark *bench, const struct heads *h, uint32_t q_len,
                              uint32_t kv_len, enum ree_dtype dtype,
                              struct ree_bench_program *program, struct ree_error *err) {
    union ree_params params;
    struct ree_attention_params *p = &params.attention;
    const uint32_t q[4] = {1, h->n_heads, q_len, h->head_dim};
    const uint32_t k[4] = {1, h->n_kv_heads, kv_len, h->head_dim};
    memset(&params, 0, sizeof params);
    *p = (struct ree_attention_params){
        .batch = 1,
        .n_heads = h->n_heads,
        .n_kv_heads = h->n_kv_heads,
        .q_len = q_len,
        .kv_len = kv_len,
        .head_dim = h->head_dim,
        .v_head_dim = h->head_dim,
        .k_dtype = dtype,
        .v_dtype = dtype,
        .scale = 1.0f / sqrtf((float)h->head_dim),
        .left = REE_ATTENTION_UNBOUNDED,
        .start = (int32_t)(kv_len - q_len),
        .zero_empty = 1,
    };
    dense(q, p->q_strides);
    dense(k, p->k_strides);
    dense(k, p->v_strides);
    memcpy(p->out_strides, p->q_strides, sizeof p->out_strides);
    uint64_t n_q = (uint64_t)h->n_heads * q_len * h->head_dim;
    uint64_t n_k = (uint64_t)h->n_kv_heads * kv_len * h->head_dim;
    const uint64_t sizes[] = {n_q * sizeof(float), n_k * ree_dtype_size(dtype),
                              n_k * ree_dtype_size(dtype), n_q * sizeof(float)};
    const enum ree_dtype dtypes[] = {REE_F32, dtype, dtype, REE_F32};
    return ree_bench_program_create(program, bench->device, REE_REPOP_ATTENTION, &params, 4, sizes,
                                    dtypes, 0, err);
}

static enum ree_status run_decoding(struct ree_benchmark *bench, const struct heads *h,
                                    enum ree_dtype dtype, struct ree_error *err) {
    static struct ree_bench_program programs[MAX_CACHES];
    static struct ree_bench_memory memory;
    struct ree_bench_measured result = {.unit = "GB/s"};
    uint64_t bytes = 2 * (uint64_t)h->n_kv_heads * h->positions * h->head_dim;
    bytes *= ree_dtype_size(dtype);
    uint64_t n_caches = (ROTATION + bytes - 1) / bytes;
    if (n_caches > MAX_CACHES) n_caches = MAX_CACHES;
    enum ree_status status = ree_bench_memory_create(bench, bytes, n_caches, false, &memory, err);
    for (uint64_t i = 0; i < n_caches && status == REE_OK; i++)
        status = create(bench, h, 1, h->positions, dtype, &programs[i], err);
    snprintf(result.name, sizeof result.name, "one token, %u heads, %u kv heads, %u x %u, %s",
             h->n_heads, h->n_kv_heads, h->head_dim, h->positions, ree_dtype_name(dtype));
    for (uint64_t i = 0; i < bench->n_runs && status == REE_OK; i++) {
        struct ree_bench_program *program = &programs[i % n_caches];
        status = ree_progress_report(&bench->progress, result.name, i, bench->n_runs, err);
        if (status == REE_OK) status = ree_bench_program_run(program, err);
        if (status == REE_OK) ree_bench_times_add(&result.times, program->last);
        if (status == REE_OK) status = ree_bench_memory_run(bench, &memory, i, err);
    }
    if (status == REE_OK) {
        result.amount = (double)bytes;
        result.baseline = memory.name;
        result.baseline_rate = ree_bench_memory_rate(&memory);
        ree_bench_report(bench, &result);
    }
    for (uint64_t i = 0; i < n_caches; i++)
        ree_bench_program_destroy(&programs[i]);
    ree_bench_memory_destroy(&memory);
    return status;
}

static enum ree_status run_prompt(struct ree_benchmark *bench, const struct heads *h,
                                  struct ree_error *err) {
    static struct ree_bench_program program, matmul;
    struct ree_bench_measured result = {.unit = "GFLOP/s", .baseline = "matmul"};
    const uint32_t n = h->positions < PROMPT ? h->positions : PROMPT, side = 1024;
    enum ree_status status = create(bench, h, n, n, REE_F32, &program, err);
    if (status == REE_OK) status = ree_bench_matmul_create(bench, side, &matmul, err);
    snprintf(result.name, sizeof result.name, "prompt, %u heads, %u kv heads, %u x %u", h->n_heads,
             h->n_kv_heads, h->head_dim, n);
    for (uint64_t i = 0; i < bench->n_runs && status == REE_OK; i++) {
        status = ree_progress_report(&bench->progress, result.name, i, bench->n_runs, err);
        if (status == REE_OK) status = ree_bench_program_run(&program, err);
        if (status == REE_OK) status = ree_bench_program_run(&matmul, err);
    }
    if (status == REE_OK) {
        // Two products of head_dim terms for each pair of a query and a key that the query sees.
        result.amount = 4.0 * h->n_heads * h->head_dim * (0.5 * n * (n + 1.0));
        result.times = program.times;
        result.baseline_rate = 2e-9 * side * side * side / ree_bench_quantile(&matmul.times, 0.5);
        ree_bench_report(bench, &result);
    }
    ree_bench_program_destroy(&program);
    ree_bench_program_destroy(&matmul);
    return status;
}

enum ree_status ree_bench_attention(struct ree_benchmark *bench, struct ree_error *err) {
    struct heads h = {32, 8, 128, 8192};
    if (bench->size) {
        uint32_t s[4];
        REE_TRY(ree_bench_parse_size(bench->size, 4, s,
                                     "HEADSxKVHEADSxDIMxPOSITIONS, such as 32x8x128x8192", err));
        h = (struct heads){s[0], s[1], s[2], s[3]};
        if (h.n_heads % h.n_kv_heads)
            return ree_fail(err, REE_INVALID, "--size: %u heads is not a multiple of %u kv heads",
                            h.n_heads, h.n_kv_heads);
        REE_TRY(ree_bench_check_elements((uint64_t)h.n_heads * h.head_dim,
                                         (uint64_t)h.n_kv_heads * h.head_dim, h.positions, err));
        REE_TRY(ree_bench_check_elements((uint64_t)h.n_heads * h.head_dim * PROMPT,
                                         (uint64_t)h.n_kv_heads * h.head_dim * h.positions, 1,
                                         err));
    }
    REE_TRY(run_decoding(bench, &h, REE_F32, err));
    REE_TRY(run_decoding(bench, &h, REE_F16, err));
    return run_prompt(bench, &h, err);
}
