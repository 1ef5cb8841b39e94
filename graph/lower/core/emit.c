// Emits RepOps on whole tensors: reduce and matmul, with their index arithmetic.
#include "graph/lower/core/lower.h"

#include <string.h>

// Appends a dimension to a list, merged with the previous one if the stride allows it.
static void add_dim(uint32_t *rank, uint32_t *dims, int32_t *strides, int64_t dim, int64_t stride) {
    if (dim == 1) return;
    if (*rank && strides[*rank - 1] == stride * dim) {
        dims[*rank - 1] *= (uint32_t)dim;
        strides[*rank - 1] = (int32_t)stride;
        return;
    }
    dims[*rank] = (uint32_t)dim;
    strides[(*rank)++] = (int32_t)stride;
}

enum ree_status ree_lower_reduce(struct ree_lower *lower, struct ree_view *t,
                                 enum ree_reduce_kind kind, uint32_t axes_mask, bool keepdims,
                                 bool select_last, struct ree_view **out) {
    union ree_params params;
    struct ree_reduce_params *p = &params.reduce;
    memset(p, 0, sizeof *p);
    p->kind = kind;
    p->dtype = (uint32_t)t->dtype;
    p->select_last = select_last;
    p->offset = (int32_t)t->offset;
    p->n_outer = p->n_reduce = 1;
    int64_t dims[REE_MAX_RANK];
    uint32_t rank = 0;
    for (uint32_t i = 0; i < t->rank; i++) {
        if (axes_mask >> i & 1) {
            add_dim(&p->reduce_rank, p->reduce_dims, p->reduce_strides, t->dims[i], t->strides[i]);
            p->n_reduce *= (uint32_t)t->dims[i];
            if (keepdims) dims[rank++] = 1;
        } else {
            add_dim(&p->outer_rank, p->outer_dims, p->outer_strides, t->dims[i], t->strides[i]);
            p->n_outer *= (uint32_t)t->dims[i];
            dims[rank++] = t->dims[i];
        }
    }
    bool index = kind == REE_REDUCE_ARGMAX || kind == REE_REDUCE_ARGMIN;
    if (index && p->n_reduce == 0 && p->n_outer)
        return ree_lower_fail(lower, REE_INVALID, "the axis to search has no elements");
    REE_TRY(ree_lower_new(lower, index ? REE_I64 : t->dtype, rank, dims, out));
    struct ree_view *operands[2] = {t, *out};
    return ree_lower_emit(lower, REE_REPOP_REDUCE, &params, operands, 2, 1);
}

enum ree_dtype ree_product_dtype(enum ree_dtype a, enum ree_dtype b) {
    bool float_a = a == REE_F32 || a == REE_F16 || a == REE_BF16,
         byte_a = a == REE_I8 || a == REE_U8;
    bool float_b = b == REE_F32 || b == REE_F16 || b == REE_BF16,
         byte_b = b == REE_I8 || b == REE_U8;
    if (byte_a && byte_b) return REE_I32;
    if ((float_a || byte_a) && (float_b || byte_b)) return REE_F32;
    bool alone = a == REE_F64 || a == REE_I32 || a == REE_U32 || a == REE_I64 || a == REE_U64;
    return alone && a == b ? a : REE_DTYPE_NONE;
}

enum ree_status ree_lower_matmul(struct ree_lower *lower, struct ree_view *a, struct ree_view *b,
                                 struct ree_view **out) {
    char ta[128], tb[128];
    if (a->rank < 2 || b->rank < 2 || a->dims[a->rank - 1] != b->dims[b->rank - 2])
        return ree_lower_fail(lower, REE_INVALID, "cannot multiply %s by %s",
                              ree_view_text(a, ta, sizeof ta), ree_view_text(b, tb, sizeof tb));
    enum ree_dtype dtype = ree_product_dtype(a->dtype, b->dtype);
    if (dtype == REE_DTYPE_NONE)
        return ree_lower_fail(lower, REE_INVALID, "cannot multiply %s by %s: the types differ",
                              ree_view_text(a, ta, sizeof ta), ree_view_text(b, tb, sizeof tb));
    union ree_params params;
    struct ree_matmul_params *p = &params.matmul;
    memset(p, 0, sizeof *p);
    p->dtype = (uint32_t)dtype;
    p->a_dtype = (uint32_t)a->dtype;
    p->b_dtype = (uint32_t)b->dtype;
    p->m = (uint32_t)a->dims[a->rank - 2];
    p->k = (uint32_t)a->dims[a->rank - 1];
    p->n = (uint32_t)b->dims[b->rank - 1];
    p->a_offset = (int32_t)a->offset;
    p->b_offset = (int32_t)b->offset;
    p->a_stride_m = (int32_t)a->strides[a->rank - 2];
    p->a_stride_k = (int32_t)a->strides[a->rank - 1];
    p->b_stride_k = (int32_t)b->strides[b->rank - 2];
    p->b_stride_n = (int32_t)b->strides[b->rank - 1];
    p->n_batch = 1;

    uint32_t rank = a->rank > b->rank ? a->rank : b->rank;
    int64_t dims[REE_MAX_RANK];
    uint32_t n_batch_dims = rank - 2;
    for (uint32_t i = 0; i < n_batch_dims; i++) {
        int32_t ia = (int32_t)(i + a->rank) - (int32_t)rank,
                ib = (int32_t)(i + b->rank) - (int32_t)rank;
        int64_t da = ia < 0 ? 1 : a->dims[ia], db = ib < 0 ? 1 : b->dims[ib];
        if (da != db && da != 1 && db != 1)
            return ree_lower_fail(lower, REE_INVALID,
                                  "cannot multiply %s by %s: batch sizes differ",
                                  ree_view_text(a, ta, sizeof ta), ree_view_text(b, tb, sizeof tb));
        dims[i] = da == 1 ? db : da;
        int64_t sa = da == 1 ? 0 : a->strides[ia], sb = db == 1 ? 0 : b->strides[ib];
        if (dims[i] == 1) continue;
        uint32_t last = p->batch_rank;
        if (last && p->a_batch_strides[last - 1] == sa * dims[i] &&
            p->b_batch_strides[last - 1] == sb * dims[i]) {
            p->batch_dims[last - 1] *= (uint32_t)dims[i];
            p->a_batch_strides[last - 1] = (int32_t)sa;
            p->b_batch_strides[last - 1] = (int32_t)sb;
        } else {
            p->batch_dims[last] = (uint32_t)dims[i];
            p->a_batch_strides[last] = (int32_t)sa;
            p->b_batch_strides[last] = (int32_t)sb;
            p->batch_rank++;
        }
        p->n_batch *= (uint32_t)dims[i];
    }
    dims[n_batch_dims] = p->m;
    dims[n_batch_dims + 1] = p->n;
    REE_TRY(ree_lower_new(lower, dtype, rank, dims, out));
    // If the batches of A are consecutive rows and share one B, compute a single taller product.
    while (p->batch_rank && p->b_batch_strides[p->batch_rank - 1] == 0 &&
           (p->m == 1 ||
            p->a_batch_strides[p->batch_rank - 1] == (int64_t)p->a_stride_m * (int64_t)p->m)) {
        uint32_t last = --p->batch_rank;
        if (p->m == 1) p->a_stride_m = p->a_batch_strides[last];
        p->m *= p->batch_dims[last];
        p->n_batch = 1;
        for (uint32_t i = 0; i < last; i++)
            p->n_batch *= p->batch_dims[i];
        p->batch_dims[last] = 0;
        p->a_batch_strides[last] = 0;
    }
    struct ree_view *operands[3] = {a, b, *out};
    return ree_lower_emit(lower, REE_REPOP_MATMUL, &params, operands, 3, 1);
}
