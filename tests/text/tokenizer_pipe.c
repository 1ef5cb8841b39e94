// A tokenizer behind a pipe, for Python tests: reads requests from standard input until its end and
// answers each on standard output.
//
//     tokenizer_pipe PATH
//
// A request is a byte ('e' encode, 'd' decode, 'c' chat prompt), flags, a length and that many
// bytes. An answer is a status, a length and that many bytes (the message after a failure). All
// numbers are uint32 in the machine's byte order. A text is decoded as a whole and token by token,
// and both must agree.
#include "ree.h"
#include "text/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(bool ok, const char *what) {
    if (ok) return;
    fprintf(stderr, "tokenizer_pipe: %s\n", what);
    exit(1);
}

static bool read_exactly(void *data, size_t n) {
    return fread(data, 1, n, stdin) == n;
}

static void answer(enum ree_status status, const void *data, size_t n) {
    uint32_t head[2] = {(uint32_t)status, (uint32_t)n};
    must(fwrite(head, sizeof head, 1, stdout) == 1 && fwrite(data, 1, n, stdout) == n &&
             fflush(stdout) == 0,
         "cannot answer");
}

// Checks that each piece from the decoder is made of whole characters, and that they form the text.
static void check_stream(const struct ree_tokenizer *tokenizer, const int32_t *ids, size_t n,
                         uint32_t flags, const char *text, size_t n_text) {
    struct ree_decoder *decoder;
    struct ree_error err;
    const char *piece;
    size_t size, at = 0;
    must(ree_decoder_create(tokenizer, flags, &decoder, &err) == REE_OK, "no decoder");
    for (int round = 0; round < 2; round++) { // after a flush the decoder is as new
        at = 0;
        for (size_t i = 0; i <= n; i++) {
            enum ree_status status = i < n ? ree_decoder_push(decoder, ids[i], &piece, &size, &err)
                                           : ree_decoder_flush(decoder, &piece, &size, &err);
            must(status == REE_OK, "the decoder failed");
            must(ree_utf8_valid_prefix(piece, size) == size && piece[size] == 0,
                 "a piece is not whole characters");
            must(size <= n_text - at && memcmp(piece, text + at, size) == 0,
                 "the pieces are not the text");
            at += size;
        }
        must(at == n_text, "the pieces are less than the text");
    }
    ree_decoder_destroy(decoder);
}

static void respond(const struct ree_tokenizer *tokenizer, char what, uint32_t flags, char *data,
                    size_t n) {
    struct ree_error err = {.message = ""};
    enum ree_status status;
    char *text = NULL;
    int32_t *ids = NULL;
    size_t n_out = 0;
    if (what == 'e') {
        status = ree_tokenizer_encode(tokenizer, data, n, flags, &ids, &n_out, &err);
        n_out *= sizeof *ids;
    } else if (what == 'd') {
        const int32_t *list = (const int32_t *)(void *)data;
        status = ree_tokenizer_decode(tokenizer, list, n / 4, flags, &text, &n_out, &err);
        if (status == REE_OK) check_stream(tokenizer, list, n / 4, flags, text, n_out);
    } else {
        // The family's name (may be empty), a NUL, then the messages.
        size_t name = strlen(data);
        status = ree_chat_prompt(tokenizer, name ? data : NULL, data + name + 1, n - name - 1,
                                 flags != 0, &text, &n_out, &err);
    }
    if (status == REE_OK)
        answer(status, ids ? (void *)ids : text, n_out);
    else
        answer(status, err.message, strlen(err.message));
    free(ids);
    free(text);
}

int main(int argc, char **argv) {
    struct ree_error err;
    struct ree_tokenizer *tokenizer;
    if (argc != 2) {
        fprintf(stderr, "usage: tokenizer_pipe PATH\n");
        return 2;
    }
    if (ree_tokenizer_load(argv[1], &tokenizer, &err) != REE_OK) {
        answer(err.status, err.message, strlen(err.message));
        return 0;
    }
    char about[200], hex[65];
    const char *family = ree_tokenizer_chat_family(tokenizer);
    ree_tokenizer_sha256(tokenizer, hex);
    int size = snprintf(about, sizeof about, "%s %u %s", hex, ree_tokenizer_vocab_size(tokenizer),
                        family ? family : "-");
    answer(REE_OK, about, (size_t)size);
    char what;
    uint32_t head[2];
    while (read_exactly(&what, 1)) {
        must(read_exactly(head, sizeof head), "a request ends early");
        char *data = calloc(1, (size_t)head[1] + 1);
        must(data && read_exactly(data, head[1]), "a request ends early");
        respond(tokenizer, what, head[0], data, head[1]);
        free(data);
    }
    ree_tokenizer_destroy(tokenizer);
    return 0;
}
