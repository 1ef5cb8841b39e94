#include "cases.h"

#include <string.h>

static enum ree_dtype dtype_of_size(uint32_t size) {
    return size == 1 ? REE_U8 : size == 2 ? REE_U16 : size == 4 ? REE_F32 : REE_I64;
}

bool case_copy(struct rng *rng, struct test_case *c) {
    case_begin(c, REE_REPOP_COPY);
    struct ree_copy_params *p = &c->dispatch.params.copy;
    p->elem_size = 1u << rng_below(rng, 4);
    p->rank = case_dims(rng, 5, 20000, p->dims);
    p->n_elements = (uint32_t)case_count(p->rank, p->dims);
    enum ree_dtype dtype = dtype_of_size(p->elem_size);
    uint64_t n_src = case_view(rng, CASE_VIEW_REPEATS | CASE_VIEW_BACKWARDS, p->rank, p->dims,
                               p->src_strides, &p->src_offset);
    uint64_t n_dst = case_view(rng, 0, p->rank, p->dims, p->dst_strides, &p->dst_offset);
    case_input(c, rng, dtype, n_src);
    case_output(c, rng, dtype, n_dst);
    return true;
}

// Appends n indices in [-size, size); if `faulty`, some are out of range.
static void index_input(struct test_case *c, struct rng *rng, enum ree_dtype dtype, uint64_t n,
                        uint32_t n_components, const uint32_t *sizes, bool faulty) {
    void *data = case_input(c, rng, dtype, n);
    for (uint64_t i = 0; i < n; i++) {
        int32_t size = (int32_t)sizes[i % n_components];
        int32_t index = size > 0 ? rng_between(rng, -size, size - 1) : 0;
        int64_t wide = index;
        if (faulty && rng_one_in(rng, 50))
            wide = index = rng_one_in(rng, 2) ? size + (int32_t)rng_below(rng, 3) : -size - 1;
        if (faulty && dtype == REE_I64 && rng_one_in(rng, 200)) wide += (int64_t)1 << 32;
        if (dtype == REE_I64)
            ((int64_t *)data)[i] = wide;
        else
            ((int32_t *)data)[i] = index;
    }
}

// out has shape (index dims..., slice dims...); index tuples run along the last axis of the index.
static void gather_nd(struct rng *rng, struct ree_gather_params *p, uint64_t *n_data,
                      uint64_t *n_index) {
    uint32_t data_dims[REE_MAX_RANK], index_dims[REE_MAX_RANK];
    uint32_t data_rank = case_dims(rng, 4, 3000, data_dims);
    uint32_t index_rank = case_dims(rng, 2, 60, index_dims);
    uint32_t n_components = 1 + rng_below(rng, data_rank);
    int32_t strides[REE_MAX_RANK], index_strides[REE_MAX_RANK];
    case_dense_strides(data_rank, data_dims, strides);
    case_dense_strides(index_rank, index_dims, index_strides);
    p->n_components = n_components;
    p->component_stride = 1;
    for (uint32_t j = 0; j < n_components; j++) {
        p->component_sizes[j] = data_dims[j];
        p->component_strides[j] = strides[j];
    }
    for (uint32_t d = 0; d < index_rank; d++) {
        p->dims[p->rank] = index_dims[d];
        p->index_strides[p->rank++] = index_strides[d] * (int32_t)n_components;
    }
    for (uint32_t d = n_components; d < data_rank; d++) {
        p->dims[p->rank] = data_dims[d];
        p->data_strides[p->rank++] = strides[d];
    }
    *n_data = case_count(data_rank, data_dims);
    *n_index = case_count(index_rank, index_dims) * n_components;
}

// out has the data dims with `axis` replaced by the index's dims.
static void gather_axis(struct rng *rng, struct ree_gather_params *p, uint64_t *n_data,
                        uint64_t *n_index) {
    uint32_t data_dims[REE_MAX_RANK], index_dims[REE_MAX_RANK];
    uint32_t data_rank = case_dims(rng, 3, 2000, data_dims);
    uint32_t index_rank = case_dims(rng, 2, 30, index_dims), axis = rng_below(rng, data_rank);
    int32_t strides[REE_MAX_RANK], index_strides[REE_MAX_RANK];
    *n_data = case_view(rng, CASE_VIEW_BACKWARDS, data_rank, data_dims, strides, &p->data_offset);
    case_dense_strides(index_rank, index_dims, index_strides);
    for (uint32_t d = 0; d < data_rank; d++) {
        if (d != axis) {
            p->dims[p->rank] = data_dims[d];
            p->data_strides[p->rank++] = strides[d];
            continue;
        }
        for (uint32_t i = 0; i < index_rank; i++) {
            p->dims[p->rank] = index_dims[i];
            p->index_strides[p->rank++] = index_strides[i];
        }
    }
    p->n_components = 1;
    p->component_sizes[0] = data_dims[axis];
    p->component_strides[0] = strides[axis];
    *n_index = case_count(index_rank, index_dims);
}

// One index for each output element.
static void gather_elements(struct rng *rng, struct ree_gather_params *p, uint64_t *n_data,
                            uint64_t *n_index) {
    uint32_t data_dims[REE_MAX_RANK];
    p->rank = case_dims(rng, 3, 3000, data_dims);
    uint32_t axis = rng_below(rng, p->rank);
    *n_data = case_view(rng, 0, p->rank, data_dims, p->data_strides, &p->data_offset);
    for (uint32_t d = 0; d < p->rank; d++)
        p->dims[d] = data_dims[d];
    p->dims[axis] = 1 + rng_below(rng, 9);
    case_dense_strides(p->rank, p->dims, p->index_strides);
    p->n_components = 1;
    p->component_sizes[0] = data_dims[axis];
    p->component_strides[0] = p->data_strides[axis];
    p->data_strides[axis] = 0;
    *n_index = case_count(p->rank, p->dims);
}

bool case_gather(struct rng *rng, struct test_case *c) {
    case_begin(c, REE_REPOP_GATHER);
    struct ree_gather_params *p = &c->dispatch.params.gather;
    p->elem_size = 1u << rng_below(rng, 4);
    p->index_dtype = rng_one_in(rng, 2) ? REE_I32 : REE_I64;
    uint64_t n_data, n_index;
    switch (rng_below(rng, 3)) {
    case 0: gather_axis(rng, p, &n_data, &n_index); break;
    case 1: gather_elements(rng, p, &n_data, &n_index); break;
    default: gather_nd(rng, p, &n_data, &n_index);
    }
    p->n_elements = (uint32_t)case_count(p->rank, p->dims);
    bool faulty = rng_one_in(rng, 10);
    for (uint32_t j = 0; j < p->n_components; j++)
        if (p->component_sizes[j] == 0 && p->n_elements > 0) faulty = true; // nothing is in range
    case_input(c, rng, dtype_of_size(p->elem_size), n_data);
    index_input(c, rng, (enum ree_dtype)p->index_dtype, n_index, p->n_components,
                p->component_sizes, faulty);
    case_output(c, rng, dtype_of_size(p->elem_size), p->n_elements);
    return true;
}

// Vectors run over all dimensions except `axis`; the steps run along it.
static void scatter_elements(struct rng *rng, struct ree_scatter_params *p, uint64_t *n_data,
                             uint64_t *n_index, uint64_t *n_updates) {
    uint32_t data_dims[REE_MAX_RANK], dims[REE_MAX_RANK], rank = case_dims(rng, 3, 3000, data_dims);
    uint32_t axis = rng_below(rng, rank);
    int32_t data_strides[REE_MAX_RANK], strides[REE_MAX_RANK];
    case_dense_strides(rank, data_dims, data_strides);
    for (uint32_t d = 0; d < rank; d++)
        dims[d] = data_dims[d] > 0 ? 1 + rng_below(rng, data_dims[d]) : 0;
    dims[axis] = 1 + rng_below(rng, 20);
    case_dense_strides(rank, dims, strides);
    p->rank = 0;
    for (uint32_t i = 0; i < rank; i++) {
        uint32_t d = i + 1 == rank ? axis : i < axis ? i : i + 1;
        p->dims[p->rank] = dims[d];
        p->data_strides[p->rank] = d == axis ? 0 : data_strides[d];
        p->index_strides[p->rank] = p->update_strides[p->rank] = strides[d];
        p->rank++;
    }
    p->n_step_dims = 1;
    p->n_components = 1;
    p->component_sizes[0] = data_dims[axis];
    p->component_strides[0] = data_strides[axis];
    *n_data = case_count(rank, data_dims);
    *n_index = *n_updates = case_count(rank, dims);
}

// Vectors run over the elements of a slice; the steps are the index tuples.
static void scatter_nd(struct rng *rng, struct ree_scatter_params *p, uint64_t *n_data,
                       uint64_t *n_index, uint64_t *n_updates) {
    uint32_t data_dims[REE_MAX_RANK], index_dims[REE_MAX_RANK];
    uint32_t data_rank = case_dims(rng, 4, 2000, data_dims);
    uint32_t index_rank = case_dims(rng, 2, 40, index_dims);
    uint32_t n_components = 1 + rng_below(rng, data_rank), n_slice = data_rank - n_components;
    int32_t strides[REE_MAX_RANK], index_strides[REE_MAX_RANK];
    case_dense_strides(data_rank, data_dims, strides);
    case_dense_strides(index_rank, index_dims, index_strides);
    uint64_t slice = case_count(n_slice, data_dims + n_components);
    p->n_components = n_components;
    p->component_stride = 1;
    for (uint32_t j = 0; j < n_components; j++) {
        p->component_sizes[j] = data_dims[j];
        p->component_strides[j] = strides[j];
    }
    for (uint32_t d = n_components; d < data_rank; d++) {
        p->dims[p->rank] = data_dims[d];
        p->data_strides[p->rank] = p->update_strides[p->rank] = strides[d];
        p->rank++;
    }
    for (uint32_t d = 0; d < index_rank; d++) {
        p->dims[p->rank] = index_dims[d];
        p->index_strides[p->rank] = index_strides[d] * (int32_t)n_components;
        p->update_strides[p->rank] = index_strides[d] * (int32_t)slice;
        p->rank++;
    }
    p->n_step_dims = index_rank;
    *n_data = case_count(data_rank, data_dims);
    *n_index = case_count(index_rank, index_dims) * n_components;
    *n_updates = case_count(index_rank, index_dims) * slice;
}

// `set` moves bytes. NaNs are made canonical beforehand, so that a backend may canonicalise them.
static void canonicalise(void *data, uint64_t n) {
    uint32_t *bits = data;
    for (uint64_t i = 0; i < n; i++)
        if ((bits[i] & 0x7FFFFFFFu) > 0x7F800000u) bits[i] = 0x7FC00000u;
}

bool case_scatter(struct rng *rng, struct test_case *c) {
    static const uint32_t dtypes[] = {REE_F32, REE_F32, REE_I32, REE_U32,
                                      REE_I64, REE_U64, REE_I8,  REE_U8};
    static const uint32_t set_dtypes[] = {REE_F32, REE_BOOL, REE_U16, REE_I64, REE_I8, REE_I32};
    case_begin(c, REE_REPOP_SCATTER);
    struct ree_scatter_params *p = &c->dispatch.params.scatter;
    p->kind = rng_below(rng, REE_SCATTER_MAX + 1);
    p->dtype = p->kind == REE_SCATTER_SET
                   ? rng_of(rng, sizeof set_dtypes / sizeof *set_dtypes, set_dtypes)
                   : rng_of(rng, sizeof dtypes / sizeof *dtypes, dtypes);
    if (p->kind != REE_SCATTER_SET && rng_one_in(rng, 5)) p->dtype = REE_F64;
    p->index_dtype = rng_one_in(rng, 2) ? REE_I32 : REE_I64;
    uint64_t n_data, n_index, n_updates;
    if (rng_one_in(rng, 2))
        scatter_elements(rng, p, &n_data, &n_index, &n_updates);
    else
        scatter_nd(rng, p, &n_data, &n_index, &n_updates);
    uint32_t n_vector_dims = p->rank - p->n_step_dims;
    p->n_vectors = (uint32_t)case_count(n_vector_dims, p->dims);
    p->n_steps = (uint32_t)case_count(p->n_step_dims, p->dims + n_vector_dims);
    bool faulty = rng_one_in(rng, 10);
    for (uint32_t j = 0; j < p->n_components; j++)
        if (p->component_sizes[j] == 0 && p->n_vectors > 0 && p->n_steps > 0) faulty = true;
    void *data = case_input(c, rng, (enum ree_dtype)p->dtype, n_data);
    c->is_written[0] = true;
    index_input(c, rng, (enum ree_dtype)p->index_dtype, n_index, p->n_components,
                p->component_sizes, faulty);
    void *updates = case_input(c, rng, (enum ree_dtype)p->dtype, n_updates);
    if (p->dtype == REE_F32) {
        canonicalise(data, n_data);
        canonicalise(updates, n_updates);
    }
    return true;
}

bool case_topk(struct rng *rng, struct test_case *c) {
    static const uint32_t dtypes[] = {REE_F32, REE_F32, REE_F64, REE_I32, REE_U32,
                                      REE_I64, REE_U64, REE_I8,  REE_U8};
    case_begin(c, REE_REPOP_TOPK);
    struct ree_topk_params *p = &c->dispatch.params.topk;
    p->dtype = rng_of(rng, sizeof dtypes / sizeof *dtypes, dtypes);
    p->n = case_length(rng);
    p->inner = rng_one_in(rng, 2) ? 1 : 1 + rng_below(rng, 6);
    p->outer = 1 + rng_below(rng, 6);
    p->k = rng_one_in(rng, 3) ? p->n : rng_below(rng, (p->n < 20 ? p->n : 20) + 1);
    p->largest = rng_one_in(rng, 2);
    case_input(c, rng, (enum ree_dtype)p->dtype, (uint64_t)p->outer * p->n * p->inner);
    case_output(c, rng, (enum ree_dtype)p->dtype, (uint64_t)p->outer * p->k * p->inner);
    case_output(c, rng, REE_I64, (uint64_t)p->outer * p->k * p->inner);
    return true;
}
