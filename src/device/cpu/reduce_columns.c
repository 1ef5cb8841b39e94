// Reductions (NUMERICS.md section 3) of neighbouring outputs whose terms are neighbours too. A row
// of terms, one for each output, is combined with a row of accumulators by the loops of expressions
// (expr.h), row after row.
#include "device/cpu/reduce.h"

#define MIN_COLUMNS 16 // with fewer, packing the terms of each output is faster
#define MAX_COLUMNS REE_CPU_EXPR_BLOCK

bool ree_cpu_reduce_is_columns(const struct ree_cpu_reduce_plan *plan) {
    uint32_t last = plan->outer_rank - 1;
    return !plan->contiguous && plan->outer_strides[last] == 1 &&
           plan->outer_dims[last] >= MIN_COLUMNS;
}

// One step on the accumulators: acc = fma(x, x, acc) if fused_square, otherwise acc = join(acc,
// prepare(x)).
struct steps {
    bool fused_square;
    uint32_t prepare, join; // enum ree_map_op; prepare 0 (CONST32): no preparation
    bool square;            // prepare computes x * x from two arguments
    uint64_t start;
};

static struct steps steps_of(uint32_t kind, uint32_t dtype) {
    struct steps s = {0};
    struct ree_cpu_fold fold;
    ree_cpu_fold_start(kind, dtype, &fold);
    s.start = fold.value.u;
    if (dtype == REE_F32) {
        s.start &= UINT32_MAX;
        switch (kind) {
        case REE_REDUCE_SUM: s.join = REE_MAP_add_f32; break;
        case REE_REDUCE_SUM_SQ: s.fused_square = true; break;
        case REE_REDUCE_SUM_ABS: s.prepare = REE_MAP_abs_f32, s.join = REE_MAP_add_f32; break;
        case REE_REDUCE_PROD: s.join = REE_MAP_mul_f32, s.start = 0x3F800000u; break;
        case REE_REDUCE_MAX: s.join = REE_MAP_max_f32; break;
        default: s.join = REE_MAP_min_f32;
        }
        return s;
    }
    bool wide = dtype == REE_I64 || dtype == REE_U64;
    bool is_signed = dtype == REE_I8 || dtype == REE_I32 || dtype == REE_I64;
    uint32_t add = wide ? REE_MAP_add_i64 : REE_MAP_add_i32;
    uint32_t mul = wide ? REE_MAP_mul_i64 : REE_MAP_mul_i32;
    switch (kind) {
    case REE_REDUCE_SUM: s.join = add; break;
    case REE_REDUCE_SUM_SQ: s.prepare = mul, s.square = true, s.join = add; break;
    case REE_REDUCE_SUM_ABS:
        if (is_signed) s.prepare = wide ? REE_MAP_abs_i64 : REE_MAP_abs_i32;
        s.join = add;
        break;
    case REE_REDUCE_PROD: s.join = mul; break;
    case REE_REDUCE_MAX:
        s.join = is_signed ? (wide ? REE_MAP_max_i64 : REE_MAP_max_i32)
                           : (wide ? REE_MAP_max_u64 : REE_MAP_max_u32);
        break;
    default:
        s.join = is_signed ? (wide ? REE_MAP_min_i64 : REE_MAP_min_i32)
                           : (wide ? REE_MAP_min_u64 : REE_MAP_min_u32);
    }
    return s;
}

// One tile: `width` adjacent outputs, starting with index `first`. x: the first terms of these
// outputs.
struct tile {
    const char *x;
    uint32_t first, width;
};

static void fill(const struct ree_cpu_reduce_plan *plan, uint32_t n, uint64_t value, void *out) {
    if (plan->size == 8)
        plan->expr->fill64(n, value, out);
    else
        plan->expr->fill32(n, (uint32_t)value, out);
}

// acc[j] = the reduction of terms [begin, end) of output first + j. `row` is scratch for a widened
// or prepared row of terms.
static void accumulate(const struct ree_cpu_reduce_plan *plan, const struct steps *s,
                       const struct tile *tile, uint32_t begin, uint32_t end, void *acc,
                       void *row) {
    const struct ree_cpu_expr_kernels *k = plan->expr;
    uint32_t n = tile->width, last = plan->reduce_rank - 1;
    enum ree_cpu_load load = ree_cpu_load_of(plan->params->dtype);
    fill(plan, n, s->start, acc);
    if (begin == end) return;
    uint32_t at = begin % plan->reduce_dims[last], row_index = begin / plan->reduce_dims[last];
    int64_t row_offset =
        ree_cpu_reduce_offset(last, plan->reduce_dims, plan->reduce_strides, row_index);
    for (uint32_t r = begin; r < end; r++) {
        const void *x =
            tile->x + (row_offset + at * plan->reduce_strides[last]) * (int64_t)plan->size;
        if (plan->size == 1) {
            k->loads[load](n, x, 1, row);
            x = row;
        }
        if (s->fused_square) {
            k->ops[REE_MAP_fma_f32](n, x, x, acc, acc);
        } else {
            if (s->prepare) {
                k->ops[s->prepare](n, x, s->square ? x : NULL, NULL, row);
                x = row;
            }
            k->ops[s->join](n, acc, x, NULL, acc);
        }
        if (++at == plan->reduce_dims[last]) {
            at = 0;
            row_offset =
                ree_cpu_reduce_offset(last, plan->reduce_dims, plan->reduce_strides, ++row_index);
        }
    }
}

static void chunk_of(const struct ree_cpu_reduce_plan *plan, const struct steps *s,
                     const struct tile *tile, uint32_t c, void *acc, void *row) {
    uint32_t begin = c * REE_CHUNK, end = plan->n_reduce;
    if (end - begin > REE_CHUNK) end = begin + REE_CHUNK;
    accumulate(plan, s, tile, begin, end, acc, row);
}

static void join(const struct ree_cpu_reduce_plan *plan, uint32_t n, const void *chunk,
                 void *total) {
    uint32_t op = plan->params->kind == REE_REDUCE_PROD ? REE_MAP_mul_f32 : REE_MAP_add_f32;
    plan->expr->ops[op](n, total, chunk, NULL, total);
}

static void finish(const struct ree_cpu_reduce_plan *plan, const struct tile *tile, void *total,
                   void *row) {
    char *out = plan->out + tile->first * plan->size;
    if (plan->chunked && plan->params->kind != REE_REDUCE_PROD) {
        plan->expr->fill32(tile->width, 0, row);
        plan->expr->ops[REE_MAP_add_f32](tile->width, total, row, NULL, total);
    }
    plan->expr->stores[ree_cpu_store_of(plan->params->dtype)](tile->width, total, out);
}

// Defines positions_<name>, which finds positions of maxima or minima. Uses selects instead of
// branches, so that the loop over outputs vectorises.
#define DEFINE_POSITIONS(name, T, is_nan)                                                          \
    static void positions_##name(const struct ree_cpu_reduce_plan *plan, const struct tile *tile,  \
                                 T *best, uint32_t *index) {                                       \
        bool max = plan->params->kind == REE_REDUCE_ARGMAX, last = plan->params->select_last;      \
        for (uint32_t r = 0; r < plan->n_reduce; r++) {                                            \
            const T *x =                                                                           \
                (const T *)tile->x + ree_cpu_reduce_offset(plan->reduce_rank, plan->reduce_dims,   \
                                                           plan->reduce_strides, r);               \
            if (r == 0) memcpy(best, x, tile->width * sizeof *x);                                  \
            for (uint32_t j = 0; j < tile->width; j++) {                                           \
                T v = x[j], b = best[j];                                                           \
                bool better = (max ? v > b : v < b) | (last & (v == b)) | is_nan(v);               \
                better &= !is_nan(b);                                                              \
                best[j] = better ? v : b;                                                          \
                index[j] = better ? r : index[j];                                                  \
            }                                                                                      \
        }                                                                                          \
    }
#define FLOAT_IS_NAN(v) ((v) != (v))
#define NEVER(v) false
DEFINE_POSITIONS(f32, float, FLOAT_IS_NAN)
DEFINE_POSITIONS(i8, int8_t, NEVER)
DEFINE_POSITIONS(u8, uint8_t, NEVER)
DEFINE_POSITIONS(i32, int32_t, NEVER)
DEFINE_POSITIONS(u32, uint32_t, NEVER)
DEFINE_POSITIONS(i64, int64_t, NEVER)
DEFINE_POSITIONS(u64, uint64_t, NEVER)

static void positions(const struct ree_cpu_reduce_plan *plan, const struct tile *tile, void *best,
                      uint32_t *index) {
    plan->expr->fill32(tile->width, 0, index);
    switch (plan->params->dtype) {
    case REE_F32: positions_f32(plan, tile, best, index); break;
    case REE_I8: positions_i8(plan, tile, best, index); break;
    case REE_I32: positions_i32(plan, tile, best, index); break;
    case REE_U32: positions_u32(plan, tile, best, index); break;
    case REE_I64: positions_i64(plan, tile, best, index); break;
    case REE_U64: positions_u64(plan, tile, best, index); break;
    default: positions_u8(plan, tile, best, index);
    }
    for (uint32_t j = 0; j < tile->width; j++)
        ((int64_t *)plan->out)[tile->first + j] = index[j];
}

static struct tile tile_at(const struct ree_cpu_reduce_plan *plan, uint32_t tile_width,
                           uint64_t item) {
    uint32_t last = plan->outer_rank - 1, width = plan->outer_dims[last];
    uint32_t n_tiles = (width + tile_width - 1) / tile_width;
    uint32_t row_index = (uint32_t)(item / n_tiles),
             column = (uint32_t)(item % n_tiles) * tile_width;
    int64_t offset =
        ree_cpu_reduce_offset(last, plan->outer_dims, plan->outer_strides, row_index) + column;
    return (struct tile){
        .x = plan->x + offset * (int64_t)plan->size,
        .first = row_index * width + column,
        .width = width - column < tile_width ? width - column : tile_width,
    };
}

#define ROW_SIZE ((size_t)MAX_COLUMNS * 8)
#define SCRATCH_SIZE (3 * ROW_SIZE) // per thread: terms, and two rows of results

struct job {
    const struct ree_cpu_reduce_plan *plan;
    struct steps steps;
    uint32_t tile_width;
    struct tile tile; // only for split_tile
    float *chunks;    // only for split_tile: results of the tile's chunks
};

// Computes some chunks of one tile.
static void split_tile(const void *user, const struct ree_cpu_range *range) {
    const struct job *job = user;
    for (uint32_t c = (uint32_t)range->begin; c < range->end; c++)
        chunk_of(job->plan, &job->steps, &job->tile, c, job->chunks + (size_t)c * job->tile_width,
                 range->scratch[0]);
}

static void reduce_tiles(const void *user, const struct ree_cpu_range *range) {
    const struct job *job = user;
    const struct ree_cpu_reduce_plan *plan = job->plan;
    uint32_t kind = plan->params->kind;
    char *rows = range->scratch[0], *acc = rows + ROW_SIZE, *total = rows + 2 * ROW_SIZE;
    for (uint64_t item = range->begin; item < range->end; item++) {
        struct tile tile = tile_at(plan, job->tile_width, item);
        if (kind == REE_REDUCE_ARGMAX || kind == REE_REDUCE_ARGMIN) {
            positions(plan, &tile, acc, (uint32_t *)(void *)rows);
            continue;
        }
        if (!plan->chunked) {
            accumulate(plan, &job->steps, &tile, 0, plan->n_reduce, total, rows);
        } else {
            fill(plan, tile.width, job->steps.start, total);
            for (uint32_t c = 0; c < plan->n_chunks; c++) {
                chunk_of(plan, &job->steps, &tile, c, acc, rows);
                join(plan, tile.width, acc, total);
            }
        }
        finish(plan, &tile, total, rows);
    }
}

enum ree_status ree_cpu_reduce_columns(const struct ree_cpu_context *ctx,
                                       const struct ree_cpu_reduce_plan *plan,
                                       struct ree_error *err) {
    struct job job = {.plan = plan, .steps = steps_of(plan->params->kind, plan->params->dtype)};
    uint64_t cost = (uint64_t)plan->n_outer * ((uint64_t)plan->n_reduce + 8) / 2;
    uint32_t n_threads = ree_cpu_threads_for(ctx, cost);

    // Make tiles as wide as the accumulators' cache permits, but at least one tile per thread if
    // possible.
    uint32_t width = plan->outer_dims[plan->outer_rank - 1];
    uint32_t n_rows = plan->n_outer / width;
    uint32_t tile_width = width < MAX_COLUMNS ? width : MAX_COLUMNS;
    if (n_rows < n_threads && width / n_threads >= 2 * MIN_COLUMNS) {
        uint32_t share = (width / n_threads + MIN_COLUMNS - 1) / MIN_COLUMNS * MIN_COLUMNS;
        if (share < tile_width) tile_width = share;
    }
    uint64_t n_items = (uint64_t)n_rows * ((width + tile_width - 1) / tile_width);
    bool split = plan->chunked && n_items < n_threads && plan->n_chunks >= n_threads &&
                 ree_cpu_threads_for(ctx, cost / n_items) > 1;
    if (!split && n_items == 1) n_threads = 1;

    job.tile_width = tile_width;
    REE_TRY(ree_cpu_scratch_reserve(ctx, n_threads, 0, SCRATCH_SIZE, err));
    struct ree_cpu_loop loop = {
        .n = n_items,
        .grain = 1,
        .n_threads = n_threads,
        .body = reduce_tiles,
        .job = &job,
    };
    if (!split) {
        ree_cpu_run_loop(ctx, &loop);
        return REE_OK;
    }

    // Few outputs with many terms: the threads share the chunks of each tile.
    size_t size = (size_t)plan->n_chunks * tile_width * sizeof(float);
    job.chunks = ree_cpu_scratch_get(ctx, 0, 1, size);
    if (!job.chunks) return ree_cpu_no_memory(err, size);
    loop.n = plan->n_chunks;
    loop.body = split_tile;
    for (uint64_t item = 0; item < n_items; item++) {
        job.tile = tile_at(plan, tile_width, item);
        ree_cpu_run_loop(ctx, &loop);
        for (uint32_t c = 1; c < plan->n_chunks; c++)
            join(plan, job.tile.width, job.chunks + (size_t)c * tile_width, job.chunks);
        finish(plan, &job.tile, job.chunks, ctx->scratch[0].data[0]);
    }
    return REE_OK;
}
