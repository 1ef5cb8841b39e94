// The reader accepts what RFC 8259 accepts, up to its limits. cJSON must accept the same, because a
// failure after the scan is reported as a lack of memory.
#include <stdint.h>
#include <string.h>

#include "base/json.h"
#include "test.h"
#include "splitmix.h"

static struct splitmix rng = {1};

static uint32_t draw(uint32_t n) {
    return splitmix_below(&rng, n);
}

static bool is_json(const char *text, size_t n) {
    return ree_json_scan(text, n, &ree_json_lenient, NULL) == REE_OK;
}

static bool is_exact(const char *text) {
    return ree_json_scan(text, strlen(text), &ree_json_strict, NULL) == REE_OK;
}

static bool parses(const char *text, size_t n) {
    cJSON *json;
    struct ree_error err;
    bool ok = ree_json_parse(text, n, &json, &err) == REE_OK;
    if (ok) cJSON_Delete(json);
    CHECK_MSG(ok || err.status == REE_INVALID, "'%.*s': %s", (int)n, text, err.message);
    return ok;
}

static void test_texts(void) {
    static const char *const right[] = {
        "{}",
        " [ ] ",
        "1",
        "-0.5e+10",
        "\"\"",
        "null",
        "[true,false,null,[{}]]",
        "{\"a\":[1,2.5,-3e2],\"b\":{\"c\":\"\\u00e9\\\\ \\uD83D\\uDE00\"}}"};
    static const char *const wrong[] = {"",
                                        "[",
                                        "]",
                                        "[1,]",
                                        "{\"a\"}",
                                        "{\"a\":1,}",
                                        "{1:2}",
                                        "01",
                                        "1.",
                                        "nul",
                                        "\"\\ud83d\"",
                                        "\"\\udc00\"",
                                        "\"\\x\"",
                                        "\"a",
                                        "1 2",
                                        "[1}",
                                        "{\"a\":1]",
                                        "-",
                                        "+1",
                                        ".5",
                                        "1e",
                                        "1.e1",
                                        "00",
                                        "-01",
                                        "\"\t\"",
                                        "[1\f]",
                                        "\"\\u0000\"",
                                        "\"\\u12g4\"",
                                        "tru",
                                        "truee",
                                        "\"\\ud83d\\u0041\"",
                                        "[,1]",
                                        "{,}"};
    // Texts that are hashed have no numbers that a double cannot tell from others.
    static const char *const exact[] = {"9007199254740991",
                                        "-9007199254740992",
                                        "12345678901234567000",
                                        "1e400000",
                                        "0.1",
                                        "0.69999998807907104",
                                        "1e21",
                                        "64.0",
                                        "-0"};
    static const char *const inexact[] = {"9007199254740993",        "-9007199254740993",
                                          "12345678901234567168",    "12345678901234568000",
                                          "64.0000000000000001",     "0.10000000000000000555",
                                          "1.00000000000000000000e2"};
    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++)
        CHECK_MSG(is_exact(exact[i]), "%s", exact[i]);
    for (size_t i = 0; i < sizeof inexact / sizeof *inexact; i++)
        CHECK_MSG(!is_exact(inexact[i]) && is_json(inexact[i], strlen(inexact[i])), "%s",
                  inexact[i]);
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        CHECK(is_json(right[i], strlen(right[i])));
        CHECK(parses(right[i], strlen(right[i])));
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_MSG(!is_json(wrong[i], strlen(wrong[i])) && !parses(wrong[i], strlen(wrong[i])), "%s",
                  wrong[i]);
}

static void test_depth(void) {
    char text[4001];
    for (size_t depth = 1; depth <= 2000; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        if (is_json(text, 2 * depth)) CHECK(parses(text, 2 * depth));
    }
}

static void check_failure(const char *text, size_t n, const struct ree_json_limits *limits,
                          const char *message) {
    cJSON *json;
    struct ree_error err;
    CHECK(ree_json_read(text, n, limits, &json, &err) == REE_INVALID && !json);
    CHECK_MSG(strstr(err.message, message), "%s, expected %s", err.message, message);
}

// Each limit: the largest text that is accepted, and the next one.
static void test_limits(void) {
    static const struct ree_json_limits few = {.depth = 3, .values = 6, .long_numbers = 2};
    static const struct {
        const char *most, *more, *message;
    } cases[] = {
        {"[[[]]]", "[[[[]]]]", "nested more than 3 levels deep, near byte 4"},
        {"[[[1]]]", "[[[{}]]]", "nested more than 3 levels deep"},
        {"[1,2,3,4,5,6]", "[1,2,3,4,5,6,7]", "more than 6 values"},
        {"{\"a\":[1,2],\"b\":[3,4]}", "{\"a\":[1,2],\"b\":[3,4],\"c\":5}", "more than 6 values"},
        {"[1.5,1e3,123456789012345]", "[1.5,1e3,1234567890123456]", "more than 2 numbers that"},
        {"[0.5,-1E-3]", "[0.5,-1E-3,0.5]", "more than 2 numbers that are not short integers"},
        {"[]", "\xEF\xBB\xBF[]", "it is not JSON, near byte 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cJSON *json = NULL;
        CHECK(ree_json_read(cases[i].most, strlen(cases[i].most), &few, &json, NULL) == REE_OK);
        cJSON_Delete(json);
        check_failure(cases[i].more, strlen(cases[i].more), &few, cases[i].message);
    }
    CHECK(parses("\xEF\xBB\xBF{}", 5) && !parses("{}\xEF\xBB\xBF", 5));
    check_failure("[1, 2\0]", 7, &ree_json_lenient, "zero byte");
    check_failure("\"\x01\"", 3, &ree_json_lenient, "control character in a string, near byte 1");
    check_failure("[\"\\u0000\"]", 10, &ree_json_strict, "\\u0000 in a string");
    // The longest number.
    char text[64];
    memset(text, '7', sizeof text);
    CHECK(parses(text, 62));
    check_failure(text, 63, &ree_json_lenient, "a number of more than 62 characters");
}

static void test_random(void) {
    static const char seed[] =
        "{\"a\":[1,2.5,-3e2,true,null],\"b\":{\"c\":\"\\u00e9\\\\ \\uD83D\\uDE00\"},\"d\":\"\"}";
    static const char pieces[] = "{}[]\",:0123456789.eE+-truefalsn\\ud83D \t\n\x01\xc3";
    char text[sizeof seed];
    size_t n_right = 0;
    for (int i = 0; i < 200000; i++) {
        size_t n = sizeof seed - 1;
        memcpy(text, seed, n);
        for (uint32_t k = 1 + draw(3); k > 0; k--)
            text[draw((uint32_t)n)] = pieces[draw(sizeof pieces - 1)];
        if (!is_json(text, n)) continue;
        n_right++;
        CHECK_MSG(parses(text, n), "%.*s", (int)n, text);
    }
    CHECK(n_right > 1000);
}

int main(void) {
    test_texts();
    test_depth();
    test_limits();
    test_random();
    return test_finish();
}
