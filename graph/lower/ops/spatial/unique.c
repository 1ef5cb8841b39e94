// Unique: finds the distinct elements, or the distinct subtensors along an axis. The host sorts and
// compares them, because their number determines the result's shape. The distinct items are then
// selected from the input tensor.
#include "graph/lower/ops/spatial/spatial.h"

#include <stdlib.h>
#include <string.h>

// A key that orders numbers of a type, not strings: equal numbers have equal keys. Both zeros are
// equal. All NaNs are equal and come last: no digest of a run covers their signs and payloads.
static uint64_t order_key(enum ree_dtype dtype, const unsigned char *element) {
    const unsigned width = ree_dtype_bits(dtype);
    const uint64_t sign = UINT64_C(1) << (width - 1);
    uint64_t bits = 0, largest;                    // the magnitude above which there are NaNs
    memcpy(&bits, element, ree_dtype_size(dtype)); // little-endian
    bits &= sign | (sign - 1);
    switch (dtype) {
    case REE_I2:
    case REE_I4:
    case REE_I8:
    case REE_I16:
    case REE_I32:
    case REE_I64: return bits ^ sign;
    case REE_F8E4M3FNUZ:
    case REE_F8E5M2FNUZ:
        if (bits == sign) return UINT64_MAX; // the only NaN; there is no -0
        largest = 0x7F;
        break;
    case REE_F4E2M1: largest = 0x7; break;
    case REE_F8E4M3FN: largest = 0x7E; break;
    case REE_F8E5M2: largest = 0x7C; break;
    case REE_F16: largest = 0x7C00; break;
    case REE_BF16: largest = 0x7F80; break;
    case REE_F32: largest = 0x7F800000; break;
    case REE_F64: largest = UINT64_C(0x7FF) << 52; break;
    default: return bits; // unsigned, and float8e8m0, whose NaN is the largest number
    }
    uint64_t magnitude = bits & (sign - 1);
    if (magnitude > largest) return UINT64_MAX;
    if (magnitude == 0) return sign;
    return bits & sign ? sign - magnitude : sign + magnitude;
}

struct items {
    int64_t n, width;     // number of items, and keys per item
    const uint64_t *keys; // (n, width)
};

static int compare_items(const void *a, const void *b, void *user) {
    const struct items *items = user;
    int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    const uint64_t *x = items->keys + i * items->width, *y = items->keys + j * items->width;
    for (int64_t k = 0; k < items->width; k++)
        if (x[k] != y[k]) return x[k] < y[k] ? -1 : 1;
    return 0;
}

static int compare_places(const void *a, const void *b, void *user) {
    int order = compare_items(a, b, user);
    if (order) return order;
    int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    return i < j ? -1 : i > j;
}

static int compare_int64(const void *a, const void *b) {
    int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    return i < j ? -1 : i > j;
}

struct result {
    int64_t n;      // number of distinct items
    int64_t *first; // by distinct item: index of its first occurrence
    int64_t *counts;
    int64_t *inverse; // by item: index of its distinct item
};

static enum ree_status find_unique(struct ree_lower *lower, const struct items *items, bool sorted,
                                   struct result *r) {
    size_t n = (size_t)items->n + 1;
    int64_t *order = ree_arena_alloc_array(lower->arena, n, sizeof *order);
    int64_t *group_first = ree_arena_alloc_array(lower->arena, n, sizeof *group_first);
    int64_t *rank = ree_arena_alloc_array(lower->arena, n, sizeof *rank);
    r->first = ree_arena_alloc_array(lower->arena, n, sizeof *r->first);
    r->counts = ree_arena_alloc_array(lower->arena, n, sizeof *r->counts);
    r->inverse = ree_arena_alloc_array(lower->arena, n, sizeof *r->inverse);
    if (!order || !group_first || !rank || !r->first || !r->counts || !r->inverse)
        return ree_lower_no_memory(lower);
    for (int64_t i = 0; i < items->n; i++)
        order[i] = i;
    if (items->n)
        qsort_r(order, (size_t)items->n, sizeof *order, compare_places, (void *)(uintptr_t)items);
    r->n = 0;
    for (int64_t i = 0; i < items->n; i++) {
        if (i == 0 || compare_items(&order[i - 1], &order[i], (void *)(uintptr_t)items))
            r->first[r->n++] = order[i];
        group_first[order[i]] = r->first[r->n - 1];
    }
    if (!sorted && r->n) qsort(r->first, (size_t)r->n, sizeof *r->first, compare_int64);
    for (int64_t i = 0; i < r->n; i++)
        rank[r->first[i]] = i;
    for (int64_t i = 0; i < items->n; i++) {
        r->inverse[i] = rank[group_first[i]];
        r->counts[r->inverse[i]]++;
    }
    return REE_OK;
}

struct ranked {
    const char *text;
    int64_t place;
};

static int compare_texts(const void *a, const void *b) {
    return strcmp(((const struct ranked *)a)->text, ((const struct ranked *)b)->text);
}

// Keys of strings: their ranks in the order of their bytes.
static enum ree_status rank_strings(struct ree_lower *lower, struct ree_view *t, uint64_t *keys) {
    const char *const *texts;
    size_t n;
    REE_TRY(ree_lower_host_strings(lower, t, "input 0", &texts, &n));
    struct ranked *list = ree_arena_alloc_array(lower->arena, n + 1, sizeof *list);
    if (!list) return ree_lower_no_memory(lower);
    for (size_t i = 0; i < n; i++)
        list[i] = (struct ranked){texts[i], (int64_t)i};
    qsort(list, n, sizeof *list, compare_texts);
    uint64_t rank = 0;
    for (size_t i = 0; i < n; i++) {
        rank += i > 0 && strcmp(list[i - 1].text, list[i].text) != 0;
        keys[list[i].place] = rank;
    }
    return REE_OK;
}

// Reads the keys of t's subtensors along the axis, in the order of the axis. t has elements.
static enum ree_status read_items(struct ree_lower *lower, struct ree_view *t, uint32_t axis,
                                  struct items *items) {
    const void *bytes;
    uint32_t perm[REE_MAX_RANK];
    struct ree_view *turned;
    for (uint32_t i = 0; i < t->rank; i++)
        perm[i] = i == 0 ? axis : i <= axis ? i - 1 : i;
    REE_TRY(ree_lower_transpose(lower, t, perm, &turned));
    int64_t count = ree_view_count(t);
    size_t size = ree_dtype_size(t->dtype);
    uint64_t *keys = ree_arena_alloc_array(lower->arena, (size_t)count + 1, sizeof *keys);
    if (!keys) return ree_lower_no_memory(lower);
    if (t->dtype == REE_STRING) {
        REE_TRY(rank_strings(lower, turned, keys));
    } else {
        REE_TRY(ree_lower_host(lower, turned, &bytes));
        for (int64_t i = 0; i < count; i++)
            keys[i] = order_key(t->dtype, (const unsigned char *)bytes + (size_t)i * size);
    }
    items->n = t->dims[axis];
    items->width = count / items->n;
    items->keys = keys;
    return REE_OK;
}

// Items without elements are all equal: there is at most one distinct item. No memory per item is
// necessary, which matters because such a tensor can have any number of items.
static enum ree_status unique_without_elements(struct ree_lower *lower, struct ree_view *t,
                                               uint32_t axis, struct ree_view **out) {
    const int64_t n = t->dims[axis], n_distinct = n > 0, first = 0;
    REE_TRY(ree_lower_slice(lower, t, axis, 0, 1, n_distinct, &out[0]));
    if (ree_rule_wants(lower, 1))
        REE_TRY(ree_lower_ints(lower, (size_t)n_distinct, &first, &out[1]));
    if (ree_rule_wants(lower, 2)) {
        struct ree_view *zero;
        REE_TRY(ree_lower_literal(lower, REE_I64, 0, NULL, &first, &zero));
        REE_TRY(ree_lower_broadcast(lower, zero, 1, &n, &out[2]));
    }
    if (ree_rule_wants(lower, 3)) REE_TRY(ree_lower_ints(lower, (size_t)n_distinct, &n, &out[3]));
    return REE_OK;
}

enum ree_status ree_lower_op_unique(struct ree_lower *lower, struct ree_view *const *in,
                                    struct ree_view **out) {
    struct ree_view *t = in[0];
    bool sorted = ree_rule_int(lower, "sorted", 1) != 0;
    uint32_t axis = 0;
    if (ree_node_attr(lower->node, "axis")) {
        REE_TRY(ree_lower_axis(lower, ree_rule_int(lower, "axis", 0), t->rank, &axis));
    } else {
        int64_t flat = ree_view_count(t);
        REE_TRY(ree_lower_reshape(lower, t, 1, &flat, &t));
    }
    if (!ree_view_count(t)) return unique_without_elements(lower, t, axis, out);
    struct items items;
    struct result r;
    REE_TRY(read_items(lower, t, axis, &items));
    REE_TRY(find_unique(lower, &items, sorted, &r));
    int32_t *index = ree_arena_alloc_array(lower->arena, (size_t)r.n + 1, sizeof *index);
    if (!index) return ree_lower_no_memory(lower);
    for (int64_t i = 0; i < r.n; i++)
        index[i] = (int32_t)r.first[i];
    struct ree_axis_table tables[REE_MAX_RANK] = {{NULL, 0}};
    tables[axis] = (struct ree_axis_table){index, r.n};
    REE_TRY(ree_data_select(lower, t, tables, &out[0]));
    const int64_t *lists[3] = {r.first, r.inverse, r.counts};
    for (uint32_t i = 0; i < 3; i++)
        if (ree_rule_wants(lower, 1 + i))
            REE_TRY(ree_lower_ints(lower, (size_t)(i == 1 ? items.n : r.n), lists[i], &out[1 + i]));
    return REE_OK;
}
