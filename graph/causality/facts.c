// Functions on facts that the rules share: axes, counts, broadcasting, constants, caches.
#include "graph/causality/facts.h"

#include <string.h>

#include "repops/scalar/convert.h"

const struct ree_fact *ree_causality_in(const struct ree_derivation *d, size_t i) {
    return i < d->n_in ? d->in[i] : NULL;
}

bool ree_axis_is_fixed(const struct ree_axis *axis, int64_t size) {
    return axis->kind == REE_AXIS_FIXED && axis->size == size;
}

bool ree_axis_is_position(const struct ree_axis *axis) {
    return axis->kind != REE_AXIS_FIXED;
}

bool ree_axis_is_complete(const struct ree_derivation *d, const struct ree_axis *axis) {
    return axis->kind == REE_AXIS_ALL || (axis->kind == REE_AXIS_NEW && !d->prover->has_cache);
}

bool ree_axes_same(const struct ree_axis *a, const struct ree_axis *b) {
    return a->kind == b->kind && (a->kind != REE_AXIS_FIXED || a->size == b->size);
}

bool ree_fact_is_float(const struct ree_fact *f) {
    return f->dtype == REE_F32 || f->dtype == REE_F16 || f->dtype == REE_BF16;
}

bool ree_fact_is_index(const struct ree_fact *f) {
    return f->dtype == REE_I32 || f->dtype == REE_I64;
}

bool ree_fact_is_plain(const struct ree_fact *f) {
    for (uint32_t i = 0; i < f->rank; i++)
        if (ree_axis_is_position(&f->axes[i])) return false;
    return !f->follows && !f->may_be_nan;
}

void ree_fact_like(struct ree_fact *out, const struct ree_fact *f) {
    out->dtype = f->dtype;
    out->rank = f->rank;
    memcpy(out->axes, f->axes, sizeof out->axes);
    out->follows = f->follows;
    out->may_be_nan = f->may_be_nan;
}

// What a fact must satisfy

bool ree_fact_elements(const struct ree_fact *f, size_t *out) {
    int64_t n = 1;
    for (uint32_t i = 0; i < f->rank; i++) {
        if (ree_axis_is_position(&f->axes[i])) return false;
        if (__builtin_mul_overflow(n, f->axes[i].size, &n)) return false;
    }
    if (n < 0 || n > REE_MAX_COUNTS) return false;
    *out = (size_t)n;
    return true;
}

static bool is_position_of(const struct ree_fact *f, uint32_t axis) {
    return axis < f->rank && ree_axis_is_position(&f->axes[axis]);
}

static void settle_order(const struct ree_fact *f, struct ree_order *o, bool has_type) {
    bool fits = has_type && is_position_of(f, o->key) && is_position_of(f, o->query);
    if (!o->holds || !fits || o->key == o->query) *o = (struct ree_order){0};
}

bool ree_count_is_number(struct ree_count c) {
    return c.fresh == 0 && c.past == 0;
}

static void settle_counts(struct ree_fact *f) {
    size_t n;
    bool fits = f->n_counts && f->n_counts <= REE_MAX_COUNTS && ree_fact_is_index(f) &&
                ree_fact_elements(f, &n) && n == f->n_counts && (f->rank <= 1 || n == 1);
    if (!fits) f->n_counts = 0;
    bool differs = f->is_rows;
    for (size_t i = 0; i < f->n_counts; i++) {
        differs = differs || !ree_count_is_number(f->counts[i]);
        if (!ree_count_is_number(f->counts[i]) || (double)f->counts[i].n != f->fill)
            f->has_fill = false;
    }
    if (!fits && f->counts_only && !f->is_rows)
        f->why_not = "it converts the number of tokens of a run into data";
    f->counts_only = differs;
}

void ree_fact_settle(struct ree_fact *f) {
    if (f->why_not) return;
    if (f->rank > REE_MAX_RANK) {
        f->why_not = "its result has too many dimensions";
        return;
    }
    for (uint32_t i = 0; i < f->rank; i++)
        if (!ree_axis_is_position(&f->axes[i]) &&
            (f->axes[i].size < 0 || f->axes[i].size > REE_MAX_SIZE))
            f->why_not = "a dimension of its result is not a valid size";
    for (uint32_t i = 0; i < 32; i++)
        if (f->follows >> i & 1 && !is_position_of(f, i))
            f->why_not = "it is not known which tokens it depends on";
    settle_order(f, &f->if_true, f->dtype == REE_BOOL);
    settle_order(f, &f->if_false, f->dtype == REE_BOOL);
    settle_order(f, &f->masked, ree_fact_is_float(f));
    settle_order(f, &f->zeroed, ree_fact_is_float(f));
    if (!f->is_ramp || !ree_fact_is_index(f) || !is_position_of(f, f->ramp)) f->is_ramp = false;
    settle_counts(f);
}

// Moving facts

static struct ree_order move_order(struct ree_order o, const int *to) {
    if (!o.holds || to[o.key] < 0 || to[o.query] < 0) return (struct ree_order){0};
    return (struct ree_order){true, (uint32_t)to[o.key], (uint32_t)to[o.query]};
}

struct ree_order ree_order_shift(struct ree_order o, uint32_t shift) {
    o.key += shift;
    o.query += shift;
    return o;
}

void ree_fact_move(struct ree_fact *out, const struct ree_fact *f, const int *to) {
    struct ree_axis axes[REE_MAX_RANK];
    uint32_t rank = out->rank, follows = 0;
    memcpy(axes, out->axes, sizeof axes);
    *out = *f;
    memcpy(out->axes, axes, sizeof axes);
    out->rank = rank;
    for (uint32_t i = 0; i < f->rank; i++)
        if (f->follows >> i & 1 && to[i] >= 0) follows |= 1u << to[i];
    out->follows = follows;
    out->if_true = move_order(f->if_true, to);
    out->if_false = move_order(f->if_false, to);
    out->masked = move_order(f->masked, to);
    out->zeroed = move_order(f->zeroed, to);
    out->is_ramp = f->is_ramp && to[f->ramp] >= 0;
    out->ramp = out->is_ramp ? (uint32_t)to[f->ramp] : 0;
    out->past = out->present = 0;
}

const char *ree_fact_broadcast(struct ree_fact *out, size_t n, const struct ree_fact *const *in,
                               uint32_t *shifts) {
    out->rank = 0;
    for (size_t k = 0; k < n; k++)
        if (in[k]->rank > out->rank) out->rank = in[k]->rank;
    for (uint32_t i = 0; i < out->rank; i++)
        out->axes[i] = (struct ree_axis){REE_AXIS_FIXED, 1};
    for (size_t k = 0; k < n; k++) {
        shifts[k] = out->rank - in[k]->rank;
        for (uint32_t i = 0; i < in[k]->rank; i++) {
            struct ree_axis *to = &out->axes[i + shifts[k]];
            const struct ree_axis *axis = &in[k]->axes[i];
            if (ree_axis_is_fixed(axis, 1) || ree_axes_same(to, axis)) continue;
            if (!ree_axis_is_fixed(to, 1)) return "its inputs' shapes do not match in every run";
            *to = *axis;
        }
        out->follows |= in[k]->follows << shifts[k];
        out->may_be_nan = out->may_be_nan || in[k]->may_be_nan;
    }
    return NULL;
}

bool ree_fact_numbers(const struct ree_fact *f, size_t *out_n, int64_t out[REE_MAX_COUNTS]) {
    if (!f || !f->n_counts || f->counts_only) return false;
    for (size_t i = 0; i < f->n_counts; i++)
        out[i] = f->counts[i].n;
    *out_n = f->n_counts;
    return true;
}

struct ree_count ree_axis_count(const struct ree_axis *axis) {
    switch (axis->kind) {
    case REE_AXIS_FIXED: return (struct ree_count){.n = axis->size};
    case REE_AXIS_NEW: return (struct ree_count){.fresh = 1};
    case REE_AXIS_ALL: return (struct ree_count){.fresh = 1, .past = 1};
    case REE_AXIS_PAST: return (struct ree_count){.past = 1};
    case REE_AXIS_ROWS: break;
    }
    return (struct ree_count){.n = -1};
}

bool ree_count_axis(const struct ree_derivation *d, struct ree_count count, struct ree_axis *out) {
    bool has_cache = d->prover->has_cache;
    if (count.fresh == 0 && count.past == 0 && count.n >= 0)
        *out = (struct ree_axis){REE_AXIS_FIXED, count.n};
    else if (count.n == 0 && count.fresh == 1 && count.past == 0)
        *out = (struct ree_axis){REE_AXIS_NEW, 0};
    else if (has_cache && count.n == 0 && count.fresh == 1 && count.past == 1)
        *out = (struct ree_axis){REE_AXIS_ALL, 0};
    else
        return false;
    return true;
}

bool ree_read_axis(int64_t axis, uint32_t rank, uint32_t *out) {
    if (axis < -(int64_t)rank || axis >= (int64_t)rank) return false;
    *out = (uint32_t)(axis < 0 ? axis + rank : axis);
    return true;
}

const char *ree_read_numbers(const struct ree_derivation *d, const char *attribute, size_t i,
                             size_t *out_n, int64_t out[REE_MAX_COUNTS]) {
    size_t n = 0;
    const int64_t *numbers = attribute ? ree_node_ints(d->node, attribute, &n) : NULL;
    *out_n = 0;
    if (ree_causality_in(d, i))
        return ree_fact_numbers(d->in[i], out_n, out) ? NULL : "its axes or sizes are not constant";
    if (i < d->n_in && d->node->inputs[i]) return "its axes or sizes are not known";
    if (!numbers) return NULL;
    if (n > REE_MAX_COUNTS) return "it has too many axes or sizes";
    memcpy(out, numbers, n * sizeof *out);
    *out_n = n;
    return NULL;
}

static double as_float(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return (double)x;
}

static bool read_element(const struct ree_value *value, size_t i, double *out) {
    uint16_t half;
    switch (value->dtype) {
    case REE_F32: *out = ((const float *)value->data)[i]; return true;
    case REE_I64: *out = (double)((const int64_t *)value->data)[i]; return true;
    case REE_I32: *out = ((const int32_t *)value->data)[i]; return true;
    case REE_BOOL: *out = ((const uint8_t *)value->data)[i] != 0; return true;
    case REE_F16:
        half = ((const uint16_t *)value->data)[i];
        *out = as_float(ree_soft_f16_to_f32(half));
        return true;
    case REE_BF16:
        half = ((const uint16_t *)value->data)[i];
        *out = as_float((uint32_t)half << 16);
        return true;
    default: return false;
    }
}

void ree_fact_constant(struct ree_fact *out, const struct ree_value *value) {
    int64_t count = 1;
    if (value->kind != REE_TENSOR || !value->has_shape) {
        out->why_not = "a constant without a shape";
        return;
    }
    out->dtype = value->dtype;
    out->rank = value->rank;
    for (uint32_t i = 0; i < value->rank; i++) {
        out->axes[i] = (struct ree_axis){REE_AXIS_FIXED, value->dims[i]};
        if (__builtin_mul_overflow(count, value->dims[i], &count)) count = INT64_MAX;
    }
    // may_be_nan stays false: an infinity or a NaN in a constant is the same in every run.
    out->has_fill = count == 1 && read_element(value, 0, &out->fill);
    if (!ree_fact_is_index(out) || value->rank > 1 || count < 1 || count > REE_MAX_COUNTS) return;
    out->n_counts = (size_t)count;
    for (int64_t i = 0; i < count; i++)
        out->counts[i].n = value->dtype == REE_I64 ? ((const int64_t *)value->data)[i]
                                                   : ((const int32_t *)value->data)[i];
}

const char *ree_fact_append(struct ree_derivation *d, const struct ree_fact *past,
                            const struct ree_fact *fresh, size_t output, uint32_t axis) {
    const struct ree_causality_input *cache;
    if (!past->past) return "it puts a value before the new tokens that is not a cache";
    cache = &d->prover->question->inputs[past->past - 1];
    const struct ree_node *node = d->node;
    if (output >= node->n_outputs || !node->outputs[output] || node->outputs[output] != cache->next)
        return "the values that it appends to a cache are not the ones that the cache will contain";
    if (cache->axis != axis || past->rank != fresh->rank || past->dtype != fresh->dtype)
        return "it does not append to the cache along the cache's axis of positions";
    for (uint32_t i = 0; i < past->rank; i++)
        if (i == axis ? fresh->axes[i].kind != REE_AXIS_NEW
                      : !ree_axes_same(&past->axes[i], &fresh->axes[i]))
            return "it does not append one row for each new token to a cache";
    if (fresh->follows & ~(1u << axis)) return "a cache's row depends on tokens of other axes";
    ree_fact_like(&d->out[output], past);
    d->out[output].axes[axis] = (struct ree_axis){REE_AXIS_ALL, 0};
    d->out[output].follows = 1u << axis;
    d->out[output].may_be_nan = true; // an earlier run may have put a NaN there
    d->out[output].present = past->past;
    return NULL;
}
