#include "dispute/ulp.h"

#include <math.h>
#include <string.h>

#include "repops/scalar/convert.h"

uint32_t ree_ulp_bucket(uint64_t ulp) {
    return ulp ? 64 - (uint32_t)__builtin_clzll(ulp) : 0;
}

void ree_ulp_range(uint32_t bucket, uint64_t *out_first, uint64_t *out_last) {
    *out_first = bucket ? (uint64_t)1 << (bucket - 1) : 0;
    *out_last = bucket ? *out_first + (*out_first - 1) : 0;
}

// One element: its bits without the sign, its sign, and its value.
struct element {
    uint64_t magnitude;
    bool is_negative, is_nan;
    double value;
};

static double value_of_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static bool load_float(enum ree_dtype dtype, const void *data, uint64_t i, struct element *out) {
    uint64_t bits = 0, sign, infinity;
    switch (dtype) {
    case REE_F64:
        memcpy(&bits, (const char *)data + i * 8, 8);
        sign = (uint64_t)1 << 63;
        infinity = (uint64_t)0x7FF << 52;
        memcpy(&out->value, &bits, sizeof bits);
        break;
    case REE_F32:
        memcpy(&bits, (const char *)data + i * 4, 4);
        sign = 0x80000000u;
        infinity = 0x7F800000u;
        out->value = value_of_bits((uint32_t)bits);
        break;
    case REE_F16:
        memcpy(&bits, (const char *)data + i * 2, 2);
        sign = 0x8000u;
        infinity = 0x7C00u;
        out->value = value_of_bits(ree_soft_f16_to_f32((uint32_t)bits));
        break;
    case REE_BF16:
        memcpy(&bits, (const char *)data + i * 2, 2);
        sign = 0x8000u;
        infinity = 0x7F80u;
        out->value = value_of_bits((uint32_t)bits << 16);
        break;
    default: return false;
    }
    out->is_negative = (bits & sign) != 0;
    out->magnitude = bits & ~sign;
    out->is_nan = out->magnitude > infinity;
    return true;
}

// Returns element i as a number. One-byte types that are neither floats nor integers count as
// unsigned bytes.
static double load_whole(enum ree_dtype dtype, const void *data, uint64_t i) {
    switch (dtype) {
    case REE_I64: return (double)((const int64_t *)data)[i];
    case REE_U64: return (double)((const uint64_t *)data)[i];
    case REE_I32: return ((const int32_t *)data)[i];
    case REE_U32: return ((const uint32_t *)data)[i];
    case REE_I16: return ((const int16_t *)data)[i];
    case REE_U16: return ((const uint16_t *)data)[i];
    case REE_I8:
    case REE_I4:
    case REE_I2: return ((const int8_t *)data)[i];
    default: return ((const uint8_t *)data)[i];
    }
}

static void note_errors(struct ree_ulp *out, double a, double b) {
    double abs = fabs(a - b), most = fmax(fabs(a), fabs(b));
    double rel = abs / most;
    if (isnan(abs)) abs = INFINITY;
    if (isnan(rel)) rel = a == b ? 0 : INFINITY;
    if (abs > out->max_abs) out->max_abs = abs;
    if (rel > out->max_rel) out->max_rel = rel;
}

// Records the element as the worst one if it is the first that differs or `is_worse` is set.
static void keep_worst(struct ree_ulp *out, uint64_t at, double a, double b, uint64_t ulp,
                       bool is_worse) {
    if (out->n_differ > 1 && !is_worse) return;
    out->worst = at;
    out->worst_a = a;
    out->worst_b = b;
    out->worst_ulp = ulp;
}

static void add_float(struct ree_ulp *out, uint64_t at, const struct element *a,
                      const struct element *b) {
    bool has_nan = a->is_nan || b->is_nan;
    bool had_nan = out->n_differ > 1 && (isnan(out->worst_a) || isnan(out->worst_b));
    out->is_float = true;
    if (has_nan) {
        out->n_nan++;
        out->max_abs = out->max_rel = INFINITY;
        keep_worst(out, at, a->value, b->value, 0, !had_nan);
        return;
    }
    bool other_sign = a->is_negative != b->is_negative && a->magnitude && b->magnitude;
    uint64_t ulp = a->is_negative != b->is_negative ? a->magnitude + b->magnitude
                   : a->magnitude > b->magnitude    ? a->magnitude - b->magnitude
                                                    : b->magnitude - a->magnitude;
    out->n_sign += other_sign;
    out->histogram[ree_ulp_bucket(ulp)]++;
    note_errors(out, a->value, b->value);
    keep_worst(out, at, a->value, b->value, ulp, !had_nan && ulp > out->worst_ulp);
    if (ulp > out->max_ulp) out->max_ulp = ulp;
}

static void add_one(enum ree_dtype dtype, const struct ree_tensor *a, const struct ree_tensor *b,
                    uint64_t i, struct ree_ulp *out) {
    struct element x, y;
    uint64_t at = out->n + i;
    out->n_differ++;
    if (load_float(dtype, a->data, i, &x)) {
        load_float(dtype, b->data, i, &y);
        add_float(out, at, &x, &y);
        return;
    }
    if (dtype == REE_STRING) {
        keep_worst(out, at, 0, 0, 0, false);
        return;
    }
    double p = load_whole(dtype, a->data, i), q = load_whole(dtype, b->data, i);
    bool is_worse = fabs(p - q) > fabs(out->worst_a - out->worst_b);
    note_errors(out, p, q);
    keep_worst(out, at, p, q, 0, is_worse);
}

void ree_ulp_add(const struct ree_tensor *a, const struct ree_tensor *b, struct ree_ulp *out) {
    size_t size = ree_dtype_size(a->dtype);
    uint64_t n = size ? a->nbytes / size : 0;
    bool is_text = a->dtype == REE_STRING;
    const char *x = a->data, *y = b->data;
    if (is_text || (a->nbytes && memcmp(x, y, a->nbytes) != 0))
        for (uint64_t i = 0; i < n; i++)
            if (is_text ? strcmp(((char **)a->data)[i], ((char **)b->data)[i]) != 0
                        : memcmp(x + i * size, y + i * size, size) != 0)
                add_one(a->dtype, a, b, i, out);
    out->n += n;
}
