// Makes storages, and tensor views of them.
#include "graph/lower/core/lower_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/dtype.h"

struct ree_storage *ree_lower_add_storage(struct ree_lower *lower, enum ree_storage_kind kind,
                                          uint64_t nbytes) {
    if (lower->n_storages == lower->storages_capacity) {
        size_t capacity = lower->storages_capacity ? lower->storages_capacity * 2 : 64;
        struct ree_storage **grown =
            ree_arena_alloc_array(lower->arena, capacity, sizeof(struct ree_storage *));
        if (!grown) return NULL;
        if (lower->n_storages)
            memcpy(grown, lower->storages, lower->n_storages * sizeof(struct ree_storage *));
        lower->storages = grown;
        lower->storages_capacity = capacity;
    }
    struct ree_storage *storage = ree_arena_alloc(lower->arena, sizeof *storage);
    if (!storage) return NULL;
    storage->kind = kind;
    storage->id = (uint32_t)lower->n_storages;
    storage->nbytes = nbytes;
    lower->storages[lower->n_storages++] = storage;
    return storage;
}

static void set_dense_strides(struct ree_view *t) {
    int64_t stride = 1;
    for (uint32_t i = t->rank; i-- > 0;) {
        t->strides[i] = stride;
        stride *= t->dims[i] ? t->dims[i] : 1;
    }
}

// Makes a dense tensor view that has no storage yet. Checks the limits for all tensors.
static enum ree_status make_view(struct ree_lower *lower, enum ree_dtype dtype, uint32_t rank,
                                 const int64_t *dims, struct ree_view **out, uint64_t *out_bytes) {
    if (rank > REE_MAX_RANK)
        return ree_lower_fail(lower, REE_UNSUPPORTED,
                              "a tensor of rank %u; at most %d is supported", rank, REE_MAX_RANK);
    size_t size = ree_dtype_size(dtype);
    if (!size)
        return ree_lower_fail(lower, REE_UNSUPPORTED, "tensors of type %s are not supported",
                              ree_dtype_name(dtype));
    struct ree_view *t = ree_arena_alloc(lower->arena, sizeof *t);
    if (!t) return ree_lower_no_memory(lower);
    t->dtype = dtype;
    t->rank = rank;
    for (uint32_t i = 0; i < rank; i++)
        t->dims[i] = dims[i];
    int64_t count;
    if (!ree_count_elements(rank, dims, &count) || count >= INT64_C(1) << 31) {
        char text[128];
        return ree_lower_fail(
            lower, REE_UNSUPPORTED,
            "a tensor %s: sizes must not be negative and their product below 2^31",
            ree_view_text(t, text, sizeof text));
    }
    set_dense_strides(t);
    *out_bytes = (uint64_t)count * size;
    *out = t;
    return REE_OK;
}

enum ree_status ree_lower_new(struct ree_lower *lower, enum ree_dtype dtype, uint32_t rank,
                              const int64_t *dims, struct ree_view **out) {
    uint64_t nbytes;
    struct ree_view *t;
    REE_TRY(make_view(lower, dtype, rank, dims, &t, &nbytes));
    t->storage = ree_lower_add_storage(lower, REE_STORAGE_TEMP, nbytes);
    if (!t->storage) return ree_lower_no_memory(lower);
    *out = t;
    return REE_OK;
}

void *ree_lower_host_memory(struct ree_lower *lower, uint64_t nbytes) {
    if (nbytes > SIZE_MAX - 64) return NULL;
    return ree_arena_alloc(lower->arena, (size_t)nbytes + 64);
}

enum ree_status ree_lower_literal(struct ree_lower *lower, enum ree_dtype dtype, uint32_t rank,
                                  const int64_t *dims, const void *bytes, struct ree_view **out) {
    struct ree_view *t;
    REE_TRY(ree_lower_new(lower, dtype, rank, dims, &t));
    void *copy = ree_lower_host_memory(lower, t->storage->nbytes);
    if (!copy) return ree_lower_no_memory(lower);
    if (t->storage->nbytes) memcpy(copy, bytes, t->storage->nbytes);
    t->storage->kind = REE_STORAGE_LITERAL;
    t->storage->host = copy;
    *out = t;
    return REE_OK;
}

enum ree_status ree_lower_ints(struct ree_lower *lower, size_t n, const int64_t *values,
                               struct ree_view **out) {
    int64_t dim = (int64_t)n;
    return ree_lower_literal(lower, REE_I64, 1, &dim, values, out);
}

enum ree_status ree_lower_value(struct ree_lower *lower, const struct ree_value *value,
                                enum ree_storage_kind kind, const int64_t *dims,
                                struct ree_view **out) {
    struct ree_view *t;
    if (kind == REE_STORAGE_CONST && value->dtype == REE_STRING)
        return ree_lower_strings(lower, value->rank, dims, value->data, out);
    REE_TRY(ree_lower_new(lower, value->dtype, value->rank, dims, &t));
    t->storage->kind = kind;
    t->storage->value = value;
    if (kind == REE_STORAGE_CONST) {
        if (t->storage->nbytes != value->nbytes)
            return ree_lower_fail(lower, REE_INTERNAL,
                                  "initializer '%s' has %zu bytes, expected %llu", value->name,
                                  value->nbytes, (unsigned long long)t->storage->nbytes);
        t->storage->host = value->data;
    }
    *out = t;
    return REE_OK;
}

bool ree_view_is_dense(const struct ree_view *t) {
    int64_t stride = 1;
    for (uint32_t i = t->rank; i-- > 0;) {
        if (t->dims[i] == 0) return true;
        if (t->dims[i] != 1 && t->strides[i] != stride) return false;
        stride *= t->dims[i];
    }
    return true;
}

int64_t ree_view_count(const struct ree_view *t) {
    int64_t n = 1;
    for (uint32_t i = 0; i < t->rank; i++)
        n *= t->dims[i];
    return n;
}

const char *ree_view_text(const struct ree_view *t, char *out, size_t size) {
    if (t->kind == REE_SEQUENCE) {
        snprintf(out, size, "a sequence of %zu %s", t->n_items, ree_dtype_name(t->dtype));
        return out;
    }
    if (t->kind == REE_ABSENT) {
        snprintf(out, size, "an absent value");
        return out;
    }
    int n = snprintf(out, size, "%s[", ree_dtype_name(t->dtype));
    for (uint32_t i = 0; i < t->rank && n >= 0 && (size_t)n < size; i++)
        n += snprintf(out + n, size - (size_t)n, "%s%lld", i ? "," : "", (long long)t->dims[i]);
    if (n >= 0 && (size_t)n < size) snprintf(out + n, size - (size_t)n, "]");
    return out;
}
