// Distances of floats, worst elements, and escaping of text in HTML pages.
#include "dispute/ulp.h"

#include <math.h>
#include <string.h>

#include "dispute/html.h"
#include "test.h"

static struct ree_ulp add(enum ree_dtype dtype, size_t n, const void *a, const void *b) {
    struct ree_ulp out = {0};
    size_t size = ree_dtype_size(dtype);
    struct ree_tensor x = {.dtype = dtype, .rank = 1, .dims = {(int64_t)n}, .nbytes = n * size};
    struct ree_tensor y = x;
    x.data = (void *)(uintptr_t)a;
    y.data = (void *)(uintptr_t)b;
    ree_ulp_add(&x, &y, &out);
    return out;
}

static void test_buckets(void) {
    CHECK(ree_ulp_bucket(0) == 0 && ree_ulp_bucket(1) == 1 && ree_ulp_bucket(2) == 2);
    CHECK(ree_ulp_bucket(3) == 2 && ree_ulp_bucket(4) == 3 && ree_ulp_bucket(UINT64_MAX) == 64);
    for (uint32_t i = 0; i < REE_ULP_BUCKETS; i++) {
        uint64_t first, last;
        ree_ulp_range(i, &first, &last);
        CHECK(ree_ulp_bucket(first) == i && ree_ulp_bucket(last) == i);
        CHECK(last == UINT64_MAX || ree_ulp_bucket(last + 1) == i + 1);
    }
}

static void test_floats(void) {
    float tiny = nextafterf(0, 1), most = nextafterf(INFINITY, 0);
    const float a[] = {1, 1, 0, tiny, most, 2, -1};
    const float b[] = {1, nextafterf(1, 2), -0.0f, -tiny, INFINITY, 1, 1};
    struct ree_ulp u = add(REE_F32, 7, a, b);
    CHECK(u.n == 7 && u.n_differ == 6 && u.is_float && u.n_nan == 0);
    CHECK(u.n_sign == 2); // 0 and -0 do not count as a change of sign
    CHECK(u.histogram[0] == 1 && u.histogram[1] == 2 && u.histogram[2] == 1);
    CHECK(u.histogram[24] == 1);                         // 2^23: from 1 to 2
    CHECK(u.max_ulp == 2 * 0x3F800000u && u.worst == 6); // from -1 to 1
    CHECK(u.worst_a == -1 && u.worst_b == 1 && u.worst_ulp == u.max_ulp);
    CHECK(isinf(u.max_abs) && isinf(u.max_rel)); // to infinity
    u = add(REE_F32, 3, a, a);
    CHECK(u.n == 3 && u.n_differ == 0 && u.max_ulp == 0 && u.max_rel == 0);
}

// A NaN counts as farther than any number; the first of several is the worst.
static void test_nans(void) {
    const float a[] = {1, 5, NAN, 3}, b[] = {-100, NAN, 2, 1000};
    struct ree_ulp u = add(REE_F32, 4, a, b);
    CHECK(u.n_differ == 4 && u.n_nan == 2 && u.worst == 1 && u.worst_a == 5 && isnan(u.worst_b));
    CHECK(isinf(u.max_rel));
    const float c[] = {NAN}, d[] = {1};
    u = add(REE_F32, 1, c, d);
    CHECK(u.n_nan == 1 && u.worst == 0 && isnan(u.worst_a) && u.max_ulp == 0);
}

static void test_other_types(void) {
    const double a[] = {1}, b[] = {nextafter(1, 2)};
    struct ree_ulp u = add(REE_F64, 1, a, b);
    CHECK(u.max_ulp == 1 && u.worst_a == 1 && u.worst_b == b[0]);
    const uint16_t half_a[] = {0x3C00, 0x0001}, half_b[] = {0x3C02, 0x8001};
    u = add(REE_F16, 2, half_a, half_b);
    CHECK(u.max_ulp == 2 && u.n_sign == 1 && u.worst_a == 1);
    u = add(REE_BF16, 1, &half_a[0], &half_b[0]);
    CHECK(u.max_ulp == 2 && u.worst_a == 0.0078125);
    const int64_t whole_a[] = {5, 7, 0}, whole_b[] = {5, 10, 1};
    u = add(REE_I64, 3, whole_a, whole_b);
    CHECK(!u.is_float && u.n_differ == 2 && u.worst == 1 && u.max_abs == 3 && u.max_rel == 1);
    const int8_t small_a[] = {-1}, small_b[] = {1};
    u = add(REE_I8, 1, small_a, small_b);
    CHECK(u.n_differ == 1 && u.max_abs == 2 && u.worst_a == -1);
    const char *const text_a[] = {"a", "b"}, *const text_b[] = {"a", "c"};
    u = add(REE_STRING, 2, text_a, text_b);
    CHECK(u.n_differ == 1 && u.worst == 1);
    u = add(REE_F32, 0, NULL, NULL);
    CHECK(u.n == 0 && u.n_differ == 0);
}

static void test_escape(void) {
    static const char *const cases[][2] = {
        {"<a href=\"x\">&'", "&lt;a href=&quot;x&quot;&gt;&amp;&#39;"},
        {"\x1b[31m\n\x7f", "\xEF\xBF\xBD[31m\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"},
        {"\xC0\xBC\xC2", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},        // overlong '<'; cut off
        {"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},        // half a surrogate pair
        {"\xC2\x85\xEF\xBF\xBE<", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD" // not characters
                                  "\xEF\xBF\xBD\xEF\xBF\xBD&lt;"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ree_strbuf out;
        ree_strbuf_init(&out);
        ree_html_escape(&out, cases[i][0]);
        CHECK_MSG(out.data && strcmp(out.data, cases[i][1]) == 0, "case %zu: %s", i, out.data);
        ree_strbuf_finish(&out);
    }
}

int main(void) {
    test_buckets();
    test_floats();
    test_nans();
    test_other_types();
    test_escape();
    return test_finish();
}
