// The encoder of matmul: chooses the kernels, the tiles of the result, and the split by chunks.
#include "device/cuda/cuda.h"
#include "device/cuda/encode_matmul.h"
#include "device/cuda/product.h"
#include "device/cuda/tiles.h"
#include "repops/merge.h"

#include <string.h>

static const enum ree_cuda_kernel tile_kernels[REE_CUDA_N_TILES] = {
    REE_CUDA_matmul_128x128,
    REE_CUDA_matmul_128x64,
    REE_CUDA_matmul_64x64,
    REE_CUDA_matmul_32x64,
};

static bool is_batched(const struct ree_matmul_params *p, const int32_t *batch_strides) {
    for (uint32_t d = 0; d < p->batch_rank; d++)
        if (batch_strides[d] != 0) return true;
    return false;
}

// Adds the launches that convert narrow operands to float32 in the scratch memory. Returns the
// flags with which the product's kernel reads the copies.
static uint32_t add_widening(struct ree_cuda_encoding *out, const struct ree_matmul_params *p) {
    uint32_t flags = 0, n_steps = out->n_steps;
    for (uint32_t is_b = 0; is_b < 2; is_b++) {
        if ((is_b ? p->b_dtype : p->a_dtype) == REE_F32 && !(is_b && p->b_block)) continue;
        bool batched = is_batched(p, is_b ? p->b_batch_strides : p->a_batch_strides);
        bool by_k = (is_b ? p->b_stride_n : p->a_stride_m) != 1 || (is_b && p->b_block);
        flags |= is_b ? REE_CUDA_B_WIDE : REE_CUDA_A_WIDE;
        if (batched) flags |= is_b ? REE_CUDA_B_WIDE_BATCHED : REE_CUDA_A_WIDE_BATCHED;
        if (by_k) flags |= is_b ? REE_CUDA_B_WIDE_BY_K : REE_CUDA_A_WIDE_BY_K;
        uint64_t n = (batched ? p->n_batch : 1) * (uint64_t)p->k * (is_b ? p->n : p->m);
        struct ree_cuda_step *step = ree_cuda_add_step(out, REE_CUDA_matmul_widen, 256, n);
        step->extra[REE_CUDA_PRODUCT_OTHER] = is_b;
        out->scratch_bytes += n * 4;
    }
    for (uint32_t s = n_steps; s < out->n_steps; s++)
        out->steps[s].extra[REE_CUDA_PRODUCT_FLAGS] = flags;
    out->scratch_bytes = (out->scratch_bytes + 15) / 16 * 16;
    return flags;
}

static void encode_tiles(const struct ree_cuda *cuda, const struct ree_dispatch *dispatch,
                         struct ree_cuda_encoding *out) {
    const struct ree_matmul_params *p = &out->params.matmul.p;
    uint32_t flags = p->k ? add_widening(out, p) : 0;
    struct ree_cuda_plan plan = ree_cuda_plan_tiles(&cuda->limits, p->m, p->n, p->k, p->n_batch);
    uint32_t extra[5] = {flags, plan.n_parts, plan.n_stages};
    uint32_t stages = plan.stages_bytes;
    bool finish = plan.n_parts > 1 || !ree_cuda_matmul_epilogue_fits(dispatch, out, plan.threads);
    if (finish) {
        extra[REE_CUDA_PRODUCT_FLAGS] |= REE_CUDA_TO_SCRATCH;
        extra[REE_CUDA_PRODUCT_PARTS_AT] = ree_cuda_matmul_add_parts(out, p, plan.n_parts);
    } else if (p->has_epilogue) {
        uint32_t slots = out->params.matmul.epilogue.n_slots * REE_CUDA_SLOT_BYTES * plan.threads;
        if (stages < slots) stages = slots;
    }
    struct ree_cuda_step *step =
        ree_cuda_add_step(out, tile_kernels[plan.tile], plan.threads, plan.n_blocks * plan.threads);
    step->shared_bytes = plan.totals_bytes + stages;
    memcpy(step->extra, extra, sizeof extra);
    if (finish) ree_cuda_matmul_add_finish(out, dispatch, extra);
}

// Few rows, cuda/matvec.cu.

// B as a matvec kernel reads it: B of the product or, if `swapped`, B of the transposed product
// (used if there is one column). The result has the same memory layout in both cases.
struct matvec {
    bool swapped, by_rows;
    uint32_t m, n, bits;
};

static bool multiples_of(const struct ree_matmul_params *p, const int32_t *batch_strides,
                         int32_t offset, int32_t stride, int32_t n) {
    for (uint32_t d = 0; d < p->batch_rank; d++)
        if (batch_strides[d] % n != 0) return false;
    return offset % n == 0 && stride % n == 0;
}

// Fills *v. Returns whether a matvec kernel can compute the product: there are few rows, and B can
// be read 16 bytes (by rows: four elements) at a time.
static bool matvec_of(const struct ree_dispatch *dispatch, const struct ree_matmul_params *p,
                      struct matvec *v) {
    v->swapped = p->m > REE_CUDA_MATVEC_ROWS && p->n == 1 && p->b_block == 0;
    v->m = v->swapped ? p->n : p->m;
    v->n = v->swapped ? p->m : p->n;
    if (v->m > REE_CUDA_MATVEC_ROWS || p->k == 0) return false;
    uint64_t place = dispatch->operands[v->swapped ? 0 : 1].offset;
    if (p->b_block) {
        v->bits = p->b_bits;
        v->by_rows = false;
        return p->n_batch == 1 && ree_cuda_matmul_has_aligned_blocks(dispatch);
    }
    uint32_t dtype = v->swapped ? p->a_dtype : p->b_dtype;
    int32_t stride_k = v->swapped ? p->a_stride_k : p->b_stride_k;
    int32_t stride_n = v->swapped ? p->a_stride_m : p->b_stride_n;
    int32_t offset = v->swapped ? p->a_offset : p->b_offset;
    const int32_t *batch_strides = v->swapped ? p->a_batch_strides : p->b_batch_strides;
    v->bits = 8 * (uint32_t)ree_dtype_size((enum ree_dtype)dtype);
    v->by_rows = stride_k != 1 || p->k == 1;
    if (v->by_rows)
        return (stride_n == 1 || v->n == 1) && v->n % 4 == 0 && place % (v->bits / 2) == 0 &&
               multiples_of(p, batch_strides, offset, stride_k, 4);
    int32_t unit = (int32_t)(128 / v->bits);
    return p->k % (uint32_t)unit == 0 && place % 16 == 0 &&
           multiples_of(p, batch_strides, offset, stride_n, unit);
}

static enum ree_cuda_kernel matvec_kernel(const struct matvec *v) {
    static const enum ree_cuda_kernel kernels[3][2][4] = {
#define MATVEC(rows)                                                                               \
    {                                                                                              \
        {REE_CUDA_matvec_columns_4_##rows, REE_CUDA_matvec_columns_8_##rows,                       \
         REE_CUDA_matvec_columns_16_##rows, REE_CUDA_matvec_columns_32_##rows},                    \
        {                                                                                          \
            0, REE_CUDA_matvec_rows_8_##rows, REE_CUDA_matvec_rows_16_##rows,                      \
                REE_CUDA_matvec_rows_32_##rows                                                     \
        }                                                                                          \
    }
        MATVEC(1), MATVEC(4), MATVEC(8)};
    uint32_t bits = v->bits == 4 ? 0 : v->bits == 8 ? 1 : v->bits == 16 ? 2 : 3;
    return kernels[v->m == 1 ? 0 : v->m <= 4 ? 1 : 2][v->by_rows][bits];
}

static bool encode_matvec(const struct ree_cuda *cuda, const struct ree_dispatch *dispatch,
                          struct ree_cuda_encoding *out) {
    const struct ree_matmul_params *p = &out->params.matmul.p;
    struct matvec v;
    if (!matvec_of(dispatch, p, &v)) return false;
    const uint32_t columns = v.by_rows ? 128 : 32, rows = v.m == 1 ? 1 : v.m <= 4 ? 4 : 8;
    const struct ree_cuda_matvec launch = {
        .kernel = matvec_kernel(&v),
        .flags = v.swapped ? REE_CUDA_SWAPPED : 0,
        .rows = rows,
        .columns = columns,
        .n_groups = (uint64_t)((v.n + columns - 1) / columns) * p->n_batch,
        .stage_bytes = p->b_block ? ree_cuda_matvec_stage_bytes(p) : 4096,
        .a_bytes = rows * REE_CHUNK * 4,
    };
    return ree_cuda_matmul_add_matvec(cuda, dispatch, out, &launch);
}

// Products of bytes, cuda/matmul_bytes.cu.
#define BYTES_SLICE 64  // bytes of a vector in a stage
#define BYTES_VECTOR 80 // bytes per vector in shared memory

// Returns whether an operand's vectors along k can be copied 16 bytes at a time.
static bool has_vectors(const struct ree_dispatch *dispatch, const struct ree_matmul_params *p,
                        bool is_b, uint32_t unit) {
    return (is_b ? p->b_stride_k : p->a_stride_k) == 1 && p->k % unit == 0 &&
           dispatch->operands[is_b].offset % 16 == 0 &&
           multiples_of(p, is_b ? p->b_batch_strides : p->a_batch_strides,
                        is_b ? p->b_offset : p->a_offset, is_b ? p->b_stride_n : p->a_stride_m, 16);
}

static bool encode_bytes(const struct ree_cuda *cuda, const struct ree_dispatch *dispatch,
                         struct ree_cuda_encoding *out) {
    const struct ree_matmul_params *p = &out->params.matmul.p;
    if (ree_dtype_size((enum ree_dtype)p->a_dtype) != 1 || p->dtype != REE_I32 || p->k == 0)
        return false;
    uint32_t extra[5] = {0, 1, 3};
    if (p->m <= 8 && has_vectors(dispatch, p, false, 16) && has_vectors(dispatch, p, true, 16)) {
        struct ree_cuda_step *step = ree_cuda_add_step(out, REE_CUDA_matmul_bytes_rows, 256,
                                                       (uint64_t)p->n_batch * p->n * 32);
        if (!p->has_epilogue) return true;
        extra[REE_CUDA_PRODUCT_FLAGS] = REE_CUDA_TO_SCRATCH;
        extra[REE_CUDA_PRODUCT_PARTS_AT] = ree_cuda_matmul_add_parts(out, p, 1);
        memcpy(step->extra, extra, sizeof extra);
        ree_cuda_matmul_add_finish(out, dispatch, extra);
        return true;
    }
    // Packing saves time if the packed bytes are used several times.
    if (p->m < 8 || p->n < 8) return false;
    uint64_t vector_bytes = ((uint64_t)p->k + BYTES_SLICE - 1) / BYTES_SLICE * BYTES_SLICE,
             sizes[2] = {0};
    for (uint32_t is_b = 0; is_b < 2; is_b++) {
        if (has_vectors(dispatch, p, is_b, BYTES_SLICE)) continue;
        bool batched = is_batched(p, is_b ? p->b_batch_strides : p->a_batch_strides);
        extra[0] |= is_b ? REE_CUDA_B_WIDE : REE_CUDA_A_WIDE;
        if (batched) extra[0] |= is_b ? REE_CUDA_B_WIDE_BATCHED : REE_CUDA_A_WIDE_BATCHED;
        sizes[is_b] = (batched ? p->n_batch : 1) * vector_bytes * (is_b ? p->n : p->m);
    }
    if (sizes[0] + sizes[1] > (uint64_t)1 << 31) return false;
    bool large = (uint64_t)((p->m + 127) / 128) * ((p->n + 127) / 128) * p->n_batch >=
                     cuda->limits.n_multiprocessors &&
                 cuda->limits.max_shared >= 96u << 10;
    const uint32_t side = large ? 128 : 64, threads = large ? 256 : 128;
    bool finish = !ree_cuda_matmul_epilogue_fits(dispatch, out, threads);
    for (uint32_t is_b = 0; is_b < 2; is_b++) {
        if (sizes[is_b] == 0) continue;
        struct ree_cuda_step *step =
            ree_cuda_add_step(out, REE_CUDA_matmul_pack, 256, sizes[is_b] / 4);
        step->extra[REE_CUDA_PRODUCT_FLAGS] = extra[REE_CUDA_PRODUCT_FLAGS];
        step->extra[REE_CUDA_PRODUCT_OTHER] = is_b;
    }
    out->scratch_bytes = sizes[0] + sizes[1];
    if (finish) {
        extra[REE_CUDA_PRODUCT_FLAGS] |= REE_CUDA_TO_SCRATCH;
        extra[REE_CUDA_PRODUCT_PARTS_AT] = ree_cuda_matmul_add_parts(out, p, 1);
    }
    uint32_t stages = extra[REE_CUDA_PRODUCT_N_STAGES] * 2 * side * BYTES_VECTOR;
    uint32_t sums =
        side * side * 4 + out->params.matmul.epilogue.n_slots * REE_CUDA_SLOT_BYTES * threads;
    uint64_t n_blocks =
        (uint64_t)((p->m + side - 1) / side) * ((p->n + side - 1) / side) * p->n_batch;
    struct ree_cuda_step *step =
        ree_cuda_add_step(out, large ? REE_CUDA_matmul_bytes_128x128 : REE_CUDA_matmul_bytes_64x64,
                          threads, n_blocks * threads);
    step->shared_bytes = p->has_epilogue && !finish && sums > stages ? sums : stages;
    memcpy(step->extra, extra, sizeof extra);
    if (finish) ree_cuda_matmul_add_finish(out, dispatch, extra);
    return true;
}

enum ree_status ree_cuda_encode_matmul(const struct ree_cuda *cuda,
                                       const struct ree_dispatch *dispatch,
                                       struct ree_cuda_encoding *out, struct ree_error *err) {
    (void)err;
    struct ree_matmul_params *p = &out->params.matmul.p;
    if (p->m == 0 || p->n == 0 || p->n_batch == 0) return REE_OK;
    int32_t *sets[] = {p->a_batch_strides, p->b_batch_strides};
    p->batch_rank = p->n_batch == 1 ? 0 : ree_merge_dims(p->batch_rank, p->batch_dims, 2, sets);
    if (p->has_epilogue)
        ree_cuda_expr_prepare(&dispatch->params.matmul.epilogue, true,
                              &out->params.matmul.epilogue);
    if (p->a_block) {
        ree_cuda_encode_matmul_int8(cuda, dispatch, out);
    } else if (p->dtype == REE_F32) {
        if (cuda->limits.forces_plan || !encode_matvec(cuda, dispatch, out))
            encode_tiles(cuda, dispatch, out);
    } else if (!encode_bytes(cuda, dispatch, out)) {
        ree_cuda_matmul_add_words(out, dispatch, REE_CUDA_matmul_words);
    }
    return REE_OK;
}

void ree_cuda_encode_epilogue(const struct ree_dispatch *dispatch, struct ree_cuda_encoding *out) {
    uint32_t extra[5] = {REE_CUDA_TO_SCRATCH, 1};
    ree_cuda_expr_prepare(&dispatch->params.matmul.epilogue, true, &out->params.matmul.epilogue);
    extra[REE_CUDA_PRODUCT_PARTS_AT] = ree_cuda_matmul_add_parts(out, &out->params.matmul.p, 1);
    ree_cuda_matmul_add_finish(out, dispatch, extra);
}
