#include "text/stage.h"

#include <stdlib.h>
#include "base/memory.h"

// Maximum nesting of sequences. No file needs more than two levels.
#define MAX_DEPTH 8
// Maximum number of stages of a family. Each stage may be a level of recursion in decoding.
#define MAX_STAGES 256

static const struct ree_stage_kind *find_kind(const struct ree_stage_family *family,
                                              const char *type) {
    for (size_t i = 0; i < family->n_kinds; i++)
        if (strcmp(family->kinds[i].type, type) == 0) return &family->kinds[i];
    return NULL;
}

// n_left: how many stages the family may still have.
static enum ree_status parse(const struct ree_stage_family *family, struct ree_arena *arena,
                             const cJSON *json, int depth, int *n_left, struct ree_stage *stage,
                             struct ree_error *err);

static enum ree_status parse_sequence(const struct ree_stage_family *family,
                                      struct ree_arena *arena, const cJSON *json, int depth,
                                      int *n_left, struct ree_stage *stage, struct ree_error *err) {
    const cJSON *members, *member;
    REE_TRY(ree_text_json_want(json, family->members, &members, err));
    int n = cJSON_IsArray(members) ? cJSON_GetArraySize(members) : -1;
    if (n < 0) return ree_fail(err, REE_INVALID, "'%s' is not an array", family->members);
    if (n > *n_left) return ree_fail(err, REE_UNSUPPORTED, "more than %d stages", MAX_STAGES);
    *n_left -= n;
    if (depth >= MAX_DEPTH)
        return ree_fail(err, REE_UNSUPPORTED, "sequences nested more than %d deep", MAX_DEPTH);
    stage->children = ree_arena_alloc_array(arena, (size_t)n, sizeof *stage->children);
    if (!stage->children) return ree_fail(err, REE_NO_MEMORY, "no memory for a sequence");
    cJSON_ArrayForEach(member, members) {
        uint32_t i = stage->n_children++;
        enum ree_status status =
            parse(family, arena, member, depth + 1, n_left, &stage->children[i], err);
        if (status != REE_OK) return ree_fail_prefix(err, "%s[%u]", family->members, i);
    }
    return REE_OK;
}

static enum ree_status parse(const struct ree_stage_family *family, struct ree_arena *arena,
                             const cJSON *json, int depth, int *n_left, struct ree_stage *stage,
                             struct ree_error *err) {
    memset(stage, 0, sizeof *stage);
    if (!json || cJSON_IsNull(json)) return REE_OK;
    const cJSON *type;
    if (!cJSON_IsObject(json)) return ree_fail(err, REE_INVALID, "not an object");
    REE_TRY(ree_text_json_want(json, "type", &type, err));
    if (!cJSON_IsString(type)) return ree_fail(err, REE_INVALID, "'type' is not a string");
    stage->kind = find_kind(family, type->valuestring);
    if (!stage->kind)
        return ree_fail(err, REE_UNSUPPORTED, "%s '%.80s' is not supported", family->what,
                        type->valuestring);
    enum ree_status status = REE_OK;
    if (stage->kind->op == 0)
        status = parse_sequence(family, arena, json, depth, n_left, stage, err);
    else if (stage->kind->parse)
        status = stage->kind->parse(arena, json, stage, err);
    return status == REE_OK ? REE_OK : ree_fail_prefix(err, "%s", stage->kind->type);
}

enum ree_status ree_stage_parse(const struct ree_stage_family *family, struct ree_arena *arena,
                                const cJSON *json, struct ree_stage *stage, struct ree_error *err) {
    int n_left = MAX_STAGES;
    enum ree_status status = parse(family, arena, json, 0, &n_left, stage, err);
    return status == REE_OK ? REE_OK : ree_fail_prefix(err, "%s", family->what);
}

enum ree_status ree_stage_named(const struct ree_stage_family *family, struct ree_arena *arena,
                                const char *type, struct ree_stage *stage, struct ree_error *err) {
    cJSON *json = cJSON_CreateObject();
    enum ree_status status;
    if (json && cJSON_AddStringToObject(json, "type", type))
        status = ree_stage_parse(family, arena, json, stage, err);
    else
        status = ree_fail(err, REE_NO_MEMORY, "no memory for a %s", family->what);
    cJSON_Delete(json);
    return status;
}

void ree_stage_finish(struct ree_stage *stage) {
    for (uint32_t i = 0; i < stage->n_children; i++)
        ree_stage_finish(&stage->children[i]);
    ree_regex_destroy(stage->regex);
    memset(stage, 0, sizeof *stage);
}

void ree_describe_string(struct ree_str string, struct ree_strbuf *out) {
    ree_strbuf_printf(out, "%zu:", string.size);
    if (string.size) ree_strbuf_append(out, string.data, string.size);
    ree_strbuf_append(out, " ", 1);
}

static void describe(const struct ree_stage *stage, const char *type, bool with_items,
                     struct ree_strbuf *out) {
    ree_strbuf_printf(out, "%s ", type);
    for (size_t i = 0; i < 4; i++)
        ree_strbuf_printf(out, "%u ", stage->numbers[i]);
    for (size_t i = 0; i < 3; i++)
        ree_describe_string(stage->strings[i], out);
    ree_strbuf_printf(out, "%u ", stage->n_children);
    for (uint32_t i = 0; i < stage->n_children; i++) {
        const struct ree_stage *child = &stage->children[i];
        if (child->kind || with_items)
            describe(child, child->kind ? child->kind->type : "item", with_items, out);
        else
            ree_strbuf_printf(out, "none ");
    }
}

void ree_stage_describe(const struct ree_stage *stage, bool with_items, struct ree_strbuf *out) {
    if (stage->kind)
        describe(stage, stage->kind->type, with_items, out);
    else
        ree_strbuf_printf(out, "none ");
}

enum ree_status ree_stage_pattern(struct ree_arena *arena, const cJSON *json,
                                  struct ree_stage *stage, struct ree_error *err) {
    const cJSON *pattern;
    REE_TRY(ree_text_json_want(json, "pattern", &pattern, err));
    bool regex = ree_text_json_get(pattern, "Regex") != NULL;
    REE_TRY(ree_text_json_string(arena, pattern, regex ? "Regex" : "String", NULL,
                                 &stage->strings[0], err));
    if (!stage->strings[0].data)
        return ree_fail(err, REE_INVALID, "'pattern' has neither 'String' nor 'Regex'");
    stage->numbers[3] = regex;
    return regex ? ree_regex_create(stage->strings[0], &stage->regex, err) : REE_OK;
}

enum ree_status ree_spans_add(struct ree_spans *spans, size_t start, size_t end, bool match,
                              struct ree_error *err) {
    if (spans->n == spans->capacity) {
        size_t capacity = spans->capacity ? spans->capacity * 2 : 64;
        struct ree_span *items = ree_realloc(spans->items, capacity * sizeof *items);
        if (!items) return ree_fail(err, REE_NO_MEMORY, "no memory for the parts of a text");
        spans->items = items;
        spans->capacity = capacity;
    }
    spans->items[spans->n++] = (struct ree_span){start, end, match};
    return REE_OK;
}

static enum ree_status find(const struct ree_stage *stage, struct ree_matcher *matcher,
                            const char *text, size_t n, size_t from, struct ree_span *out,
                            struct ree_error *err) {
    if (stage->regex)
        return ree_matcher_find(matcher, stage->regex, text, n, from, &out->match, &out->start,
                                &out->end, err);
    const struct ree_str *pattern = &stage->strings[0];
    const char *at = text + from;
    if (pattern->size) at = memmem(at, n - from, pattern->data, pattern->size);
    out->match = at != NULL;
    if (at) {
        out->start = (size_t)(at - text);
        out->end = out->start + pattern->size;
    }
    return REE_OK;
}

enum ree_status ree_stage_search(const struct ree_stage *stage, struct ree_matcher *matcher,
                                 const char *text, size_t n, struct ree_spans *spans,
                                 struct ree_error *err) {
    spans->n = 0;
    size_t done = 0, from = 0;
    bool any = false;
    while (n && from <= n) {
        struct ree_span found = {0, 0, false};
        REE_TRY(find(stage, matcher, text, n, from, &found, err));
        if (!found.match) break;
        if (found.start == found.end && any && found.end == done) {
            // An empty match directly after a match is skipped: continue after the next character.
            do
                from++;
            while (from < n && ((unsigned char)text[from] & 0xC0) == 0x80);
            continue;
        }
        from = found.end;
        if (found.start > done) REE_TRY(ree_spans_add(spans, done, found.start, false, err));
        REE_TRY(ree_spans_add(spans, found.start, found.end, true, err));
        done = found.end;
        any = true;
    }
    return done < n ? ree_spans_add(spans, done, n, false, err) : REE_OK;
}
