// copy: dst[dst_offset + sum(i * dst_stride)] = src[src_offset + sum(i * src_stride)]. Moves bytes
// and computes nothing (NUMERICS.md, copy).
//
// Elements may be copied in any order. So the dimensions are sorted by the destination's stride and
// merged if both sides permit it. The innermost dimension then decides the method: whole rows, one
// repeated value, a transposition in tiles, or single elements.
#include "base/any.h"
#include "device/cpu/cpu_internal.h"

struct plan {
    size_t size;
    const char *src;
    char *dst;
    uint32_t rank; // at least 1; the last dimension is the innermost
    uint32_t dims[REE_MAX_RANK];
    int64_t src_strides[REE_MAX_RANK], dst_strides[REE_MAX_RANK];
};

static void make_plan(struct plan *plan, const struct ree_copy_params *p, void *const *operands) {
    plan->size = p->elem_size;
    plan->src = (const char *)operands[0] + p->src_offset * (int64_t)p->elem_size;
    plan->dst = (char *)operands[1] + p->dst_offset * (int64_t)p->elem_size;
    uint32_t order[REE_MAX_RANK], n = 0;
    for (uint32_t d = 0; d < p->rank; d++) {
        if (p->dims[d] == 1) continue;
        uint32_t at = n++;
        for (; at > 0 && p->dst_strides[order[at - 1]] < p->dst_strides[d]; at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    plan->rank = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t d = order[i], dim = p->dims[d], last = plan->rank - 1;
        if (plan->rank > 0 && plan->src_strides[last] == p->src_strides[d] * (int64_t)dim &&
            plan->dst_strides[last] == p->dst_strides[d] * (int64_t)dim) {
            plan->dims[last] *= dim;
        } else {
            last = plan->rank++;
            plan->dims[last] = dim;
        }
        plan->src_strides[last] = p->src_strides[d];
        plan->dst_strides[last] = p->dst_strides[d];
    }
    if (plan->rank == 0) {
        plan->rank = 1;
        plan->dims[0] = 1;
        plan->src_strides[0] = plan->dst_strides[0] = 1;
    }
}

// Rows

#define DEFINE_ROW(T)                                                                              \
    static void row_##T(const char *src, int64_t ss, char *dst, int64_t ds, uint32_t n) {          \
        const T *s = (const T *)src;                                                               \
        T *d = (T *)dst;                                                                           \
        if (ds == 1 && ss == 0) {                                                                  \
            for (uint32_t i = 0; i < n; i++)                                                       \
                d[i] = *s;                                                                         \
        } else if (ds == 1 && ss == -1) {                                                          \
            for (uint32_t i = 0; i < n; i++)                                                       \
                d[i] = s[-(int64_t)i];                                                             \
        } else if (ds == 1) {                                                                      \
            for (uint32_t i = 0; i < n; i++)                                                       \
                d[i] = s[i * ss];                                                                  \
        } else {                                                                                   \
            for (uint32_t i = 0; i < n; i++)                                                       \
                d[i * ds] = s[i * ss];                                                             \
        }                                                                                          \
    }
DEFINE_ROW(uint8_t)
DEFINE_ROW(uint16_t)
DEFINE_ROW(uint32_t)
DEFINE_ROW(uint64_t)

static void copy_row(const struct plan *plan, const char *src, char *dst, uint32_t n) {
    int64_t ss = plan->src_strides[plan->rank - 1], ds = plan->dst_strides[plan->rank - 1];
    if (ss == 1 && ds == 1) {
        memcpy(dst, src, n * plan->size);
        return;
    }
    switch (plan->size) {
    case 1: row_uint8_t(src, ss, dst, ds, n); break;
    case 2: row_uint16_t(src, ss, dst, ds, n); break;
    case 4: row_uint32_t(src, ss, dst, ds, n); break;
    default: row_uint64_t(src, ss, dst, ds, n);
    }
}

// Computes the byte offsets, in source and destination, of position `at` (row-major) of the first
// `rank` dimensions.
static void offsets_at(const struct plan *plan, uint32_t rank, uint64_t at, int64_t *out_src,
                       int64_t *out_dst) {
    int64_t src = 0, dst = 0;
    for (uint32_t d = rank; d-- > 0;) {
        int64_t i = (int64_t)(at % plan->dims[d]);
        at /= plan->dims[d];
        src += i * plan->src_strides[d];
        dst += i * plan->dst_strides[d];
    }
    *out_src = src * (int64_t)plan->size;
    *out_dst = dst * (int64_t)plan->size;
}

// Copies elements [begin, end), counted in row-major order of the plan's dimensions.
static void copy_range(const struct plan *plan, uint64_t begin, uint64_t end) {
    uint32_t last = plan->rank - 1, width = plan->dims[last];
    uint64_t row = begin / width;
    uint32_t at = (uint32_t)(begin % width);
    int64_t src_step = plan->src_strides[last] * (int64_t)plan->size;
    int64_t dst_step = plan->dst_strides[last] * (int64_t)plan->size;
    // Steps of the second-last dimension are additions; those of outer dimensions require
    // divisions.
    uint64_t block = last > 0 ? plan->dims[last - 1] : 1;
    int64_t src_pitch = last > 0 ? plan->src_strides[last - 1] * (int64_t)plan->size : 0;
    int64_t dst_pitch = last > 0 ? plan->dst_strides[last - 1] * (int64_t)plan->size : 0;
    while (begin < end) {
        int64_t src, dst;
        offsets_at(plan, last, row, &src, &dst);
        for (uint64_t i = row % block; i < block && begin < end; i++, row++) {
            uint32_t n = end - begin < width - at ? (uint32_t)(end - begin) : width - at;
            copy_row(plan, plan->src + src + at * src_step, plan->dst + dst + at * dst_step, n);
            begin += n;
            at = 0;
            src += src_pitch;
            dst += dst_pitch;
        }
    }
}

// Transpositions: dst rows are src columns. 4x4 tiles of 32-bit elements use vectors.

typedef uint32_t vec4 __attribute__((vector_size(16), aligned(4), may_alias));

#if defined(__clang__)
#define SHUFFLE(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define SHUFFLE(a, b, i, j, k, l) __builtin_shuffle(a, b, (vec4){i, j, k, l})
#endif

static inline void transpose_4x4(const ree_any_u32 *src, int64_t src_pitch, ree_any_u32 *dst,
                                 int64_t dst_pitch) {
    vec4 r0 = *(const vec4 *)src, r1 = *(const vec4 *)(src + src_pitch);
    vec4 r2 = *(const vec4 *)(src + 2 * src_pitch), r3 = *(const vec4 *)(src + 3 * src_pitch);
    vec4 a = SHUFFLE(r0, r2, 0, 4, 1, 5), b = SHUFFLE(r1, r3, 0, 4, 1, 5);
    vec4 c = SHUFFLE(r0, r2, 2, 6, 3, 7), d = SHUFFLE(r1, r3, 2, 6, 3, 7);
    *(vec4 *)dst = SHUFFLE(a, b, 0, 4, 1, 5);
    *(vec4 *)(dst + dst_pitch) = SHUFFLE(a, b, 2, 6, 3, 7);
    *(vec4 *)(dst + 2 * dst_pitch) = SHUFFLE(c, d, 0, 4, 1, 5);
    *(vec4 *)(dst + 3 * dst_pitch) = SHUFFLE(c, d, 2, 6, 3, 7);
}

#define TILE 16 // in elements; 16 elements of 32 bits are a cache line

// dst[j * dst_pitch + i] = src[i * src_pitch + j] for i < n_i, j < n_j.
#define DEFINE_TILE(T)                                                                             \
    static void tile_##T(const T *src, int64_t src_pitch, T *dst, int64_t dst_pitch, uint32_t n_i, \
                         uint32_t n_j) {                                                           \
        for (uint32_t j = 0; j < n_j; j++)                                                         \
            for (uint32_t i = 0; i < n_i; i++)                                                     \
                dst[j * dst_pitch + i] = src[i * src_pitch + j];                                   \
    }
DEFINE_TILE(uint8_t)
DEFINE_TILE(ree_any_u16)
DEFINE_TILE(ree_any_u32)
DEFINE_TILE(ree_any_u64)

static void tile(size_t size, const void *src, int64_t src_pitch, void *dst, int64_t dst_pitch,
                 uint32_t n_i, uint32_t n_j) {
    switch (size) {
    case 1: tile_uint8_t(src, src_pitch, dst, dst_pitch, n_i, n_j); return;
    case 2: tile_ree_any_u16(src, src_pitch, dst, dst_pitch, n_i, n_j); return;
    case 8: tile_ree_any_u64(src, src_pitch, dst, dst_pitch, n_i, n_j); return;
    default: break;
    }
    if (n_i < TILE || n_j < TILE) {
        tile_ree_any_u32(src, src_pitch, dst, dst_pitch, n_i, n_j);
        return;
    }
    const ree_any_u32 *s = src;
    ree_any_u32 *d = dst;
    for (uint32_t j = 0; j < TILE; j += 4)
        for (uint32_t i = 0; i < TILE; i += 4)
            transpose_4x4(s + i * src_pitch + j, src_pitch, d + j * dst_pitch + i, dst_pitch);
}

// Returns the dimension along which the source is contiguous, if the innermost dimension is
// contiguous only in the destination and both are long enough for tiles. Otherwise returns
// plan->rank.
static uint32_t transposed_dim(const struct plan *plan) {
    uint32_t last = plan->rank - 1;
    if (plan->dst_strides[last] != 1 || plan->dims[last] < 4) return plan->rank;
    if (plan->src_strides[last] >= -1 && plan->src_strides[last] <= 1) return plan->rank;
    for (uint32_t d = 0; d < last; d++)
        if (plan->src_strides[d] == 1 && plan->dims[d] >= 4) return d;
    return plan->rank;
}

// Copies strips [begin, end) of a transposition. A strip is TILE destination rows at one position
// of the other dimensions. column: the dimension that transposed_dim returned; others: all
// dimensions but `column` and the innermost one. The lines of the next tile are one row apart,
// which hardware does not prefetch, so they are prefetched one tile ahead.
static void copy_strips(const struct plan *plan, const struct plan *others, uint32_t column,
                        uint64_t begin, uint64_t end) {
    uint32_t last = plan->rank - 1;
    uint32_t n_i = plan->dims[last], n_j = plan->dims[column];
    uint32_t n_strips = (n_j + TILE - 1) / TILE;
    int64_t size = (int64_t)plan->size;
    int64_t src_pitch = plan->src_strides[last] * size,
            dst_pitch = plan->dst_strides[column] * size;
    for (uint64_t strip = begin; strip < end; strip++) {
        int64_t src_at, dst_at;
        offsets_at(others, others->rank, strip / n_strips, &src_at, &dst_at);
        uint32_t j = (uint32_t)(strip % n_strips) * TILE;
        uint32_t height = n_j - j < TILE ? n_j - j : TILE;
        const char *src = plan->src + src_at + j * size;
        char *dst = plan->dst + dst_at + j * dst_pitch;
        for (uint32_t i = 0; i < n_i; i += TILE) {
            uint32_t width = n_i - i < TILE ? n_i - i : TILE;
            const char *from = src + i * src_pitch;
            char *to = dst + i * size;
            if (i + 2 * TILE <= n_i) {
                for (uint32_t r = 0; r < TILE; r++)
                    __builtin_prefetch(from + (TILE + r) * src_pitch);
                for (uint32_t r = 0; r < height; r++)
                    __builtin_prefetch(to + r * dst_pitch + TILE * size, 1);
            }
            tile(plan->size, from, plan->src_strides[last], to, plan->dst_strides[column], width,
                 height);
        }
    }
}

struct job {
    const struct plan *plan, *others; // others: as for copy_strips
    uint32_t column;                  // as for copy_strips
};

static void copy_job_strips(const void *user, const struct ree_cpu_range *range) {
    const struct job *job = user;
    copy_strips(job->plan, job->others, job->column, range->begin, range->end);
}

static void copy_job_range(const void *user, const struct ree_cpu_range *range) {
    const struct job *job = user;
    copy_range(job->plan, range->begin, range->end);
}

enum ree_status ree_cpu_copy(const struct ree_cpu_context *ctx, const struct ree_copy_params *p,
                             void *const *operands, struct ree_error *err) {
    (void)err;
    if (p->n_elements == 0) return REE_OK;
    struct plan plan;
    make_plan(&plan, p, operands);
    uint32_t last = plan.rank - 1, column = transposed_dim(&plan);
    bool rows = plan.src_strides[last] == 1 && plan.dst_strides[last] == 1;
    uint64_t cost =
        rows ? (uint64_t)p->n_elements * plan.size / 5 + p->n_elements / plan.dims[last] * 5
             : (uint64_t)p->n_elements;
    struct job job = {.plan = &plan, .column = column};
    struct ree_cpu_loop loop = {
        .n = p->n_elements,
        .grain = 64,
        .n_threads = ree_cpu_threads_for(ctx, cost),
        .body = copy_job_range,
        .job = &job,
    };

    if (column < plan.rank) {
        struct plan others = plan;
        others.rank = 0;
        uint64_t n_strips = (plan.dims[column] + TILE - 1) / TILE;
        for (uint32_t d = 0; d < last; d++) {
            if (d == column) continue;
            others.dims[others.rank] = plan.dims[d];
            others.src_strides[others.rank] = plan.src_strides[d];
            others.dst_strides[others.rank++] = plan.dst_strides[d];
            n_strips *= plan.dims[d];
        }
        job.others = &others;
        loop.n = n_strips;
        loop.grain = 1;
        loop.body = copy_job_strips;
        ree_cpu_run_loop(ctx, &loop);
        return REE_OK;
    }
    ree_cpu_run_loop(ctx, &loop);
    return REE_OK;
}
