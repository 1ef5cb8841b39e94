// Invalid tokenizer.json files: each gives its status and a message that names the place.
#include "text/tokenizer.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "test.h"

#define MODEL "{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}"
#define WITH(member, value) "{\"" member "\":" value ",\"model\":" MODEL "}"
#define BPE(vocab, merges)                                                                         \
    "{\"model\":{\"type\":\"BPE\",\"vocab\":" vocab ",\"merges\":" merges "}}"

#define REGEX(pattern)                                                                             \
    WITH("normalizer",                                                                             \
         "{\"type\": \"Replace\", \"pattern\": {\"Regex\": \"" pattern "\"}, \"content\": \"\"}")

static const struct {
    const char *json;
    enum ree_status status;
    const char *message; // a part of the message
} cases[] = {
    {"", REE_INVALID, "not JSON"},
    {"[]", REE_INVALID, "not a JSON object"},
    {"{} x", REE_INVALID, "not JSON"},
    {"{\"model\": \"\xFF\"}", REE_INVALID, "not UTF-8 at byte 11"},
    {"{}", REE_INVALID, "'model' is missing"},
    {"{\"model\": 3}", REE_INVALID, "model: not an object"},
    {"{\"model\": {\"type\": \"Elephant\"}}", REE_UNSUPPORTED, "model 'Elephant' is not supported"},
    {"{\"model\": {\"type\": 3}}", REE_UNSUPPORTED, "model '' is not supported"},
    {"{\"model\": {\"type\": \"BPE\", \"merges\": []}}", REE_INVALID, "'vocab' is missing"},
    {"{\"model\": {\"type\": \"BPE\", \"vocab\": {}}}", REE_INVALID, "'merges' is missing"},
    {"{\"model\": {\"type\": \"BPE\", \"dropout\": 0.1, \"vocab\": {}, \"merges\": []}}",
     REE_UNSUPPORTED, "'dropout'"},
    {BPE("[]", "[]"), REE_INVALID, "'vocab' is not an object"},
    {BPE("{\"a\": \"x\"}", "[]"), REE_INVALID, "token 'a'"},
    {BPE("{\"a\": -1}", "[]"), REE_INVALID, "token 'a'"},
    {BPE("{\"a\": 1.5}", "[]"), REE_INVALID, "token 'a'"},
    {BPE("{\"a\": 1e300}", "[]"), REE_INVALID, "token 'a'"},
    {BPE("{\"a\": 99999999}", "[]"), REE_INVALID, "token 'a'"},
    {BPE("{\"a\": 0, \"b\": 0}", "[]"), REE_INVALID, "'a' and 'b'"},
    {BPE("{\"a\": 0, \"a\": 1}", "[]"), REE_INVALID, "two ids"},
    {BPE("{\"a\": 0}", "{}"), REE_INVALID, "'merges' is not an array"},
    {BPE("{\"a\": 0}", "[\"a x\"]"), REE_INVALID, "merges[0] 'a x'"},
    {BPE("{\"a\": 0}", "[\"a a\"]"), REE_INVALID, "merges[0]"},
    {BPE("{\"a\": 0}", "[\"a\"]"), REE_INVALID, "merges[0]"},
    {BPE("{\"a\": 0}", "[[\"a\"]]"), REE_INVALID, "merges[0]"},
    {BPE("{\"a\": 0, \"aa\": 1}", "[[\"a\", \"a\"], [\"a\", \"c\"]]"), REE_INVALID, "merges[1]"},
    {"{\"model\": {\"type\": \"Unigram\", \"vocab\": {}}}", REE_INVALID, "'vocab' is not an array"},
    {"{\"model\": {\"type\": \"Unigram\", \"vocab\": [[\"a\"]]}}", REE_INVALID, "vocab[0]"},
    {"{\"model\": {\"type\": \"Unigram\", \"vocab\": [[\"a\", 0], [\"a\", 0]]}}", REE_INVALID,
     "vocab[1]"},
    {"{\"model\": {\"type\": \"Unigram\", \"unk_id\": 7, \"vocab\": [[\"a\", 0]]}}", REE_INVALID,
     "unk_id is 7"},
    {"{\"model\": {\"type\": \"WordPiece\"}}", REE_INVALID, "'vocab' is missing"},
    {WITH("normalizer", "{\"type\": \"Zebra\"}"), REE_UNSUPPORTED,
     "normalizer 'Zebra' is not supported"},
    {WITH("normalizer", "{}"), REE_INVALID, "normalizer: 'type' is missing"},
    {WITH("normalizer", "3"), REE_INVALID, "normalizer: not an object"},
    {WITH("normalizer", "{\"type\": \"Sequence\"}"), REE_INVALID, "'normalizers' is missing"},
    {WITH("normalizer", "{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"Replace\"}]}"),
     REE_INVALID, "normalizer: Sequence: normalizers[0]: Replace: 'pattern' is missing"},
    {WITH("normalizer",
          "{\"type\": \"Replace\", \"pattern\": {\"Regex\": \"(\"}, \"content\": \"\"}"),
     REE_INVALID, "does not compile"},
    {REGEX("(?s:a)"), REE_UNSUPPORTED, "the group or option at byte 2"},
    {REGEX("(?~ab)"), REE_UNSUPPORTED, "not supported"},
    {REGEX("\\\\p{Script=Han}"), REE_UNSUPPORTED, "the property"},
    {REGEX("\\\\xE4"), REE_UNSUPPORTED, "number of a character"},
    {REGEX("[\\\\w-z]"), REE_UNSUPPORTED, "a range that begins with a class of characters"},
    {REGEX("[a-\\\\d]"), REE_INVALID, "a range that ends with a class of characters"},
    {REGEX("[a&&]"), REE_UNSUPPORTED, "a set without"},
    {REGEX("[a[b]"), REE_INVALID, "an unclosed bracket"},
    {REGEX("\\\\g<a>"), REE_UNSUPPORTED, "the escape"},
    {REGEX("(*FAIL)"), REE_UNSUPPORTED, "the group"},
    {REGEX("+"), REE_INVALID, "a quantifier without an item"},
    {REGEX("(?=a)*"), REE_INVALID, "a quantifier without an item"},
    {REGEX("\\\\b+"), REE_INVALID, "a quantifier without an item"},
    {REGEX("a)"), REE_INVALID, "the end of a group"},
    {REGEX("(?<n"), REE_UNSUPPORTED, "name of a group"},
    {REGEX("["), REE_INVALID, "an unclosed bracket"},
    {REGEX("\\\\"), REE_INVALID, "backslash at the end"},
    {REGEX("a{3,2}"), REE_INVALID, "maximum is below its minimum"},
    {REGEX("(?<=a+)b"), REE_INVALID, "does not compile"},
    {WITH("normalizer", "{\"type\": \"Precompiled\", \"precompiled_charsmap\": \"*\"}"),
     REE_INVALID, "base64"},
    {WITH("normalizer", "{\"type\": \"Precompiled\", \"precompiled_charsmap\": \"/////w==\"}"),
     REE_INVALID, "character map"},
    {WITH("pre_tokenizer", "{\"type\": \"UnicodeScripts\"}"), REE_UNSUPPORTED,
     "pre_tokenizer 'UnicodeScripts' is not supported"},
    {WITH("pre_tokenizer", "{\"type\": \"Split\", \"behavior\": \"Sideways\", \"pattern\": "
                           "{\"String\": \"a\"}}"),
     REE_UNSUPPORTED, "'Sideways'"},
    {WITH("pre_tokenizer", "{\"type\": \"Metaspace\", \"replacement\": \"ab\"}"), REE_INVALID,
     "not one character"},
    {WITH("pre_tokenizer", "{\"type\": \"FixedLength\", \"length\": 0}"), REE_INVALID, "'length'"},
    {WITH("post_processor", "{\"type\": \"BertProcessing\", \"sep\": [\"a\", 0], \"cls\": "
                            "[\"x\", 55]}"),
     REE_INVALID, "adds id 55"},
    {WITH("post_processor", "{\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": "
                            "{\"id\": \"<s>\"}}], \"special_tokens\": {}}"),
     REE_INVALID, "'<s>'"},
    {WITH("decoder", "{\"type\": \"Strip\", \"content\": \"\", \"start\": 1, \"stop\": 0}"),
     REE_INVALID, "not one character"},
    {WITH("added_tokens", "{}"), REE_INVALID, "'added_tokens' is not an array"},
    {WITH("added_tokens", "[{\"id\": 5}]"), REE_INVALID, "added_tokens[0]: 'content'"},
    {WITH("added_tokens", "[{\"content\": \"x\"}]"), REE_INVALID, "added_tokens[0]: 'id'"},
    {WITH("added_tokens", "[{\"id\": 1, \"content\": \"x\"}]"), REE_INVALID, "id 1"},
    {WITH("added_tokens", "[{\"id\": 5, \"content\": \"a\"}]"), REE_INVALID, "but id 0"},
    {WITH("added_tokens", "[{\"id\": 5, \"content\": \"x\"}, {\"id\": 5, \"content\": \"y\"}]"),
     REE_INVALID, "id 5 belongs to two"},
};

static enum ree_status load(const char *json, size_t n, struct ree_error *err) {
    struct ree_tokenizer *tokenizer;
    enum ree_status status = ree_tokenizer_load_memory(json, n, &tokenizer, err);
    CHECK((status == REE_OK) == (tokenizer != NULL));
    ree_tokenizer_destroy(tokenizer);
    return status;
}

// Nested sequences: refused for their depth, very deep ones as invalid JSON.
static void deep(size_t depth) {
    struct ree_strbuf text;
    struct ree_error err = {.message = ""};
    ree_strbuf_init(&text);
    ree_strbuf_printf(&text, "{\"model\":" MODEL ",\"normalizer\":");
    for (size_t i = 0; i < depth; i++)
        ree_strbuf_printf(&text, "{\"type\":\"Sequence\",\"normalizers\":[");
    ree_strbuf_printf(&text, "{\"type\":\"NFC\"}");
    for (size_t i = 0; i < depth; i++)
        ree_strbuf_printf(&text, "]}");
    ree_strbuf_printf(&text, "}");
    enum ree_status status = load(text.data, text.size, &err);
    CHECK_MSG((status == REE_OK) == (depth <= 8), "%zu deep: %s", depth, err.message);
    ree_strbuf_finish(&text);
}

// A merge that could be split at very many places is refused before the splits are tried.
static void many_spaces(void) {
    struct ree_strbuf text;
    struct ree_error err = {.message = ""};
    ree_strbuf_init(&text);
    ree_strbuf_printf(&text, "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"");
    for (int i = 0; i < 2000000; i++)
        ree_strbuf_append(&text, " ", 1);
    ree_strbuf_printf(&text, "\"]}}");
    CHECK(load(text.data, text.size, &err) == REE_INVALID);
    CHECK_MSG(strstr(err.message, "merges[0]") != NULL, "%s", err.message);
    ree_strbuf_finish(&text);
}

// A pattern that backtracks without end gives an error for the text instead of a hang.
static void explosion(void) {
    static const char json[] =
        WITH("pre_tokenizer", "{\"type\": \"Split\", \"behavior\": \"Isolated\", \"pattern\": "
                              "{\"Regex\": \"((a|aa)+)+[bc]\"}}");
    struct ree_tokenizer *tokenizer;
    struct ree_error err = {.message = ""};
    int32_t *ids;
    size_t n;
    char text[60];
    memset(text, 'a', sizeof text);
    REQUIRE(ree_tokenizer_load_memory(json, sizeof json - 1, &tokenizer, &err) == REE_OK);
    enum ree_status status = ree_tokenizer_encode(tokenizer, text, sizeof text, 0, &ids, &n, &err);
    CHECK(status == REE_UNSUPPORTED && ids == NULL && n == 0);
    CHECK_MSG(strstr(err.message, "regular expression") != NULL, "%s", err.message);
    ree_tokenizer_destroy(tokenizer);
}

// A pattern whose work doubles with each letter, and a text for which it takes about a second. So
// one search is below the limit, and several with a limit of their own each would take minutes.
#define SLOW "{\"Regex\":\"(?:a|a)*[bc]\"},\"content\":\"x\",\"behavior\":\"Isolated\"}"
#define SLOW_TEXT "aaaaaaaaaaaaaaaaaaaaa"

static struct ree_tokenizer *slow_stages(const char *part, const char *list, const char *type,
                                         const char *more) {
    struct ree_tokenizer *tokenizer = NULL;
    struct ree_error err = {.message = ""};
    struct ree_strbuf json;
    ree_strbuf_init(&json);
    ree_strbuf_printf(&json,
                      "{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"a\",\"vocab\":{\"a\":0,"
                      "\"" SLOW_TEXT "\":1}},%s\"%s\":{\"type\":\"Sequence\",\"%s\":[",
                      more, part, list);
    for (int i = 0; i < 20; i++)
        ree_strbuf_printf(&json, "%s{\"type\":\"%s\",\"pattern\":" SLOW, i ? "," : "", type);
    ree_strbuf_printf(&json, "]}}");
    enum ree_status status = ree_tokenizer_load_memory(json.data, json.size, &tokenizer, &err);
    CHECK_MSG(status == (*more ? REE_UNSUPPORTED : REE_OK), "%s: %s", part, err.message);
    if (*more) CHECK_MSG(strstr(err.message, "the limit of steps") != NULL, "%s", err.message);
    ree_strbuf_finish(&json);
    return tokenizer;
}

// The limit of the work of regular expressions is one for all stages, tokens and parts of a text.
static void one_limit(void) {
    static const char text[] = SLOW_TEXT "S" SLOW_TEXT "S" SLOW_TEXT;
    struct ree_error err = {.message = ""};
    double start = (double)clock() / CLOCKS_PER_SEC;
    int32_t *ids;
    char *decoded;
    size_t n;
    for (int i = 0; i < 2; i++) {
        struct ree_tokenizer *tokenizer =
            i ? slow_stages("normalizer", "normalizers", "Replace", "")
              : slow_stages("pre_tokenizer", "pretokenizers", "Split", "");
        REQUIRE(tokenizer);
        enum ree_status status =
            ree_tokenizer_encode(tokenizer, text, sizeof text - 1, 0, &ids, &n, &err);
        CHECK_MSG(status == REE_UNSUPPORTED && strstr(err.message, "the limit of steps"), "%s",
                  err.message);
        ree_tokenizer_destroy(tokenizer);
    }
    struct ree_tokenizer *tokenizer = slow_stages("decoder", "decoders", "Replace", "");
    REQUIRE(tokenizer);
    enum ree_status status =
        ree_tokenizer_decode(tokenizer, (const int32_t[]){1, 1, 1, 1}, 4, 0, &decoded, &n, &err);
    CHECK_MSG(status == REE_UNSUPPORTED && strstr(err.message, "the limit of steps"), "%s",
              err.message);
    ree_tokenizer_destroy(tokenizer);
    CHECK(!slow_stages("normalizer", "normalizers", "Replace",
                       "\"added_tokens\":[{\"id\":2,\"content\":\"" SLOW_TEXT "b\"},"
                       "{\"id\":3,\"content\":\"" SLOW_TEXT "d\"}],"));
    double seconds = (double)clock() / CLOCKS_PER_SEC - start;
    CHECK_MSG(seconds < 30, "%.1f s", seconds); // about 2 s
}

static long max_resident_mib(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
}

// The memory for backtracking is one for all stages. With memory of its own, each of the 60 stages
// would need 8 MiB.
static void one_stack(void) {
    enum { N = 150000, STAGES = 60 };
    struct ree_tokenizer *tokenizer = NULL;
    struct ree_error err = {.message = ""};
    struct ree_strbuf json;
    char *text = malloc(N);
    int32_t *ids = NULL;
    size_t n;
    REQUIRE(text);
    memset(text, 'a', N);
    ree_strbuf_init(&json);
    ree_strbuf_printf(&json, "{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"a\",\"vocab\":"
                             "{\"a\":0}},\"pre_tokenizer\":{\"type\":\"Sequence\","
                             "\"pretokenizers\":[");
    for (int i = 0; i < STAGES; i++)
        ree_strbuf_printf(&json,
                          "%s{\"type\":\"Split\",\"behavior\":\"Isolated\",\"pattern\":{\"Regex\":"
                          "\"(?:(a)|b)*\"}}",
                          i ? "," : "");
    ree_strbuf_printf(&json, "]}}");
    REQUIRE(ree_tokenizer_load_memory(json.data, json.size, &tokenizer, &err) == REE_OK);
    long before = max_resident_mib();
    enum ree_status status = ree_tokenizer_encode(tokenizer, text, N, 0, &ids, &n, &err);
    CHECK_MSG(status == REE_OK && n == 1, "%s", err.message);
    long mib = max_resident_mib() - before;
    CHECK_MSG(mib < 250, "%ld MiB", mib); // with PCRE2's interpreter about 100
    ree_free(ids);
    ree_tokenizer_destroy(tokenizer);
    ree_strbuf_finish(&json);
    free(text);
}

// Returns a tokenizer with one token, "a", and 60 equal stages in a row, each of which doubles a
// text.
static struct ree_tokenizer *doubling(const char *part, const char *list, const char *stage) {
    struct ree_tokenizer *tokenizer;
    struct ree_error err = {.message = ""};
    struct ree_strbuf json;
    ree_strbuf_init(&json);
    ree_strbuf_printf(&json,
                      "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]},"
                      "\"%s\":{\"type\":\"Sequence\",\"%s\":[",
                      part, list);
    for (int i = 0; i < 60; i++)
        ree_strbuf_printf(&json, "%s%s", i ? "," : "", stage);
    ree_strbuf_printf(&json, "]}}");
    enum ree_status status = ree_tokenizer_load_memory(json.data, json.size, &tokenizer, &err);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    REQUIRE(status == REE_OK);
    ree_strbuf_finish(&json);
    return tokenizer;
}

// Texts and tokens that grow without end are an error, too.
static void growth(void) {
    static const char *const stages[] = {
        "{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"aa\"}",
        "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"a\"},\"content\":\"aa\"}"};
    struct ree_tokenizer *tokenizer;
    struct ree_error err = {.message = ""};
    const int32_t id = 0;
    int32_t *ids;
    char *text;
    size_t n;
    for (int i = 0; i < 2; i++) {
        tokenizer = doubling("decoder", "decoders", stages[i]);
        CHECK(ree_tokenizer_decode(tokenizer, &id, 1, 0, &text, &n, &err) == REE_INVALID);
        CHECK_MSG(strstr(err.message, "the decoder produces more than"), "%s", err.message);
        ree_tokenizer_destroy(tokenizer);
    }
    tokenizer = doubling("post_processor", "processors",
                         "{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"A\","
                         "\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],\"pair\":[],"
                         "\"special_tokens\":{}}");
    CHECK(ree_tokenizer_encode(tokenizer, "a", 1, REE_ADD_SPECIAL, &ids, &n, &err) == REE_INVALID);
    CHECK_MSG(strstr(err.message, "the post-processor produces more than"), "%s", err.message);
    ree_tokenizer_destroy(tokenizer);
    // Each byte of a character that is not ASCII becomes a character that is not ASCII.
    tokenizer = doubling("pre_tokenizer", "pretokenizers",
                         "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}");
    CHECK(ree_tokenizer_encode(tokenizer, "\xC3\xA9", 2, 0, &ids, &n, &err) == REE_INVALID);
    CHECK_MSG(strstr(err.message, "the pre-tokenizer makes more than"), "%s", err.message);
    ree_tokenizer_destroy(tokenizer);
}

// Each stage of a decoder calls the next one, so their total number is limited.
static void many_stages(int n_outer, enum ree_status expected) {
    struct ree_error err = {.message = ""};
    struct ree_strbuf json;
    ree_strbuf_init(&json);
    ree_strbuf_printf(&json,
                      "{\"model\":" MODEL ",\"decoder\":{\"type\":\"Sequence\",\"decoders\":[");
    for (int i = 0; i < n_outer; i++) {
        ree_strbuf_printf(&json, "%s{\"type\":\"Sequence\",\"decoders\":[", i ? "," : "");
        for (int k = 0; k < 31; k++)
            ree_strbuf_printf(&json, "%s{\"type\":\"Fuse\"}", k ? "," : "");
        ree_strbuf_printf(&json, "]}");
    }
    ree_strbuf_printf(&json, "]}}");
    enum ree_status status = load(json.data, json.size, &err);
    CHECK_MSG(status == expected, "%d sequences: %s", n_outer, err.message);
    if (expected != REE_OK)
        CHECK_MSG(strstr(err.message, "more than 256 stages"), "%s", err.message);
    ree_strbuf_finish(&json);
}

// A pattern that is too large to be compiled with callouts would have no limit of its work.
static void large_pattern(void) {
    struct ree_error err = {.message = ""};
    struct ree_strbuf json;
    ree_strbuf_init(&json);
    ree_strbuf_printf(&json, "{\"model\":" MODEL ",\"normalizer\":{\"type\":\"Replace\","
                             "\"content\":\"\",\"pattern\":{\"Regex\":\"");
    for (int i = 0; i < 9000; i++)
        ree_strbuf_append(&json, "x", 1);
    ree_strbuf_printf(&json, "|(?:a|aa)+d\"}}}");
    CHECK(load(json.data, json.size, &err) == REE_INVALID);
    CHECK_MSG(strstr(err.message, "too large"), "%s", err.message);
    ree_strbuf_finish(&json);
}

// A word of any length takes time in proportion to it: with a search of each end from each start,
// this text would take hours.
static void long_word(void) {
    enum { N = 300000 };
    static const char json[] = "{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"?\","
                               "\"continuing_subword_prefix\":\"##\","
                               "\"max_input_chars_per_word\":1073741824,"
                               "\"vocab\":{\"?\":0,\"a\":1,\"##a\":2,\"##aaa\":3}}}";
    struct ree_tokenizer *tokenizer;
    struct ree_error err = {.message = ""};
    int32_t *ids;
    size_t n;
    char *text = malloc(N + 2);
    REQUIRE(text);
    memset(text, 'a', N + 2);
    REQUIRE(ree_tokenizer_load_memory(json, sizeof json - 1, &tokenizer, &err) == REE_OK);
    REQUIRE(ree_tokenizer_encode(tokenizer, text, N + 2, 0, &ids, &n, &err) == REE_OK);
    CHECK(n == 2 + N / 3 && ids[0] == 1 && ids[1] == 3 && ids[n - 2] == 3 && ids[n - 1] == 2);
    ree_free(ids);
    ree_tokenizer_destroy(tokenizer);
    free(text);
}

// A piece of `most` bytes is read, and a longer one is refused.
static void long_piece(const char *type, const char *before, const char *after, int most) {
    for (int size = most; size <= most + 1; size++) {
        struct ree_error err = {.message = ""};
        struct ree_strbuf json;
        ree_strbuf_init(&json);
        ree_strbuf_printf(&json, "{\"model\":{\"type\":\"%s\",\"unk_id\":null,\"vocab\":%s", type,
                          before);
        for (int i = 0; i < size; i++)
            ree_strbuf_append(&json, "a", 1);
        ree_strbuf_printf(&json, "%s}}", after);
        enum ree_status status = load(json.data, json.size, &err);
        CHECK_MSG(status == (size == most ? REE_OK : REE_UNSUPPORTED), "%s: %s", type, err.message);
        ree_strbuf_finish(&json);
        if (size == most) continue;
        char message[40];
        snprintf(message, sizeof message, "token 0 has %d bytes", size);
        CHECK_MSG(strstr(err.message, message), "%s", err.message);
    }
}

// Special tokens that are written in a text are found only with REE_PARSE_SPECIAL, also if they are
// pieces of the model. Merges of BPE may find them without it, as in Hugging Face's tokenizers.
static void special_pieces(const char *model, bool always) {
    struct ree_tokenizer *tokenizer;
    struct ree_error err = {.message = ""};
    struct ree_strbuf json;
    int32_t *ids;
    size_t n;
    ree_strbuf_init(&json);
    ree_strbuf_printf(
        &json, "{\"added_tokens\":[{\"id\":1,\"content\":\"<s>\",\"special\":true}],%s}", model);
    enum ree_status status = ree_tokenizer_load_memory(json.data, json.size, &tokenizer, &err);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    REQUIRE(status == REE_OK);
    for (uint32_t flags = 0; flags <= REE_PARSE_SPECIAL; flags += REE_PARSE_SPECIAL) {
        bool found = false;
        status = ree_tokenizer_encode(tokenizer, "<s>", 3, flags, &ids, &n, &err);
        CHECK_MSG(status == REE_OK, "%s", err.message);
        for (size_t i = 0; status == REE_OK && i < n; i++)
            found = found || ids[i] == 1;
        CHECK_MSG(found == (always || flags != 0), "%s", model);
        ree_free(ids);
    }
    ree_tokenizer_destroy(tokenizer);
    ree_strbuf_finish(&json);
}

int main(void) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ree_error err = {.message = ""};
        enum ree_status status = load(cases[i].json, strlen(cases[i].json), &err);
        CHECK_MSG(status == cases[i].status && strstr(err.message, cases[i].message),
                  "%s\n  gives %s: %s", cases[i].json, ree_status_name(status), err.message);
    }
    for (size_t depth = 1; depth < 3000; depth = depth * 3 / 2 + 1)
        deep(depth);
    deep(8); // the deepest that is read
    deep(9);
    many_spaces();
    explosion();
    one_limit();
    one_stack();
    growth();
    many_stages(8, REE_OK);
    many_stages(9, REE_UNSUPPORTED);
    large_pattern();
    long_word();
    long_piece("Unigram", "[[\"", "\",-1]]", 1024);
    long_piece("WordPiece", "{\"", "\":0},\"unk_token\":\"?\"", 1024);
    long_piece("WordLevel", "{\"", "\":0},\"unk_token\":\"?\"", 2048);
    long_piece("BPE", "{\"", "\":0},\"merges\":[]", 2048);
    special_pieces(
        "\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"?\",-9],[\"<s>\",-1],"
        "[\"<\",-2],[\"s\",-2],[\">\",-2]]}",
        false);
    special_pieces(
        "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"?\",\"vocab\":{\"?\":0,\"<s>\":1,"
        "\"<\":2,\"##s\":3,\"##>\":4}}",
        false);
    special_pieces(
        "\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"?\",\"vocab\":{\"?\":0,\"<s>\":1}}",
        false);
#define SPECIAL_BPE                                                                                \
    "\"model\":{\"type\":\"BPE\",\"vocab\":{\"<\":0,\"<s>\":1,\"s\":2,\">\":3,\"<s\":4}"
    special_pieces(SPECIAL_BPE ",\"merges\":[]}", false);
    special_pieces(SPECIAL_BPE ",\"merges\":[\"< s\",\"<s >\"]}", true);
    special_pieces(SPECIAL_BPE ",\"merges\":[],\"ignore_merges\":true}", true);
    return test_finish();
}
