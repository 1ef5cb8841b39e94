#include "text/normalize.h"

#include "base/memory.h"
#include "text/bytes.h"
#include "text/utf8.h"

#include <stdlib.h>

enum {
    SEQUENCE,
    NFC,
    NFD,
    NFKC,
    NFKD,
    LOWERCASE,
    STRIP_ACCENTS,
    BERT,
    STRIP,
    PREPEND,
    REPLACE,
    PRECOMPILED,
    NMT,
    BYTE_LEVEL
};

// numbers: clean_text, handle_chinese_chars, strip_accents, lowercase
static enum ree_status parse_bert(struct ree_arena *arena, const cJSON *json,
                                  struct ree_stage *stage, struct ree_error *err) {
    (void)arena;
    REE_TRY(ree_text_json_bool(json, "clean_text", true, &stage->numbers[0], err));
    REE_TRY(ree_text_json_bool(json, "handle_chinese_chars", true, &stage->numbers[1], err));
    REE_TRY(ree_text_json_bool(json, "lowercase", true, &stage->numbers[3], err));
    // If strip_accents is missing or null, it has the value of lowercase.
    return ree_text_json_bool(json, "strip_accents", stage->numbers[3], &stage->numbers[2], err);
}

// numbers: left, right
static enum ree_status parse_strip(struct ree_arena *arena, const cJSON *json,
                                   struct ree_stage *stage, struct ree_error *err) {
    (void)arena;
    REE_TRY(ree_text_json_bool(json, "strip_left", true, &stage->numbers[0], err));
    return ree_text_json_bool(json, "strip_right", true, &stage->numbers[1], err);
}

// strings: the text to prepend
static enum ree_status parse_prepend(struct ree_arena *arena, const cJSON *json,
                                     struct ree_stage *stage, struct ree_error *err) {
    return ree_text_json_string(arena, json, "prepend", "\xE2\x96\x81", &stage->strings[0], err);
}

// strings: pattern, content; numbers[3]: the pattern is a regex
static enum ree_status parse_replace(struct ree_arena *arena, const cJSON *json,
                                     struct ree_stage *stage, struct ree_error *err) {
    REE_TRY(ree_stage_pattern(arena, json, stage, err));
    return ree_text_json_string(arena, json, "content", "", &stage->strings[1], err);
}

// strings: the map, decoded; numbers: units of its double array
static enum ree_status parse_precompiled(struct ree_arena *arena, const cJSON *json,
                                         struct ree_stage *stage, struct ree_error *err) {
    struct ree_str text;
    REE_TRY(ree_text_json_string(arena, json, "precompiled_charsmap", "", &text, err));
    struct ree_strbuf blob;
    ree_strbuf_init(&blob);
    bool ok = ree_base64_decode(&blob, text.data, text.size);
    struct ree_str *map = &stage->strings[0];
    map->size = blob.size;
    map->data = blob.failed ? NULL : ree_arena_strndup(arena, blob.data, blob.size);
    ree_strbuf_finish(&blob);
    if (!ok) return ree_fail(err, REE_INVALID, "'precompiled_charsmap' is not base64");
    if (!map->data) return ree_fail(err, REE_NO_MEMORY, "no memory for the character map");
    return ree_charsmap_check(*map, &stage->numbers[0], err);
}

static const struct ree_stage_kind kinds[] = {
    {"Sequence", SEQUENCE, NULL},
    {"NFC", NFC, NULL},
    {"NFD", NFD, NULL},
    {"NFKC", NFKC, NULL},
    {"NFKD", NFKD, NULL},
    {"Lowercase", LOWERCASE, NULL},
    {"StripAccents", STRIP_ACCENTS, NULL},
    {"BertNormalizer", BERT, parse_bert},
    {"Strip", STRIP, parse_strip},
    {"Prepend", PREPEND, parse_prepend},
    {"Replace", REPLACE, parse_replace},
    {"Precompiled", PRECOMPILED, parse_precompiled},
    {"Nmt", NMT, NULL},
    {"ByteLevel", BYTE_LEVEL, NULL},
};

const struct ree_stage_family ree_normalizers = {"normalizer", "normalizers", kinds,
                                                 sizeof kinds / sizeof *kinds};

// Returns the number of bytes at the beginning that the form leaves unchanged. ASCII characters are
// unchanged in all forms; characters below U+0300, the first combining one, are unchanged in NFC.
static size_t stable_prefix(const struct ree_strbuf *text, bool nfc) {
    unsigned char limit = nfc ? 0xCC : 0x80;
    size_t i = 0;
    while (i < text->size && (unsigned char)text->data[i] < limit)
        i++;
    // The last of these characters may be composed with the one after it.
    if (i < text->size && i > 0) i -= ree_utf8_last_size(text->data, i);
    return i;
}

static enum ree_status unicode_form(int op, const struct ree_strbuf *in, struct ree_strbuf *out,
                                    struct ree_error *err) {
    size_t stable = stable_prefix(in, op == NFC);
    ree_strbuf_append(out, in->data, stable);
    if (stable == in->size) return REE_OK;
    return ree_unicode_form(op == NFC || op == NFKC, op == NFKC || op == NFKD, in->data + stable,
                            in->size - stable, out, err);
}

static void bert_clean(const struct ree_strbuf *in, struct ree_strbuf *out) {
    for (size_t i = 0, step; i < in->size; i += step) {
        uint32_t c = ree_utf8_get(in->data + i, &step);
        // Vertical tab and similar characters are white space, but count as control characters
        // here.
        bool blank = c == '\t' || c == '\n' || c == '\r';
        if (c == 0xFFFD || (ree_char_is_other(c) && !blank)) continue;
        if (blank || ree_char_is_space(c))
            ree_strbuf_append(out, " ", 1);
        else
            ree_strbuf_append(out, in->data + i, step);
    }
}

static void bert_chinese(const struct ree_strbuf *in, struct ree_strbuf *out) {
    for (size_t i = 0, step; i < in->size; i += step) {
        bool cjk = ree_char_is_cjk(ree_utf8_get(in->data + i, &step));
        if (cjk) ree_strbuf_append(out, " ", 1);
        ree_strbuf_append(out, in->data + i, step);
        if (cjk) ree_strbuf_append(out, " ", 1);
    }
}

static void remove_if(bool (*is)(uint32_t c), const struct ree_strbuf *in, struct ree_strbuf *out) {
    for (size_t i = 0, step; i < in->size; i += step)
        if (!is(ree_utf8_get(in->data + i, &step))) ree_strbuf_append(out, in->data + i, step);
}

static void lowercase(const struct ree_strbuf *in, struct ree_strbuf *out) {
    for (size_t i = 0, step; i < in->size; i += step)
        ree_char_append_lower(out, ree_utf8_get(in->data + i, &step));
}

static void strip(const struct ree_stage *stage, const struct ree_strbuf *in,
                  struct ree_strbuf *out, size_t *origin) {
    size_t from = 0, to = in->size, step;
    while (stage->numbers[0] && from < to &&
           ree_char_is_space(ree_utf8_get(in->data + from, &step)))
        from += step;
    while (stage->numbers[1] && from < to) {
        size_t last = ree_utf8_last_size(in->data, to);
        if (!ree_char_is_space(ree_utf8_get(in->data + to - last, &step))) break;
        to -= last;
    }
    ree_strbuf_append(out, in->data + from, to - from);
    *origin = *origin > from ? *origin - from : 0;
}

// SentencePiece's nmt_nfkc without NFKC: removes control characters and converts special ones to
// spaces.
static void nmt(const struct ree_strbuf *in, struct ree_strbuf *out) {
    for (size_t i = 0, step; i < in->size; i += step) {
        uint32_t c = ree_utf8_get(in->data + i, &step);
        if ((c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F ||
            c == 0x9F)
            continue;
        if (c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 ||
            (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
            c == 0xFEFF || c == 0xFFFD)
            ree_strbuf_append(out, " ", 1);
        else
            ree_strbuf_append(out, in->data + i, step);
    }
}

static enum ree_status replace(const struct ree_stage *stage, struct ree_matcher *matcher,
                               const struct ree_strbuf *in, struct ree_strbuf *out, size_t *origin,
                               size_t limit, struct ree_error *err) {
    size_t before = *origin;
    struct ree_spans spans = {0};
    enum ree_status status = ree_stage_search(stage, matcher, in->data, in->size, &spans, err);
    *origin = 0;
    for (size_t i = 0; status == REE_OK && out->size <= limit && i < spans.n; i++) {
        const struct ree_span *span = &spans.items[i];
        // The replacement has the origin of the last replaced character or, without one, of the
        // previous character.
        if (span->match) {
            ree_strbuf_append(out, stage->strings[1].data, stage->strings[1].size);
            if (before && span->end <= before) *origin = out->size;
            continue;
        }
        if (span->start < before)
            *origin = out->size + (span->end < before ? span->end : before) - span->start;
        ree_strbuf_append(out, in->data + span->start, span->end - span->start);
    }
    ree_free(spans.items);
    return status;
}

typedef void rewrite(const struct ree_strbuf *in, struct ree_strbuf *out);

static void strip_marks(const struct ree_strbuf *in, struct ree_strbuf *out) {
    remove_if(ree_char_is_mark, in, out);
}

static void strip_nonspacing(const struct ree_strbuf *in, struct ree_strbuf *out) {
    remove_if(ree_char_is_nonspacing, in, out);
}

static void map_bytes(const struct ree_strbuf *in, struct ree_strbuf *out) {
    ree_bytes_append(out, in->data, in->size);
}

// Returns the function of a stage that converts one character at a time; NULL for other stages.
static rewrite *rewrite_of(int op) {
    switch (op) {
    case LOWERCASE: return lowercase;
    case STRIP_ACCENTS: return strip_marks;
    case NMT: return nmt;
    case BYTE_LEVEL: return map_bytes;
    default: return NULL;
    }
}

static enum ree_status pass(int op, rewrite *function, const struct ree_stage *stage,
                            struct ree_matcher *matcher, const struct ree_strbuf *text,
                            struct ree_strbuf *out, size_t *origin, size_t limit,
                            struct ree_error *err) {
    if (function) {
        function(text, out);
        return REE_OK;
    }
    switch (op) {
    case STRIP: strip(stage, text, out, origin); return REE_OK;
    case PREPEND:
        ree_strbuf_append(out, stage->strings[0].data, stage->strings[0].size);
        ree_strbuf_append(out, text->data, text->size);
        if (*origin) *origin += stage->strings[0].size;
        return REE_OK;
    case REPLACE: return replace(stage, matcher, text, out, origin, limit, err);
    case PRECOMPILED: ree_charsmap_apply(stage, text->data, text->size, limit, out); return REE_OK;
    default: return unicode_form(op, text, out, err);
    }
}

// Updates *origin: runs the stage on the first *origin bytes of the text only, and takes the size
// of the result. It is not for Replace, so it needs no matcher. A normalization form may compose
// these bytes with the text after them, so the new origin is then at least the first character of
// the new text, `whole`.
static enum ree_status follow(int op, rewrite *function, const struct ree_stage *stage,
                              struct ree_strbuf *text, const struct ree_strbuf *whole,
                              size_t *origin, struct ree_error *err) {
    struct ree_strbuf made, begin = {.data = text->data, .size = *origin};
    size_t before = *origin, first = 0;
    ree_strbuf_init(&made);
    enum ree_status status = pass(op, function, stage, NULL, &begin, &made, &before, SIZE_MAX, err);
    *origin = made.size;
    if (!function && op != PRECOMPILED && whole->size) ree_utf8_get(whole->data, &first);
    if (*origin < first) *origin = first;
    ree_strbuf_finish(&made);
    return status;
}

// Runs one pass over the text into a new buffer, which then replaces *text.
static enum ree_status apply(int op, rewrite *function, const struct ree_stage *stage,
                             struct ree_normalizing *run, struct ree_strbuf *text, size_t *origin,
                             struct ree_error *err) {
    size_t limit = run->n_left < SIZE_MAX - text->size ? text->size + run->n_left : SIZE_MAX;
    struct ree_strbuf out;
    ree_strbuf_init(&out);
    if (!function) function = rewrite_of(op);
    enum ree_status status =
        pass(op, function, stage, run->matcher, text, &out, origin, limit, err);
    bool itself = !function && (op == STRIP || op == PREPEND || op == REPLACE);
    if (status == REE_OK && out.failed)
        status = ree_fail(err, REE_NO_MEMORY, "no memory for normalized text");
    if (status == REE_OK && out.size > limit)
        status = ree_fail(err, REE_UNSUPPORTED,
                          "%s would expand the text to more than %zu bytes; all stages together "
                          "may add 64 bytes for each byte, plus 1 MiB",
                          stage->kind->type, limit);
    if (status == REE_OK && *origin && !itself)
        status = follow(op, function, stage, text, &out, origin, err);
    if (status != REE_OK) {
        ree_strbuf_finish(&out);
        return status;
    }
    if (*origin > out.size) *origin = out.size;
    if (out.size > text->size) run->n_left -= out.size - text->size;
    ree_strbuf_finish(text);
    *text = out;
    return REE_OK;
}

static enum ree_status bert(const struct ree_stage *stage, struct ree_normalizing *run,
                            struct ree_strbuf *text, size_t *origin, struct ree_error *err) {
    if (stage->numbers[0]) REE_TRY(apply(BERT, bert_clean, stage, run, text, origin, err));
    if (stage->numbers[1]) REE_TRY(apply(BERT, bert_chinese, stage, run, text, origin, err));
    if (stage->numbers[2]) {
        if (text->size) REE_TRY(apply(NFD, NULL, stage, run, text, origin, err));
        REE_TRY(apply(BERT, strip_nonspacing, stage, run, text, origin, err));
    }
    return stage->numbers[3] ? apply(BERT, lowercase, stage, run, text, origin, err) : REE_OK;
}

enum ree_status ree_normalize(const struct ree_stage *stage, struct ree_normalizing *run,
                              struct ree_strbuf *text, size_t *origin, struct ree_error *err) {
    if (!stage->kind || text->size == 0) return REE_OK;
    int op = stage->kind->op;
    if (op == BERT) return bert(stage, run, text, origin, err);
    if (op != SEQUENCE) return apply(op, NULL, stage, run, text, origin, err);
    for (uint32_t i = 0; i < stage->n_children; i++)
        REE_TRY(ree_normalize(&stage->children[i], run, text, origin, err));
    return REE_OK;
}
