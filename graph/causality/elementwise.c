// Rules for operators whose output elements each depend on the same element of the inputs.
#include "graph/causality/facts.h"

#include <math.h>

#include "graph/causality/kinds.h"

// Limit of the numbers that are added to positions. Positions are less than 2^30, so the sums do
// not overflow an int32.
#define MAX_SHIFT (1 << 20)

static const char *const no_nan = "it may turn a NaN that comes from a later token into a number";

const char *ree_causality_unary(struct ree_derivation *d) {
    const struct ree_fact *x = ree_causality_in(d, 0);
    int arg = ree_causality_arg(d);
    if (arg != REE_KEEPS_NAN && x->may_be_nan) return no_nan;
    ree_fact_like(d->out, x);
    if (arg == REE_IS_NAN) d->out->dtype = REE_BOOL;
    return NULL;
}

// Max, Min, Sum and Mean of one input.
static const char *single(struct ree_derivation *d) {
    const struct ree_fact *x = ree_causality_in(d, 0);
    if (x->may_be_nan) return no_nan;
    ree_fact_like(d->out, x);
    return NULL;
}

// Numbers that are computed from sizes

static bool fits(struct ree_count c, enum ree_dtype dtype) {
    // A run has fewer than 2^30 tokens, so the value of a count within these bounds fits its type.
    const int64_t most = dtype == REE_I32 ? 1 << 30 : INT64_C(1) << 60;
    const int64_t times = dtype == REE_I32 ? 1 : 1 << 20;
    return c.n >= -most && c.n <= most && c.fresh >= -times && c.fresh <= times &&
           c.past >= -times && c.past <= times;
}

static bool add(struct ree_count a, struct ree_count b, int64_t sign, struct ree_count *out) {
    return !__builtin_add_overflow(a.n, sign * b.n, &out->n) &&
           !__builtin_add_overflow(a.fresh, sign * b.fresh, &out->fresh) &&
           !__builtin_add_overflow(a.past, sign * b.past, &out->past);
}

static bool multiply(struct ree_count a, struct ree_count b, struct ree_count *out) {
    if (!ree_count_is_number(a) && !ree_count_is_number(b)) return false;
    int64_t factor = ree_count_is_number(a) ? a.n : b.n;
    struct ree_count of = ree_count_is_number(a) ? b : a;
    return !__builtin_mul_overflow(of.n, factor, &out->n) &&
           !__builtin_mul_overflow(of.fresh, factor, &out->fresh) &&
           !__builtin_mul_overflow(of.past, factor, &out->past);
}

static bool combine(int arg, struct ree_count a, struct ree_count b, struct ree_count *out) {
    if (!fits(a, REE_I64) || !fits(b, REE_I64)) return false;
    switch (arg) {
    case REE_ADD: return add(a, b, 1, out);
    case REE_SUB: return add(a, b, -1, out);
    case REE_MUL: return multiply(a, b, out);
    case REE_DIV:
        if (!ree_count_is_number(a) || !ree_count_is_number(b) || a.n < 0 || b.n <= 0) return false;
        *out = (struct ree_count){.n = a.n / b.n};
        return true;
    default: return false;
    }
}

static void count(struct ree_derivation *d, int arg, const struct ree_fact *a,
                  const struct ree_fact *b) {
    size_t n;
    // A value with several counts is a list, of rank 1. It broadcasts against a list of the same
    // length or against one element.
    if (!a->n_counts || !b->n_counts || !ree_fact_elements(d->out, &n)) return;
    if ((a->n_counts != n && a->n_counts != 1) || (b->n_counts != n && b->n_counts != 1)) return;
    for (size_t i = 0; i < n; i++) {
        struct ree_count c = {0};
        if (!combine(arg, a->counts[a->n_counts == 1 ? 0 : i], b->counts[b->n_counts == 1 ? 0 : i],
                     &c) ||
            !fits(c, a->dtype))
            return;
        d->out->counts[i] = c;
    }
    d->out->n_counts = n;
}

// Positions and masks

static bool is_small(const struct ree_fact *f) {
    return f->has_fill && fabs(f->fill) <= MAX_SHIFT && f->fill == floor(f->fill);
}

static void shift_ramp(struct ree_fact *out, int arg, const struct ree_fact *const in[2],
                       const uint32_t shifts[2]) {
    bool swapped = arg == REE_ADD && in[1]->is_ramp;
    const struct ree_fact *ramp = in[swapped], *by = in[!swapped];
    if ((arg != REE_ADD && arg != REE_SUB) || !ramp->is_ramp || !is_small(by)) return;
    int64_t shift = ramp->shift + (arg == REE_ADD ? 1 : -1) * (int64_t)by->fill;
    if (shift > MAX_SHIFT || shift < -MAX_SHIFT) return;
    out->is_ramp = true;
    out->ramp = ramp->ramp + shifts[swapped];
    out->shift = shift;
}

static bool is_positive(const struct ree_fact *f) {
    return f->has_fill && f->fill > 0 && isfinite(f->fill);
}

static void mask(struct ree_fact *out, int arg, const struct ree_fact *const in[2],
                 const uint32_t shifts[2]) {
    for (uint32_t i = 0; i < 2; i++) {
        const struct ree_fact *x = in[i], *y = in[!i];
        bool keeps = arg == REE_ADD || arg == REE_MIN || (arg == REE_SUB && i == 0) ||
                     (arg == REE_MUL && is_positive(y)) ||
                     (arg == REE_DIV && i == 0 && is_positive(y));
        // -inf + inf and 0 * inf are NaN.
        if (x->masked.holds && keeps) {
            out->masked = ree_order_shift(x->masked, shifts[i]);
            out->may_be_nan = true;
        }
        if (x->zeroed.holds && (arg == REE_MUL || (arg == REE_DIV && i == 0))) {
            out->zeroed = ree_order_shift(x->zeroed, shifts[i]);
            out->may_be_nan = true;
        }
    }
}

const char *ree_causality_arithmetic(struct ree_derivation *d) {
    int arg = ree_causality_arg(d);
    uint32_t shifts[2];
    if (d->n_in == 1) return single(d);
    if (d->n_in != 2) return "it has more than two inputs";
    if (!d->in[1]) return "an input is missing";
    const char *why = ree_fact_broadcast(d->out, 2, d->in, shifts);
    if (why) return why;
    const struct ree_fact *a = d->in[0], *b = d->in[1];
    if (a->dtype != b->dtype) return "its inputs have different types";
    if (ree_node_attr(d->node, "axis")) return "it broadcasts in the way of opsets before 7";
    d->out->dtype = a->dtype;
    count(d, arg, a, b);
    if (ree_fact_is_float(d->out))
        mask(d->out, arg, d->in, shifts);
    else if (ree_fact_is_index(a))
        shift_ramp(d->out, arg, d->in, shifts);
    return NULL;
}

// 1 ** NaN and NaN ** 0 are 1, so a NaN could become a number.
const char *ree_causality_power(struct ree_derivation *d) {
    uint32_t shifts[2];
    const char *why = ree_fact_broadcast(d->out, 2, d->in, shifts);
    if (why) return why;
    d->out->dtype = d->in[0]->dtype;
    if (ree_node_attr(d->node, "axis")) return "it broadcasts in the way of opsets before 7";
    if (d->in[1]->may_be_nan) return no_nan;
    bool plain = d->in[1]->has_fill && d->in[1]->fill != 0;
    return d->in[0]->may_be_nan && !plain ? no_nan : NULL;
}

// For operators that add all inputs and may apply a function to the sum (FastGelu, BiasGelu,
// BiasAdd).
const char *ree_causality_bias(struct ree_derivation *d) {
    const struct ree_fact *in[4];
    uint32_t shifts[4];
    size_t n = 0;
    for (size_t i = 0; i < d->n_in; i++)
        if (d->in[i] && n < 4) in[n++] = d->in[i];
    if (!n) return "it has no inputs";
    d->out->dtype = in[0]->dtype;
    return ree_fact_broadcast(d->out, n, in, shifts);
}

// Comparisons

// Returns the order that follows from: position on axis `key` + a <= position on axis `query` + b.
// It holds only if b <= a.
static struct ree_order at_most(uint32_t key, int64_t a, uint32_t query, int64_t b) {
    return (struct ree_order){key != query && b - a <= 0, key, query};
}

const char *ree_causality_compare(struct ree_derivation *d) {
    int arg = ree_causality_arg(d);
    uint32_t shifts[2];
    const char *why = ree_fact_broadcast(d->out, 2, d->in, shifts);
    if (why) return why;
    if (d->out->may_be_nan) return no_nan;
    if (d->in[0]->dtype != d->in[1]->dtype) return "its inputs have different types";
    if (ree_node_attr(d->node, "axis")) return "it broadcasts in the way of opsets before 7";
    d->out->dtype = REE_BOOL;
    // Greater is Less with the inputs swapped.
    bool swapped = arg == REE_GREATER || arg == REE_GREATER_OR_EQUAL;
    const struct ree_fact *x = d->in[swapped], *y = d->in[!swapped];
    if (!x->is_ramp || !y->is_ramp) return NULL;
    uint32_t i = x->ramp + shifts[swapped], j = y->ramp + shifts[!swapped];
    int64_t a = x->shift, b = y->shift;
    if (arg == REE_LESS || arg == REE_GREATER) {
        d->out->if_true = at_most(i, a + 1, j, b);
        d->out->if_false = at_most(j, b, i, a);
    } else if (arg == REE_EQUAL) {
        d->out->if_true = at_most(i, a, j, b);
        if (!d->out->if_true.holds) d->out->if_true = at_most(j, b, i, a);
    } else {
        d->out->if_true = at_most(i, a, j, b);
        d->out->if_false = at_most(j, b + 1, i, a);
    }
    return NULL;
}

static bool is_same_order(struct ree_order a, struct ree_order b) {
    return a.holds && b.holds && a.key == b.key && a.query == b.query;
}

const char *ree_causality_logic(struct ree_derivation *d) {
    int arg = ree_causality_arg(d);
    uint32_t shifts[2];
    const char *why = ree_fact_broadcast(d->out, 2, d->in, shifts);
    if (why) return why;
    d->out->dtype = REE_BOOL;
    if (ree_node_attr(d->node, "axis")) return "it broadcasts in the way of opsets before 7";
    if (arg == REE_XOR) return NULL;
    const struct ree_fact *a = d->in[0], *b = d->in[1];
    struct ree_order any[2] = {
        ree_order_shift(arg == REE_AND ? a->if_true : a->if_false, shifts[0]),
        ree_order_shift(arg == REE_AND ? b->if_true : b->if_false, shifts[1])};
    struct ree_order all[2] = {
        ree_order_shift(arg == REE_AND ? a->if_false : a->if_true, shifts[0]),
        ree_order_shift(arg == REE_AND ? b->if_false : b->if_true, shifts[1])};
    struct ree_order one = any[0].holds ? any[0] : any[1];
    struct ree_order both = is_same_order(all[0], all[1]) ? all[0] : (struct ree_order){0};
    d->out->if_true = arg == REE_AND ? one : both;
    d->out->if_false = arg == REE_AND ? both : one;
    return NULL;
}

const char *ree_causality_logic_not(struct ree_derivation *d) {
    ree_fact_like(d->out, d->in[0]);
    d->out->if_true = d->in[0]->if_false;
    d->out->if_false = d->in[0]->if_true;
    return NULL;
}

// All elements whose key is later than the query (by `order`) come from `chosen`. Sets out->masked
// if these elements are -inf, and out->zeroed if they are 0.
static void choose(struct ree_fact *out, struct ree_order order, const struct ree_fact *chosen,
                   uint32_t shift) {
    struct ree_order masked = ree_order_shift(chosen->masked, shift);
    struct ree_order zeroed = ree_order_shift(chosen->zeroed, shift);
    if (!order.holds) return;
    if ((chosen->has_fill && chosen->fill == -INFINITY) || is_same_order(masked, order))
        out->masked = order;
    if ((chosen->has_fill && chosen->fill == 0) || is_same_order(zeroed, order))
        out->zeroed = order;
}

const char *ree_causality_where(struct ree_derivation *d) {
    uint32_t shifts[3];
    const char *why = ree_fact_broadcast(d->out, 3, d->in, shifts);
    if (why) return why;
    if (d->in[1]->dtype != d->in[2]->dtype) return "its inputs have different types";
    d->out->dtype = d->in[1]->dtype;
    if (!ree_fact_is_float(d->out)) return NULL;
    const struct ree_fact *condition = d->in[0];
    choose(d->out, ree_order_shift(condition->if_true, shifts[0]), d->in[2], shifts[2]);
    choose(d->out, ree_order_shift(condition->if_false, shifts[0]), d->in[1], shifts[1]);
    return NULL;
}

// Casts

const char *ree_causality_cast(struct ree_derivation *d) {
    const struct ree_fact *x = d->in[0];
    struct ree_fact *out = d->out;
    int64_t type = ree_node_int(d->node, "to", 0);
    enum ree_dtype to = (enum ree_dtype)type;
    bool exact = ree_fact_is_index(x) && (to == REE_I64 || to == REE_I32);
    if (type < 1 || type > REE_I2) return "its type is not a number";
    if (x->counts_only && !exact) return "it converts the number of tokens of a run into data";
    ree_fact_like(out, x);
    out->dtype = to;
    if (x->may_be_nan && !ree_fact_is_float(out)) return no_nan;
    if (exact) {
        *out = *x;
        out->dtype = to;
        out->past = out->present = 0;
        for (size_t i = 0; i < out->n_counts; i++)
            if (!fits(out->counts[i], to)) return "its numbers are out of range";
        if (x->has_fill && fabs(x->fill) > MAX_SHIFT) out->has_fill = false;
        return NULL;
    }
    // Keeps the fill only if every float type represents it exactly.
    out->has_fill = x->has_fill && (fabs(x->fill) == INFINITY || x->fill == 0 || x->fill == 1) &&
                    ree_fact_is_float(out);
    out->fill = x->fill;
    if (x->dtype == REE_BOOL && ree_fact_is_float(out)) out->zeroed = x->if_true;
    if (ree_fact_is_float(x) && ree_fact_is_float(out)) {
        out->masked = x->masked;
        out->zeroed = x->zeroed;
    }
    return NULL;
}
