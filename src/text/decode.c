// Decodes tokens by a chain of stages. A stage receives tokens, each in one or several parts, and
// passes tokens, in parts, to the next stage. Most stages wait for the end of a token.
//
// Fuse and ByteLevel make a single token of the whole text. So Strip and Replace of a string, which
// often follow them, do not wait for its end, but pass on whatever later parts cannot change. Any
// other stage after Fuse or ByteLevel is also correct, but passes on its text only at the end.
#include "text/decode.h"

#include "base/memory.h"
#include "text/bytes.h"
#include "text/utf8.h"

#include <stdlib.h>

enum {
    SEQUENCE,
    BYTE_LEVEL,
    BYTE_FALLBACK,
    FUSE,
    METASPACE,
    WORDPIECE,
    BPE,
    REPLACE,
    STRIP,
    CTC,
    JOIN
};

// strings: replacement of a space; numbers: 1 if the encoder put a replacement before the text
static enum ree_status parse_metaspace(struct ree_arena *arena, const cJSON *json,
                                       struct ree_stage *stage, struct ree_error *err) {
    struct ree_str scheme;
    uint32_t add;
    REE_TRY(
        ree_text_json_string(arena, json, "replacement", "\xE2\x96\x81", &stage->strings[0], err));
    REE_TRY(ree_text_json_bool(json, "add_prefix_space", true, &add, err));
    REE_TRY(ree_text_json_string(arena, json, "prepend_scheme", add ? "always" : "never", &scheme,
                                 err));
    stage->numbers[0] = strcmp(scheme.data, "never") != 0;
    if (ree_utf8_count(stage->strings[0].data, stage->strings[0].size) != 1)
        return ree_fail(err, REE_INVALID, "'replacement' is not one character");
    return REE_OK;
}

// strings: prefix; numbers: cleanup
static enum ree_status parse_wordpiece(struct ree_arena *arena, const cJSON *json,
                                       struct ree_stage *stage, struct ree_error *err) {
    REE_TRY(ree_text_json_string(arena, json, "prefix", "##", &stage->strings[0], err));
    return ree_text_json_bool(json, "cleanup", true, &stage->numbers[0], err);
}

// strings: suffix
static enum ree_status parse_bpe(struct ree_arena *arena, const cJSON *json,
                                 struct ree_stage *stage, struct ree_error *err) {
    return ree_text_json_string(arena, json, "suffix", "</w>", &stage->strings[0], err);
}

// strings: pattern, content
static enum ree_status parse_replace(struct ree_arena *arena, const cJSON *json,
                                     struct ree_stage *stage, struct ree_error *err) {
    REE_TRY(ree_stage_pattern(arena, json, stage, err));
    // An empty pattern matches between all characters, which the string search here cannot do.
    if (!stage->regex && !stage->strings[0].size)
        REE_TRY(ree_regex_create(stage->strings[0], &stage->regex, err));
    return ree_text_json_string(arena, json, "content", "", &stage->strings[1], err);
}

// strings: the character; numbers: how many to remove at the start and at the end
static enum ree_status parse_strip(struct ree_arena *arena, const cJSON *json,
                                   struct ree_stage *stage, struct ree_error *err) {
    REE_TRY(ree_text_json_string(arena, json, "content", " ", &stage->strings[0], err));
    REE_TRY(ree_text_json_u32(json, "start", 0, &stage->numbers[0], err));
    REE_TRY(ree_text_json_u32(json, "stop", 0, &stage->numbers[1], err));
    if (ree_utf8_count(stage->strings[0].data, stage->strings[0].size) != 1)
        return ree_fail(err, REE_INVALID, "'content' is not one character");
    return REE_OK;
}

// strings: pad_token, word_delimiter_token; numbers: cleanup
static enum ree_status parse_ctc(struct ree_arena *arena, const cJSON *json,
                                 struct ree_stage *stage, struct ree_error *err) {
    REE_TRY(ree_text_json_string(arena, json, "pad_token", "<pad>", &stage->strings[0], err));
    REE_TRY(
        ree_text_json_string(arena, json, "word_delimiter_token", "|", &stage->strings[1], err));
    return ree_text_json_bool(json, "cleanup", true, &stage->numbers[0], err);
}

static const struct ree_stage_kind kinds[] = {
    {"Sequence", SEQUENCE, NULL},
    {"ByteLevel", BYTE_LEVEL, NULL},
    {"ByteFallback", BYTE_FALLBACK, NULL},
    {"Fuse", FUSE, NULL},
    {"Metaspace", METASPACE, parse_metaspace},
    {"WordPiece", WORDPIECE, parse_wordpiece},
    {"BPEDecoder", BPE, parse_bpe},
    {"Replace", REPLACE, parse_replace},
    {"Strip", STRIP, parse_strip},
    {"CTC", CTC, parse_ctc},
};

const struct ree_stage_family ree_decoders = {"decoder", "decoders", kinds,
                                              sizeof kinds / sizeof *kinds};

// Used if there is no decoder: joins the tokens with spaces.
static const struct ree_stage_kind join_kind = {"Join", JOIN, NULL};
static const struct ree_stage join = {.kind = &join_kind};

static size_t count_leaves(const struct ree_stage *stage) {
    if (!stage->kind) return 0;
    if (stage->kind->op != SEQUENCE) return 1;
    size_t n = 0;
    for (uint32_t i = 0; i < stage->n_children; i++)
        n += count_leaves(&stage->children[i]);
    return n;
}

static void add_leaves(struct ree_decoding_chain *chain, const struct ree_stage *stage) {
    if (!stage->kind) return;
    if (stage->kind->op != SEQUENCE) {
        chain->stages[chain->n++].stage = stage;
        return;
    }
    for (uint32_t i = 0; i < stage->n_children; i++)
        add_leaves(chain, &stage->children[i]);
}

static void restart(struct ree_decoder_stage *stage) {
    stage->token.size = stage->held.size = stage->n_tokens = 0;
    stage->begun = stage->settled = false;
    stage->left = stage->n_held = 0;
    stage->n_matched = 0;
}

// Returns the failure function of Knuth, Morris and Pratt ("Fast Pattern Matching in Strings",
// 1977): borders[i] is the length of the longest proper prefix of the first i bytes of the pattern
// that is also their suffix. borders[0] is not used. Returns NULL if memory is exhausted.
static size_t *find_borders(struct ree_str pattern) {
    size_t *borders = ree_alloc_zeroed(pattern.size, sizeof *borders);
    for (size_t i = 1, k = 0; borders && i + 1 < pattern.size; i++) {
        while (k > 0 && pattern.data[i] != pattern.data[k])
            k = borders[k];
        if (pattern.data[i] == pattern.data[k]) k++;
        borders[i + 1] = k;
    }
    return borders;
}

enum ree_status ree_decoding_init(struct ree_decoding_chain *chain, const struct ree_stage *decoder,
                                  struct ree_error *err) {
    memset(chain, 0, sizeof *chain);
    if (!decoder->kind) decoder = &join;
    chain->stages = ree_alloc_zeroed(count_leaves(decoder) + 1, sizeof *chain->stages);
    if (!chain->stages) return ree_fail(err, REE_NO_MEMORY, "no memory for a decoder");
    add_leaves(chain, decoder);
    enum ree_status status = ree_matcher_create(&chain->matcher, err);
    for (size_t i = 0; status == REE_OK && i < chain->n; i++) {
        const struct ree_stage *stage = chain->stages[i].stage;
        if (stage->kind->op != REPLACE || stage->regex) continue;
        chain->stages[i].borders = find_borders(stage->strings[0]);
        if (!chain->stages[i].borders)
            status = ree_fail(err, REE_NO_MEMORY, "no memory for a decoder");
    }
    if (status != REE_OK) ree_decoding_finish(chain);
    return status;
}

void ree_decoding_finish(struct ree_decoding_chain *chain) {
    for (size_t i = 0; i < chain->n; i++) {
        ree_strbuf_finish(&chain->stages[i].token);
        ree_strbuf_finish(&chain->stages[i].held);
        ree_free(chain->stages[i].borders);
    }
    ree_free(chain->stages);
    ree_matcher_destroy(chain->matcher);
    ree_strbuf_finish(&chain->out);
    memset(chain, 0, sizeof *chain);
}

static enum ree_status feed(struct ree_decoding_chain *chain, size_t i, const char *data, size_t n,
                            bool end, struct ree_error *err);

// Passes a whole token to the next stage.
static enum ree_status pass_token(struct ree_decoding_chain *chain, size_t i, const char *data,
                                  size_t n, struct ree_error *err) {
    return feed(chain, i + 1, data, n, true, err);
}

// Passes a part of a token to the next stage, but not the token's end.
static enum ree_status give_part(struct ree_decoding_chain *chain, size_t i, const char *data,
                                 size_t n, struct ree_error *err) {
    return n ? feed(chain, i + 1, data, n, false, err) : REE_OK;
}

// ByteLevel: a token encodes bytes; a token with characters outside the alphabet stands for itself.
// The bytes of all tokens together are decoded as UTF-8. An incomplete character at the end is held
// back.
static enum ree_status byte_level(struct ree_decoding_chain *chain, size_t i, const char *token,
                                  size_t n, struct ree_error *err) {
    struct ree_strbuf *held = &chain->stages[i].held;
    if (!ree_bytes_parse(held, token, n)) ree_strbuf_append(held, token, n);
    if (held->failed || held->size == 0) return REE_OK;
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    size_t at = 0, bad = 0;
    bool cut = false;
    while (at < held->size && !cut) {
        size_t valid = ree_utf8_valid_prefix(held->data + at, held->size - at);
        ree_strbuf_append(&text, held->data + at, valid);
        at += valid;
        if (at == held->size) break;
        ree_utf8_check(held->data + at, held->size - at, &bad, &cut);
        if (cut) break;
        ree_strbuf_append(&text, REE_REPLACEMENT, 3);
        at += bad;
    }
    memmove(held->data, held->data + at, held->size - at);
    held->size -= at;
    enum ree_status status = text.failed ? ree_fail(err, REE_NO_MEMORY, "no memory for text")
                                         : give_part(chain, i, text.data, text.size, err);
    ree_strbuf_finish(&text);
    return status;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// ByteFallback: passes on the bytes of a run of <0xXX> tokens if they are valid UTF-8 as a whole,
// otherwise one U+FFFD per byte.
static enum ree_status give_run(struct ree_decoding_chain *chain, size_t i, struct ree_error *err) {
    struct ree_strbuf *held = &chain->stages[i].held;
    size_t n = held->size;
    if (n == 0) return REE_OK;
    enum ree_status status = REE_OK;
    if (ree_utf8_valid_prefix(held->data, n) == n)
        status = pass_token(chain, i, held->data, n, err);
    else
        for (size_t k = 0; k < n && status == REE_OK; k++)
            status = pass_token(chain, i, REE_REPLACEMENT, 3, err);
    held->size = 0;
    return status;
}

static enum ree_status byte_fallback(struct ree_decoding_chain *chain, size_t i, const char *token,
                                     size_t n, struct ree_error *err) {
    if (n == 6 && memcmp(token, "<0x", 3) == 0 && token[5] == '>' && hex_digit(token[3]) >= 0 &&
        hex_digit(token[4]) >= 0) {
        char byte = (char)(hex_digit(token[3]) << 4 | hex_digit(token[4]));
        ree_strbuf_append(&chain->stages[i].held, &byte, 1);
        return REE_OK;
    }
    REE_TRY(give_run(chain, i, err));
    return pass_token(chain, i, token, n, err);
}

static void replace_all(struct ree_strbuf *out, const char *text, size_t n, struct ree_str from,
                        const char *to) {
    while (n > 0) {
        const char *at = from.size ? memmem(text, n, from.data, from.size) : NULL;
        size_t before = at ? (size_t)(at - text) : n;
        ree_strbuf_append(out, text, before);
        if (!at) return;
        ree_strbuf_append(out, to, strlen(to));
        text += before + from.size;
        n -= before + from.size;
    }
}

// Removes spaces around English punctuation and before contractions, and shortens "do not". The
// rules apply in this order.
static void clean_up(struct ree_strbuf *text) {
    static const char *const rules[][2] = {
        {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
        {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
        {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        struct ree_str from = {rules[i][0], strlen(rules[i][0])};
        if (!text->data || !memmem(text->data, text->size, from.data, from.size)) continue;
        struct ree_strbuf out;
        ree_strbuf_init(&out);
        replace_all(&out, text->data, text->size, from, rules[i][1]);
        ree_strbuf_finish(text);
        *text = out;
    }
}

static bool starts_with(const char *text, size_t n, struct ree_str prefix) {
    return n >= prefix.size && memcmp(text, prefix.data, prefix.size) == 0;
}

static void wordpiece(const struct ree_decoder_stage *state, const char *token, size_t n,
                      struct ree_strbuf *out) {
    const struct ree_str prefix = state->stage->strings[0];
    bool later = state->n_tokens > 0, more = later && starts_with(token, n, prefix);
    if (later && !more) ree_strbuf_append(out, " ", 1);
    ree_strbuf_append(out, token + (more ? prefix.size : 0), n - (more ? prefix.size : 0));
    if (state->stage->numbers[0]) clean_up(out);
}

// CTC: a repeated token and the padding token produce no text.
static bool ctc(struct ree_decoder_stage *state, const char *token, size_t n,
                struct ree_strbuf *out) {
    bool again = state->n_tokens > 0 && state->held.size == n &&
                 (n == 0 || memcmp(state->held.data, token, n) == 0);
    if (again) return false;
    state->held.size = 0;
    ree_strbuf_append(&state->held, token, n);
    replace_all(out, token, n, state->stage->strings[0], "");
    if (state->stage->numbers[0]) {
        clean_up(out);
        struct ree_strbuf spaced;
        ree_strbuf_init(&spaced);
        replace_all(&spaced, out->data, out->size, state->stage->strings[1], " ");
        ree_strbuf_finish(out);
        *out = spaced;
    }
    return out->size > 0;
}

// Returns the maximum number of bytes that a stage may produce; the same bound as for normalizers
// (normalize.h).
static uint64_t most_bytes(const struct ree_decoding_chain *chain) {
    return 64 * chain->n_in + (1u << 20);
}

static enum ree_status too_many(struct ree_error *err) {
    return ree_fail(err, REE_INVALID,
                    "the decoder produces more than 64 bytes of text for each byte of its tokens");
}

static enum ree_status replace_regex(struct ree_decoding_chain *chain,
                                     const struct ree_stage *stage, const char *token, size_t n,
                                     struct ree_strbuf *out, struct ree_error *err) {
    struct ree_spans spans = {0};
    enum ree_status status = ree_stage_search(stage, chain->matcher, token, n, &spans, err);
    for (size_t k = 0; status == REE_OK && k < spans.n; k++) {
        const struct ree_span *span = &spans.items[k];
        if (span->match)
            ree_strbuf_append(out, stage->strings[1].data, stage->strings[1].size);
        else
            ree_strbuf_append(out, token + span->start, span->end - span->start);
        if (out->size > most_bytes(chain)) status = too_many(err);
    }
    ree_free(spans.items);
    return status;
}

// BPEDecoder: the suffix that marks the end of a word becomes a space; in the last token it is
// removed. So the latest token is held back.
static enum ree_status bpe(struct ree_decoding_chain *chain, size_t i, const char *token, size_t n,
                           struct ree_error *err) {
    struct ree_decoder_stage *state = &chain->stages[i];
    struct ree_strbuf out;
    ree_strbuf_init(&out);
    enum ree_status status = REE_OK;
    if (state->n_tokens > 0 && !state->settled) {
        replace_all(&out, state->held.data, state->held.size, state->stage->strings[0], " ");
        status = out.failed ? ree_fail(err, REE_NO_MEMORY, "no memory for text")
                            : pass_token(chain, i, out.data, out.size, err);
    }
    ree_strbuf_finish(&out);
    state->settled = false;
    state->held.size = 0;
    ree_strbuf_append(&state->held, token, n);
    return status;
}

// Decodes a complete token. If `end`, the next stage receives a whole token, otherwise a part.
static enum ree_status whole(struct ree_decoding_chain *chain, size_t i, const char *token,
                             size_t n, bool end, struct ree_error *err) {
    struct ree_decoder_stage *state = &chain->stages[i];
    struct ree_strbuf out;
    enum ree_status status = REE_OK;
    bool some = true;
    switch (state->stage->kind->op) {
    case BYTE_LEVEL: return byte_level(chain, i, token, n, err);
    case BYTE_FALLBACK: return byte_fallback(chain, i, token, n, err);
    case BPE: return bpe(chain, i, token, n, err);
    default: break;
    }
    ree_strbuf_init(&out);
    switch (state->stage->kind->op) {
    case METASPACE:
        replace_all(&out, token, n, state->stage->strings[0],
                    state->n_tokens == 0 && state->stage->numbers[0] ? "" : " ");
        break;
    case WORDPIECE: wordpiece(state, token, n, &out); break;
    case REPLACE: status = replace_regex(chain, state->stage, token, n, &out, err); break;
    case CTC: some = ctc(state, token, n, &out); break;
    default: // JOIN
        if (state->n_tokens > 0) ree_strbuf_append(&out, " ", 1);
        ree_strbuf_append(&out, token, n);
        break;
    }
    if (status == REE_OK && out.failed) status = ree_fail(err, REE_NO_MEMORY, "no memory for text");
    if (status == REE_OK && some)
        status = end ? pass_token(chain, i, out.data, out.size, err)
                     : give_part(chain, i, out.data, out.size, err);
    ree_strbuf_finish(&out);
    return status;
}

// Strip: removes characters at the start immediately, and holds back those that may have to be
// removed at the end.
static enum ree_status strip(struct ree_decoding_chain *chain, size_t i, const char *data, size_t n,
                             bool end, struct ree_error *err) {
    struct ree_decoder_stage *state = &chain->stages[i];
    const struct ree_str content = state->stage->strings[0];
    uint32_t stop = state->stage->numbers[1];
    struct ree_strbuf out;
    ree_strbuf_init(&out);
    if (!state->begun) state->left = state->stage->numbers[0];
    for (size_t at = 0, step; at < n; at += step) {
        ree_utf8_get(data + at, &step);
        bool is = step == content.size && memcmp(data + at, content.data, step) == 0;
        if (is && state->left) {
            state->left--;
            continue;
        }
        state->left = 0;
        if (is && state->n_held < stop) {
            state->n_held++;
            continue;
        }
        // A character equal to `content` beyond `stop` is passed on, and the held ones stay held.
        // Any other character releases all held ones.
        if (!is)
            for (; state->n_held; state->n_held--)
                ree_strbuf_append(&out, content.data, content.size);
        ree_strbuf_append(&out, data + at, step);
    }
    if (end) state->n_held = 0;
    enum ree_status status = out.failed ? ree_fail(err, REE_NO_MEMORY, "no memory for text")
                             : end      ? pass_token(chain, i, out.data, out.size, err)
                                        : give_part(chain, i, out.data, out.size, err);
    ree_strbuf_finish(&out);
    return status;
}

// Replace of a string: holds back a suffix that may become a match with the next part. It takes
// linear time however short the parts are.
static enum ree_status replace_string(struct ree_decoding_chain *chain, size_t i, const char *data,
                                      size_t n, bool end, struct ree_error *err) {
    struct ree_decoder_stage *state = &chain->stages[i];
    const struct ree_str pattern = state->stage->strings[0], content = state->stage->strings[1];
    struct ree_strbuf out;
    ree_strbuf_init(&out);
    size_t k = state->n_matched;
    for (size_t at = 0; at < n && out.size <= most_bytes(chain);) {
        if (k == 0) {
            const char *first = memchr(data + at, pattern.data[0], n - at);
            size_t before = first ? (size_t)(first - data) - at : n - at;
            ree_strbuf_append(&out, data + at, before);
            at += before;
            if (!first) break;
        }
        // The held bytes are the first k of the pattern. Release those before the longest suffix
        // that can be the beginning of a match with the next byte.
        size_t held = k;
        while (k > 0 && pattern.data[k] != data[at])
            k = state->borders[k];
        ree_strbuf_append(&out, pattern.data, held - k);
        if (pattern.data[k] != data[at]) continue; // k is 0
        at++;
        if (++k < pattern.size) continue;
        ree_strbuf_append(&out, content.data, content.size);
        k = 0;
    }
    if (end) {
        ree_strbuf_append(&out, pattern.data, k);
        k = 0;
    }
    state->n_matched = k;
    enum ree_status status = out.failed ? ree_fail(err, REE_NO_MEMORY, "no memory for text")
                             : out.size > most_bytes(chain) ? too_many(err)
                             : end ? pass_token(chain, i, out.data, out.size, err)
                                   : give_part(chain, i, out.data, out.size, err);
    ree_strbuf_finish(&out);
    return status;
}

// Passes a part of a token to stage i or, after the last stage, to chain->out. `end`: it is the
// last part.
static enum ree_status feed(struct ree_decoding_chain *chain, size_t i, const char *data, size_t n,
                            bool end, struct ree_error *err) {
    uint64_t *n_bytes = i < chain->n ? &chain->stages[i].n_bytes : &chain->n_out;
    *n_bytes += n;
    if (*n_bytes > most_bytes(chain)) return too_many(err);
    if (i == chain->n) {
        ree_strbuf_append(&chain->out, data, n);
        return chain->out.failed ? ree_fail(err, REE_NO_MEMORY, "no memory for text") : REE_OK;
    }
    struct ree_decoder_stage *state = &chain->stages[i];
    int op = state->stage->kind->op;
    enum ree_status status = REE_OK;
    if (op == FUSE) {
        status = give_part(chain, i, data, n, err);
    } else if (op == STRIP) {
        status = strip(chain, i, data, n, end, err);
    } else if (op == REPLACE && !state->stage->regex) {
        status = replace_string(chain, i, data, n, end, err);
    } else if (end && state->token.size == 0) {
        status = whole(chain, i, data, n, true, err);
    } else {
        ree_strbuf_append(&state->token, data, n);
        if (end) status = whole(chain, i, state->token.data, state->token.size, true, err);
        if (end) state->token.size = 0;
    }
    if (state->token.failed || state->held.failed)
        status = ree_fail(err, REE_NO_MEMORY, "no memory for text");
    state->begun = !end;
    state->n_tokens += end;
    return status;
}

// Called when stage i receives no more tokens.
static enum ree_status end(struct ree_decoding_chain *chain, size_t i, struct ree_error *err) {
    if (i == chain->n) return REE_OK;
    struct ree_decoder_stage *state = &chain->stages[i];
    struct ree_strbuf out;
    ree_strbuf_init(&out);
    enum ree_status status = REE_OK;
    switch (state->stage->kind->op) {
    case BYTE_LEVEL:
        if (state->held.size) status = give_part(chain, i, REE_REPLACEMENT, 3, err);
        if (status == REE_OK) status = pass_token(chain, i, "", 0, err);
        break;
    case FUSE: status = pass_token(chain, i, "", 0, err); break;
    case BYTE_FALLBACK: status = give_run(chain, i, err); break;
    case BPE:
        if (state->n_tokens == 0) break;
        replace_all(&out, state->held.data, state->held.size, state->stage->strings[0], "");
        status = out.failed ? ree_fail(err, REE_NO_MEMORY, "no memory for text")
                            : pass_token(chain, i, out.data, out.size, err);
        break;
    default: break;
    }
    ree_strbuf_finish(&out);
    if (status == REE_OK) status = end(chain, i + 1, err);
    restart(state);
    return status;
}

// Strip: passes on the held characters, which are now in the middle of the text.
static enum ree_status settle_strip(struct ree_decoding_chain *chain, size_t i,
                                    struct ree_error *err) {
    struct ree_decoder_stage *state = &chain->stages[i];
    const struct ree_str content = state->stage->strings[0];
    enum ree_status status = REE_OK;
    for (; status == REE_OK && state->n_held; state->n_held--)
        status = give_part(chain, i, content.data, content.size, err);
    return status;
}

static enum ree_status settle_bpe(struct ree_decoding_chain *chain, size_t i,
                                  struct ree_error *err) {
    struct ree_decoder_stage *state = &chain->stages[i];
    struct ree_strbuf out;
    if (state->n_tokens == 0 || state->settled) return REE_OK;
    ree_strbuf_init(&out);
    replace_all(&out, state->held.data, state->held.size, state->stage->strings[0], " ");
    enum ree_status status = out.failed ? ree_fail(err, REE_NO_MEMORY, "no memory for text")
                                        : pass_token(chain, i, out.data, out.size, err);
    ree_strbuf_finish(&out);
    state->settled = true;
    return status;
}

// Replace of a string: passes on the beginning of a match, which stays as it is.
static enum ree_status settle_match(struct ree_decoding_chain *chain, size_t i,
                                    struct ree_error *err) {
    struct ree_decoder_stage *state = &chain->stages[i];
    size_t n = state->n_matched;
    state->n_matched = 0;
    if (n) state->n_tokens++;
    return give_part(chain, i, state->stage->strings[0].data, n, err);
}

// Passes on what stage i has received of an unfinished token.
static enum ree_status settle_token(struct ree_decoding_chain *chain, size_t i,
                                    struct ree_error *err) {
    struct ree_decoder_stage *state = &chain->stages[i];
    struct ree_strbuf *token = &state->token;
    if (token->size == 0) return settle_match(chain, i, err);
    enum ree_status status = whole(chain, i, token->data, token->size, false, err);
    token->size = 0;
    state->n_tokens++;
    return status;
}

static enum ree_status release_held(struct ree_decoding_chain *chain, size_t i,
                                    struct ree_error *err) {
    if (i == chain->n) return REE_OK;
    struct ree_decoder_stage *state = &chain->stages[i];
    REE_TRY(settle_token(chain, i, err));
    switch (state->stage->kind->op) {
    case BYTE_LEVEL:
        if (state->held.size) REE_TRY(give_part(chain, i, REE_REPLACEMENT, 3, err));
        state->held.size = 0;
        break;
    case BYTE_FALLBACK: REE_TRY(give_run(chain, i, err)); break;
    case BPE: REE_TRY(settle_bpe(chain, i, err)); break;
    case STRIP: REE_TRY(settle_strip(chain, i, err)); break;
    default: break;
    }
    return release_held(chain, i + 1, err);
}

enum ree_status ree_decoding_settle(struct ree_decoding_chain *chain, struct ree_error *err) {
    return release_held(chain, 0, err);
}

enum ree_status ree_decoding_push(struct ree_decoding_chain *chain, const char *token, size_t n,
                                  struct ree_error *err) {
    chain->n_in += n + 1; // + 1, because a stage may add a space per token, even for an empty one
    ree_matcher_add_text(chain->matcher, n + 1);
    return feed(chain, 0, token, n, true, err);
}

enum ree_status ree_decoding_flush(struct ree_decoding_chain *chain, struct ree_error *err) {
    return end(chain, 0, err);
}
