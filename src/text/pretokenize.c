#include "text/pretokenize.h"

#include "base/memory.h"
#include "text/bytes.h"
#include "text/utf8.h"

#include <stdlib.h>

enum {
    SEQUENCE,
    BYTE_LEVEL,
    SPLIT,
    METASPACE,
    WHITESPACE,
    WHITESPACE_SPLIT,
    BERT,
    PUNCTUATION,
    DIGITS,
    CHAR_DELIMITER,
    FIXED_LENGTH
};

// What happens to the matches of a pattern.
enum { REMOVED, ISOLATED, MERGED_WITH_PREVIOUS, MERGED_WITH_NEXT, CONTIGUOUS };
static const char *const behaviors[] = {"Removed", "Isolated", "MergedWithPrevious",
                                        "MergedWithNext", "Contiguous"};

// GPT-2's words: contractions; then letters, numbers or others, each with an optional space before;
// then spaces.
static const char gpt2_pattern[] =
    "'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

// numbers: add_prefix_space, use_regex, 1 if the model converts the bytes
// (ree_pretokenizer_defer_bytes); strings: the pattern
static enum ree_status parse_byte_level(struct ree_arena *arena, const cJSON *json,
                                        struct ree_stage *stage, struct ree_error *err) {
    REE_TRY(ree_text_json_bool(json, "add_prefix_space", true, &stage->numbers[0], err));
    REE_TRY(ree_text_json_bool(json, "use_regex", true, &stage->numbers[1], err));
    if (!stage->numbers[1]) return REE_OK;
    REE_TRY(ree_text_json_copy(arena, gpt2_pattern, &stage->strings[0], err));
    return ree_regex_create(stage->strings[0], &stage->regex, err);
}

static enum ree_status parse_behavior(const cJSON *json, const char *fallback, uint32_t *out,
                                      struct ree_error *err) {
    const cJSON *behavior = ree_text_json_get(json, "behavior");
    const char *name = cJSON_IsString(behavior) ? behavior->valuestring : behavior ? "" : fallback;
    for (*out = 0; *out < sizeof behaviors / sizeof *behaviors; ++*out)
        if (strcmp(name, behaviors[*out]) == 0) return REE_OK;
    return ree_fail(err, REE_UNSUPPORTED, "behavior '%.80s' is not supported", name);
}

// strings: pattern; numbers: behavior, invert, unused, the pattern is a regex
static enum ree_status parse_split(struct ree_arena *arena, const cJSON *json,
                                   struct ree_stage *stage, struct ree_error *err) {
    REE_TRY(parse_behavior(json, "", &stage->numbers[0], err));
    REE_TRY(ree_text_json_bool(json, "invert", false, &stage->numbers[1], err));
    return ree_stage_pattern(arena, json, stage, err);
}

enum { NEVER, FIRST, ALWAYS };

// strings: replacement of a space; numbers: when a replacement is prepended, whether to split
static enum ree_status parse_metaspace(struct ree_arena *arena, const cJSON *json,
                                       struct ree_stage *stage, struct ree_error *err) {
    struct ree_str scheme;
    uint32_t add;
    REE_TRY(
        ree_text_json_string(arena, json, "replacement", "\xE2\x96\x81", &stage->strings[0], err));
    REE_TRY(ree_text_json_bool(json, "add_prefix_space", true, &add, err)); // in older files
    REE_TRY(ree_text_json_string(arena, json, "prepend_scheme", add ? "always" : "never", &scheme,
                                 err));
    static const char *const schemes[] = {"never", "first", "always"};
    uint32_t i = 0;
    while (i < 3 && strcmp(scheme.data, schemes[i]) != 0)
        i++;
    if (i == 3)
        return ree_fail(err, REE_UNSUPPORTED, "prepend_scheme '%.80s' is not supported",
                        scheme.data);
    stage->numbers[0] = i;
    if (ree_utf8_count(stage->strings[0].data, stage->strings[0].size) != 1)
        return ree_fail(err, REE_INVALID, "'replacement' is not one character");
    return ree_text_json_bool(json, "split", true, &stage->numbers[1], err);
}

// numbers: behavior
static enum ree_status parse_punctuation(struct ree_arena *arena, const cJSON *json,
                                         struct ree_stage *stage, struct ree_error *err) {
    (void)arena;
    return parse_behavior(json, "Isolated", &stage->numbers[0], err);
}

// numbers: 1 if each digit is a separate piece
static enum ree_status parse_digits(struct ree_arena *arena, const cJSON *json,
                                    struct ree_stage *stage, struct ree_error *err) {
    (void)arena;
    return ree_text_json_bool(json, "individual_digits", false, &stage->numbers[0], err);
}

// strings: the delimiter
static enum ree_status parse_delimiter(struct ree_arena *arena, const cJSON *json,
                                       struct ree_stage *stage, struct ree_error *err) {
    REE_TRY(ree_text_json_string(arena, json, "delimiter", "", &stage->strings[0], err));
    if (ree_utf8_count(stage->strings[0].data, stage->strings[0].size) != 1)
        return ree_fail(err, REE_INVALID, "'delimiter' is not one character");
    return REE_OK;
}

// numbers: characters per piece
static enum ree_status parse_fixed_length(struct ree_arena *arena, const cJSON *json,
                                          struct ree_stage *stage, struct ree_error *err) {
    (void)arena;
    REE_TRY(ree_text_json_u32(json, "length", 5, &stage->numbers[0], err));
    if (stage->numbers[0] == 0) return ree_fail(err, REE_INVALID, "'length' is 0");
    return REE_OK;
}

static const struct ree_stage_kind kinds[] = {
    {"Sequence", SEQUENCE, NULL},
    {"ByteLevel", BYTE_LEVEL, parse_byte_level},
    {"Split", SPLIT, parse_split},
    {"Metaspace", METASPACE, parse_metaspace},
    {"Whitespace", WHITESPACE, NULL},
    {"WhitespaceSplit", WHITESPACE_SPLIT, NULL},
    {"BertPreTokenizer", BERT, NULL},
    {"Punctuation", PUNCTUATION, parse_punctuation},
    {"Digits", DIGITS, parse_digits},
    {"CharDelimiterSplit", CHAR_DELIMITER, parse_delimiter},
    {"FixedLength", FIXED_LENGTH, parse_fixed_length},
};

const struct ree_stage_family ree_pretokenizers = {"pre_tokenizer", "pretokenizers", kinds,
                                                   sizeof kinds / sizeof *kinds};

bool ree_pretokenizer_defer_bytes(struct ree_stage *stage, bool wanted) {
    if (!stage->kind) return false;
    if (stage->kind->op == SEQUENCE)
        return stage->n_children &&
               ree_pretokenizer_defer_bytes(&stage->children[stage->n_children - 1], wanted);
    if (stage->kind->op != BYTE_LEVEL) return false;
    stage->numbers[2] = wanted;
    return wanted;
}

void ree_pieces_init(struct ree_pieces *pieces, struct ree_matcher *matcher, uint64_t n_left) {
    memset(pieces, 0, sizeof *pieces);
    pieces->n_left = n_left;
    pieces->matcher = matcher;
}

void ree_pieces_finish(struct ree_pieces *pieces) {
    ree_free(pieces->items);
    ree_free(pieces->spans.items);
    ree_arena_finish(&pieces->arena);
    memset(pieces, 0, sizeof *pieces);
}

// Returns how many of the piece's origin bytes are at or after `start`.
static size_t origin_from(const struct ree_piece *piece, size_t start) {
    return piece->origin > start ? piece->origin - start : 0;
}

static enum ree_status add_piece(struct ree_pieces *pieces, const char *data, size_t size,
                                 size_t origin, struct ree_error *err) {
    if (size == 0) return REE_OK;
    if (pieces->n == pieces->capacity) {
        size_t capacity = pieces->capacity ? pieces->capacity * 2 : 64;
        struct ree_piece *items = ree_realloc(pieces->items, capacity * sizeof *items);
        if (!items) return ree_fail(err, REE_NO_MEMORY, "no memory for the pieces of a text");
        pieces->items = items;
        pieces->capacity = capacity;
    }
    if (origin > size) origin = size;
    pieces->items[pieces->n++] = (struct ree_piece){data, size, origin};
    return REE_OK;
}

// Makes pieces of pieces->spans, the matches in `piece` and the parts between them, as `behavior`
// says. `invert` exchanges matches and other parts. Merges spans in place.
static enum ree_status add_spans(struct ree_pieces *pieces, const struct ree_piece *piece,
                                 uint32_t behavior, bool invert, struct ree_error *err) {
    struct ree_span *spans = pieces->spans.items;
    size_t n = pieces->spans.n, kept = 0;
    for (size_t i = 0; invert && i < n; i++)
        spans[i].match = !spans[i].match;
    bool before = false;
    switch (behavior) {
    case REMOVED:
        for (size_t i = 0; i < n; i++)
            if (!spans[i].match) spans[kept++] = spans[i];
        break;
    case MERGED_WITH_PREVIOUS:
        for (size_t i = 0; i < n; i++) {
            bool match = spans[i].match;
            if (match && !before && kept > 0)
                spans[kept - 1].end = spans[i].end;
            else
                spans[kept++] = spans[i];
            before = match;
        }
        break;
    case MERGED_WITH_NEXT: // as MERGED_WITH_PREVIOUS, from the end
        kept = n;
        for (size_t i = n; i-- > 0;) {
            bool match = spans[i].match;
            if (match && !before && kept < n)
                spans[kept].start = spans[i].start;
            else
                spans[--kept] = spans[i];
            before = match;
        }
        spans += kept;
        kept = n - kept;
        break;
    case CONTIGUOUS:
        for (size_t i = 0; i < n; i++) {
            bool match = spans[i].match;
            if (match == before && kept > 0)
                spans[kept - 1].end = spans[i].end;
            else
                spans[kept++] = spans[i];
            before = match;
        }
        break;
    default: kept = n; break;
    }
    for (size_t i = 0; i < kept; i++)
        REE_TRY(add_piece(pieces, piece->data + spans[i].start, spans[i].end - spans[i].start,
                          origin_from(piece, spans[i].start), err));
    return REE_OK;
}

// Makes each character that `is` accepts a separate match.
static enum ree_status search_chars(struct ree_pieces *pieces, const struct ree_piece *piece,
                                    bool (*is)(uint32_t c), struct ree_error *err) {
    pieces->spans.n = 0;
    size_t done = 0;
    for (size_t i = 0, step; i < piece->size; i += step) {
        if (!is(ree_utf8_get(piece->data + i, &step))) continue;
        if (i > done) REE_TRY(ree_spans_add(&pieces->spans, done, i, false, err));
        REE_TRY(ree_spans_add(&pieces->spans, i, i + step, true, err));
        done = i + step;
    }
    if (done < piece->size) return ree_spans_add(&pieces->spans, done, piece->size, false, err);
    return REE_OK;
}

static enum ree_status split_chars(struct ree_pieces *pieces, const struct ree_piece *piece,
                                   bool (*is)(uint32_t c), uint32_t behavior,
                                   struct ree_error *err) {
    REE_TRY(search_chars(pieces, piece, is, err));
    return add_spans(pieces, piece, behavior, false, err);
}

// Classes of characters for the pattern \w+|[^\w\s]+. 0: white space, which is dropped; 1: \w; 2:
// others.
static int class_of(uint32_t c) {
    return ree_char_is_space(c) ? 0 : ree_char_is_word(c) ? 1 : 2;
}

static enum ree_status split_words(struct ree_pieces *pieces, const struct ree_piece *piece,
                                   struct ree_error *err) {
    size_t start = 0;
    int before = 0;
    for (size_t i = 0, step; i < piece->size; i += step) {
        int class = class_of(ree_utf8_get(piece->data + i, &step));
        if (class == before) continue;
        if (before)
            REE_TRY(
                add_piece(pieces, piece->data + start, i - start, origin_from(piece, start), err));
        start = i;
        before = class;
    }
    if (!before) return REE_OK;
    return add_piece(pieces, piece->data + start, piece->size - start, origin_from(piece, start),
                     err);
}

// Removes white space; each punctuation character is a separate piece.
static enum ree_status split_bert(struct ree_pieces *pieces, const struct ree_piece *piece,
                                  struct ree_error *err) {
    size_t start = 0;
    for (size_t i = 0, step; i < piece->size; i += step) {
        uint32_t c = ree_utf8_get(piece->data + i, &step);
        bool space = ree_char_is_space(c);
        if (!space && !ree_char_is_punctuation(c)) continue;
        REE_TRY(add_piece(pieces, piece->data + start, i - start, origin_from(piece, start), err));
        if (!space) REE_TRY(add_piece(pieces, piece->data + i, step, origin_from(piece, i), err));
        start = i + step;
    }
    return add_piece(pieces, piece->data + start, piece->size - start, origin_from(piece, start),
                     err);
}

static enum ree_status split_length(struct ree_pieces *pieces, const struct ree_piece *piece,
                                    uint32_t length, struct ree_error *err) {
    size_t start = 0, i = 0, step;
    for (uint32_t count = 0; i < piece->size; i += step, count++) {
        ree_utf8_get(piece->data + i, &step);
        if (count < length) continue;
        REE_TRY(add_piece(pieces, piece->data + start, i - start, origin_from(piece, start), err));
        start = i;
        count = 0;
    }
    return add_piece(pieces, piece->data + start, piece->size - start, origin_from(piece, start),
                     err);
}

// Copies a text that a stage has made to the arena and releases it.
static enum ree_status keep(struct ree_pieces *pieces, struct ree_strbuf *text,
                            struct ree_piece *out, struct ree_error *err) {
    if (!text->failed && text->size > pieces->n_left) {
        ree_strbuf_finish(text);
        return ree_fail(err, REE_INVALID,
                        "the pre-tokenizer makes more than 64 bytes of text from each byte");
    }
    pieces->n_left -= text->failed ? 0 : text->size;
    out->size = text->size;
    out->data = text->failed ? NULL : ree_arena_strndup(&pieces->arena, text->data, text->size);
    ree_strbuf_finish(text);
    if (!out->data) return ree_fail(err, REE_NO_MEMORY, "no memory for the pieces of a text");
    return REE_OK;
}

static enum ree_status metaspace(const struct ree_stage *stage, struct ree_pieces *pieces,
                                 const struct ree_piece *piece, struct ree_error *err) {
    const struct ree_str *mark = &stage->strings[0];
    bool prepend = stage->numbers[0] == ALWAYS || (stage->numbers[0] == FIRST && piece->origin > 0);
    bool has = piece->data[0] == ' ' ||
               (piece->size >= mark->size && memcmp(piece->data, mark->data, mark->size) == 0);
    struct ree_strbuf text;
    struct ree_piece made = {.origin = piece->origin};
    ree_strbuf_init(&text);
    if (prepend && !has) ree_strbuf_append(&text, mark->data, mark->size);
    if (made.origin) made.origin += text.size;
    // keep() refuses a text above the limit; the loop ends soon after it.
    for (size_t i = 0; i < piece->size && text.size <= pieces->n_left;) {
        const char *space = memchr(piece->data + i, ' ', piece->size - i);
        size_t run = space ? (size_t)(space - piece->data) - i : piece->size - i;
        ree_strbuf_append(&text, piece->data + i, run);
        if (space) ree_strbuf_append(&text, mark->data, mark->size);
        if (space && i + run < piece->origin) made.origin += mark->size - 1;
        i += run + (space != NULL);
    }
    REE_TRY(keep(pieces, &text, &made, err));
    if (!stage->numbers[1]) return add_piece(pieces, made.data, made.size, made.origin, err);
    REE_TRY(ree_stage_search(stage, NULL, made.data, made.size, &pieces->spans, err));
    return add_spans(pieces, &made, MERGED_WITH_NEXT, false, err);
}

// Converts the pieces added since `from` to GPT-2's alphabet.
static enum ree_status map_bytes(struct ree_pieces *pieces, size_t from, struct ree_error *err) {
    for (size_t i = from; i < pieces->n; i++) {
        struct ree_strbuf text;
        ree_strbuf_init(&text);
        ree_bytes_append(&text, pieces->items[i].data, pieces->items[i].origin);
        size_t origin = text.size;
        ree_bytes_append(&text, pieces->items[i].data + pieces->items[i].origin,
                         pieces->items[i].size - pieces->items[i].origin);
        pieces->items[i].origin = origin;
        REE_TRY(keep(pieces, &text, &pieces->items[i], err));
    }
    return REE_OK;
}

static enum ree_status byte_level(const struct ree_stage *stage, struct ree_pieces *pieces,
                                  const struct ree_piece *piece, struct ree_error *err) {
    struct ree_piece made = *piece;
    size_t from = pieces->n;
    if (stage->numbers[0] && piece->data[0] != ' ') {
        struct ree_strbuf text;
        ree_strbuf_init(&text);
        ree_strbuf_append(&text, " ", 1);
        ree_strbuf_append(&text, piece->data, piece->size);
        made.origin += made.origin > 0;
        REE_TRY(keep(pieces, &text, &made, err));
    }
    if (stage->numbers[1]) {
        REE_TRY(
            ree_stage_search(stage, pieces->matcher, made.data, made.size, &pieces->spans, err));
        REE_TRY(add_spans(pieces, &made, ISOLATED, false, err));
    } else {
        REE_TRY(add_piece(pieces, made.data, made.size, made.origin, err));
    }
    return stage->numbers[2] ? REE_OK : map_bytes(pieces, from, err);
}

static enum ree_status split(const struct ree_stage *stage, struct ree_pieces *pieces,
                             const struct ree_piece *piece, struct ree_error *err) {
    switch (stage->kind->op) {
    case BYTE_LEVEL: return byte_level(stage, pieces, piece, err);
    case SPLIT:
        REE_TRY(ree_stage_search(stage, pieces->matcher, piece->data, piece->size, &pieces->spans,
                                 err));
        return add_spans(pieces, piece, stage->numbers[0], stage->numbers[1], err);
    case METASPACE: return metaspace(stage, pieces, piece, err);
    case WHITESPACE: return split_words(pieces, piece, err);
    case WHITESPACE_SPLIT: return split_chars(pieces, piece, ree_char_is_space, REMOVED, err);
    case BERT: return split_bert(pieces, piece, err);
    case PUNCTUATION:
        return split_chars(pieces, piece, ree_char_is_punctuation, stage->numbers[0], err);
    case DIGITS:
        return split_chars(pieces, piece, ree_char_is_numeric,
                           stage->numbers[0] ? ISOLATED : CONTIGUOUS, err);
    case CHAR_DELIMITER:
        REE_TRY(ree_stage_search(stage, NULL, piece->data, piece->size, &pieces->spans, err));
        return add_spans(pieces, piece, REMOVED, false, err);
    default: return split_length(pieces, piece, stage->numbers[0], err);
    }
}

// Applies a stage to all pieces and replaces them.
static enum ree_status apply(const struct ree_stage *stage, struct ree_pieces *pieces,
                             struct ree_error *err) {
    if (stage->kind->op == SEQUENCE) {
        for (uint32_t i = 0; i < stage->n_children; i++)
            if (stage->children[i].kind) REE_TRY(apply(&stage->children[i], pieces, err));
        return REE_OK;
    }
    struct ree_piece *before = pieces->items;
    size_t n = pieces->n;
    pieces->items = NULL;
    pieces->n = pieces->capacity = 0;
    enum ree_status status = REE_OK;
    for (size_t i = 0; status == REE_OK && i < n; i++)
        status = split(stage, pieces, &before[i], err);
    ree_free(before);
    return status;
}

enum ree_status ree_pretokenize(const struct ree_stage *stage, const char *text, size_t n,
                                size_t origin, struct ree_pieces *pieces, struct ree_error *err) {
    ree_arena_finish(&pieces->arena);
    pieces->n = 0;
    REE_TRY(add_piece(pieces, text, n, origin, err));
    return stage->kind ? apply(stage, pieces, err) : REE_OK;
}
