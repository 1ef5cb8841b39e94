// Loads a tokenizer.json of arbitrary bytes. If it loads, encodes a few texts and decodes the
// resulting ids, whole and token by token. It must return ids and text, or an error with a message;
// sanitizers find other faults.
//
//     cmake --preset fuzz && cmake --build build-fuzz --target fuzz_tokenizer
//     build-fuzz/tests/fuzz/fuzz_tokenizer -dict=tests/fuzz/tokenizer.dict FOLDER
//     tests/data/tokenizers
#include "text/tokenizer.h"
#include "text/utf8.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void expect(enum ree_status status, const struct ree_error *err) {
    if (status != REE_OK && (err->status != status || !err->message[0] || status == REE_INTERNAL))
        abort();
}

static void decode(const struct ree_tokenizer *tokenizer, const int32_t *ids, size_t n,
                   uint32_t flags) {
    struct ree_error err = {.message = ""};
    struct ree_decoder *decoder;
    char *text;
    const char *piece;
    size_t n_text, n_piece, at = 0;
    enum ree_status status = ree_tokenizer_decode(tokenizer, ids, n, flags, &text, &n_text, &err);
    expect(status, &err);
    if (status != REE_OK) return;
    if (ree_decoder_create(tokenizer, flags, &decoder, &err) != REE_OK) abort();
    for (size_t i = 0; i <= n; i++) {
        status = i < n ? ree_decoder_push(decoder, ids[i], &piece, &n_piece, &err)
                       : ree_decoder_flush(decoder, &piece, &n_piece, &err);
        if (status != REE_OK || n_piece > n_text - at || memcmp(piece, text + at, n_piece) != 0)
            abort();
        if (ree_utf8_valid_prefix(piece, n_piece) != n_piece) abort();
        at += n_piece;
    }
    if (at != n_text) abort();
    ree_decoder_destroy(decoder);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static const char *const texts[] = {
        "hello world",
        "  caf\xC3\xA9 e\xCC\x81 \xE4\xB8\xAD\xE5\x9B\xBD 12.5<|end|>[MASK] new york",
        "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x9A\x80\xFF\xC3 \n\n\t x",
        // Longer than the length up to which BPE merges without a heap.
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabbbaaa"};
    struct ree_tokenizer *tokenizer;
    struct ree_error err = {.message = ""};
    enum ree_status status = ree_tokenizer_load_memory((const char *)bytes, size, &tokenizer, &err);
    expect(status, &err);
    if ((status == REE_OK) != (tokenizer != NULL)) abort();
    if (!tokenizer) return 0;
    for (size_t i = 0; i < 2 * sizeof texts / sizeof *texts; i++) {
        int32_t *ids;
        size_t n;
        uint32_t flags = i % 2 ? REE_ADD_SPECIAL | REE_PARSE_SPECIAL : 0;
        status = ree_tokenizer_encode(tokenizer, texts[i / 2], strlen(texts[i / 2]), flags, &ids,
                                      &n, &err);
        expect(status, &err);
        if (status != REE_OK) continue;
        for (size_t k = 0; k < n; k++)
            if (!ree_tokenizer_token(tokenizer, ids[k])) abort();
        decode(tokenizer, ids, n, i % 2 ? REE_SKIP_SPECIAL : 0);
        free(ids);
    }
    int32_t first[64];
    size_t n_first = 0;
    for (uint32_t id = 0; id < ree_tokenizer_vocab_size(tokenizer) && n_first < 64; id++)
        if (ree_tokenizer_token(tokenizer, (int32_t)id)) first[n_first++] = (int32_t)id;
    decode(tokenizer, first, n_first, 0);
    ree_tokenizer_destroy(tokenizer);
    return 0;
}
