// Hand-written tokenizers (tests/data/tokenizers). Each has the stages and the model of a family,
// and is small enough to derive every id below by hand.
//
//     text_tokenizers tests/data/tokenizers
#include "ree.h"
#include "test.h"

#include <string.h>

#define ALL (REE_ADD_SPECIAL | REE_PARSE_SPECIAL)
#define END -1

struct expectation {
    const char *file, *text;
    uint32_t flags;
    int32_t ids[20];  // terminated by END
    const char *back; // the text that the ids decode to
};

static const struct expectation expectations[] = {
    // As GPT-2. Added tokens are found; the special one only with REE_PARSE_SPECIAL. NFC combines
    // e and the accent into one character, whose two bytes a merge joins.
    {"byte_level", "hello world", 0, {259, 264, END}, "hello world"},
    {"byte_level",
     "hello  world<|end|>caf\xC3\xA9",
     ALL,
     {259, 32, 264, 267, 99, 97, 102, 265, END},
     "hello  world<|end|>caf\xC3\xA9"},
    {"byte_level", "<|end|>", 0, {60, 124, 101, 110, 100, 124, 62, END}, "<|end|>"},
    {"byte_level",
     "cafe\xCC\x81<tool>x",
     0,
     {99, 97, 102, 265, 268, 120, END},
     "caf\xC3\xA9<tool>x"},
    {"byte_level", "", ALL, {END}, ""},
    // Each invalid byte becomes U+FFFD, as does each incomplete character.
    {"byte_level",
     "a\xFF\xE4\xB8",
     0,
     {97, 239, 191, 189, 239, 191, 189, END},
     "a\xEF\xBF\xBD\xEF\xBF\xBD"},
    // As SentencePiece, with byte tokens for characters that the vocabulary lacks. After a special
    // token a text begins again.
    {"sentencepiece", "hello world", ALL, {1, 275, 280, END}, "<s> hello world"},
    {"sentencepiece", "ab\xE4\xB8\xAD", 0, {259, 270, 231, 187, 176, END}, "ab\xE4\xB8\xAD"},
    {"sentencepiece", "</s>hello", ALL, {1, 2, 275, END}, "<s></s> hello"},
    {"sentencepiece", "", ALL, {1, END}, "<s>"},
    // "ab" is better than "a" and "b"; "ab" and "c" are better than "abc". NFKC replaces ligatures
    // and wide digits. Adjacent unknown characters form one token.
    {"unigram", "ab abc", 0, {10, 10, 8, END}, "ab abc"},
    {"unigram", "\xEF\xAC\x81\xEF\xBC\x91", ALL, {3, 12, 11, 1, END}, "fi1</s>"},
    {"unigram", "c  xyz b", 0, {3, 8, 3, 2, 3, 5, END}, "c <unk> b"},
    // As BERT. [MASK] takes the space before it. A long word, and a word that the vocabulary cannot
    // cover, are unknown.
    {"wordpiece",
     "Unaffable caf\xC3\xA9,",
     ALL,
     {1, 4, 5, 6, 8, 9, 2, END},
     "[CLS] unaffable cafe, [SEP]"},
    {"wordpiece",
     "x [MASK] un\xE4\xB8\xAD\xE5\x9B\xBD",
     ALL,
     {1, 0, 3, 4, 11, 12, 2, END},
     "[CLS] [UNK] [MASK] un \xE4\xB8\xAD \xE5\x9B\xBD [SEP]"},
    {"wordpiece", "don't un.", 0, {0, 16, 17, 4, 10, END}, "[UNK] ' t un."},
    {"wordpiece", "unaffablesunaffables", 0, {0, END}, "[UNK]"},
    // A vocabulary of words. "new york" is matched in the normalized text, but not inside a word.
    {"words",
     " H\xC3\xA9llo,xx7x hello new york New York",
     ALL,
     {4, 1, 2, 3, 1, 6, 6, 5, END},
     "<s> hello , 7 hello new york new york </s>"},
    {"words", "nnew york", 0, {0, 0, END}, "<unk> <unk>"},
    {"words", "<s>hello", ALL, {4, 4, 1, 5, END}, "<s> <s> hello </s>"},
    // The end of a word is another symbol than the same letter inside a word.
    {"affixes", "lower LOW lowx", 0, {11, 9, 8, 0, END}, "lower low low<unk>"},
};

static struct ree_tokenizer *load(const char *folder, const char *name) {
    char path[4096];
    struct ree_error err = {.message = ""};
    struct ree_tokenizer *tokenizer;
    snprintf(path, sizeof path, "%s/%s.json", folder, name);
    enum ree_status status = ree_tokenizer_load(path, &tokenizer, &err);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    REQUIRE(tokenizer);
    return tokenizer;
}

static void check(const char *folder, const struct expectation *want) {
    struct ree_tokenizer *tokenizer = load(folder, want->file);
    struct ree_error err;
    int32_t *ids;
    size_t n, n_want = 0, n_text;
    char *text;
    while (want->ids[n_want] != END)
        n_want++;
    REQUIRE(ree_tokenizer_encode(tokenizer, want->text, strlen(want->text), want->flags, &ids, &n,
                                 &err) == REE_OK);
    bool same = n == n_want && memcmp(ids, want->ids, n * sizeof *ids) == 0;
    CHECK_MSG(same, "%s: '%s' gives %zu ids, the first is %d", want->file, want->text, n,
              n ? ids[0] : -1);
    REQUIRE(ree_tokenizer_decode(tokenizer, ids, n, 0, &text, &n_text, &err) == REE_OK);
    CHECK_MSG(strcmp(text, want->back) == 0 && n_text == strlen(text), "%s: '%s' decodes to '%s'",
              want->file, want->text, text);
    free(text);
    free(ids);
    ree_tokenizer_destroy(tokenizer);
}

static void streaming(const char *folder) {
    struct ree_tokenizer *tokenizer = load(folder, "byte_level");
    struct ree_decoder *decoder;
    struct ree_error err;
    const char *text;
    size_t n;
    REQUIRE(ree_decoder_create(tokenizer, 0, &decoder, &err) == REE_OK);
    // A character of four bytes is returned with its last byte. Bytes that cannot become a
    // character are returned as soon as that is known.
    static const struct {
        int32_t id;
        const char *text;
    } steps[] = {{240, ""},
                 {159, ""},
                 {154, ""},
                 {128, "\xF0\x9F\x9A\x80"},
                 {195, ""},
                 {104, "\xEF\xBF\xBDh"},
                 {255, "\xEF\xBF\xBD"},
                 {228, ""}};
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
            REQUIRE(ree_decoder_push(decoder, steps[i].id, &text, &n, &err) == REE_OK);
            CHECK_MSG(strcmp(text, steps[i].text) == 0, "step %zu gives '%s'", i, text);
        }
        REQUIRE(ree_decoder_flush(decoder, &text, &n, &err) == REE_OK);
        CHECK(n == 3 && strcmp(text, "\xEF\xBF\xBD") == 0);
    }
    CHECK(ree_decoder_push(decoder, 100000, &text, &n, &err) == REE_INVALID && !text);
    CHECK(ree_decoder_push(decoder, -1, &text, &n, &err) == REE_INVALID);
    ree_decoder_destroy(decoder);
    ree_decoder_destroy(NULL);
    ree_tokenizer_destroy(tokenizer);
}

// Adjacent <0xXX> tokens form one run of bytes; if the run is not UTF-8, each of its bytes becomes
// U+FFFD. The space before the first word is removed.
static void streaming_fallback(const char *folder) {
    struct ree_tokenizer *tokenizer = load(folder, "sentencepiece");
    struct ree_decoder *decoder;
    struct ree_error err;
    const char *text;
    size_t n;
    REQUIRE(ree_decoder_create(tokenizer, REE_SKIP_SPECIAL, &decoder, &err) == REE_OK);
    static const struct {
        int32_t id;
        const char *text;
    } steps[] = {{1, ""},
                 {275, "hello"},
                 {280, " world"},
                 {3 + 0xC3, ""},
                 {3 + 0xA9, ""},
                 {270, "\xC3\xA9"
                       "ab"},
                 {3 + 0xC3, ""},
                 {3 + 0x41, ""},
                 {259, "\xEF\xBF\xBD\xEF\xBF\xBD "},
                 {3 + 0xE4, ""}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        REQUIRE(ree_decoder_push(decoder, steps[i].id, &text, &n, &err) == REE_OK);
        CHECK_MSG(strcmp(text, steps[i].text) == 0, "step %zu gives '%s'", i, text);
    }
    REQUIRE(ree_decoder_flush(decoder, &text, &n, &err) == REE_OK);
    CHECK(strcmp(text, "\xEF\xBF\xBD") == 0);
    ree_decoder_destroy(decoder);
    ree_tokenizer_destroy(tokenizer);
}

static void facts(const char *folder) {
    struct ree_tokenizer *tokenizer = load(folder, "byte_level");
    const int32_t *eos;
    char hex[65], other[65];
    CHECK(ree_tokenizer_vocab_size(tokenizer) == 269);
    CHECK(strcmp(ree_tokenizer_token(tokenizer, 264), "\xC4\xA0world") == 0);
    CHECK(ree_tokenizer_token(tokenizer, 269) == NULL && !ree_tokenizer_token(tokenizer, -1));
    CHECK(ree_tokenizer_id(tokenizer, "<tool>") == 268 && ree_tokenizer_id(tokenizer, "zzz") == -1);
    CHECK(ree_tokenizer_is_special(tokenizer, 267) && !ree_tokenizer_is_special(tokenizer, 268));
    CHECK(ree_tokenizer_bos(tokenizer) == -1 && ree_tokenizer_eos(tokenizer, &eos) == 0);
    CHECK(ree_tokenizer_chat_family(tokenizer) == NULL);
    ree_tokenizer_sha256(tokenizer, hex);
    ree_tokenizer_destroy(tokenizer);
    tokenizer = load(folder, "affixes");
    ree_tokenizer_sha256(tokenizer, other);
    CHECK(strlen(hex) == 64 && strcmp(hex, other) != 0);
    ree_tokenizer_destroy(tokenizer);
    ree_tokenizer_destroy(NULL);
}

int main(int argc, char **argv) {
    REQUIRE(argc == 2);
    for (size_t i = 0; i < sizeof expectations / sizeof *expectations; i++)
        check(argv[1], &expectations[i]);
    streaming(argv[1]);
    streaming_fallback(argv[1]);
    facts(argv[1]);
    return test_finish();
}
