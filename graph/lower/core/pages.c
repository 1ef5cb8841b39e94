// Kv caches in pages. A gather copies the pages of each sequence to a dense tensor, and a scatter
// writes new positions into the pool.
#include "graph/lower/core/pages.h"

#include <string.h>

static int64_t round_to_pages(const struct ree_lower_kv_cache *cache, int64_t positions) {
    const int64_t page = (int64_t)1 << cache->page_bits;
    return (positions + page - 1) / page * page;
}

// Writes `dims` to `out` with the axis divided into two dimensions: pages, and positions in a page.
static void divide_axis(const struct ree_lower_kv_cache *cache, const int64_t *dims,
                        uint32_t *out) {
    for (uint32_t i = 0, to = 0; i < cache->rank; i++) {
        if (i == cache->axis) out[to++] = (uint32_t)(dims[i] >> cache->page_bits);
        out[to++] = i == cache->axis ? UINT32_C(1) << cache->page_bits : (uint32_t)dims[i];
    }
}

// Writes the pool's strides along the dimensions of divide_axis. The pages have stride 0, because
// the table selects the page.
static void pool_strides(const struct ree_lower_kv_cache *cache, int32_t *out) {
    for (uint32_t i = 0, to = 0; i < cache->rank; i++) {
        if (i == cache->axis) out[to++] = 0;
        out[to++] = (int32_t)cache->pool->strides[i];
    }
}

// Writes the table's strides along the dimensions of divide_axis.
static void table_strides(const struct ree_lower_kv_cache *cache, int32_t *out) {
    for (uint32_t i = 0, to = 0; i < cache->rank; i++) {
        if (i == cache->axis) out[to++] = 1;
        out[to++] = i == cache->batch_axis ? (int32_t)cache->table->dims[1] : 0;
    }
}

// Writes the number of pages in the pool, and the number of elements from one page to the next.
static void page_component(const struct ree_lower_kv_cache *cache, uint32_t *size,
                           int32_t *stride) {
    *size = (uint32_t)(cache->pool->dims[cache->axis] >> cache->page_bits);
    *stride = (int32_t)(cache->pool->strides[cache->axis] << cache->page_bits);
}

static enum ree_status check_rank(struct ree_lower *lower, const struct ree_lower_kv_cache *cache) {
    if (cache->rank + 1 <= REE_MAX_RANK) return REE_OK;
    return ree_lower_fail(lower, REE_UNSUPPORTED, "a cache of rank %u in pages; at most %d",
                          cache->rank, REE_MAX_RANK - 1);
}

// Makes a dense copy of the pages, with dims[axis] positions filled.
static enum ree_status copy_pages(struct ree_lower *lower, const struct ree_lower_kv_cache *cache,
                                  enum ree_dtype dtype, struct ree_view **out) {
    struct ree_lower_kv_cache *own = ree_arena_alloc(lower->arena, sizeof *own);
    if (!own) return ree_lower_no_memory(lower);
    *own = *cache;
    // At least one page: an empty cache then has the same strides as a longer one.
    own->capacity = round_to_pages(cache, cache->dims[cache->axis] ? cache->dims[cache->axis] : 1);
    int64_t dims[REE_MAX_RANK];
    memcpy(dims, cache->dims, sizeof dims);
    dims[cache->axis] = own->capacity;
    REE_TRY(ree_lower_new(lower, dtype, cache->rank, dims, out));
    struct ree_view *t = *out;
    t->storage->kv_cache = own;
    t->dims[cache->axis] = cache->dims[cache->axis];
    if (t->storage->nbytes == 0) return REE_OK;
    union ree_params params;
    struct ree_gather_params *p = &params.gather;
    memset(p, 0, sizeof *p);
    p->elem_size = (uint32_t)ree_dtype_size(dtype);
    p->index_dtype = REE_I32;
    p->rank = cache->rank + 1;
    divide_axis(cache, dims, p->dims);
    p->n_elements = 1;
    for (uint32_t i = 0; i < p->rank; i++)
        p->n_elements *= p->dims[i];
    pool_strides(cache, p->data_strides);
    table_strides(cache, p->index_strides);
    p->n_components = 1;
    page_component(cache, &p->component_sizes[0], &p->component_strides[0]);
    struct ree_view *operands[3] = {cache->pool, cache->table, t};
    return ree_lower_emit(lower, REE_REPOP_GATHER, &params, operands, 3, 1);
}

enum ree_status ree_lower_paged_kv_cache(struct ree_lower *lower, enum ree_dtype dtype,
                                         const struct ree_lower_kv_cache *cache, int64_t pool_len,
                                         struct ree_view **out) {
    REE_TRY(check_rank(lower, cache));
    struct ree_lower_kv_cache own = *cache, whole = *cache;
    whole.dims[cache->batch_axis] = 1;
    whole.dims[cache->axis] = whole.capacity = pool_len;
    REE_TRY(ree_lower_kv_cache(lower, dtype, &whole, &own.pool));
    own.pool->strides[cache->batch_axis] = 0;
    return copy_pages(lower, &own, dtype, out);
}

const struct ree_lower_kv_cache *ree_lower_pages_of(const struct ree_view *t) {
    if (t->kind != REE_TENSOR || !t->storage || !t->storage->kv_cache) return NULL;
    return t->storage->kv_cache->pool ? t->storage->kv_cache : NULL;
}

enum ree_status ree_lower_append_to_pages(struct ree_lower *lower, struct ree_view *past,
                                          struct ree_view *t, struct ree_view **out) {
    struct ree_lower_kv_cache *cache = past->storage->kv_cache;
    const uint32_t axis = cache->axis;
    const int64_t n = t->dims[axis];
    cache->is_extended = true;
    if (cache->targets->dims[0] != t->dims[cache->batch_axis] || cache->targets->dims[1] != n)
        return ree_lower_fail(
            lower, REE_UNSUPPORTED,
            "the number of positions that are added to a cache is not the number of new tokens");
    if (ree_view_count(t)) {
        union ree_params params;
        struct ree_scatter_params *p = &params.scatter;
        memset(p, 0, sizeof *p);
        p->kind = REE_SCATTER_SET;
        p->dtype = (uint32_t)t->dtype;
        p->index_dtype = REE_I32;
        p->rank = t->rank;
        p->n_vectors = (uint32_t)ree_view_count(t);
        p->n_steps = 1;
        REE_TRY(ree_lower_dense(lower, t, &t));
        for (uint32_t i = 0; i < t->rank; i++) {
            p->dims[i] = (uint32_t)t->dims[i];
            p->data_strides[i] = i == axis ? 0 : (int32_t)cache->pool->strides[i];
            p->update_strides[i] = (int32_t)t->strides[i];
        }
        p->index_strides[cache->batch_axis] = (int32_t)n;
        p->index_strides[axis] = 1;
        p->n_components = 1;
        p->component_sizes[0] = (uint32_t)cache->pool->dims[axis];
        p->component_strides[0] = (int32_t)cache->pool->strides[axis];
        struct ree_view *operands[3] = {cache->pool, cache->targets, t};
        REE_TRY(ree_lower_emit(lower, REE_REPOP_SCATTER, &params, operands, 3, 0));
    }
    struct ree_lower_kv_cache after = *cache;
    after.dims[axis] += n;
    after.is_appended = true;
    return copy_pages(lower, &after, t->dtype, out);
}

enum ree_status ree_lower_write_pages(struct ree_lower *lower,
                                      const struct ree_lower_kv_cache *cache, struct ree_view *t) {
    int64_t dims[REE_MAX_RANK];
    struct ree_view *whole, *part;
    if (ree_view_count(t) == 0) return REE_OK;
    // Writes whole pages. Positions after the last one have undefined contents; they are never read
    // before they are written.
    memcpy(dims, t->dims, sizeof dims);
    dims[cache->axis] = round_to_pages(cache, dims[cache->axis]);
    REE_TRY(ree_lower_new(lower, t->dtype, t->rank, dims, &whole));
    REE_TRY(ree_lower_slice(lower, whole, cache->axis, 0, 1, t->dims[cache->axis], &part));
    REE_TRY(ree_lower_copy_into(lower, t, part));
    union ree_params params;
    struct ree_scatter_params *p = &params.scatter;
    memset(p, 0, sizeof *p);
    p->kind = REE_SCATTER_SET;
    p->dtype = (uint32_t)t->dtype;
    p->index_dtype = REE_I32;
    p->rank = cache->rank + 1;
    divide_axis(cache, dims, p->dims);
    p->n_vectors = p->n_steps = 1;
    for (uint32_t i = p->rank; i-- > 0;) {
        p->update_strides[i] = (int32_t)p->n_vectors;
        p->n_vectors *= p->dims[i];
    }
    pool_strides(cache, p->data_strides);
    table_strides(cache, p->index_strides);
    p->n_components = 1;
    page_component(cache, &p->component_sizes[0], &p->component_strides[0]);
    struct ree_view *operands[3] = {cache->pool, cache->table, whole};
    return ree_lower_emit(lower, REE_REPOP_SCATTER, &params, operands, 3, 0);
}
