#include "reference.h"
#include "repops/scalar/ops.h"

static float load_f32(const void *x, int64_t at) {
    return ((const float *)x)[at];
}

// Combines acc and x, values as reference_load returns them; for MAX, MIN and integer types.
static uint64_t step(enum ree_dtype dtype, uint32_t kind, uint64_t acc, uint64_t x) {
    uint32_t a = (uint32_t)acc, b = (uint32_t)x;
    bool wide = dtype == REE_I64 || dtype == REE_U64;
    bool is_signed = dtype == REE_I8 || dtype == REE_I32 || dtype == REE_I64;
    if (dtype == REE_F32)
        return kind == REE_REDUCE_MAX ? ree_op_max_f32(a, b) : ree_op_min_f32(a, b);
    switch (kind) {
    case REE_REDUCE_SUM: return acc + x;
    case REE_REDUCE_SUM_SQ: return acc + x * x;
    case REE_REDUCE_SUM_ABS:
        return acc + (!is_signed ? x : wide ? ree_op_abs_i64(x) : ree_op_abs_i32(b));
    case REE_REDUCE_PROD: return acc * x;
    case REE_REDUCE_MAX:
        if (wide) return is_signed ? ree_op_max_i64(acc, x) : ree_op_max_u64(acc, x);
        return is_signed ? ree_op_max_i32(a, b) : ree_op_max_u32(a, b);
    default:
        if (wide) return is_signed ? ree_op_min_i64(acc, x) : ree_op_min_u64(acc, x);
        return is_signed ? ree_op_min_i32(a, b) : ree_op_min_u32(a, b);
    }
}

static uint64_t start(enum ree_dtype dtype, uint32_t kind) {
    bool max = kind == REE_REDUCE_MAX;
    if (kind == REE_REDUCE_PROD) return 1;
    if (kind != REE_REDUCE_MAX && kind != REE_REDUCE_MIN) return 0;
    switch (dtype) {
    case REE_F32: return max ? 0xFF800000u : 0x7F800000u;
    case REE_I8: return max ? (uint32_t)INT8_MIN : INT8_MAX;
    case REE_U8: return max ? 0 : UINT8_MAX;
    case REE_BOOL: return max ? 0 : 1;
    case REE_I32: return max ? (uint32_t)INT32_MIN : INT32_MAX;
    case REE_U32: return max ? 0 : UINT32_MAX;
    case REE_I64: return max ? (uint64_t)INT64_MIN : INT64_MAX;
    default: return max ? 0 : UINT64_MAX;
    }
}

// Returns whether x is strictly better than best. Numerical order: -0 equals +0, NaN is best of
// all.
static bool better(enum ree_dtype dtype, bool max, uint64_t x, uint64_t best) {
    switch (dtype) {
    case REE_F32: {
        float a = ree_float((uint32_t)x), b = ree_float((uint32_t)best);
        if (b != b) return false;
        return a != a || (max ? a > b : a < b);
    }
    case REE_I8:
    case REE_I32: return max ? (int32_t)x > (int32_t)best : (int32_t)x < (int32_t)best;
    case REE_I64: return max ? (int64_t)x > (int64_t)best : (int64_t)x < (int64_t)best;
    default: return max ? x > best : x < best;
    }
}

static bool is_nan(enum ree_dtype dtype, uint64_t x) {
    return dtype == REE_F32 && (x & 0x7FFFFFFFu) > 0x7F800000u;
}

void reference_reduce(const struct ree_reduce_params *p, void *const *operands) {
    enum ree_dtype dtype = (enum ree_dtype)p->dtype;
    const void *x = operands[0];
    if (dtype == REE_F64) {
        reference_reduce_f64(p, x, operands[1]);
        return;
    }
    bool sums = dtype == REE_F32 && p->kind <= REE_REDUCE_PROD;
    for (uint32_t o = 0; o < p->n_outer; o++) {
        int64_t base =
            p->offset + reference_offset(p->outer_rank, p->outer_dims, p->outer_strides, o);
        struct reference_sum sum;
        reference_sum_begin(&sum, p->kind == REE_REDUCE_PROD);
        uint64_t acc = start(dtype, p->kind), best = 0, index = 0;
        for (uint32_t r = 0; r < p->n_reduce; r++) {
            int64_t at =
                base + reference_offset(p->reduce_rank, p->reduce_dims, p->reduce_strides, r);
            uint64_t value = reference_load(dtype, x, at);
            if (sums) {
                float v = load_f32(x, at);
                if (p->kind == REE_REDUCE_SUM_SQ)
                    reference_sum_fma(&sum, v, v);
                else
                    reference_sum_add(&sum, p->kind == REE_REDUCE_SUM_ABS ? fabsf(v) : v);
            } else if (p->kind >= REE_REDUCE_ARGMAX) {
                bool max = p->kind == REE_REDUCE_ARGMAX;
                bool takes = r == 0 || better(dtype, max, value, best);
                if (p->select_last && !takes)
                    takes = !better(dtype, max, best, value) && !is_nan(dtype, best);
                if (takes) best = value, index = r;
            } else {
                acc = step(dtype, p->kind, acc, value);
            }
        }
        if (p->kind >= REE_REDUCE_ARGMAX)
            ((int64_t *)operands[1])[o] = (int64_t)index;
        else
            reference_store(dtype, operands[1], o, sums ? reference_sum_end(sum) : acc);
    }
}

void reference_softmax(const struct ree_softmax_params *p, void *const *operands) {
    const uint32_t *x = operands[0];
    uint32_t *out = operands[1];
    for (uint64_t vector = 0; vector < (uint64_t)p->outer * p->inner; vector++) {
        uint64_t base = vector / p->inner * p->k * p->inner + vector % p->inner;
        uint32_t max = 0xFF800000u;
        for (uint32_t i = 0; i < p->k; i++)
            max = ree_op_max_f32(max, x[base + (uint64_t)i * p->inner]);
        bool empty = p->zero_empty && max == 0xFF800000u;
        if (empty) max = 0;
        struct reference_sum sum;
        reference_sum_begin(&sum, false);
        for (uint32_t i = 0; i < p->k; i++) {
            uint32_t d = ree_op_sub_f32(x[base + (uint64_t)i * p->inner], max);
            reference_sum_add(&sum, ree_float(ree_op_exp_f32(d)));
        }
        uint32_t s = empty ? 0x3F800000u : reference_sum_end(sum);
        for (uint32_t i = 0; i < p->k; i++) {
            uint64_t at = base + (uint64_t)i * p->inner;
            uint32_t d = ree_op_sub_f32(x[at], max);
            out[at] = p->log ? ree_op_sub_f32(d, ree_op_log_f32(s))
                             : ree_op_div_f32(ree_op_exp_f32(d), s);
        }
    }
}

void reference_norm(const struct ree_norm_params *p, void *const *operands) {
    uint32_t next = 1;
    const uint32_t *x = operands[0];
    const uint32_t *scale = p->has_scale ? operands[next++] : NULL;
    const uint32_t *bias = p->has_bias ? operands[next++] : NULL;
    uint32_t *out = operands[next];
    uint32_t n = ree_op_u32_to_f32(p->cols);
    for (uint32_t row = 0; row < p->rows; row++, x += p->cols, out += p->cols) {
        struct reference_sum sum;
        uint32_t m = 0;
        reference_sum_begin(&sum, false);
        for (uint32_t i = 0; i < p->cols; i++)
            reference_sum_add(&sum, ree_float(x[i]));
        if (!p->rms) m = ree_op_div_f32(reference_sum_end(sum), n);
        reference_sum_begin(&sum, false);
        for (uint32_t i = 0; i < p->cols; i++) {
            float d = ree_float(p->rms ? x[i] : ree_op_sub_f32(x[i], m));
            reference_sum_fma(&sum, d, d);
        }
        uint32_t v = ree_op_div_f32(reference_sum_end(sum), n);
        uint32_t s = ree_op_sqrt_f32(ree_op_add_f32(v, ree_bits(p->epsilon)));
        for (uint32_t i = 0; i < p->cols; i++) {
            uint64_t at =
                (uint64_t)(row / p->scale_row_div % p->scale_row_mod) * p->scale_row_stride +
                (uint64_t)i * p->scale_col_stride;
            uint32_t y = ree_op_div_f32(p->rms ? x[i] : ree_op_sub_f32(x[i], m), s);
            if (scale) y = ree_op_mul_f32(y, scale[at]);
            if (bias) y = ree_op_add_f32(y, bias[at]);
            out[i] = y;
        }
    }
}

void reference_scan(const struct ree_scan_params *p, void *const *operands) {
    enum ree_dtype dtype = (enum ree_dtype)p->dtype;
    if (dtype == REE_F64) {
        reference_scan_f64(p, operands[0], operands[1]);
        return;
    }
    for (uint64_t vector = 0; vector < (uint64_t)p->outer * p->inner; vector++) {
        uint64_t base = vector / p->inner * p->k * p->inner + vector % p->inner;
        struct reference_sum sum;
        reference_sum_begin(&sum, p->product);
        uint64_t acc = p->product ? 1 : 0;
        for (uint32_t j = 0; j < p->k; j++) {
            uint32_t i = p->reverse ? p->k - 1 - j : j;
            int64_t at = (int64_t)(base + (uint64_t)i * p->inner);
            uint64_t x = reference_load(dtype, operands[0], at);
            if (p->exclusive)
                reference_store(dtype, operands[1], at,
                                dtype == REE_F32 ? reference_sum_end(sum) : acc);
            reference_sum_add(&sum, dtype == REE_F32 ? ree_float((uint32_t)x) : 0);
            acc = p->product ? acc * x : acc + x;
            if (!p->exclusive)
                reference_store(dtype, operands[1], at,
                                dtype == REE_F32 ? reference_sum_end(sum) : acc);
        }
    }
}
