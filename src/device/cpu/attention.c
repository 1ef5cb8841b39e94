// attention: softmax over keys of masked scores, and the weighted sum of the values; NUMERICS.md,
// "Attention". The steps for one unit are in attention_steps.c; this file divides the work into
// units (attention.h) and distributes it over threads.
//
// If there are many units, one thread computes a unit from scores to result, so only the scores of
// its rows are in memory. If there are few units, for example when one token is decoded, the
// threads share the chunks of keys of all units, step by step.
#include "device/cpu/attention.h"

#include <omp.h>

// Bounds on the rows of a unit; it has fewer if there are fewer queries. With MIN_ROWS rows,
// packing keys and values pays off. Between the bounds, a unit has at most CACHED_SCORES scores,
// which fit into a second-level cache.
#define MIN_ROWS 96
#define MAX_ROWS 192
#define CACHED_SCORES (256 << 10)
#define MAX_SCORES (16 << 20) // maximum scores of a unit; REE_STREAM_MAX_ROWS rows may have more

enum scratch_slot { SLOT_WORK, SLOT_UNIT, SLOT_QUERIES };

struct job {
    struct ree_attend a;
    uint32_t n_units, n_blocks, n_head_blocks, head_rows;
    const struct ree_attend_queries *blocks;
    size_t unit_floats, work_floats;
};

static uint32_t min_u32(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}
static uint32_t max_u32(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

// Returns the longest block of at most `at_most` neighbouring queries that starts with query
// `first` and whose queries all see the same keys.
static struct ree_attend_queries find_queries(const struct ree_attention_params *p, uint32_t first,
                                              uint32_t at_most) {
    struct ree_attend_queries found = {.first = first, .count = 1};
    uint32_t end, key, key_end;
    ree_attention_keys(p, first, &found.key, &end);
    found.n_keys = end - found.key;
    for (; found.count < at_most && first + found.count < p->q_len; found.count++) {
        ree_attention_keys(p, first + found.count, &key, &key_end);
        if (key != found.key || key_end != end) break;
    }
    return found;
}

static uint32_t list_queries(const struct ree_attention_params *p, uint32_t at_most,
                             struct ree_attend_queries *out) {
    uint32_t n = 0;
    for (uint32_t first = 0; first < p->q_len; n++) {
        struct ree_attend_queries found = find_queries(p, first, at_most);
        if (out) out[n] = found;
        first += found.count;
    }
    return n;
}

static struct ree_attend_unit unit_of(const struct job *job, uint32_t number) {
    const struct ree_attention_params *p = job->a.p;
    uint32_t group = p->n_heads / p->n_kv_heads, n_pairs = p->batch * p->n_kv_heads;
    // Units are numbered from the last queries to the first: the last queries often have the most
    // keys, so the longest units start first.
    struct ree_attend_unit u = {
        .queries = job->blocks[job->n_blocks - 1 - number / (n_pairs * job->n_head_blocks)]};
    uint32_t block = number % job->n_head_blocks, pair = number / job->n_head_blocks % n_pairs;
    u.batch = pair / p->n_kv_heads;
    u.kv_head = pair % p->n_kv_heads;
    u.head = u.kv_head * group + block * job->head_rows;
    u.n_heads = min_u32(group - block * job->head_rows, job->head_rows);
    u.n_rows = u.n_heads * u.queries.count;
    u.n_chunks = (u.queries.n_keys + REE_CHUNK - 1) / REE_CHUNK;
    return u;
}

// Returns the number of chunks of the unit whose sums together fill the lanes of a vector, at least
// 1.
static uint32_t chunks_at_once(const struct ree_attend_unit *u) {
    return max_u32(REE_CPU_LANES / u->n_rows, 1);
}

static void run_unit(const struct job *job, uint32_t number, float *memory, float *work) {
    const struct ree_attend *a = &job->a;
    struct ree_attend_unit u = unit_of(job, number);
    ree_attend_begin(a, &u, 1, memory);
    for (uint32_t c = 0; c < u.n_chunks; c++)
        ree_attend_scores(a, &u, c, work);
    ree_attend_join_max(a, &u);
    ree_attend_weights(a, &u, 0, u.n_chunks, work);
    ree_attend_join_sums(a, &u);
    for (uint32_t c = 0; c < u.n_chunks; c++)
        ree_attend_values(a, &u, c, false, u.y, work);
    ree_attend_store(a, &u);
}

static void run_units(const void *user, const struct ree_cpu_range *range) {
    for (uint64_t i = range->begin; i < range->end; i++)
        run_unit(user, (uint32_t)i, range->scratch[SLOT_UNIT], range->scratch[SLOT_WORK]);
}

static enum ree_status run_whole(const struct ree_cpu_context *ctx, const struct job *job,
                                 uint32_t n_threads, struct ree_error *err) {
    size_t size = job->unit_floats * sizeof(float);
    REE_TRY(ree_cpu_scratch_reserve(ctx, n_threads, SLOT_UNIT, size, err));
    const struct ree_cpu_loop loop = {
        .n = job->n_units,
        .n_threads = n_threads,
        .body = run_units,
        .job = job,
    };
    ree_cpu_run_loop(ctx, &loop);
    return REE_OK;
}

// A range of chunks of one unit.
struct part {
    const struct ree_attend_unit *u;
    uint32_t chunk, n_chunks;
};

static uint32_t count_parts(const struct ree_attend_unit *u) {
    uint32_t width = chunks_at_once(u);
    return (u->n_chunks + width - 1) / width;
}

static void list_parts(const struct job *job, const struct ree_attend_unit *units,
                       struct part *out) {
    for (uint32_t i = 0; i < job->n_units; i++) {
        uint32_t width = chunks_at_once(&units[i]);
        for (uint32_t c = 0; c < units[i].n_chunks; c += width)
            *out++ = (struct part){&units[i], c, min_u32(units[i].n_chunks - c, width)};
    }
}

static float *y_of(const struct job *job, const struct part *part, uint32_t i) {
    size_t floats = (size_t)part->u->n_rows * job->a.p->v_head_dim;
    return part->u->y + (part->chunk + i) * ((floats + 15) / 16 * 16);
}

static void finish_unit(const struct job *job, const struct ree_attend_unit *u) {
    struct part all = {u, 0, u->n_chunks};
    for (uint32_t c = 1; c < u->n_chunks; c++)
        ree_attend_add(&job->a, u, y_of(job, &all, c), u->y);
    ree_attend_store(&job->a, u);
}

// Each step waits for the previous one: maxima, sums and results require all chunks of a row.
static void run_parts(const struct ree_cpu_context *ctx, const struct job *job,
                      const struct ree_attend_unit *units, const struct part *parts,
                      uint32_t n_parts, uint32_t n_threads) {
    const struct ree_attend *a = &job->a;
#pragma omp parallel num_threads(n_threads)
    {
        REE_FLOAT_ENV_WORKER();
        float *work = ctx->scratch[omp_get_thread_num()].data[SLOT_WORK];
#pragma omp for schedule(dynamic)
        for (uint32_t i = 0; i < n_parts; i++)
            for (uint32_t c = 0; c < parts[i].n_chunks; c++)
                ree_attend_scores(a, parts[i].u, parts[i].chunk + c, work);
#pragma omp for
        for (uint32_t i = 0; i < job->n_units; i++)
            ree_attend_join_max(a, &units[i]);
#pragma omp for schedule(dynamic)
        for (uint32_t i = 0; i < n_parts; i++)
            ree_attend_weights(a, parts[i].u, parts[i].chunk, parts[i].n_chunks, work);
#pragma omp for
        for (uint32_t i = 0; i < job->n_units; i++)
            ree_attend_join_sums(a, &units[i]);
#pragma omp for schedule(dynamic)
        for (uint32_t i = 0; i < n_parts; i++)
            for (uint32_t c = 0; c < parts[i].n_chunks; c++)
                ree_attend_values(a, parts[i].u, parts[i].chunk + c, true, y_of(job, &parts[i], c),
                                  work);
#pragma omp for
        for (uint32_t i = 0; i < job->n_units; i++)
            finish_unit(job, &units[i]);
    }
}

static enum ree_status run_shared(const struct ree_cpu_context *ctx, const struct job *job,
                                  uint32_t n_threads, struct ree_error *err) {
    uint32_t n_parts = 0;
    size_t floats = 0, size = job->n_units * sizeof(struct ree_attend_unit);
    for (uint32_t i = 0; i < job->n_units; i++) {
        struct ree_attend_unit u = unit_of(job, i);
        n_parts += count_parts(&u);
        floats += ree_attend_unit_floats(&job->a, u.n_rows, u.queries.n_keys, u.n_chunks);
    }
    size = (size + 63) / 64 * 64;
    size_t total = size + floats * sizeof(float) + n_parts * sizeof(struct part);
    char *memory = ree_cpu_scratch_get(ctx, 0, SLOT_UNIT, total);
    if (!memory) return ree_cpu_no_memory(err, total);
    struct ree_attend_unit *units = (struct ree_attend_unit *)(void *)memory;
    float *of_units = (float *)(void *)(memory + size);
    struct part *parts = (struct part *)(void *)(memory + size + floats * sizeof(float));
    for (uint32_t i = 0; i < job->n_units; i++) {
        units[i] = unit_of(job, i);
        ree_attend_begin(&job->a, &units[i], units[i].n_chunks, of_units);
        of_units += ree_attend_unit_floats(&job->a, units[i].n_rows, units[i].queries.n_keys,
                                           units[i].n_chunks);
    }
    list_parts(job, units, parts);
    run_parts(ctx, job, units, parts, n_parts, n_threads);
    return REE_OK;
}

static const char *at(const void *data, uint32_t dtype, int64_t elements) {
    return (const char *)data + elements * (int64_t)ree_dtype_size((enum ree_dtype)dtype);
}

static struct ree_attend read_operands(const struct ree_cpu_context *ctx,
                                       const struct ree_attention_params *p,
                                       void *const *operands) {
    const struct ree_attention_operands o = ree_attention_operands(p);
    struct ree_attend a = {
        .p = p,
        .tiles = ree_tiles_for(ctx->isa),
        .expr = ree_cpu_expr_kernels(ctx->isa),
        .reduce = ree_cpu_reduce_kernels(ctx->isa),
        .q = (const float *)operands[0] + p->q_offset,
        .k = at(operands[1], p->k_dtype, p->k_offset),
        .v = at(operands[2], p->v_dtype, p->v_offset),
        .out = operands[o.out],
        .k_adjacent = p->k_strides[3] == 1 || p->head_dim == 1,
        .v_adjacent = p->v_strides[3] == 1 || p->v_head_dim == 1,
    };
    if (p->starts_dtype) a.starts = at(operands[o.starts], p->starts_dtype, p->starts_offset);
    if (p->n_keys_dtype) a.n_keys = at(operands[o.n_keys], p->n_keys_dtype, p->n_keys_offset);
    if (p->has_allowed) a.allowed = (const uint8_t *)operands[o.allowed] + p->allowed_offset;
    if (p->has_bias) a.bias = (const float *)operands[o.bias] + p->bias_offset;
    if (p->has_sink) a.sink = (const float *)operands[o.sink] + p->sink_offset;
    if (p->page_bits) a.pages = (const int32_t *)operands[o.pages] + p->pages_offset;
    return a;
}

// Estimates one thread's time: products at the rate of the tiles, plus reading keys and values.
static uint64_t nanoseconds(const struct ree_attention_params *p) {
    uint64_t pairs = (uint64_t)p->batch * p->n_heads * p->q_len * p->kv_len;
    uint64_t read = (uint64_t)p->batch * p->n_kv_heads * p->kv_len;
    return pairs * (2 + (p->head_dim + p->v_head_dim) / 32) +
           read * (p->head_dim + p->v_head_dim) / 4;
}

enum ree_status ree_cpu_attention(const struct ree_cpu_context *ctx,
                                  const struct ree_attention_params *p, void *const *operands,
                                  struct ree_error *err) {
    if (!p->batch || !p->n_heads || !p->q_len || !p->v_head_dim) return REE_OK;
    struct job job = {.a = read_operands(ctx, p, operands)};
    uint32_t group = p->n_heads / p->n_kv_heads, n_keys = 0;
    uint32_t unit_rows = CACHED_SCORES / max_u32(p->kv_len, 1);
    unit_rows = min_u32(max_u32(unit_rows, MIN_ROWS), MAX_ROWS);
    unit_rows =
        min_u32(unit_rows, max_u32(MAX_SCORES / max_u32(p->kv_len, 1), REE_STREAM_MAX_ROWS));
    job.head_rows = min_u32(group, unit_rows);
    job.n_head_blocks = (group + job.head_rows - 1) / job.head_rows;
    uint32_t at_most = unit_rows / job.head_rows;
    job.n_blocks = list_queries(p, at_most, NULL);
    size_t size = job.n_blocks * sizeof *job.blocks;
    struct ree_attend_queries *blocks = ree_cpu_scratch_get(ctx, 0, SLOT_QUERIES, size);
    if (!blocks) return ree_cpu_no_memory(err, size);
    list_queries(p, at_most, blocks);
    job.blocks = blocks;
    uint32_t n_rows = job.head_rows * min_u32(at_most, p->q_len);
    for (uint32_t i = 0; i < job.n_blocks; i++)
        n_keys = max_u32(n_keys, blocks[i].n_keys);
    uint64_t n_units = (uint64_t)p->batch * p->n_kv_heads * job.n_head_blocks * job.n_blocks;
    job.n_units = (uint32_t)n_units; // fits: at most the number of output rows
    job.unit_floats = ree_attend_unit_floats(&job.a, n_rows, n_keys, 1);
    job.work_floats = ree_attend_work_floats(&job.a, n_rows);

    uint32_t n_threads = ree_cpu_threads_for(ctx, nanoseconds(p));
    size = job.work_floats * sizeof(float);
    REE_TRY(ree_cpu_scratch_reserve(ctx, n_threads, SLOT_WORK, size, err));
    if (n_threads > 1 && job.n_units < 4 * n_threads) return run_shared(ctx, &job, n_threads, err);
    return run_whole(ctx, &job, n_threads, err);
}
