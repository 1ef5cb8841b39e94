// MaxUnpool: writes values to the flat indices that MaxPool returned; all other elements are zeros.
#include "graph/lower/ops/spatial/spatial.h"
#include "graph/lower/ops/conv/window.h"

#include <string.h>

// Computes the shape before pooling from kernel_shape, strides and pads.
static enum ree_status pooled_from(struct ree_lower *lower, const struct ree_view *x,
                                   int64_t *dims) {
    struct ree_window w;
    REE_TRY(ree_window_read(lower, x, NULL, &w));
    dims[0] = x->dims[0];
    dims[1] = x->dims[1];
    for (uint32_t i = 0; i < w.n; i++) {
        uint32_t k = w.first + i;
        dims[2 + i] = (w.in[k] - 1) * w.stride[k] - w.pad_begin[k] - w.pad_end[k] + w.kernel[k];
        if (w.in[k] > INT32_MAX || dims[2 + i] < 0)
            return ree_lower_fail(lower, REE_INVALID,
                                  "X has size %lld along axis %u: no output of size %lld",
                                  (long long)w.in[k], 2 + i, (long long)dims[2 + i]);
    }
    return REE_OK;
}

enum ree_status ree_lower_op_max_unpool(struct ree_lower *lower, struct ree_view *const *in,
                                        struct ree_view **out) {
    struct ree_view *x = in[0], *index = in[1], *shape = ree_rule_input(lower, in, 2), *flat;
    int64_t dims[REE_MAX_RANK];
    char text[128], like[128];
    REE_TRY(pooled_from(lower, x, dims));
    bool fits = index->dtype == REE_I64 && index->rank == x->rank;
    for (uint32_t i = 0; fits && i < x->rank; i++)
        fits = index->dims[i] == x->dims[i];
    if (!fits)
        return ree_lower_fail(lower, REE_INVALID,
                              "input I is %s, expected int64 of the shape of "
                              "X, %s",
                              ree_view_text(index, text, sizeof text),
                              ree_view_text(x, like, sizeof like));
    REE_TRY(ree_spatial_zeros(lower, x->dtype, x->rank, dims, &flat));
    if (ree_view_count(x)) {
        if (!ree_view_count(flat))
            return ree_lower_fail(lower, REE_INVALID, "X does not fit into an output of %s",
                                  ree_view_text(flat, text, sizeof text));
        REE_TRY(ree_lower_dense(lower, x, &x));
        REE_TRY(ree_lower_dense(lower, index, &index));
        union ree_params params;
        struct ree_scatter_params *p = &params.scatter;
        memset(p, 0, sizeof *p);
        p->kind = REE_SCATTER_SET;
        p->dtype = (uint32_t)x->dtype;
        p->index_dtype = REE_I64;
        p->rank = p->n_step_dims = p->n_vectors = p->n_components = 1;
        p->n_steps = p->dims[0] = (uint32_t)ree_view_count(x);
        p->index_strides[0] = p->update_strides[0] = 1;
        p->component_sizes[0] = (uint32_t)ree_view_count(flat);
        p->component_strides[0] = 1;
        struct ree_view *operands[3] = {flat, index, x};
        REE_TRY(ree_lower_emit(lower, REE_REPOP_SCATTER, &params, operands, 3, 0));
    }
    out[0] = flat;
    if (!shape) return REE_OK;
    // If output_shape is larger, the unpooled tensor begins at index 0 of each axis, and zeros
    // follow.
    const int64_t *wanted;
    int64_t none[REE_MAX_RANK] = {0}, after[REE_MAX_RANK] = {0};
    size_t n;
    REE_TRY(ree_lower_host_ints(lower, shape, "output_shape", &wanted, &n));
    fits = n == x->rank;
    for (uint32_t i = 0; fits && i < x->rank; i++) {
        fits = wanted[i] >= dims[i] && wanted[i] <= INT32_MAX;
        after[i] = fits ? wanted[i] - dims[i] : 0;
    }
    if (!fits)
        return ree_lower_fail(lower, REE_INVALID, "output_shape is %s, expected at least %s",
                              ree_data_list_text(n, wanted, text, sizeof text),
                              ree_data_list_text(x->rank, dims, like, sizeof like));
    return ree_spatial_border(lower, flat, none, after, &out[0]);
}
