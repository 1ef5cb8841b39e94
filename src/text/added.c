// Added tokens. They are found in the unchanged text before normalization or, by their normalized
// content, after it. The text is scanned from left to right, and the longest token at a position
// wins.
#include "text/normalize.h"
#include "base/memory.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

#include <stdlib.h>

// Maximum bytes of a content, before and after normalization. Longer texts would make every search
// slow, and no real token has one.
#define CONTENT_MAX 4096

static enum ree_status add(struct ree_tokenizer *tokenizer, struct ree_added_token token,
                           struct ree_error *err) {
    const struct ree_str *content = &token.content;
    if (content->size == 0) return REE_OK; // an empty token is never found in a text
    if (content->size > CONTENT_MAX)
        return ree_fail(err, REE_UNSUPPORTED, "a content of %zu bytes; the maximum is %d",
                        content->size, CONTENT_MAX);
    if (tokenizer->n_added == tokenizer->added_capacity) {
        size_t capacity = tokenizer->added_capacity ? tokenizer->added_capacity * 2 : 64;
        void *tokens = ree_realloc(tokenizer->added, capacity * sizeof *tokenizer->added);
        if (!tokens) return ree_fail(err, REE_NO_MEMORY, "no memory for added tokens");
        tokenizer->added = tokens;
        tokenizer->added_capacity = capacity;
    }
    tokenizer->added[tokenizer->n_added++] = token;
    return REE_OK;
}

enum ree_status ree_added_add(struct ree_tokenizer *tokenizer, const cJSON *json, int32_t id,
                              struct ree_error *err) {
    struct ree_added_token token = {.id = id};
    REE_TRY(ree_text_json_string(&tokenizer->arena, json, "content", NULL, &token.content, err));
    if (!token.content.data) return ree_fail(err, REE_INVALID, "'content' is missing");
    REE_TRY(ree_text_json_bool(json, "special", false, &token.special, err));
    REE_TRY(ree_text_json_bool(json, "single_word", false, &token.single_word, err));
    REE_TRY(ree_text_json_bool(json, "lstrip", false, &token.lstrip, err));
    REE_TRY(ree_text_json_bool(json, "rstrip", false, &token.rstrip, err));
    REE_TRY(ree_text_json_bool(json, "normalized", !token.special, &token.normalized, err));
    return add(tokenizer, token, err);
}

enum ree_status ree_added_add_special(struct ree_tokenizer *tokenizer, const char *content,
                                      int32_t id, struct ree_error *err) {
    struct ree_added_token token = {.id = id, .special = true};
    REE_TRY(ree_text_json_copy(&tokenizer->arena, content, &token.content, err));
    return add(tokenizer, token, err);
}

// Adds a token to added_vocab, unless lm.vocab has it. Fails with REE_INVALID if, in one of the two
// vocabularies, its content has another id or its id has another content.
static enum ree_status enter(struct ree_tokenizer *tokenizer, const struct ree_added_token *token,
                             struct ree_error *err) {
    const struct ree_str *content = &token->content;
    int32_t known = ree_vocab_find(&tokenizer->lm.vocab, content->data, content->size);
    if (known == token->id) return REE_OK;
    const struct ree_str *other = ree_vocab_piece(&tokenizer->lm.vocab, token->id);
    if (known >= 0)
        return ree_fail(err, REE_INVALID,
                        "added token '%.80s' has id %d, but id %d in the vocabulary", content->data,
                        token->id, known);
    if (other)
        return ree_fail(
            err, REE_INVALID,
            "added token '%.80s' has id %d, which is the id of '%.80s' in the vocabulary",
            content->data, token->id, other->data);
    enum ree_status status = ree_vocab_add(&tokenizer->added_vocab, *content, token->id, err);
    return status == REE_OK ? REE_OK : ree_fail_prefix(err, "added_tokens");
}

// Determines the text to search for (ree_added_token.sought).
static enum ree_status sought(struct ree_tokenizer *tokenizer, const struct ree_added_token *token,
                              struct ree_normalizing *run, struct ree_str *out,
                              struct ree_error *err) {
    *out = token->content;
    if (!token->normalized || !tokenizer->normalizer.kind) return REE_OK;
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    ree_strbuf_append(&text, out->data, out->size);
    size_t origin = 0;
    enum ree_status status = text.failed
                                 ? ree_fail(err, REE_NO_MEMORY, "no memory for a token")
                                 : ree_normalize(&tokenizer->normalizer, run, &text, &origin, err);
    if (status == REE_OK && text.size > CONTENT_MAX)
        status = ree_fail(err, REE_UNSUPPORTED,
                          "the normalized content has %zu bytes; the maximum is %d", text.size,
                          CONTENT_MAX);
    if (status == REE_OK) {
        out->size = text.size;
        out->data = ree_arena_strndup(&tokenizer->arena, text.data, text.size);
        if (!out->data) status = ree_fail(err, REE_NO_MEMORY, "no memory for a token");
    }
    ree_strbuf_finish(&text);
    if (status == REE_OK) return REE_OK;
    return ree_fail_prefix(err, "added token '%.80s'", token->content.data);
}

static int by_text(const void *a, const void *b) {
    const struct ree_trie_entry *x = a, *y = b;
    size_t n = x->string.size < y->string.size ? x->string.size : y->string.size;
    int order = memcmp(x->string.data, y->string.data, n);
    if (order == 0) order = (x->string.size > y->string.size) - (x->string.size < y->string.size);
    return order ? order : (x->value > y->value) - (x->value < y->value);
}

// Makes the trie of the tokens whose flag `normalized` has this value. If several tokens normalize
// to the same text, only the one with the smallest id is found. The order in the file must not
// decide, because the tokenizer's hash does not cover it. Hugging Face's tokenizers take any of
// these tokens.
static enum ree_status make_trie(struct ree_tokenizer *tokenizer, struct ree_normalizing *run,
                                 struct ree_trie *trie, bool normalized,
                                 struct ree_trie_entry *entries, struct ree_error *err) {
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < tokenizer->n_added; i++) {
        struct ree_added_token *token = &tokenizer->added[i];
        if ((bool)token->normalized != normalized) continue;
        REE_TRY(sought(tokenizer, token, run, &token->sought, err));
        entries[n].value = (int32_t)i;
        entries[n].string = token->sought;
        if (token->sought.size) n++;
    }
    if (n) qsort(entries, n, sizeof *entries, by_text);
    for (size_t i = 0; i < n; i++) {
        const struct ree_str *a = kept ? &entries[kept - 1].string : NULL, *b = &entries[i].string;
        if (a && a->size == b->size && memcmp(a->data, b->data, a->size) == 0) continue;
        entries[kept++] = entries[i];
    }
    return ree_trie_init(trie, entries, kept, err);
}

static int by_id(const void *a, const void *b) {
    const struct ree_added_token *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

// Sets lm->special: a bit for each piece of the model that is a special token.
static enum ree_status note_special_pieces(struct ree_tokenizer *tokenizer, struct ree_error *err) {
    struct ree_lm *lm = &tokenizer->lm;
    for (size_t i = 0; i < tokenizer->n_added; i++) {
        const struct ree_added_token *token = &tokenizer->added[i];
        if (!token->special || token->id == lm->unk || !ree_vocab_piece(&lm->vocab, token->id))
            continue;
        if (!lm->special) lm->special = ree_alloc_zeroed(lm->vocab.n / 32 + 1, sizeof *lm->special);
        if (!lm->special) return ree_fail(err, REE_NO_MEMORY, "no memory for added tokens");
        lm->special[token->id / 32] |= 1u << (token->id % 32);
    }
    return REE_OK;
}

enum ree_status ree_added_prepare(struct ree_tokenizer *tokenizer, struct ree_error *err) {
    if (tokenizer->n_added)
        qsort(tokenizer->added, tokenizer->n_added, sizeof *tokenizer->added, by_id);
    for (size_t i = 0; i < tokenizer->n_added; i++)
        REE_TRY(enter(tokenizer, &tokenizer->added[i], err));
    tokenizer->n_ids = tokenizer->lm.vocab.n > tokenizer->added_vocab.n ? tokenizer->lm.vocab.n
                                                                        : tokenizer->added_vocab.n;
    tokenizer->added_by_id = ree_alloc((tokenizer->n_ids + 1) * sizeof *tokenizer->added_by_id);
    struct ree_trie_entry *entries = ree_alloc_zeroed(tokenizer->n_added + 1, sizeof *entries);
    struct ree_normalizing run = {0}; // one limit for all tokens together
    enum ree_status status = ree_matcher_create(&run.matcher, err);
    if (status == REE_OK && (!tokenizer->added_by_id || !entries))
        status = ree_fail(err, REE_NO_MEMORY, "no memory for added tokens");
    size_t nbytes = 0;
    for (size_t i = 0; i < tokenizer->n_added; i++)
        nbytes += tokenizer->added[i].content.size;
    run.n_left = REE_GROWTH_MAX(nbytes);
    if (status == REE_OK) ree_matcher_add_text(run.matcher, nbytes);
    for (uint32_t i = 0; status == REE_OK && i < tokenizer->n_ids; i++)
        tokenizer->added_by_id[i] = -1;
    for (size_t i = 0; status == REE_OK && i < tokenizer->n_added; i++) {
        int32_t *slot = &tokenizer->added_by_id[tokenizer->added[i].id];
        if (*slot >= 0)
            status = ree_fail(err, REE_INVALID, "added_tokens: '%.80s' occurs twice",
                              tokenizer->added[i].content.data);
        *slot = (int32_t)i;
    }
    if (status == REE_OK) status = note_special_pieces(tokenizer, err);
    if (status == REE_OK)
        status = make_trie(tokenizer, &run, &tokenizer->exact, false, entries, err);
    if (status == REE_OK)
        status = make_trie(tokenizer, &run, &tokenizer->normal, true, entries, err);
    ree_matcher_destroy(run.matcher);
    ree_free(entries);
    return status;
}

const struct ree_added_token *ree_added_of_id(const struct ree_tokenizer *tokenizer, int32_t id) {
    if (id < 0 || (uint32_t)id >= tokenizer->n_ids || tokenizer->added_by_id[id] < 0) return NULL;
    return &tokenizer->added[tokenizer->added_by_id[id]];
}

static bool stands_alone(const char *text, size_t n, size_t start, size_t end) {
    size_t step;
    if (start > 0) {
        size_t last = ree_utf8_last_size(text, start);
        if (ree_char_is_word(ree_utf8_get(text + start - last, &step))) return false;
    }
    return end == n || !ree_char_is_word(ree_utf8_get(text + end, &step));
}

// Extends the bytes *start to *end - 1 of a token over adjacent white space, as its flags lstrip
// and rstrip say. `done`: end of the text before, which is already passed on.
static void widen(const struct ree_added_token *token, const char *text, size_t n, size_t done,
                  size_t *start, size_t *end) {
    size_t step;
    while (token->lstrip && *start > done) {
        size_t last = ree_utf8_last_size(text, *start);
        if (!ree_char_is_space(ree_utf8_get(text + *start - last, &step))) break;
        *start -= last;
    }
    while (token->rstrip && *end < n && ree_char_is_space(ree_utf8_get(text + *end, &step)))
        *end += step;
}

static size_t rest_of(size_t origin, size_t done) {
    return origin > done ? origin - done : 0;
}

enum ree_status ree_added_cut(const struct ree_added_cut *cut, const char *text, size_t n,
                              size_t origin, struct ree_error *err) {
    const struct ree_added_token *tokens = cut->tokenizer->added;
    size_t done = 0, at = 0, size = 0, steps = 0;
    while (at < n && cut->trie->n_nodes > 1) {
        // Common case: no token starts with this byte.
        if (!cut->trie->first[(unsigned char)text[at]]) {
            at++;
            continue;
        }
        int32_t found = ree_trie_longest(cut->trie, text + at, n - at, &size, &steps);
        if (steps > *cut->n_steps_left)
            return ree_fail(err, REE_UNSUPPORTED,
                            "the search for added tokens takes too many steps, because the text "
                            "has many beginnings of long tokens");
        *cut->n_steps_left -= steps;
        if (found < 0) {
            at++;
            continue;
        }
        const struct ree_added_token *token = &tokens[found];
        size_t start = at, end = at + size;
        at = end; // the search continues there, even if the token is skipped below
        if (token->special && !cut->parse_special) continue;
        if (token->single_word && !stands_alone(text, n, start, end)) continue;
        widen(token, text, n, done, &start, &end);
        if (start > done)
            REE_TRY(cut->on_part(cut->user, text + done, start - done, rest_of(origin, done), NULL,
                                 err));
        REE_TRY(cut->on_part(cut->user, NULL, 0, 0, token, err));
        // `done` may also move back into white space that the previous token consumed, as in the
        // tokenizers library.
        done = end;
    }
    if (done == n) return REE_OK;
    return cut->on_part(cut->user, text + done, n - done, rest_of(origin, done), NULL, err);
}
