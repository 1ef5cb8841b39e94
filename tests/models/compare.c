#include "compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static double half_to_double(uint16_t h) {
    int exponent = h >> 10 & 31;
    double fraction = h & 1023, sign = h >> 15 ? -1.0 : 1.0;
    if (exponent == 31) return fraction != 0 ? (double)NAN : sign * (double)INFINITY;
    if (exponent == 0) return sign * ldexp(fraction, -24);
    return sign * ldexp(fraction + 1024, exponent - 25);
}

// Element i of a float tensor.
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
    if (!same_form(got, want, reason, size)) return false;
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

bool compare_with_oracle(const struct ree_tensor *got, const struct ree_tensor *want, char *reason,
                         size_t size) {
    if (!same_form(got, want, reason, size)) return false;
    bool is_float = got->dtype == REE_F32 || got->dtype == REE_F64 || got->dtype == REE_F16 ||
                    got->dtype == REE_BF16;
    if (!is_float) return compare_bytes(got, want, reason, size);
    size_t n = got->nbytes / ree_dtype_size(got->dtype);
    for (size_t i = 0; i < n; i++) {
        double a = element(got, i), b = element(want, i);
        // A difference of infinities is NaN, hence the equality; two NaNs agree.
        if (a == b || (isnan(a) && isnan(b))) continue;
        if (fabs(a - b) <= COMPARE_ABSOLUTE + COMPARE_RELATIVE * fabs(b) && !isinf(b)) continue;
        snprintf(reason, size, "element %zu is %.9g, expected %.9g", i, a, b);
        return false;
    }
    return true;
}
