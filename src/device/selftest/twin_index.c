#include "device/selftest/twin_index.h"

#include "base/dtype.h"
#include "device/selftest/twin_views.h"

static uint32_t next_prime(uint64_t n) {
    uint32_t prime = n < 2 ? 2 : (uint32_t)n;
    for (uint32_t d = 2; d * d <= prime;)
        d = prime % d == 0 ? (prime++, 2) : d + 1;
    return prime;
}

// Shared by gather and scatter: shrinks the views of the data and of the indices over the
// dimensions and the components. Returns the number of data elements. *n_index: number of index
// elements. *range: exclusive bound of the indices of all components. distinct: the indices will be
// REE_HARD_DISTINCT.
static uint64_t shrink_indexed(const struct ree_twin_size *size, uint32_t rank,
                               const uint32_t *dims, const uint32_t *to, int32_t *data_strides,
                               int32_t *data_offset, int32_t *index_strides, uint32_t n_components,
                               int32_t *component_stride, uint32_t *sizes,
                               int32_t *component_strides, bool distinct, uint64_t *n_index,
                               uint32_t *range) {
    uint32_t from_all[REE_TWIN_MAX_VIEW] = {0}, to_all[REE_TWIN_MAX_VIEW] = {0};
    int32_t data[REE_TWIN_MAX_VIEW], index[REE_MAX_RANK + 1];
    for (uint32_t d = 0; d < rank; d++) {
        from_all[d] = dims[d];
        to_all[d] = to[d];
        index[d] = index_strides[d];
    }
    index[rank] = *component_stride;
    from_all[rank] = to_all[rank] = n_components;
    *n_index = ree_twin_view(size, rank + 1, from_all, to_all, index, NULL);
    for (uint32_t d = 0; d < rank; d++)
        index_strides[d] = index[d];
    *component_stride = index[rank];

    *range = 11;
    for (uint32_t j = 0; j < n_components; j++)
        if (sizes[j] < *range) *range = sizes[j] ? sizes[j] : 1;
    if (distinct) *range = next_prime(*n_index);
    for (uint32_t d = 0; d < rank + n_components; d++) {
        bool component = d >= rank;
        from_all[d] = component ? sizes[d - rank] : dims[d];
        to_all[d] = component ? *range : to[d];
        data[d] = component ? component_strides[d - rank] : data_strides[d];
    }
    uint64_t n = ree_twin_view(size, rank + n_components, from_all, to_all, data, data_offset);
    for (uint32_t d = 0; d < rank + n_components; d++) {
        bool component = d >= rank;
        if (component) sizes[d - rank] = *range;
        (component ? component_strides : data_strides)[component ? d - rank : d] = data[d];
    }
    return n;
}

// Returns false if the twin must keep a dimension of size 0, which has no valid index.
static bool has_indices(const struct ree_twin_shrinking *s, uint32_t n_components,
                        const uint32_t *sizes) {
    for (uint32_t j = 0; j < n_components && s->size->alignment; j++)
        if (sizes[j] == 0) return false;
    return true;
}

bool ree_twin_shrink_gather(struct ree_twin_shrinking *s) {
    struct ree_gather_params *p = &s->dispatch->params.gather;
    static const uint32_t dtypes[] = {[1] = REE_U8, [2] = REE_U16, [4] = REE_U32, [8] = REE_U64};
    uint32_t to[REE_MAX_RANK], range;
    uint64_t n_index;
    if (p->n_elements == 0 || !has_indices(s, p->n_components, p->component_sizes)) return false;
    if (s->size->alignment && p->n_elements > 1) {
        int32_t *sets[] = {p->data_strides, p->index_strides};
        p->rank = ree_twin_merge_dims(p->rank, p->dims, 2, sets);
    }
    ree_twin_dims(s->size, p->rank, p->dims, s->size->elements, to);
    uint64_t n = shrink_indexed(s->size, p->rank, p->dims, to, p->data_strides, &p->data_offset,
                                p->index_strides, p->n_components, &p->component_stride,
                                p->component_sizes, p->component_strides, false, &n_index, &range);
    for (uint32_t d = 0; d < p->rank; d++)
        p->dims[d] = to[d];
    p->n_elements = (uint32_t)ree_twin_product(p->rank, to);
    ree_twin_add(s, REE_HARD_ANY, dtypes[p->elem_size], n, 1);
    ree_twin_add_bounded(s, p->index_dtype, n_index, -(int64_t)range, (int64_t)range - 1);
    ree_twin_add_output(s, dtypes[p->elem_size], p->n_elements);
    return true;
}

bool ree_twin_shrink_scatter(struct ree_twin_shrinking *s) {
    struct ree_scatter_params *p = &s->dispatch->params.scatter;
    uint32_t to[REE_MAX_RANK], range, n_vector_dims = p->rank - p->n_step_dims;
    uint64_t n_index;
    if (p->n_vectors == 0 || p->n_steps == 0) return false;
    if (!has_indices(s, p->n_components, p->component_sizes)) return false;
    for (uint32_t d = 0; d < p->rank; d++)
        to[d] = p->dims[d] > 1 ? 3 : 1;
    // Vectors must not share a target. If only the indices keep their targets apart, no two indices
    // may be equal.
    bool distinct = false;
    for (uint32_t d = 0; d < n_vector_dims; d++)
        distinct = distinct || (p->dims[d] > 1 && p->data_strides[d] == 0);
    // Backends have different code for few and for many steps.
    uint64_t n_steps = ree_twin_product(p->n_step_dims, to + n_vector_dims);
    for (uint32_t d = n_vector_dims; d < p->rank; d++) {
        if (p->n_steps <= 4) to[d] = p->dims[d];
        if (p->n_steps > 4 && p->dims[d] > 1 && n_steps < 9) {
            to[d] = 12;
            n_steps *= 4;
        }
    }
    int32_t update_offset = 0;
    uint64_t n_updates =
        ree_twin_view(s->size, p->rank, p->dims, to, p->update_strides, &update_offset);
    if (update_offset != 0) return false;
    int32_t data_offset = 0;
    uint64_t n =
        shrink_indexed(s->size, p->rank, p->dims, to, p->data_strides, &data_offset,
                       p->index_strides, p->n_components, &p->component_stride, p->component_sizes,
                       p->component_strides, distinct, &n_index, &range);
    if (data_offset != 0) return false;
    for (uint32_t d = 0; d < p->rank; d++)
        p->dims[d] = to[d];
    p->n_vectors = (uint32_t)ree_twin_product(n_vector_dims, to);
    p->n_steps = (uint32_t)ree_twin_product(p->n_step_dims, to + n_vector_dims);
    enum ree_hard_role role = p->kind == REE_SCATTER_MUL ? REE_HARD_NEAR_ONE : REE_HARD_ANY;
    ree_twin_add(s, role, p->dtype, n, 40);
    s->operands[0].is_written = true;
    ree_twin_add_bounded(s, p->index_dtype, n_index, -(int64_t)range, (int64_t)range - 1);
    if (distinct) s->operands[1].values.role = REE_HARD_DISTINCT;
    ree_twin_add(s, role, p->dtype, n_updates, 40);
    return true;
}
