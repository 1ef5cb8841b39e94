// cJSON accepts every text that the grammar accepts. Otherwise an invalid text would be reported as
// a lack of memory.
#include <stdint.h>
#include <string.h>

#include "base/json.h"
#include "test.h"

static uint32_t state = 1;

static uint32_t draw(uint32_t n) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % n;
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
    static const char *const wrong[] = {
        "",        "[",   "]",   "[1,]", "{\"a\"}",     "{\"a\":1,}",
        "{1:2}",   "01",  "1.",  "nul",  "\"\\ud83d\"", "\"\\udc00\"",
        "\"\\x\"", "\"a", "1 2", "[1}",  "{\"a\":1]"};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        CHECK(ree_json_is_well_formed(right[i], strlen(right[i])));
        CHECK(parses(right[i], strlen(right[i])));
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_MSG(!ree_json_is_well_formed(wrong[i], strlen(wrong[i])), "%s", wrong[i]);
}

static void test_depth(void) {
    char text[4001];
    for (size_t depth = 1; depth <= 2000; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        if (ree_json_is_well_formed(text, 2 * depth)) CHECK(parses(text, 2 * depth));
    }
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
        if (!ree_json_is_well_formed(text, n)) continue;
        n_right++;
        CHECK_MSG(parses(text, n), "%.*s", (int)n, text);
    }
    CHECK(n_right > 1000);
}

int main(void) {
    test_texts();
    test_depth();
    test_random();
    return test_finish();
}
