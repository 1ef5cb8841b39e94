// Reads values that are host-known during a bind: shapes, axes, constants.
#include "graph/lower/core/lower_internal.h"

#include <string.h>

#include "base/dtype.h"

bool ree_lower_is_host(const struct ree_view *t) {
    return t->storage->host != NULL || t->storage->nbytes == 0;
}

enum ree_status ree_lower_host(struct ree_lower *lower, struct ree_view *t,
                               const void **out_bytes) {
    char text[128];
    if (t->kind != REE_TENSOR)
        return ree_lower_fail(lower, REE_INVALID, "%s where a tensor is expected",
                              ree_view_text(t, text, sizeof text));
    if (ree_view_count(t) == 0) {
        *out_bytes = "";
        return REE_OK;
    }
    if (!t->storage->host) {
        REE_TRY(lower->read_storage(lower, t->storage));
        if (!t->storage->host)
            return ree_lower_fail(lower, REE_INTERNAL,
                                  "a tensor's value was not copied to the host");
    }
    const char *base = t->storage->host;
    size_t size = ree_dtype_size(t->dtype);
    if (ree_view_is_dense(t)) {
        *out_bytes = base + (size_t)t->offset * size;
        return REE_OK;
    }
    // Gather the elements here: ree_lower_dense might leave the copy to the device (fold is false).
    int64_t n = ree_view_count(t);
    char *dense = ree_lower_host_memory(lower, (uint64_t)n * size);
    if (!dense) return ree_lower_no_memory(lower);
    int64_t index[REE_MAX_RANK] = {0};
    for (int64_t i = 0; i < n; i++) {
        int64_t at = t->offset;
        for (uint32_t d = 0; d < t->rank; d++)
            at += index[d] * t->strides[d];
        memcpy(dense + (size_t)i * size, base + (size_t)at * size, size);
        for (uint32_t d = t->rank; d-- > 0;) {
            if (++index[d] < t->dims[d]) break;
            index[d] = 0;
        }
    }
    *out_bytes = dense;
    return REE_OK;
}

enum ree_status ree_lower_host_ints(struct ree_lower *lower, struct ree_view *t, const char *what,
                                    const int64_t **out_values, size_t *out_n) {
    char text[128];
    if (t->dtype != REE_I64 && t->dtype != REE_I32)
        return ree_lower_fail(lower, REE_INVALID, "%s is %s, expected int64 or int32", what,
                              ree_view_text(t, text, sizeof text));
    size_t n = (size_t)ree_view_count(t);
    const void *bytes;
    REE_TRY(ree_lower_host(lower, t, &bytes));
    int64_t *values = ree_arena_alloc_array(lower->arena, n, sizeof *values);
    if (!values) return ree_lower_no_memory(lower);
    if (t->dtype == REE_I64) {
        if (n) memcpy(values, bytes, n * sizeof *values);
    } else {
        for (size_t i = 0; i < n; i++) {
            int32_t v;
            memcpy(&v, (const char *)bytes + 4 * i, 4);
            values[i] = v;
        }
    }
    *out_values = values;
    *out_n = n;
    return REE_OK;
}

enum ree_status ree_lower_host_float(struct ree_lower *lower, struct ree_view *t, const char *what,
                                     float *out) {
    char text[128];
    if (t->dtype != REE_F32 || ree_view_count(t) != 1)
        return ree_lower_fail(lower, REE_INVALID, "%s is %s, expected one float32", what,
                              ree_view_text(t, text, sizeof text));
    const void *bytes;
    REE_TRY(ree_lower_host(lower, t, &bytes));
    memcpy(out, bytes, sizeof *out);
    return REE_OK;
}
