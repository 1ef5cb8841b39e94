#include "compare.h"

#include "base/dtype.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double half_to_double(uint16_t h) {
    int exponent = h >> 10 & 31;
    double fraction = h & 1023, sign = h >> 15 ? -1.0 : 1.0;
    if (exponent == 31) return fraction != 0 ? (double)NAN : sign * (double)INFINITY;
    if (exponent == 0) return sign * ldexp(fraction, -24);
    return sign * ldexp(fraction + 1024, exponent - 25);
}

// Returns element i of a float tensor.
static double element(const struct ree_tensor *t, size_t i) {
    uint16_t u16;
    uint32_t u32;
    float f32;
    switch (t->dtype) {
    case REE_F64: return ((const double *)t->data)[i];
    case REE_F16: memcpy(&u16, (const char *)t->data + 2 * i, 2); return half_to_double(u16);
    case REE_BF16:
        memcpy(&u16, (const char *)t->data + 2 * i, 2);
        u32 = (uint32_t)u16 << 16;
        memcpy(&f32, &u32, 4);
        return (double)f32;
    default: return (double)((const float *)t->data)[i];
    }
}

static void shape_text(const struct ree_tensor *t, char *out, size_t size) {
    size_t n = (size_t)snprintf(out, size, "%s[", ree_dtype_name(t->dtype));
    for (uint32_t i = 0; i < t->rank && n < size; i++)
        n += (size_t)snprintf(out + n, size - n, "%s%lld", i ? "," : "", (long long)t->dims[i]);
    if (n < size) snprintf(out + n, size - n, "]");
}

static bool same_strings(const struct ree_tensor *got, const struct ree_tensor *want, char *reason,
                         size_t size) {
    char *const *a = got->data, *const *b = want->data;
    for (size_t i = 0; i < got->nbytes / sizeof *a; i++) {
        const char *x = a[i] ? a[i] : "", *y = b[i] ? b[i] : "";
        if (strcmp(x, y) == 0) continue;
        snprintf(reason, size, "element %zu is '%.80s', expected '%.80s'", i, x, y);
        return false;
    }
    return true;
}

// Compares sequences and absent values: the kind, the number of items, and each item.
static bool
same_items(const struct ree_tensor *got, const struct ree_tensor *want, char *reason, size_t size,
           bool (*compare)(const struct ree_tensor *, const struct ree_tensor *, char *, size_t)) {
    if (got->kind != want->kind || got->n_items != want->n_items) {
        snprintf(reason, size, "is of kind %d with %zu items, expected kind %d with %zu",
                 (int)got->kind, got->n_items, (int)want->kind, want->n_items);
        return false;
    }
    for (size_t i = 0; i < got->n_items; i++)
        if (!compare(&got->items[i], &want->items[i], reason, size)) return false;
    return true;
}

static bool same_form(const struct ree_tensor *got, const struct ree_tensor *want, char *reason,
                      size_t size) {
    bool same = got->dtype == want->dtype && got->rank == want->rank &&
                memcmp(got->dims, want->dims, got->rank * sizeof *got->dims) == 0;
    if (same) return true;
    char a[200], b[200];
    shape_text(got, a, sizeof a);
    shape_text(want, b, sizeof b);
    snprintf(reason, size, "is %s, expected %s", a, b);
    return false;
}

bool compare_bytes(const struct ree_tensor *got, const struct ree_tensor *want, char *reason,
                   size_t size) {
    if (got->kind || want->kind) return same_items(got, want, reason, size, compare_bytes);
    if (!same_form(got, want, reason, size)) return false;
    if (got->dtype == REE_STRING) return same_strings(got, want, reason, size);
    if (got->nbytes == 0 || memcmp(got->data, want->data, got->nbytes) == 0) return true;
    size_t elem_size = ree_dtype_size(got->dtype), i = 0;
    const char *a = got->data, *b = want->data;
    while (memcmp(a + i * elem_size, b + i * elem_size, elem_size) == 0)
        i++;
    uint64_t x = 0, y = 0;
    memcpy(&x, a + i * elem_size, elem_size);
    memcpy(&y, b + i * elem_size, elem_size);
    snprintf(reason, size, "element %zu has the bits %0*llx, expected %0*llx", i,
             (int)(2 * elem_size), (unsigned long long)x, (int)(2 * elem_size),
             (unsigned long long)y);
    return false;
}

// One-byte floats: the same bits, except that a NaN matches any NaN.
static bool compare_small_floats(const struct ree_tensor *got, const struct ree_tensor *want,
                                 char *reason, size_t size) {
    struct ree_tensor same = *want;
    same.data = malloc(want->nbytes + 1);
    if (!same.data) return false;
    memcpy(same.data, want->data, want->nbytes);
    ree_canonicalise_nans(want->dtype, want->nbytes, same.data);
    bool equal = compare_bytes(got, &same, reason, size);
    free(same.data);
    return equal;
}

bool compare_with_oracle(const struct ree_tensor *got, const struct ree_tensor *want, char *reason,
                         size_t size) {
    if (got->kind || want->kind) return same_items(got, want, reason, size, compare_with_oracle);
    if (!same_form(got, want, reason, size)) return false;
    if (!ree_dtype_is_float(got->dtype)) return compare_bytes(got, want, reason, size);
    if (ree_dtype_size(got->dtype) == 1) return compare_small_floats(got, want, reason, size);
    size_t n = got->nbytes / ree_dtype_size(got->dtype);
    double largest = 0;
    for (size_t i = 0; i < n; i++) {
        double magnitude = fabs(element(want, i));
        if (magnitude > largest && !isinf(magnitude)) largest = magnitude;
    }
    double absolute = COMPARE_ABSOLUTE + COMPARE_LARGEST * largest;
    for (size_t i = 0; i < n; i++) {
        double a = element(got, i), b = element(want, i);
        // A difference of infinities is NaN, so they are compared for equality; two NaNs match.
        if (a == b || (isnan(a) && isnan(b))) continue;
        if (fabs(a - b) <= absolute + COMPARE_RELATIVE * fabs(b) && !isinf(b)) continue;
        snprintf(reason, size, "element %zu is %.9g, expected %.9g", i, a, b);
        return false;
    }
    return true;
}
