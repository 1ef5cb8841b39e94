#include "base/canonical_json.h"
#include "base/memory.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 64

// Length in bytes of the UTF-8 character at s, 1 to 4, or 0 if it is not valid (Unicode 15, table
// 3-7). The terminating NUL is not valid as a second or later byte, so nothing after it is read.
static size_t utf8_size(const unsigned char *s) {
    if (s[0] < 0x80) return 1;
    if (s[0] < 0xC2 || s[0] > 0xF4) return 0;
    unsigned char low = 0x80, high = 0xBF; // range of the second byte
    if (s[0] == 0xE0) low = 0xA0;
    if (s[0] == 0xED) high = 0x9F; // excludes surrogates
    if (s[0] == 0xF0) low = 0x90;
    if (s[0] == 0xF4) high = 0x8F;
    if (s[1] < low || s[1] > high) return 0;
    size_t size = s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;
    for (size_t i = 2; i < size; i++)
        if (s[i] < 0x80 || s[i] > 0xBF) return 0;
    return size;
}

static enum ree_status put_string(struct ree_strbuf *out, const char *text, struct ree_error *err) {
    static const char short_forms[] = "btn\0fr"; // for characters 8 to 13; 11 has no short form
    const unsigned char *s = (const unsigned char *)text;
    ree_strbuf_append(out, "\"", 1);
    for (size_t size; *s; s += size) {
        size = utf8_size(s);
        if (!size) return ree_fail(err, REE_INVALID, "a string is not UTF-8");
        if (*s == '"' || *s == '\\')
            ree_strbuf_printf(out, "\\%c", *s);
        else if (*s >= 8 && *s <= 13 && *s != 11)
            ree_strbuf_printf(out, "\\%c", short_forms[*s - 8]);
        else if (*s < 0x20)
            ree_strbuf_printf(out, "\\u%04x", *s);
        else
            ree_strbuf_append(out, (const char *)s, size);
    }
    ree_strbuf_append(out, "\"", 1);
    return REE_OK;
}

// Finds the shortest string of k decimal digits, and n, such that 0.DIGITS * 10^n reads back as
// `value`, which must be positive. If several strings have that length, chooses the one nearest to
// `value` (ECMA-262, Number::toString, step 5).
static void shortest(double value, char digits[20], int *out_k, int *out_n) {
    char text[40];
    // If at most 15 digits suffice, the nearest number of 15 digits is the same number padded with
    // zeros (DBL_DIG). This does not hold for subnormal numbers, so their search starts at 1 digit.
    for (int k = value < DBL_MIN ? 1 : DBL_DIG;; k++) {
        // Prints d.ddde+xx; the decimal point is another character in some locales.
        snprintf(text, sizeof text, "%.*e", k - 1, value);
        char *exponent = strchr(text, 'e');
        int n = atoi(exponent + 1) + 1;
        digits[0] = text[0];
        memcpy(digits + 1, exponent - (k - 1), (size_t)k - 1);
        digits[k] = 0;
        *out_n = n;
        // Below a power of two, doubles are twice as dense as above it. There the nearest number of
        // k digits may be below `value` and read back as another double, while the next larger
        // number of k digits reads back as `value`.
        for (int up = 0; up < 2; up++) {
            if (up && digits[k - 1]++ == '9') break;
            snprintf(text, sizeof text, "%se%d", digits, n - k);
            if (strtod(text, NULL) != value && k < 17) continue; // 17 digits always suffice
            while (k > 1 && digits[k - 1] == '0')
                k--;
            digits[k] = 0;
            *out_k = k;
            return;
        }
    }
}

void ree_canonical_number(double value, char out[REE_CANONICAL_NUMBER_SIZE]) {
    const size_t size = REE_CANONICAL_NUMBER_SIZE;
    // Doubles below 2^53 are at most 1 apart, so an integer needs all its digits. This fast path
    // matters because there are many token ids. -0 is 0.
    if (fabs(value) < 9007199254740992 && value == floor(value)) {
        snprintf(out, size, "%lld", (long long)value);
        return;
    }
    const char *sign = value < 0 ? "-" : "";
    char digits[20];
    int k, n;
    shortest(fabs(value), digits, &k, &n);
    if (k <= n && n <= 21)
        snprintf(out, size, "%s%s%.*s", sign, digits, n - k, "000000000000000000000");
    else if (0 < n && n <= 21)
        snprintf(out, size, "%s%.*s.%s", sign, n, digits, digits + n);
    else if (-6 < n && n <= 0)
        snprintf(out, size, "%s0.%.*s%s", sign, -n, "000000", digits);
    else
        snprintf(out, size, "%s%c%s%se%+d", sign, digits[0], k > 1 ? "." : "", digits + 1, n - 1);
}

static enum ree_status put_number(struct ree_strbuf *out, double value, struct ree_error *err) {
    if (!isfinite(value)) return ree_fail(err, REE_INVALID, "a number is not finite");
    char text[REE_CANONICAL_NUMBER_SIZE];
    ree_canonical_number(value, text);
    ree_strbuf_append(out, text, strlen(text));
    return REE_OK;
}

// Compares by UTF-16 code units. The order of UTF-8 bytes is the order of code points. The two
// orders differ only between a character above U+FFFF (in UTF-16 two surrogates from U+D800 to
// U+DFFF) and one from U+E000 to U+FFFF.
static int compare_keys(const void *a, const void *b) {
    const unsigned char *x = (const unsigned char *)(*(const cJSON *const *)a)->string;
    const unsigned char *y = (const unsigned char *)(*(const cJSON *const *)b)->string;
    while (*x && *x == *y)
        x++, y++;
    if (*x >= 0xF0 && (*y == 0xEE || *y == 0xEF)) return -1;
    if (*y >= 0xF0 && (*x == 0xEE || *x == 0xEF)) return 1;
    return *x - *y;
}

static enum ree_status put_value(struct ree_strbuf *out, const cJSON *value, int depth,
                                 struct ree_error *err);

static enum ree_status put_members(struct ree_strbuf *out, const cJSON **members, size_t n,
                                   int depth, struct ree_error *err) {
    qsort(members, n, sizeof *members, compare_keys);
    for (size_t i = 0; i < n; i++) {
        if (i && strcmp(members[i - 1]->string, members[i]->string) == 0)
            return ree_fail(err, REE_INVALID, "'%s' occurs twice", members[i]->string);
        if (i) ree_strbuf_append(out, ",", 1);
        REE_TRY(put_string(out, members[i]->string, err));
        ree_strbuf_append(out, ":", 1);
        REE_TRY(put_value(out, members[i], depth, err));
    }
    return REE_OK;
}

static enum ree_status put_object(struct ree_strbuf *out, const cJSON *object, int depth,
                                  struct ree_error *err) {
    size_t n = 0;
    for (const cJSON *item = object->child; item; item = item->next)
        n++;
    const cJSON **members = ree_alloc((n ? n : 1) * sizeof *members);
    if (!members) return ree_no_memory(err);
    n = 0;
    for (const cJSON *item = object->child; item; item = item->next)
        members[n++] = item;
    ree_strbuf_append(out, "{", 1);
    enum ree_status status = put_members(out, members, n, depth, err);
    ree_strbuf_append(out, "}", 1);
    ree_free(members);
    return status;
}

static enum ree_status put_value(struct ree_strbuf *out, const cJSON *value, int depth,
                                 struct ree_error *err) {
    if (cJSON_IsString(value)) return put_string(out, value->valuestring, err);
    if (cJSON_IsNumber(value)) return put_number(out, value->valuedouble, err);
    if (cJSON_IsNull(value) || cJSON_IsBool(value)) {
        ree_strbuf_printf(out, "%s",
                          cJSON_IsNull(value)   ? "null"
                          : cJSON_IsTrue(value) ? "true"
                                                : "false");
        return REE_OK;
    }
    if (!cJSON_IsArray(value) && !cJSON_IsObject(value))
        return ree_fail(err, REE_INVALID, "a value has no JSON type");
    if (depth == MAX_DEPTH)
        return ree_fail(err, REE_INVALID, "it is nested more than %d levels deep", MAX_DEPTH);
    if (cJSON_IsObject(value)) return put_object(out, value, depth + 1, err);
    ree_strbuf_append(out, "[", 1);
    for (const cJSON *item = value->child; item; item = item->next) {
        if (item != value->child) ree_strbuf_append(out, ",", 1);
        REE_TRY(put_value(out, item, depth + 1, err));
    }
    ree_strbuf_append(out, "]", 1);
    return REE_OK;
}

enum ree_status ree_canonical_json(const cJSON *value, struct ree_strbuf *out,
                                   struct ree_error *err) {
    REE_TRY(put_value(out, value, 0, err));
    return out->failed ? ree_no_memory(err) : REE_OK;
}

enum ree_status ree_canonical_check(const cJSON *value, struct ree_error *err) {
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    enum ree_status status = ree_canonical_json(value, &text, err);
    ree_strbuf_finish(&text);
    return status;
}

enum ree_status ree_canonical_sha256(const cJSON *value, const char *tag, ree_digest out,
                                     struct ree_error *err) {
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    enum ree_status status = ree_canonical_json(value, &text, err);
    if (status == REE_OK) {
        struct ree_hasher *hasher = ree_hasher_create(tag);
        ree_hasher_update(hasher, text.data, text.size);
        ree_hasher_digest(hasher, out);
    }
    ree_strbuf_finish(&text);
    return status;
}

static int digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool ree_unhex(const char *hex, ree_digest out) {
    ree_digest bytes;
    for (size_t i = 0; i < sizeof bytes; i++) {
        // The second digit is read only if the first is valid, so nothing after the NUL is read.
        int high = digit(hex[2 * i]);
        int low = high < 0 ? -1 : digit(hex[2 * i + 1]);
        if (low < 0) return false;
        bytes[i] = (unsigned char)(high << 4 | low);
    }
    if (hex[2 * sizeof bytes]) return false;
    memcpy(out, bytes, sizeof bytes);
    return true;
}
