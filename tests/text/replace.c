// Decoding by Fuse and Replace of a string: the stage receives the text in parts, finds the matches
// that a search in the whole text finds, and takes linear time.
#include "text/tokenizer.h"

#include <stdlib.h>
#include <time.h>

#include "test.h"

// Returns a tokenizer whose decoder is Fuse, then Replace of this string by "-".
static struct ree_tokenizer *replacing(const char *pattern, const char *vocab) {
    struct ree_tokenizer *tokenizer = NULL;
    struct ree_error err = {.message = ""};
    struct ree_strbuf json;
    ree_strbuf_init(&json);
    ree_strbuf_printf(&json,
                      "{\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Fuse\"},"
                      "{\"type\":\"Replace\",\"content\":\"-\",\"pattern\":{\"String\":\"");
    ree_strbuf_append(&json, pattern, strlen(pattern));
    ree_strbuf_printf(&json, "\"}}]},\"model\":{\"type\":\"BPE\",\"merges\":[],\"vocab\":{");
    ree_strbuf_append(&json, vocab, strlen(vocab));
    ree_strbuf_printf(&json, "}}}");
    enum ree_status status = ree_tokenizer_load_memory(json.data, json.size, &tokenizer, &err);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    REQUIRE(status == REE_OK);
    ree_strbuf_finish(&json);
    return tokenizer;
}

// Decodes random tokens one at a time, and compares with a search in the whole text. `pattern`: a
// text of the letters a and b.
static void replace_pattern(const char *pattern, uint64_t seed) {
    static const char *const pieces[] = {"a", "b", "aa", "ab", "ba", "aab", "bbaab"};
    struct ree_tokenizer *tokenizer =
        replacing(pattern, "\"a\":0,\"b\":1,\"aa\":2,\"ab\":3,\"ba\":4,\"aab\":5,\"bbaab\":6");
    struct ree_strbuf text, want, got;
    struct ree_decoder *decoder;
    struct ree_error err = {.message = ""};
    const char *part;
    size_t n, size = strlen(pattern);
    ree_strbuf_init(&text);
    ree_strbuf_init(&want);
    ree_strbuf_init(&got);
    REQUIRE(ree_decoder_create(tokenizer, 0, &decoder, &err) == REE_OK);
    for (int i = 0; i < 100; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        int32_t id = (int32_t)((seed >> 33) % 7);
        ree_strbuf_append(&text, pieces[id], strlen(pieces[id]));
        REQUIRE(ree_decoder_push(decoder, id, &part, &n, &err) == REE_OK);
        ree_strbuf_append(&got, part, n);
    }
    REQUIRE(ree_decoder_flush(decoder, &part, &n, &err) == REE_OK);
    CHECK_MSG(n < size, "%s: %zu bytes were held back", pattern, n);
    ree_strbuf_append(&got, part, n);
    for (size_t at = 0; at < text.size;) {
        bool match = text.size - at >= size && memcmp(text.data + at, pattern, size) == 0;
        ree_strbuf_append(&want, match ? "-" : text.data + at, 1);
        at += match ? size : 1;
    }
    CHECK_MSG(got.size == want.size && memcmp(got.data, want.data, want.size) == 0,
              "'%s' in '%s' gives '%s'", pattern, text.data, got.data);
    ree_decoder_destroy(decoder);
    ree_strbuf_finish(&text);
    ree_strbuf_finish(&want);
    ree_strbuf_finish(&got);
    ree_tokenizer_destroy(tokenizer);
}

static void replaces(void) {
    char pattern[8];
    for (uint32_t size = 1; size <= 6; size++)
        for (uint32_t bits = 0; bits < 1u << size; bits++) {
            for (uint32_t i = 0; i < size; i++)
                pattern[i] = bits >> i & 1 ? 'b' : 'a';
            pattern[size] = 0;
            replace_pattern(pattern, bits);
        }
}

// The beginning of a match that was released does not match with the next token.
static void settled(void) {
    struct ree_tokenizer *tokenizer = replacing("ab", "\"a\":0,\"b\":1");
    struct ree_decoder *decoder;
    struct ree_error err = {.message = ""};
    const char *part;
    size_t n;
    REQUIRE(ree_decoder_create(tokenizer, 0, &decoder, &err) == REE_OK);
    CHECK(ree_decoder_push(decoder, 0, &part, &n, &err) == REE_OK && n == 0);
    CHECK(ree_decoder_settle(decoder, &part, &n, &err) == REE_OK && strcmp(part, "a") == 0);
    CHECK(ree_decoder_push(decoder, 1, &part, &n, &err) == REE_OK && strcmp(part, "b") == 0);
    CHECK(ree_decoder_push(decoder, 0, &part, &n, &err) == REE_OK && n == 0);
    CHECK(ree_decoder_push(decoder, 1, &part, &n, &err) == REE_OK && strcmp(part, "-") == 0);
    CHECK(ree_decoder_flush(decoder, &part, &n, &err) == REE_OK && n == 0);
    ree_decoder_destroy(decoder);
    ree_tokenizer_destroy(tokenizer);
}

// A long pattern that begins at each position of the text takes linear time.
static void replace_long(void) {
    enum { HALF = 100000, PIECE = 2000, N = 1000 };
    struct ree_strbuf pattern, vocab;
    struct ree_error err = {.message = ""};
    char *text;
    size_t n;
    ree_strbuf_init(&pattern);
    ree_strbuf_init(&vocab);
    for (int i = 0; i <= 2 * HALF; i++)
        ree_strbuf_append(&pattern, i == HALF ? "b" : "a", 1);
    ree_strbuf_append(&vocab, "\"", 1);
    ree_strbuf_append(&vocab, pattern.data, PIECE);
    ree_strbuf_printf(&vocab, "\":0");
    struct ree_tokenizer *tokenizer = replacing(pattern.data, vocab.data);
    const int32_t ids[N] = {0};
    double start = (double)clock() / CLOCKS_PER_SEC;
    enum ree_status status = ree_tokenizer_decode(tokenizer, ids, N, 0, &text, &n, &err);
    double seconds = (double)clock() / CLOCKS_PER_SEC - start;
    CHECK_MSG(status == REE_OK && n == (size_t)N * PIECE, "%s", err.message);
    CHECK_MSG(seconds < 2, "%.1f s", seconds); // about 0.01 s
    ree_free(text);
    ree_tokenizer_destroy(tokenizer);
    ree_strbuf_finish(&pattern);
    ree_strbuf_finish(&vocab);
}

int main(void) {
    replaces();
    settled();
    replace_long();
    return test_finish();
}
