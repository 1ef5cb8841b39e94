// Canonical JSON: the rules of RFC 8785 for order, strings and numbers; values without a canonical
// form.
#include "base/canonical_json.h"

#include "test.h"

#include <math.h>
#include <string.h>

// Returns the canonical form of a text; the caller must free it. NULL if the text is refused.
static char *canonical(const char *text, size_t n, struct ree_error *err) {
    cJSON *value;
    if (ree_json_parse_strict(text, n, &value, err) != REE_OK) return NULL;
    struct ree_strbuf out;
    ree_strbuf_init(&out);
    enum ree_status status = ree_canonical_json(value, &out, err);
    cJSON_Delete(value);
    if (status == REE_OK) return ree_strbuf_take(&out);
    ree_strbuf_finish(&out);
    return NULL;
}

static void gives(const char *text, const char *expected) {
    struct ree_error err = {.message = ""};
    char *out = canonical(text, strlen(text), &err);
    CHECK_MSG(out && strcmp(out, expected) == 0, "%s: %s, expected %s", text,
              out ? out : err.message, expected);
    // The canonical form of a canonical text is the text itself.
    char *again = out ? canonical(out, strlen(out), &err) : NULL;
    CHECK_MSG(again && strcmp(out, again) == 0, "again: %s", text);
    free(again);
    free(out);
}

static void refused_n(const char *text, size_t n, const char *why) {
    struct ree_error err = {.message = ""};
    char *out = canonical(text, n, &err);
    CHECK_MSG(!out && strstr(err.message, why), "%s: %s, expected '%s'", text,
              out ? out : err.message, why);
    CHECK(out || err.status == REE_INVALID);
    free(out);
}

static void refused(const char *text, const char *why) {
    refused_n(text, strlen(text), why);
}

static void number(double value, const char *expected) {
    cJSON item = {.type = cJSON_Number, .valuedouble = value};
    struct ree_strbuf out;
    ree_strbuf_init(&out);
    CHECK(ree_canonical_json(&item, &out, NULL) == REE_OK);
    CHECK_MSG(out.data && strcmp(out.data, expected) == 0, "%.17g: %s, expected %s", value,
              out.data, expected);
    ree_strbuf_finish(&out);
}

// ECMA-262, Number::toString: each of its formats, at both ends of its range.
static void check_numbers(void) {
    number(0, "0");
    number(-0.0, "0");
    number(-1, "-1");
    number(100, "100");
    number(0.1, "0.1");
    number(-1.5e-5, "-0.000015");
    number(1e-6, "0.000001");
    number(1e-7, "1e-7");
    number(1.25e-7, "1.25e-7");
    number(123e-20, "1.23e-18");
    number(1e20, "100000000000000000000");
    number(123456789012345680000.0, "123456789012345680000");
    number(1e21, "1e+21");
    number(-1.5e21, "-1.5e+21");
    number(9007199254740991, "9007199254740991");
    number(9007199254740992, "9007199254740992");
    number(-9007199254740991, "-9007199254740991");
    number(9007199254740990.0, "9007199254740990");
    number(2251799813685248.5, "2251799813685248.5");
    number(9007199254740994, "9007199254740994");
    number(123000, "123000");
    number(295147905179352830000.0, "295147905179352830000");
    number(4.35, "4.35");
    number(333333333.33333329, "333333333.3333333");
    number(1e30, "1e+30");
    number(2e-3, "0.002");
    number(5e-324, "5e-324");
    number(2.2250738585072014e-308, "2.2250738585072014e-308");
    number(1.7976931348623157e308, "1.7976931348623157e+308");
    number(0.8f, "0.800000011920929");
    // The nearest number of 16 digits, ...801e-14, is a different double; the next one above is
    // not.
    number(0x1p-44, "5.684341886080802e-14");
    number(0x1p-1074, "5e-324");
    number(0x1p-24, "5.960464477539063e-8");
    number(0x1p1023, "8.98846567431158e+307");
    number(0x1p-1022, "2.2250738585072014e-308");

    for (int i = 0; i < 3; i++) {
        double values[] = {NAN, INFINITY, -INFINITY};
        cJSON item = {.type = cJSON_Number, .valuedouble = values[i]};
        struct ree_strbuf out;
        struct ree_error err;
        ree_strbuf_init(&out);
        CHECK(ree_canonical_json(&item, &out, &err) == REE_INVALID);
        ree_strbuf_finish(&out);
    }
    refused("1e999", "not finite");
    refused("[-1e999]", "not finite");
}

static void check_strings(void) {
    gives("\"\\u0041\\u00e9\\u20ac\\ud83d\\ude02\"", "\"A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x82\"");
    gives("\"\\b\\t\\n\\f\\r\\\"\\\\\\/\"", "\"\\b\\t\\n\\f\\r\\\"\\\\/\"");
    gives("\"\\u0001\\u000B\\u000e\\u001F\\u0008\\u0009\"",
          "\"\\u0001\\u000b\\u000e\\u001f\\b\\t\"");
    // Other characters are not escaped: DEL, the line separators of Unicode, "<".
    gives("\"\\u007f\\u0080\\u2028\\u2029\\ufeff\\uffff<\"",
          "\"\x7f\xC2\x80\xE2\x80\xA8\xE2\x80\xA9\xEF\xBB\xBF\xEF\xBF\xBF<\"");
    // Text is not normalized: a letter and its combining mark stay two characters.
    gives("\"A\\u030a\"", "\"A\xCC\x8A\"");
    refused("\"\\u0000\"", "\\u0000");
    refused("{\"a\\\\\\u0000\":1}", "\\u0000");
    gives("\"\\\\u0000\"", "\"\\\\u0000\""); // a backslash followed by letters
    refused("\"\\ud83d\"", "not JSON");
    refused("\"\\ude02\\ud83d\"", "not JSON");
    refused("\"\\ud83dx\"", "not JSON");
    refused("\"\\x41\"", "not JSON");
    refused("\"a\nb\"", "control character");
    refused("\"abc", "has no end");
    refused("\"abc\\", "has no end");
    refused("\"\xC0\x80\"", "not UTF-8");
    refused("\"\xC3\"", "not UTF-8");
    refused("\"\x80\"", "not UTF-8");
    refused("\"\xE0\x9F\xBF\"", "not UTF-8");
    refused("\"\xED\xA0\x80\"", "not UTF-8"); // a surrogate
    refused("\"\xF0\x8F\xBF\xBF\"", "not UTF-8");
    refused("\"\xF4\x90\x80\x80\"", "not UTF-8");
    refused("\"\xE2\x82\"", "not UTF-8");
    refused("{\"\xFF\":1}", "not UTF-8");
    refused_n("\"a\0b\"", 5, "zero byte");
}

static void check_structure(void) {
    gives(" { \"b\" : [ ] , \"a\" : { } } ", "{\"a\":{},\"b\":[]}");
    gives("[true,false,null,\"\",1]", "[true,false,null,\"\",1]");
    gives("{\"\":1,\"a\":2,\"A\":3,\"aa\":4,\"1\":5,\"10\":6,\"2\":7}",
          "{\"\":1,\"1\":5,\"10\":6,\"2\":7,\"A\":3,\"a\":2,\"aa\":4}");
    gives("{\"b\":{\"d\":1,\"c\":2},\"a\":[{\"z\":1,\"y\":2}]}",
          "{\"a\":[{\"y\":2,\"z\":1}],\"b\":{\"c\":2,\"d\":1}}");
    // U+1F600 is D83D DE00 in UTF-16: less than U+E000 and U+FB33, greater than U+D7FF.
    gives(
        "{\"\\ufb33\":1,\"\\ud83d\\ude00\":2,\"\\ue000\":3,\"\\ud7ff\":4,\"\\u0080\":5,\"\\r\":6}",
        "{\"\\r\":6,\"\xC2\x80\":5,\"\xED\x9F\xBF\":4,\"\xF0\x9F\x98\x80\":2,\"\xEE\x80\x80\":3,"
        "\"\xEF\xAC\xB3\":1}");
    gives("{\"x\\ufb33\":1,\"x\\ud83d\\ude00\":2,\"x\":3}",
          "{\"x\":3,\"x\xF0\x9F\x98\x80\":2,\"x\xEF\xAC\xB3\":1}");
    refused("{\"a\":1,\"b\":2,\"\\u0061\":3}", "'a' occurs twice");
    refused("[{\"k\":{\"\":1,\"\":1}}]", "twice");

    char deep[256];
    for (int n = 64; n <= 65; n++) {
        memset(deep, '[', (size_t)n);
        memset(deep + n, ']', (size_t)n);
        deep[2 * n] = 0;
        if (n == 64)
            gives(deep, deep);
        else
            refused(deep, "64 levels");
    }
    // The same limit for a value that was not parsed.
    cJSON *value = cJSON_CreateArray();
    for (int i = 0; i < 64; i++) {
        cJSON *outer = cJSON_CreateArray();
        cJSON_AddItemToArray(outer, value);
        value = outer;
    }
    struct ree_strbuf out;
    ree_strbuf_init(&out);
    CHECK(ree_canonical_json(value, &out, NULL) == REE_INVALID);
    ree_strbuf_finish(&out);
    cJSON_Delete(value);

    static const char *const wrong[] = {"",
                                        " ",
                                        "{",
                                        "[1,]",
                                        "[1 2]",
                                        "{\"a\"}",
                                        "{\"a\":}",
                                        "{a:1}",
                                        "1 1",
                                        "[1]]",
                                        "nul",
                                        "True",
                                        "NaN",
                                        "Infinity",
                                        "'a'",
                                        "01",
                                        "-",
                                        "+1",
                                        "-01",
                                        "1.",
                                        ".5",
                                        "1e",
                                        "1e+",
                                        "0x10",
                                        "1_0",
                                        "[1,,2]",
                                        "[,1]",
                                        "{,}",
                                        "--1",
                                        "1.2.3",
                                        "\xEF\xBB\xBF[]",
                                        "[1]\v",
                                        "\f1",
                                        "{\"a\":1,}",
                                        "// 1\n1",
                                        "/**/1",
                                        "[1}",
                                        "]",
                                        "}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        refused(wrong[i], "not JSON");
}

static void check_hashes(void) {
    ree_digest a, b, c;
    cJSON *one, *two;
    CHECK(ree_json_parse_strict("{\"a\":1,\"b\":2}", 13, &one, NULL) == REE_OK);
    CHECK(ree_json_parse_strict("{ \"b\":2.0,\"a\":1e0}", 18, &two, NULL) == REE_OK);
    CHECK(ree_canonical_sha256(one, "t", a, NULL) == REE_OK);
    CHECK(ree_canonical_sha256(two, "t", b, NULL) == REE_OK);
    CHECK(ree_canonical_sha256(two, NULL, c, NULL) == REE_OK);
    CHECK(memcmp(a, b, 32) == 0 && memcmp(a, c, 32) != 0);
    struct ree_hasher *hasher = ree_hasher_create("t");
    ree_hasher_update(hasher, "{\"a\":1,\"b\":2}", 13);
    ree_hasher_digest(hasher, c);
    CHECK(memcmp(a, c, 32) == 0);
    cJSON_Delete(one);
    cJSON_Delete(two);

    char hex[65];
    ree_hex(a, hex);
    CHECK(ree_unhex(hex, b) && memcmp(a, b, 32) == 0);
    hex[63] = 'A';
    CHECK(!ree_unhex(hex, b));
    hex[63] = 0;
    CHECK(!ree_unhex(hex, b) && !ree_unhex("", b));
    CHECK(!ree_unhex("000000000000000000000000000000000000000000000000000000000000000000", b));
}

// Parses an array of n times `item`, separated by `between`. says: the error; NULL: none.
static void refuse_many(size_t n, const char *item, const char *between, const char *says) {
    struct ree_strbuf text;
    struct ree_error err = {.message = ""};
    cJSON *value = NULL;
    ree_strbuf_init(&text);
    ree_strbuf_append(&text, "[", 1);
    for (size_t i = 0; i < n; i++)
        ree_strbuf_printf(&text, "%s%s", i ? between : "", item);
    ree_strbuf_append(&text, "]", 1);
    enum ree_status status = ree_json_parse_strict(text.data, text.size, &value, &err);
    CHECK_MSG(says ? status == REE_INVALID && strstr(err.message, says) : status == REE_OK,
              "%zu times %s: %s", n, item, err.message);
    cJSON_Delete(value);
    ree_strbuf_finish(&text);
}

// Small files that would take gigabytes, or minutes.
static void many(void) {
    refuse_many(1 << 22, "0", ",", NULL);
    refuse_many((1 << 22) + 1, "0", ",", "more than 4194304 values");
    refuse_many(1 << 20, "[[[[[]]]]]", ",", "more than 4194304 values");
    refuse_many(1 << 16, "0.12345678901234567", ",", NULL);
    refuse_many((1 << 16) + 1, "0.12345678901234567", ",", "more than 65536 numbers");
    refuse_many((1 << 16) + 1, "1e0", ",", "more than 65536 numbers");
}

int main(void) {
    check_numbers();
    check_strings();
    check_structure();
    check_hashes();
    many();
    return test_finish();
}
