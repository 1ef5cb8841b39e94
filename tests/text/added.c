// Added tokens and normalized text: which of two tokens matches, tokens of tokenizer_config.json,
// the beginning of a text, and limits of normalization.
#include "text/tokenizer.h"

#include "test.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MODEL                                                                                      \
    "\"model\":{\"type\":\"BPE\",\"unk_token\":\"u\",\"vocab\":{\"u\":0,\"a\":1,\"b\":2,"          \
    "\"\xE2\x96\x81\":3,\" \":4},\"merges\":[]}"
#define TOKEN(id, content, more)                                                                   \
    "{\"id\":" #id ",\"content\":\"" content "\",\"normalized\":true" more "}"

static struct ree_tokenizer *load(const char *json) {
    struct ree_tokenizer *tokenizer = NULL;
    struct ree_error err = {.message = ""};
    enum ree_status status = ree_tokenizer_load_memory(json, strlen(json), &tokenizer, &err);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    return tokenizer;
}

static void want(const struct ree_tokenizer *tokenizer, const char *text, const char *ids) {
    struct ree_error err = {.message = ""};
    struct ree_strbuf got;
    int32_t *made = NULL;
    size_t n = 0;
    if (!tokenizer) return;
    ree_strbuf_init(&got);
    enum ree_status status =
        ree_tokenizer_encode(tokenizer, text, strlen(text), REE_PARSE_SPECIAL, &made, &n, &err);
    for (size_t i = 0; i < n; i++)
        ree_strbuf_printf(&got, "%d ", made[i]);
    CHECK_MSG(status == REE_OK && strcmp(got.data ? got.data : "", ids) == 0,
              "'%s' gives %s, not %s: %s", text, got.data, ids, err.message);
    ree_strbuf_finish(&got);
    free(made);
}

// Two tokens that are equal after normalization: their order in the file changes neither hash nor
// ids.
static void order(void) {
    static const char *const files[] = {
        "{\"normalizer\":{\"type\":\"Lowercase\"},\"added_tokens\":[" TOKEN(5, "AB", "") "," TOKEN(
            6, "Ab", ",\"special\":true") "]," MODEL "}",
        "{\"normalizer\":{\"type\":\"Lowercase\"},\"added_tokens\":[" TOKEN(
            6, "Ab", ",\"special\":true") "," TOKEN(5, "AB", "") "]," MODEL "}"};
    char hashes[2][65] = {"", "x"};
    for (int i = 0; i < 2; i++) {
        struct ree_tokenizer *tokenizer = load(files[i]);
        want(tokenizer, "aab", "1 5 ");
        if (tokenizer) ree_tokenizer_sha256(tokenizer, hashes[i]);
        ree_tokenizer_destroy(tokenizer);
    }
    CHECK(strcmp(hashes[0], hashes[1]) == 0);
}

// White space that a token with rstrip took may match another token.
static void white_space(void) {
    struct ree_tokenizer *tokenizer = load(
        "{\"added_tokens\":[{\"id\":5,\"content\":\"<x>\",\"normalized\":false,\"rstrip\":true},"
        "{\"id\":6,\"content\":\"  \",\"normalized\":false}]," MODEL "}");
    want(tokenizer, "<x>   a", "5 6 4 1 ");
    want(tokenizer, "<x> a", "5 1 ");
    ree_tokenizer_destroy(tokenizer);
}

// prepend_scheme "first" applies where the original text begins.
static void beginning(void) {
#define FIRST                                                                                      \
    "\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\xE2\x96\x81\","                  \
    "\"prepend_scheme\":\"first\",\"split\":false}," MODEL "}"
    struct ree_tokenizer *tokenizer = load("{\"normalizer\":{\"type\":\"Strip\"}," FIRST);
    want(tokenizer, "ab", "3 1 2 ");
    want(tokenizer, " ab", "1 2 ");
    ree_tokenizer_destroy(tokenizer);
    tokenizer = load("{\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"b+\"},"
                     "\"content\":\"a\"}," FIRST);
    want(tokenizer, "ba", "3 1 1 ");
    want(tokenizer, "bba", "1 1 "); // the first a is made from the second b
    ree_tokenizer_destroy(tokenizer);
    tokenizer = load("{\"normalizer\":{\"type\":\"Prepend\",\"prepend\":\"b\"}," FIRST);
    want(tokenizer, "a", "3 2 1 ");
    ree_tokenizer_destroy(tokenizer);
}

// A normalizer that doubles a text forty times: refused for a token at loading, for a text at
// encoding.
static void growth(void) {
    struct ree_strbuf text;
    struct ree_error err = {.message = ""};
    struct ree_tokenizer *tokenizer = NULL;
    int32_t *ids;
    size_t n;
    for (int token = 0; token < 2; token++) {
        ree_strbuf_init(&text);
        ree_strbuf_printf(&text, "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[");
        for (int i = 0; i < 40; i++)
            ree_strbuf_printf(&text,
                              "%s{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},"
                              "\"content\":\"aa\"}",
                              i ? "," : "");
        ree_strbuf_printf(&text, "]},%s" MODEL "}",
                          token ? "\"added_tokens\":[" TOKEN(5, "aaa", "") "]," : "");
        enum ree_status status = ree_tokenizer_load_memory(text.data, text.size, &tokenizer, &err);
        if (token) {
            CHECK(status == REE_UNSUPPORTED && tokenizer == NULL);
            CHECK_MSG(strstr(err.message,
                             "added token 'aaa': Replace would expand the text to more than") !=
                          NULL,
                      "%s", err.message);
        } else {
            CHECK(status == REE_OK);
            status = ree_tokenizer_encode(tokenizer, "a", 1, 0, &ids, &n, &err);
            CHECK_MSG(status == REE_UNSUPPORTED &&
                          strstr(err.message, "would expand the text to more than"),
                      "%s", err.message);
            ree_tokenizer_destroy(tokenizer);
        }
        ree_strbuf_finish(&text);
    }
}

// Returns a tokenizer with the added token "S" and `n_stages` equal stages.
static struct ree_tokenizer *repeated(const char *part, const char *list, int n_stages,
                                      const char *stage) {
    struct ree_strbuf json;
    ree_strbuf_init(&json);
    ree_strbuf_printf(
        &json,
        "{\"added_tokens\":[{\"id\":5,\"content\":\"S\",\"normalized\":false}],\"%s\":"
        "{\"type\":\"Sequence\",\"%s\":[",
        part, list);
    for (int i = 0; i < n_stages; i++)
        ree_strbuf_printf(&json, "%s%s", i ? "," : "", stage);
    ree_strbuf_printf(&json, "]}," MODEL "}");
    struct ree_tokenizer *tokenizer = load(json.data);
    ree_strbuf_finish(&json);
    return tokenizer;
}

// Encodes a text of n_parts times `part`, and destroys the tokenizer.
static enum ree_status encode_parts(struct ree_tokenizer *tokenizer, const char *part, int n_parts,
                                    size_t *out_n, struct ree_error *err) {
    struct ree_strbuf text;
    int32_t *ids = NULL;
    REQUIRE(tokenizer);
    ree_strbuf_init(&text);
    for (int i = 0; i < n_parts; i++)
        ree_strbuf_append(&text, part, strlen(part));
    enum ree_status status =
        ree_tokenizer_encode(tokenizer, text.data, text.size, 0, &ids, out_n, err);
    free(ids);
    ree_strbuf_finish(&text);
    ree_tokenizer_destroy(tokenizer);
    return status;
}

// The whole text has one limit of growth; parts between added tokens have none of their own.
static void growth_of_parts(void) {
#define REPLACE_A(content)                                                                         \
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"" content "\"}"
    struct ree_error err = {.message = ""};
    size_t n;
    // Each part becomes 256 KiB.
    enum ree_status status = encode_parts(
        repeated("normalizer", "normalizers", 18, REPLACE_A("aa")), "aS", 20, &n, &err);
    CHECK_MSG(status == REE_UNSUPPORTED && strstr(err.message, "would expand the text to more"),
              "%s: %s", ree_status_name(status), err.message);
    status = encode_parts(repeated("pre_tokenizer", "pretokenizers", 16,
                                   "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
                                   "\"use_regex\":false}"),
                          "\xC3\xA9S", 20, &n, &err);
    CHECK_MSG(status == REE_INVALID && strstr(err.message, "the pre-tokenizer makes more than"),
              "%s: %s", ree_status_name(status), err.message);
    // Many parts that all grow, but not by more than the limit for each byte.
    status = encode_parts(repeated("normalizer", "normalizers", 1,
                                   REPLACE_A("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")),
                          "aS", 50000, &n, &err);
    CHECK_MSG(status == REE_OK && n == 50000 * 41, "%s", err.message);
}

// A text to search for that is longer than a content may be makes every search slow.
static void long_sought(void) {
    struct ree_strbuf json;
    struct ree_error err = {.message = ""};
    struct ree_tokenizer *tokenizer = NULL;
    for (int n = 2048; n <= 2049; n++) {
        ree_strbuf_init(&json);
        ree_strbuf_printf(&json, "{\"normalizer\":" REPLACE_A("aa") ",\"added_tokens\":[{\"id\":5,"
                                                                    "\"content\":\"");
        for (int i = 0; i < n; i++)
            ree_strbuf_append(&json, "a", 1);
        ree_strbuf_printf(&json, "\",\"normalized\":true}]," MODEL "}");
        enum ree_status status = ree_tokenizer_load_memory(json.data, json.size, &tokenizer, &err);
        CHECK_MSG(status == (n == 2048 ? REE_OK : REE_UNSUPPORTED), "%d: %s", n, err.message);
        ree_tokenizer_destroy(tokenizer);
        ree_strbuf_finish(&json);
    }
    CHECK_MSG(strstr(err.message, "the normalized content has 4098 bytes; the maximum is 4096"),
              "%s", err.message);
}

// A text in which a long token begins at each position, but never ends. The normalizer makes a
// mebibyte of it, so the search would compare 4 billion bytes.
static void many_beginnings(void) {
    struct ree_strbuf json;
    struct ree_error err = {.message = ""};
    size_t n;
    ree_strbuf_init(&json);
    ree_strbuf_printf(&json, "{\"added_tokens\":[{\"id\":5,\"normalized\":true,\"content\":\"");
    for (int i = 0; i < 4095; i++)
        ree_strbuf_append(&json, "a", 1);
    ree_strbuf_printf(&json, "b\"}],\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[");
    for (int i = 0; i < 20; i++)
        ree_strbuf_printf(&json, "{\"type\":\"Replace\",\"pattern\":{\"String\":\"c\"},"
                                 "\"content\":\"cc\"},");
    ree_strbuf_printf(&json, "{\"type\":\"Replace\",\"pattern\":{\"String\":\"c\"},"
                             "\"content\":\"a\"}]}," MODEL "}");
    double start = (double)clock() / CLOCKS_PER_SEC;
    enum ree_status status = encode_parts(load(json.data), "c", 1, &n, &err);
    double seconds = (double)clock() / CLOCKS_PER_SEC - start;
    CHECK_MSG(status == REE_UNSUPPORTED && strstr(err.message, "the search for added tokens"),
              "%s: %s", ree_status_name(status), err.message);
    CHECK_MSG(seconds < 15, "%.1f s", seconds); // about 0.7 s
    ree_strbuf_finish(&json);
}

// A run of a million combining marks: sorting it in quadratic time would take hours.
static void marks(void) {
    struct ree_tokenizer *tokenizer = load("{\"normalizer\":{\"type\":\"NFC\"}," MODEL "}");
    struct ree_error err = {.message = ""};
    size_t n = 2000000, n_ids;
    char *text = malloc(n);
    int32_t *ids = NULL;
    REQUIRE(text && tokenizer);
    for (size_t i = 0; i < n; i += 4)
        memcpy(text + i, "\xCC\x81\xCC\xA3", 4); // combining class 230, then class 220
    CHECK(ree_tokenizer_encode(tokenizer, text, n, 0, &ids, &n_ids, &err) == REE_OK);
    CHECK(n_ids == n / 2);
    free(ids);
    free(text);
    ree_tokenizer_destroy(tokenizer);
}

// A NUL in a piece, in a merge of one string and in a merge of two.
static void nul(void) {
    static const char *const merges[] = {"\"\\u0000 a\",\"b \\u0000a\"",
                                         "[\"\\u0000\",\"a\"],[\"b\",\"\\u0000a\"]"};
    struct ree_error err = {.message = ""};
    for (int i = 0; i < 2; i++) {
        struct ree_strbuf json;
        int32_t *ids = NULL;
        size_t n = 0;
        ree_strbuf_init(&json);
        ree_strbuf_printf(&json,
                          "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"\\u0000\":0,\"a\":1,\"b\":2,"
                          "\"\\u0000a\":3,\"b\\u0000a\":4},\"merges\":[%s]}}",
                          merges[i]);
        struct ree_tokenizer *tokenizer = load(json.data);
        REQUIRE(tokenizer);
        enum ree_status status = ree_tokenizer_encode(tokenizer, "\0ab\0a", 5, 0, &ids, &n, &err);
        CHECK_MSG(status == REE_OK && n == 2 && ids[0] == 3 && ids[1] == 4, "%s", err.message);
        free(ids);
        ree_tokenizer_destroy(tokenizer);
        ree_strbuf_finish(&json);
    }
}

static void put(const char *folder, const char *name, const char *text) {
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (!text) {
        unlink(path);
        return;
    }
    FILE *file = fopen(path, "wb");
    REQUIRE(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

// Tokens of tokenizer_config.json are added to those of tokenizer.json and may not contradict them.
static void config(void) {
    char folder[] = "/tmp/ree-added-XXXXXX";
    struct ree_tokenizer *tokenizer = NULL;
    struct ree_error err = {.message = ""};
    const int32_t *eos;
    REQUIRE(mkdtemp(folder) != NULL);
    put(folder, "tokenizer.json",
        "{\"added_tokens\":[{\"id\":5,\"content\":\"<s>\",\"special\":true}]," MODEL "}");
    put(folder, "tokenizer_config.json",
        "{\"eos_token\":\"<e>\",\"added_tokens_decoder\":{\"5\":{\"content\":\"<other>\"},"
        "\"6\":{\"content\":\"<e>\",\"special\":true}}}");
    CHECK_MSG(ree_tokenizer_load(folder, &tokenizer, &err) == REE_OK, "%s", err.message);
    want(tokenizer, "<s>a<e>", "5 1 6 ");
    CHECK(tokenizer && ree_tokenizer_eos(tokenizer, &eos) == 1 && eos[0] == 6);
    ree_tokenizer_destroy(tokenizer);
    put(folder, "tokenizer_config.json",
        "{\"added_tokens_decoder\":{\"x\":{\"content\":\"<e>\"}}}");
    CHECK(ree_tokenizer_load(folder, &tokenizer, &err) == REE_INVALID);
    CHECK_MSG(strstr(err.message, "'x' is not an id") != NULL, "%s", err.message);
    put(folder, "tokenizer.json", NULL);
    put(folder, "tokenizer_config.json", NULL);
    rmdir(folder);
}

static void tables(void) {
    char text[200];
    ree_text_tables(text, sizeof text);
    CHECK_MSG(strncmp(text, "PCRE2 ", 6) == 0 && strstr(text, "), utf8proc ") &&
                  text[strlen(text) - 1] == ')' && !strchr(text, '?'),
              "%s", text);
}

int main(void) {
    tables();
    order();
    white_space();
    beginning();
    growth();
    growth_of_parts();
    long_sought();
    many_beginnings();
    marks();
    nul();
    config();
    return test_finish();
}
