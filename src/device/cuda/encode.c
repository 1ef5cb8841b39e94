// The table of encoders, shared helpers, and the encoders of copy and map.
#include "device/cuda/encode.h"

#include "device/cuda/cuda.h"
#include "repops/dispatch.h"
#include "repops/merge.h"

#include <string.h>

static ree_cuda_encoder *const encoders[REE_N_REPOPS] = {
    [REE_REPOP_COPY] = ree_cuda_encode_copy,
    [REE_REPOP_MAP] = ree_cuda_encode_map,
    [REE_REPOP_REDUCE] = ree_cuda_encode_reduce,
    [REE_REPOP_MATMUL] = ree_cuda_encode_matmul,
    [REE_REPOP_CONV] = ree_cuda_encode_conv,
    [REE_REPOP_POOL] = ree_cuda_encode_pool,
    [REE_REPOP_SOFTMAX] = ree_cuda_encode_softmax,
    [REE_REPOP_NORM] = ree_cuda_encode_norm,
    [REE_REPOP_GATHER] = ree_cuda_encode_gather,
    [REE_REPOP_SCATTER] = ree_cuda_encode_scatter,
    [REE_REPOP_TOPK] = ree_cuda_encode_topk,
    [REE_REPOP_SCAN] = ree_cuda_encode_scan,
    [REE_REPOP_RESIZE] = ree_cuda_encode_resize,
    [REE_REPOP_ATTENTION] = ree_cuda_encode_attention,
};

// Copies the parameters as repop.h defines them, for RepOps whose kernels use them in that form.
static void copy_params(const struct ree_dispatch *dispatch, union ree_cuda_params *out) {
    const union ree_params *p = &dispatch->params;
    switch (dispatch->op) {
    case REE_REPOP_REDUCE: out->reduce.p = p->reduce; break;
    case REE_REPOP_MATMUL: out->matmul.p = p->matmul; break;
    case REE_REPOP_CONV: out->conv.p = p->conv; break;
    case REE_REPOP_POOL: out->pool.p = p->pool; break;
    case REE_REPOP_SOFTMAX: out->softmax.p = p->softmax; break;
    case REE_REPOP_NORM: out->norm.p = p->norm; break;
    case REE_REPOP_GATHER: out->gather.p = p->gather; break;
    case REE_REPOP_SCATTER: out->scatter.p = p->scatter; break;
    case REE_REPOP_TOPK: out->topk.p = p->topk; break;
    case REE_REPOP_SCAN: out->scan.p = p->scan; break;
    case REE_REPOP_RESIZE: out->resize.p = p->resize; break;
    case REE_REPOP_ATTENTION: out->attention = p->attention; break;
    default: break;
    }
}

enum ree_status ree_cuda_encode(const struct ree_cuda *cuda, const struct ree_dispatch *dispatch,
                                struct ree_cuda_encoding *out, struct ree_error *err) {
    memset(out, 0, sizeof *out);
    REE_TRY(ree_dispatch_check_device(dispatch, cuda->base.name, err));
    if (dispatch->op >= REE_N_REPOPS || !encoders[dispatch->op])
        return ree_fail(err, REE_UNSUPPORTED, "the CUDA backend has no RepOp '%s'",
                        ree_repop_name(dispatch->op));
    copy_params(dispatch, &out->params);
    if (dispatch->op == REE_REPOP_MATMUL && cuda->cublas) {
        struct ree_matmul_params *p = &out->params.matmul.p;
        int32_t *sets[] = {p->a_batch_strides, p->b_batch_strides};
        if (p->n_batch > 1) p->batch_rank = ree_merge_dims(p->batch_rank, p->batch_dims, 2, sets);
        out->by_cublas = p->m > 0 && p->n > 0 && p->n_batch > 0 && ree_cublas_can(p);
        if (out->by_cublas && p->has_epilogue) ree_cuda_encode_epilogue(dispatch, out);
        if (out->by_cublas) return REE_OK;
        *p = dispatch->params.matmul;
    }
    REE_TRY(encoders[dispatch->op](cuda, dispatch, out, err));
    for (uint32_t s = 0; s < out->n_steps; s++)
        if (out->steps[s].grid[0] > INT32_MAX)
            return ree_fail(err, REE_UNSUPPORTED,
                            "RepOp %s requires more blocks than a kernel can have",
                            ree_repop_name(dispatch->op));
    if (out->scratch_bytes / 4 <= UINT32_MAX) return REE_OK;
    return ree_fail(err, REE_UNSUPPORTED,
                    "RepOp %s requires %llu bytes of scratch memory, more than a kernel can index",
                    ree_repop_name(dispatch->op), (unsigned long long)out->scratch_bytes);
}

enum ree_status ree_cuda_encode_form(struct ree_cuda *cuda, const struct ree_dispatch *dispatch,
                                     enum ree_cuda_form form, struct ree_cuda_encoding *out,
                                     struct ree_error *err) {
    if (form == REE_CUDA_ON_HOST) {
        memset(out, 0, sizeof *out);
        out->form = form;
        return ree_dispatch_check_device(dispatch, cuda->base.name, err);
    }
    REE_TRY(ree_cuda_encode(cuda, dispatch, out, err));
    out->form = form;
    if (form != REE_CUDA_COMPILED || dispatch->op != REE_REPOP_MAP) return REE_OK;
    const struct ree_cuda_expr *expr = &out->params.map.expr;
    REE_TRY(ree_cuda_jit_map(cuda, dispatch, expr, &out->jit, err));
    if (out->jit) out->steps[0] = ree_cuda_jit_step(expr->n_elements);
    return REE_OK;
}

struct ree_cuda_step *ree_cuda_add_step(struct ree_cuda_encoding *out, enum ree_cuda_kernel kernel,
                                        uint32_t threads, uint64_t n_threads) {
    struct ree_cuda_step *step = &out->steps[out->n_steps++];
    step->kernel = kernel;
    step->threads = threads;
    const uint64_t n_blocks = n_threads / threads + (n_threads % threads != 0);
    step->grid[0] = n_blocks < UINT32_MAX ? (uint32_t)n_blocks : UINT32_MAX; // refused later
    step->grid[1] = 1;
    return step;
}

// For n < 2^31, n / d is n * factor >> (31 + s), with 2^(s-1) < d <= 2^s and
// factor = ceil(2^(31+s) / d), which fits in 32 bits. n * factor / 2^(31+s) exceeds n / d by less
// than n * d / (d * 2^(31+s)) < 2^-s <= 1/d: too little to reach the next integer.
struct ree_cuda_divider ree_cuda_divider_of(uint32_t d) {
    struct ree_cuda_divider divider = {.d = d};
    if (d == 1) return divider;
    uint32_t s = 32 - (uint32_t)__builtin_clz(d - 1);
    uint64_t power = (uint64_t)1 << (31 + s);
    divider.factor = (uint32_t)((power + d - 1) / d);
    divider.shift = s - 1;
    return divider;
}

enum ree_status ree_cuda_encode_copy(const struct ree_cuda *cuda,
                                     const struct ree_dispatch *dispatch,
                                     struct ree_cuda_encoding *out, struct ree_error *err) {
    (void)cuda, (void)err;
    struct ree_copy_params p = dispatch->params.copy;
    if (p.n_elements == 0) return REE_OK;
    int32_t *sets[] = {p.src_strides, p.dst_strides};
    p.rank = ree_merge_dims(p.rank, p.dims, 2, sets);
    struct ree_cuda_copy_params *to = &out->params.copy;
    *to = (struct ree_cuda_copy_params){
        .elem_size = p.elem_size,
        .rank = p.rank,
        .n_elements = p.n_elements,
        .src_offset = p.src_offset,
        .dst_offset = p.dst_offset,
    };
    for (uint32_t d = 0; d < p.rank; d++)
        to->dims[d] = ree_cuda_divider_of(p.dims[d]);
    memcpy(to->src_strides, p.src_strides, sizeof to->src_strides);
    memcpy(to->dst_strides, p.dst_strides, sizeof to->dst_strides);

    const uint32_t last = p.rank - 1;
    uint64_t size = p.elem_size, bytes = p.n_elements * size;
    bool run = p.rank == 1 && (p.dims[0] == 1 || (p.src_strides[0] == 1 && p.dst_strides[0] == 1));
    if (run && (bytes | (uint64_t)p.src_offset * size | (uint64_t)p.dst_offset * size) % 4 == 0) {
        struct ree_cuda_step *step =
            ree_cuda_add_step(out, REE_CUDA_copy_words, 256, (bytes / 4 + 3) / 4);
        step->extra[0] = (uint32_t)(bytes / 4);
        return REE_OK;
    }
    // Tiles are faster if the rows of both source and destination are long.
    for (uint32_t d = 0; d < last && size == 4 && p.dst_strides[last] == 1; d++) {
        if (p.src_strides[d] != 1 || p.dims[d] < 16 || p.dims[last] < 16) continue;
        uint64_t others = p.n_elements / p.dims[d] / p.dims[last];
        uint64_t tiles = (uint64_t)((p.dims[d] + 31) / 32) * ((p.dims[last] + 31) / 32);
        if (others > 65535) break;
        struct ree_cuda_step *step = ree_cuda_add_step(out, REE_CUDA_copy_tiles, 256, tiles * 256);
        step->grid[1] = (uint32_t)others;
        step->extra[0] = d;
        return REE_OK;
    }
    ree_cuda_add_step(out, REE_CUDA_copy_runs, 256, p.n_elements);
    return REE_OK;
}

#define MAP_THREADS 128
#define MAP_WIDTH 4 // elements per thread, as in cuda/map.cu
#define MAP_SHARED (48u << 10)

enum ree_status ree_cuda_encode_map(const struct ree_cuda *cuda,
                                    const struct ree_dispatch *dispatch,
                                    struct ree_cuda_encoding *out, struct ree_error *err) {
    (void)cuda, (void)err;
    const struct ree_expr *expr = &dispatch->params.map.expr;
    if (expr->n_elements == 0) return REE_OK;
    struct ree_cuda_expr *e = &out->params.map.expr;
    ree_cuda_expr_prepare(expr, false, e);
    bool words = ree_cuda_expr_is_arithmetic(expr);
    uint32_t width = words ? MAP_WIDTH : 1;
    uint32_t slot = words ? MAP_WIDTH * 4 : 8; // bytes of a slot per thread
    uint32_t threads = MAP_THREADS;
    while (e->n_slots * slot * threads > MAP_SHARED)
        threads /= 2;
    uint64_t n_threads = ((uint64_t)expr->n_elements + width - 1) / width;
    struct ree_cuda_step *step =
        ree_cuda_add_step(out, words ? REE_CUDA_map_words : REE_CUDA_map_any, threads, n_threads);
    step->shared_bytes = e->n_slots * slot * threads;
    return REE_OK;
}
