// Checks that the tokens of a receipt's prompt are what the tokenizer makes of the prompt's text.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "receipt/make_receipt.h"
#include "receipt/verify_internal.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/strbuf.h"
#include "generate/answer.h"

static bool same(const int32_t *a, size_t n_a, const int32_t *b, size_t n_b) {
    return n_a == n_b && (n_a == 0 || memcmp(a, b, n_a * sizeof *a) == 0);
}

// Decodes the tokens with `decode_flags` and encodes the text with `encode_flags`. The caller
// releases *out_ids. If the text cannot be encoded, *why says so: no receipt states that it can.
static enum ree_status reencode(const struct ree_tokenizer *tokenizer, const int32_t *ids, size_t n,
                                uint32_t decode_flags, uint32_t encode_flags, int32_t **out_ids,
                                size_t *out_n, struct ree_error *why, struct ree_error *err) {
    char *text;
    size_t nbytes;
    *out_ids = NULL;
    enum ree_status status =
        ree_tokenizer_decode(tokenizer, ids, n, decode_flags, &text, &nbytes, err);
    // No run decodes special tokens, so an error of that is not the receipt's.
    if (!(decode_flags & REE_SKIP_SPECIAL) &&
        (status == REE_INVALID || status == REE_UNSUPPORTED)) {
        *why = *err;
        ree_error_clear(err);
        return REE_OK;
    }
    REE_TRY(status);
    if (nbytes && memchr(text, 0, nbytes)) {
        // A receipt states another text (ree_receipt_encode_text).
        ree_free(text);
        snprintf(why->message, sizeof why->message,
                 "it has a NUL, which the receipt shows as U+FFFD");
        return REE_OK;
    }
    status = ree_tokenizer_encode(tokenizer, text, nbytes, encode_flags, out_ids, out_n, err);
    ree_free(text);
    if (status != REE_INVALID && status != REE_UNSUPPORTED) return status;
    *why = *err;
    ree_error_clear(err);
    return REE_OK;
}

// Appends at most 6 tokens, the first one ids[at]: each with its id and, in quotes, its text in the
// vocabulary. Appends "none" if there are none.
static void append_tokens(const struct ree_tokenizer *tokenizer, const int32_t *ids, size_t n,
                          size_t at, struct ree_strbuf *out) {
    const size_t most = 6;
    if (at >= n) ree_strbuf_printf(out, "none");
    for (size_t i = at; i < n && i < at + most; i++) {
        const char *piece = ree_tokenizer_token(tokenizer, ids[i]);
        ree_strbuf_printf(out, "%s%d '%.24s'", i > at ? ", " : "", ids[i], piece ? piece : "?");
    }
    if (n > at + most) ree_strbuf_printf(out, ", ...");
}

static size_t count_special(const struct ree_tokenizer *tokenizer, const int32_t *ids, size_t n) {
    size_t n_special = 0;
    for (size_t i = 0; i < n; i++)
        n_special += ree_tokenizer_is_special(tokenizer, ids[i]);
    return n_special;
}

// Adds the check "prompt encoding" with the text of the whole prompt, because the prompt's text in
// the receipt leaves special tokens out.
static enum ree_status note_special(struct ree_verification *v,
                                    const struct ree_tokenizer *tokenizer, const int32_t *ids,
                                    size_t n, struct ree_error *err) {
    char *text;
    size_t nbytes, n_special = count_special(tokenizer, ids, n);
    REE_TRY(ree_tokenizer_decode(tokenizer, ids, n, 0, &text, &nbytes, err));
    struct ree_arena arena;
    ree_arena_init(&arena);
    const char *escaped =
        ree_receipt_encode_text(&arena, &(struct ree_strbuf){.data = text, .size = nbytes});
    if (escaped)
        ree_verify_add(v, "prompt encoding", REE_VERIFY_AGREES,
                       "including its special token%s (%zu): \"%s\"", n_special == 1 ? "" : "s",
                       n_special, escaped);
    ree_arena_finish(&arena);
    ree_free(text);
    return escaped ? REE_OK : ree_no_memory(err);
}

static enum ree_status note_difference(struct ree_verification *v,
                                       const struct ree_tokenizer *tokenizer, const int32_t *ids,
                                       size_t n, const int32_t *encoded, size_t n_encoded,
                                       struct ree_error *err) {
    struct ree_strbuf ours, theirs;
    size_t at = 0;
    while (at < n && at < n_encoded && ids[at] == encoded[at])
        at++;
    ree_strbuf_init(&ours);
    ree_strbuf_init(&theirs);
    append_tokens(tokenizer, encoded, n_encoded, at, &ours);
    append_tokens(tokenizer, ids, n, at, &theirs);
    bool failed = ours.failed || theirs.failed;
    if (!failed)
        ree_verify_add(
            v, "prompt encoding", REE_VERIFY_NOT_CHECKED,
            "the prompt's text is encoded differently from token %zu on: %s; the receipt has %s",
            at, ours.data, theirs.data);
    ree_strbuf_finish(&ours);
    ree_strbuf_finish(&theirs);
    return failed ? ree_no_memory(err) : REE_OK;
}

// Sets *out to whether the prompt's text in a receipt is the text that the tokens give if nothing
// follows them. A decoder may end the last token differently if text follows, such as a word with
// a space.
static enum ree_status states_whole_text(const struct ree_tokenizer *tokenizer, const int32_t *ids,
                                         size_t n, bool *out, struct ree_error *err) {
    struct ree_answer stated;
    char *text = NULL;
    size_t nbytes;
    enum ree_status status =
        ree_answer_begin(&stated, tokenizer, NULL, 0, ids, n, REE_BOUNDARY_SETTLED, err);
    if (status == REE_OK)
        status = ree_tokenizer_decode(tokenizer, ids, n, REE_SKIP_SPECIAL, &text, &nbytes, err);
    if (status == REE_OK)
        *out = stated.prompt.size == nbytes &&
               (nbytes == 0 || memcmp(stated.prompt.data, text, nbytes) == 0);
    ree_free(text);
    ree_answer_finish(&stated);
    return status;
}

enum ree_status ree_verify_encoding(struct ree_verification *v,
                                    const struct ree_tokenizer *tokenizer, const int32_t *ids,
                                    size_t n, struct ree_error *err) {
    int32_t *plain = NULL, *special = NULL;
    size_t n_plain = 0, n_special = 0;
    bool is_whole = false;
    struct ree_error why;
    why.message[0] = '\0';
    enum ree_status status =
        reencode(tokenizer, ids, n, REE_SKIP_SPECIAL, REE_ADD_SPECIAL, &plain, &n_plain, &why, err);
    if (status == REE_OK && count_special(tokenizer, ids, n))
        status = reencode(tokenizer, ids, n, 0, REE_PARSE_SPECIAL, &special, &n_special, &why, err);
    bool agrees = status == REE_OK &&
                  (same(ids, n, plain, n_plain) || (special && same(ids, n, special, n_special)));
    if (agrees) status = states_whole_text(tokenizer, ids, n, &is_whole, err);
    if (status != REE_OK)
        ; // returned to the caller
    else if (agrees && !is_whole)
        ree_verify_add(
            v, "prompt encoding", REE_VERIFY_NOT_CHECKED,
            "the tokens encode another text: it ends differently from the prompt's text");
    else if (same(ids, n, plain, n_plain))
        ree_verify_add(v, "prompt encoding", REE_VERIFY_AGREES, "%s", "");
    else if (special && same(ids, n, special, n_special))
        status = note_special(v, tokenizer, ids, n, err);
    else if (why.message[0])
        ree_verify_add(v, "prompt encoding", REE_VERIFY_NOT_CHECKED,
                       "the prompt's text cannot be encoded: %s", why.message);
    else
        status = note_difference(v, tokenizer, ids, n, special ? special : plain,
                                 special ? n_special : n_plain, err);
    ree_free(plain);
    ree_free(special);
    return status;
}
