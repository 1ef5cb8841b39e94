// Operators on strings. Only the host knows the text of strings, so these operators bring their
// inputs to the host. NUMERICS.md, "Strings", defines the exact results.
#include "graph/lower/ops/control/text.h"

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// Numbers as text. The C library reads and writes numbers in the caller's locale, so the "C" locale
// is selected temporarily.

struct c_locale {
    locale_t c, before;
};

static bool enter_c_locale(struct c_locale *l) {
    l->c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!l->c) return false;
    l->before = uselocale(l->c);
    return true;
}

static void leave_c_locale(struct c_locale *l) {
    uselocale(l->before);
    freelocale(l->c);
}

// Prints the shortest decimal number that reads back as x: as float64 if `wide`, else as float32.
static void print_float(double x, bool wide, char *out, size_t size) {
    if (x != x || x - x != 0) {
        snprintf(out, size, "%s", x != x ? "NaN" : x > 0 ? "INF" : "-INF");
        return;
    }
    for (int digits = 1; digits <= (wide ? 17 : 9); digits++) {
        snprintf(out, size, "%.*g", digits, x);
        if (wide ? strtod(out, NULL) == x : strtof(out, NULL) == (float)x) return;
    }
}

static void print_number(const void *bytes, enum ree_dtype dtype, char *out, size_t size) {
    int64_t i = 0;
    float f32;
    double f64;
    size_t n = ree_dtype_size(dtype);
    memcpy(&i, bytes, n);
    if (dtype == REE_F32) {
        memcpy(&f32, bytes, n);
        print_float((double)f32, false, out, size);
        return;
    }
    if (dtype == REE_F64) {
        memcpy(&f64, bytes, n);
        print_float(f64, true, out, size);
        return;
    }
    bool is_signed = dtype == REE_I8 || dtype == REE_I16 || dtype == REE_I32 || dtype == REE_I64;
    unsigned unused = 64 - 8 * (unsigned)n;
    if (is_signed)
        snprintf(out, size, "%lld", (long long)((int64_t)((uint64_t)i << unused) >> unused));
    else
        snprintf(out, size, "%llu", (unsigned long long)i);
}

// Returns the type through which elements of `dtype` are read and written as text. The conversion
// to it is exact.
static enum ree_dtype text_type(enum ree_dtype dtype) {
    switch (dtype) {
    case REE_F64:
    case REE_BOOL:
    case REE_I8:
    case REE_I16:
    case REE_I32:
    case REE_I64:
    case REE_U8:
    case REE_U16:
    case REE_U32:
    case REE_U64: return dtype;
    case REE_I4:
    case REE_I2: return REE_I8;
    case REE_U4:
    case REE_U2: return REE_U8;
    default: return REE_F32; // also for the narrow floats
    }
}

static enum ree_status to_strings(struct ree_lower *lower, struct ree_view *t,
                                  struct ree_view **out) {
    REE_TRY(ree_lower_cast(lower, t, text_type(t->dtype), &t));
    const void *bytes;
    REE_TRY(ree_lower_host(lower, t, &bytes));
    size_t n = (size_t)ree_view_count(t), size = ree_dtype_size(t->dtype);
    int64_t *numbers = ree_arena_alloc_array(lower->arena, n + 1, sizeof *numbers);
    struct c_locale l;
    if (!numbers || !enter_c_locale(&l)) return ree_lower_no_memory(lower);
    enum ree_status status = REE_OK;
    for (size_t i = 0; i < n && status == REE_OK; i++) {
        char text[64];
        print_number((const char *)bytes + i * size, t->dtype, text, sizeof text);
        status = ree_lower_intern(lower, text, strlen(text), &numbers[i]);
    }
    leave_c_locale(&l);
    REE_TRY(status);
    return ree_lower_literal(lower, REE_STRING, t->rank, t->dims, numbers, out);
}

// Returns whether s is a decimal number, an infinity or NaN. The C library also accepts hexadecimal
// numbers, leading blanks and more.
static bool is_float_text(const char *s) {
    const char *digits = s + (*s == '+' || *s == '-');
    if (!strcasecmp(digits, "inf") || !strcasecmp(digits, "infinity") || !strcasecmp(digits, "nan"))
        return true;
    return *digits && strspn(digits, "0123456789.eE+-") == strlen(digits);
}

static bool read_float(const char *s, bool wide, void *out) {
    char *end;
    if (!is_float_text(s)) return false;
    double f64 = wide ? strtod(s, &end) : 0;
    float f32 = wide ? 0 : strtof(s, &end);
    if (*end || end == s) return false;
    memcpy(out, wide ? (void *)&f64 : (void *)&f32, wide ? sizeof f64 : sizeof f32);
    return true;
}

// Reads a decimal integer that `dtype` can represent; stores its low bytes.
static bool read_integer(const char *s, enum ree_dtype dtype, void *out) {
    size_t size = ree_dtype_size(dtype);
    bool is_signed = dtype == REE_I8 || dtype == REE_I16 || dtype == REE_I32 || dtype == REE_I64;
    const char *digits = s + (*s == '+' || (*s == '-' && is_signed));
    if (!*digits || strspn(digits, "0123456789") != strlen(digits)) return false;
    errno = 0;
    int64_t i = is_signed ? strtoll(s, NULL, 10) : (int64_t)strtoull(s, NULL, 10);
    unsigned unused = 64 - 8 * (unsigned)size;
    int64_t back = is_signed ? (int64_t)((uint64_t)i << unused) >> unused
                             : (int64_t)((uint64_t)i << unused >> unused);
    if (errno || back != i) return false;
    memcpy(out, &i, size);
    return true;
}

static enum ree_status from_strings(struct ree_lower *lower, struct ree_view *t, enum ree_dtype to,
                                    struct ree_view **out) {
    const char *const *strings;
    size_t n, size;
    enum ree_dtype dtype = text_type(to);
    if (dtype == REE_BOOL)
        return ree_lower_fail(lower, REE_UNSUPPORTED, "%s from string to bool is not supported",
                              lower->node->op_type);
    REE_TRY(ree_lower_host_strings(lower, t, "input 0", &strings, &n));
    size = ree_dtype_size(dtype);
    char *values = ree_arena_alloc_array(lower->arena, n + 1, size);
    struct c_locale l;
    if (!values || !enter_c_locale(&l)) return ree_lower_no_memory(lower);
    size_t i = 0;
    bool is_float = dtype == REE_F32 || dtype == REE_F64, ok = true;
    for (; i < n && ok; i++)
        ok = is_float ? read_float(strings[i], dtype == REE_F64, values + i * size)
                      : read_integer(strings[i], dtype, values + i * size);
    leave_c_locale(&l);
    if (!ok)
        return ree_lower_fail(lower, REE_INVALID, "string %zu, '%.40s', is not a valid %s", i - 1,
                              strings[i - 1], ree_dtype_name(dtype));
    REE_TRY(ree_lower_literal(lower, dtype, t->rank, t->dims, values, out));
    return ree_lower_cast(lower, *out, to, out);
}

enum ree_status ree_lower_cast_strings(struct ree_lower *lower, struct ree_view *t,
                                       enum ree_dtype to, struct ree_view **out) {
    *out = t;
    if (t->dtype == to) return REE_OK;
    return to == REE_STRING ? to_strings(lower, t, out) : from_strings(lower, t, to, out);
}

enum ree_status ree_lower_op_stringconcat(struct ree_lower *lower, struct ree_view *const *in,
                                          struct ree_view **out) {
    uint32_t rank;
    int64_t dims[REE_MAX_RANK];
    const char *const *strings[2];
    size_t n = 0;
    REE_TRY(ree_lower_broadcast_dims(lower, 2, in, &rank, dims));
    for (int i = 0; i < 2; i++) {
        struct ree_view *t;
        REE_TRY(ree_lower_broadcast(lower, in[i], rank, dims, &t));
        REE_TRY(ree_lower_host_strings(lower, t, i ? "input 1" : "input 0", &strings[i], &n));
    }
    int64_t *numbers = ree_arena_alloc_array(lower->arena, n + 1, sizeof *numbers);
    if (!numbers) return ree_lower_no_memory(lower);
    struct ree_strbuf joined;
    ree_strbuf_init(&joined);
    enum ree_status status = REE_OK;
    for (size_t i = 0; i < n && status == REE_OK; i++) {
        joined.size = 0;
        ree_strbuf_printf(&joined, "%s%s", strings[0][i], strings[1][i]);
        status = joined.failed ? ree_lower_no_memory(lower)
                               : ree_lower_intern(lower, joined.data ? joined.data : "",
                                                  joined.size, &numbers[i]);
    }
    ree_strbuf_finish(&joined);
    REE_TRY(status);
    return ree_lower_literal(lower, REE_STRING, rank, dims, numbers, &out[0]);
}

// Returns the next part of *at and advances *at past it; returns false if there is none. Without a
// delimiter, any number of blanks separates parts, and blanks at the ends are ignored. `last`: the
// part is the whole remaining text.
static bool next_part(const char **at, const char *delimiter, bool last, const char **out,
                      size_t *out_n) {
    static const char blanks[] = " \t\n\v\f\r";
    const char *s = *at;
    if (!s) return false;
    if (*delimiter) {
        const char *end = last ? NULL : strstr(s, delimiter);
        *out = s;
        *out_n = end ? (size_t)(end - s) : strlen(s);
        *at = end ? end + strlen(delimiter) : NULL;
        return true;
    }
    s += strspn(s, blanks);
    *out = s;
    *out_n = last ? strlen(s) : strcspn(s, blanks);
    *at = s + *out_n;
    return *s != 0;
}

struct parts {
    const char *delimiter;
    int64_t max_split; // INT64_MAX: no limit
};

static int64_t count_parts(const struct parts *p, const char *s) {
    int64_t n = 0;
    const char *part;
    size_t size;
    while (next_part(&s, p->delimiter, n >= p->max_split, &part, &size))
        n++;
    return n;
}

enum ree_status ree_lower_op_stringsplit(struct ree_lower *lower, struct ree_view *const *in,
                                         struct ree_view **out) {
    const char *const *strings;
    size_t n;
    struct parts parts = {ree_rule_string(lower, "delimiter", ""),
                          ree_rule_int(lower, "maxsplit", INT64_MAX)};
    if (parts.max_split < 0) parts.max_split = INT64_MAX;
    struct ree_view *t = in[0];
    if (t->rank == REE_MAX_RANK)
        return ree_lower_fail(lower, REE_UNSUPPORTED,
                              "input 0 has rank %d, at most %d is supported", REE_MAX_RANK,
                              REE_MAX_RANK - 1);
    REE_TRY(ree_lower_host_strings(lower, t, "input 0", &strings, &n));
    int64_t most = 0, dims[REE_MAX_RANK];
    int64_t *counts = ree_arena_alloc_array(lower->arena, n + 1, sizeof *counts);
    if (!counts) return ree_lower_no_memory(lower);
    for (size_t i = 0; i < n; i++) {
        counts[i] = count_parts(&parts, strings[i]);
        if (counts[i] > most) most = counts[i];
    }
    memcpy(dims, t->dims, sizeof dims);
    dims[t->rank] = most;
    int64_t total;
    if (!ree_count_elements(t->rank + 1, dims, &total) || total >= INT64_C(1) << 31)
        return ree_lower_fail(lower, REE_UNSUPPORTED, "the result has 2^31 substrings or more");
    int64_t *numbers = ree_arena_alloc_array(lower->arena, (size_t)total + 1, sizeof *numbers);
    if (!numbers) return ree_lower_no_memory(lower);
    for (size_t i = 0; i < n; i++) {
        const char *s = strings[i], *part;
        size_t size;
        for (int64_t k = 0; next_part(&s, parts.delimiter, k >= parts.max_split, &part, &size); k++)
            REE_TRY(ree_lower_intern(lower, part, size, &numbers[(int64_t)i * most + k]));
    }
    REE_TRY(ree_lower_literal(lower, REE_STRING, t->rank + 1, dims, numbers, &out[0]));
    return ree_lower_literal(lower, REE_I64, t->rank, t->dims, counts, &out[1]);
}
