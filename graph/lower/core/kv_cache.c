// Tensors that stay on the device between runs (kv caches), and growing them in place.
#include "graph/lower/core/lower.h"
#include "graph/lower/core/pages.h"

#include <string.h>

enum ree_status ree_lower_kv_cache(struct ree_lower *lower, enum ree_dtype dtype,
                                   const struct ree_lower_kv_cache *cache, struct ree_view **out) {
    int64_t capacity[REE_MAX_RANK];
    memcpy(capacity, cache->dims, sizeof capacity);
    capacity[cache->axis] = cache->capacity;
    struct ree_view *t;
    REE_TRY(ree_lower_new(lower, dtype, cache->rank, capacity, &t));
    struct ree_lower_kv_cache *copy = ree_arena_alloc(lower->arena, sizeof *copy);
    if (!copy) return ree_lower_no_memory(lower);
    *copy = *cache;
    t->storage->kind = REE_STORAGE_KV_CACHE;
    t->storage->kv_cache = copy;
    t->storage->device_written = true; // by earlier runs
    t->dims[cache->axis] = cache->dims[cache->axis];
    *out = t;
    return REE_OK;
}

// Returns whether t is the whole kv cache as the graph received it, not a slice or permutation of
// it.
static bool is_whole(const struct ree_view *t, uint32_t axis) {
    if (t->kind != REE_TENSOR || !t->storage || !t->storage->kv_cache) return false;
    const struct ree_lower_kv_cache *s = t->storage->kv_cache;
    if (t->offset || t->rank != s->rank || axis != s->axis) return false;
    int64_t stride = 1;
    for (uint32_t i = t->rank; i-- > 0;) {
        if (t->dims[i] != s->dims[i] || (t->dims[i] != 1 && t->strides[i] != stride)) return false;
        stride *= i == axis ? s->capacity : s->dims[i];
    }
    return true;
}

static bool has(struct ree_value *const *values, size_t n, const struct ree_value *value) {
    for (size_t i = 0; i < n; i++)
        if (values[i] == value) return true;
    return false;
}

// Returns whether the current node, which adds n positions to a kv cache in pages, may make the
// cache's next contents. Other nodes may join the cache and other rows, too, for example a constant
// one; they must not write into the pool.
static bool may_make_next(const struct ree_node *node, const struct ree_lower_kv_cache *s,
                          int64_t n) {
    if (!s->next || has(node->outputs, node->n_outputs, s->next)) return true;
    if (n != s->targets->dims[1]) return false;
    // Nodes such as Identity may follow, unless the last one reads the cache itself.
    const struct ree_node *last = s->next->producer;
    return !last || !has(last->inputs, last->n_inputs, s->value);
}

bool ree_lower_grows_in_place(const struct ree_lower *lower, const struct ree_view *past,
                              uint32_t axis, int64_t n) {
    if (!is_whole(past, axis)) return false;
    const struct ree_lower_kv_cache *s = past->storage->kv_cache;
    if (s->is_extended) return false;
    return s->pool ? may_make_next(lower->node, s, n) : n <= s->capacity - s->dims[axis];
}

// Returns the kv cache with n more positions, as a view.
static enum ree_status grow(struct ree_lower *lower, struct ree_view *past, uint32_t axis,
                            int64_t n, struct ree_view **out) {
    struct ree_view *t = ree_lower_view(lower, past);
    if (!t) return ree_lower_no_memory(lower);
    past->storage->kv_cache->is_extended = true;
    // A dimension of size 1 may have any stride; the axis needs the right one from now on.
    int64_t stride = 1;
    for (uint32_t i = t->rank; i-- > 0;) {
        t->strides[i] = stride;
        stride *= i == axis ? past->storage->kv_cache->capacity : t->dims[i];
    }
    t->dims[axis] += n;
    *out = t;
    return REE_OK;
}

enum ree_status ree_lower_scatter_positions(struct ree_lower *lower, struct ree_view *target,
                                            uint32_t batch_axis, uint32_t axis,
                                            struct ree_view *positions, struct ree_view *t) {
    if (ree_view_count(t) == 0) return REE_OK;
    if (positions->rank != 2 || positions->dims[0] != t->dims[batch_axis] ||
        positions->dims[1] != t->dims[axis])
        return ree_lower_fail(
            lower, REE_UNSUPPORTED,
            "the number of positions that are added to a cache is not the number of new tokens");
    union ree_params params;
    struct ree_scatter_params *p = &params.scatter;
    memset(p, 0, sizeof *p);
    p->kind = REE_SCATTER_SET;
    p->dtype = (uint32_t)target->dtype;
    p->index_dtype = (uint32_t)positions->dtype;
    p->rank = t->rank;
    p->n_vectors = (uint32_t)ree_view_count(t);
    p->n_steps = 1;
    REE_TRY(ree_lower_dense(lower, t, &t));
    REE_TRY(ree_lower_dense(lower, positions, &positions));
    for (uint32_t i = 0; i < t->rank; i++) {
        p->dims[i] = (uint32_t)t->dims[i];
        p->data_strides[i] = i == axis ? 0 : (int32_t)target->strides[i];
        p->update_strides[i] = (int32_t)t->strides[i];
    }
    p->index_strides[batch_axis] = (int32_t)t->dims[axis];
    p->index_strides[axis] = 1;
    p->n_components = 1;
    p->component_sizes[0] = (uint32_t)target->dims[axis];
    p->component_strides[0] = (int32_t)target->strides[axis];
    if (target->storage->kv_cache) target->storage->kv_cache->is_scattered = true;
    struct ree_view *operands[3] = {target, positions, t};
    return ree_lower_emit(lower, REE_REPOP_SCATTER, &params, operands, 3, 0);
}

enum ree_status ree_lower_append(struct ree_lower *lower, struct ree_view *past, uint32_t axis,
                                 struct ree_view *t, struct ree_view **out) {
    struct ree_view *part;
    int64_t before = past->dims[axis], n = t->dims[axis];
    if (ree_lower_pages_of(past) && ree_lower_grows_in_place(lower, past, axis, n))
        return ree_lower_append_to_pages(lower, past, t, out);
    bool in_place = ree_lower_grows_in_place(lower, past, axis, n);
    REE_TRY(ree_lower_extend(lower, past, axis, n, out));
    if (n == 0) return REE_OK;
    if (in_place && lower->cache_positions)
        return ree_lower_scatter_positions(lower, *out, past->storage->kv_cache->batch_axis, axis,
                                           lower->cache_positions, t);
    REE_TRY(ree_lower_slice(lower, *out, axis, before, 1, n, &part));
    return ree_lower_copy_into(lower, t, part);
}

enum ree_status ree_lower_extend(struct ree_lower *lower, struct ree_view *past, uint32_t axis,
                                 int64_t n, struct ree_view **out) {
    if (!ree_lower_pages_of(past) && ree_lower_grows_in_place(lower, past, axis, n))
        return grow(lower, past, axis, n, out);
    if (lower->cache_positions && past->storage->kv_cache)
        return ree_lower_fail(
            lower, REE_UNSUPPORTED,
            "a cache of sequences of different lengths cannot be appended to as a whole");
    int64_t dims[REE_MAX_RANK], before = past->dims[axis];
    memcpy(dims, past->dims, sizeof dims);
    if (__builtin_add_overflow(dims[axis], n, &dims[axis]))
        return ree_lower_fail(lower, REE_UNSUPPORTED, "axis %u becomes too long", axis);
    REE_TRY(ree_lower_new(lower, past->dtype, past->rank, dims, out));
    if (before == 0) return REE_OK;
    struct ree_view *part;
    REE_TRY(ree_lower_slice(lower, *out, axis, 0, 1, before, &part));
    return ree_lower_copy_into(lower, past, part);
}
