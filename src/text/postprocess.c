// Post-processors add the tokens before and after the ids of a text. Only templates for a single
// text are read, not those for pairs.
#include "text/tokenizer.h"

#include <stdlib.h>
#include "base/memory.h"

enum { SEQUENCE, TEMPLATE, BERT, ROBERTA, BYTE_LEVEL };

// Stands for the text in a template. It is recognised by its address.
static const char text_mark[] = "";

// The children of a template are its items, in order. strings[0] of an item is the name of a
// special token, or text_mark for the text. The children of an item are the token's ids, in
// numbers[0].
static enum ree_status parse_item(struct ree_arena *arena, const cJSON *item, const cJSON *tokens,
                                  struct ree_stage *stage, struct ree_error *err) {
    const cJSON *token = ree_text_json_get(item, "SpecialToken"), *ids, *id;
    int32_t value;
    if (!token) {
        struct ree_str sequence;
        REE_TRY(ree_text_json_string(arena, ree_text_json_get(item, "Sequence"), "id", "",
                                     &sequence, err));
        if (strcmp(sequence.data, "A") != 0)
            return ree_fail(err, REE_INVALID,
                            "an item of 'single' is neither a special token nor "
                            "sequence A");
        stage->strings[0] = (struct ree_str){text_mark, 0};
        return REE_OK;
    }
    REE_TRY(ree_text_json_string(arena, token, "id", "", &stage->strings[0], err));
    const cJSON *entry = ree_text_json_get(tokens, stage->strings[0].data);
    if (!entry)
        return ree_fail(err, REE_INVALID, "special token '%.80s' is not among 'special_tokens'",
                        stage->strings[0].data);
    REE_TRY(ree_text_json_want(entry, "ids", &ids, err));
    int n = cJSON_IsArray(ids) ? cJSON_GetArraySize(ids) : 0;
    if (n < 1 || n > 16)
        return ree_fail(err, REE_INVALID, "special token '%.80s': 'ids' is not an array of 1 to 16",
                        stage->strings[0].data);
    stage->children = ree_arena_alloc_array(arena, (size_t)n, sizeof *stage->children);
    if (!stage->children) return ree_fail(err, REE_NO_MEMORY, "no memory for a template");
    cJSON_ArrayForEach(id, ids) {
        REE_TRY(ree_text_json_id(id, &value, err));
        stage->children[stage->n_children++].numbers[0] = (uint32_t)value;
    }
    return REE_OK;
}

static enum ree_status parse_template(struct ree_arena *arena, const cJSON *json,
                                      struct ree_stage *stage, struct ree_error *err) {
    const cJSON *single, *item, *tokens = ree_text_json_get(json, "special_tokens");
    REE_TRY(ree_text_json_want(json, "single", &single, err));
    int n = cJSON_IsArray(single) ? cJSON_GetArraySize(single) : -1;
    if (n < 0 || n > 64)
        return ree_fail(err, REE_INVALID, "'single' is not an array of at most 64 items");
    stage->children = ree_arena_alloc_array(arena, (size_t)n, sizeof *stage->children);
    if (!stage->children) return ree_fail(err, REE_NO_MEMORY, "no memory for a template");
    cJSON_ArrayForEach(item, single)
        REE_TRY(parse_item(arena, item, tokens, &stage->children[stage->n_children++], err));
    return REE_OK;
}

static enum ree_status parse_pair(const cJSON *json, const char *name, uint32_t *out,
                                  struct ree_error *err) {
    const cJSON *pair;
    int32_t id;
    REE_TRY(ree_text_json_want(json, name, &pair, err));
    const cJSON *number = cJSON_GetArraySize(pair) == 2 ? cJSON_GetArrayItem(pair, 1) : NULL;
    if (!number) return ree_fail(err, REE_INVALID, "'%s' is not a token and its id", name);
    REE_TRY(ree_text_json_id(number, &id, err));
    *out = (uint32_t)id;
    return REE_OK;
}

// numbers: id of the token before the text, id of the token after it
static enum ree_status parse_cls_sep(struct ree_arena *arena, const cJSON *json,
                                     struct ree_stage *stage, struct ree_error *err) {
    (void)arena;
    REE_TRY(parse_pair(json, "cls", &stage->numbers[0], err));
    return parse_pair(json, "sep", &stage->numbers[1], err);
}

static const struct ree_stage_kind kinds[] = {
    {"Sequence", SEQUENCE, NULL},
    {"TemplateProcessing", TEMPLATE, parse_template},
    {"BertProcessing", BERT, parse_cls_sep},
    {"RobertaProcessing", ROBERTA, parse_cls_sep},
    {"ByteLevel", BYTE_LEVEL, NULL}, // only changes offsets
};

const struct ree_stage_family ree_postprocessors = {"post_processor", "processors", kinds,
                                                    sizeof kinds / sizeof *kinds};

static enum ree_status append(struct ree_ids *out, const struct ree_ids *ids,
                              struct ree_error *err) {
    for (size_t i = 0; i < ids->n; i++)
        REE_TRY(ree_ids_add(out, ids->items[i], err));
    return REE_OK;
}

static enum ree_status apply(const struct ree_stage *stage, const struct ree_ids *ids,
                             struct ree_ids *out, struct ree_error *err) {
    if (stage->kind->op != TEMPLATE) {
        REE_TRY(ree_ids_add(out, (int32_t)stage->numbers[0], err));
        REE_TRY(append(out, ids, err));
        return ree_ids_add(out, (int32_t)stage->numbers[1], err);
    }
    for (uint32_t i = 0; i < stage->n_children; i++) {
        const struct ree_stage *item = &stage->children[i];
        if (item->strings[0].data == text_mark) REE_TRY(append(out, ids, err));
        for (uint32_t j = 0; j < item->n_children; j++)
            REE_TRY(ree_ids_add(out, (int32_t)item->children[j].numbers[0], err));
    }
    return REE_OK;
}

// Returns the number of tokens that a stage makes of n tokens. A template can contain the text any
// number of times.
static uint64_t count(const struct ree_stage *stage, uint64_t n) {
    if (stage->kind->op != TEMPLATE) return n + 2;
    uint64_t total = 0;
    for (uint32_t i = 0; i < stage->n_children; i++)
        total += stage->children[i].n_children +
                 (stage->children[i].strings[0].data == text_mark ? n : 0);
    return total;
}

static enum ree_status process(const struct ree_stage *stage, struct ree_ids *ids, uint64_t most,
                               struct ree_error *err) {
    if (!stage->kind || stage->kind->op == BYTE_LEVEL) return REE_OK;
    if (stage->kind->op == SEQUENCE) {
        for (uint32_t i = 0; i < stage->n_children; i++)
            REE_TRY(process(&stage->children[i], ids, most, err));
        return REE_OK;
    }
    struct ree_ids out = {0};
    if (count(stage, ids->n) > most)
        return ree_fail(err, REE_INVALID,
                        "the post-processor produces more than %llu tokens for this text",
                        (unsigned long long)most);
    enum ree_status status = apply(stage, ids, &out, err);
    if (status != REE_OK) {
        ree_free(out.items);
        return status;
    }
    ree_free(ids->items);
    *ids = out;
    return REE_OK;
}

enum ree_status ree_postprocess(const struct ree_stage *stage, struct ree_ids *ids,
                                struct ree_error *err) {
    // The limit is far more than any tokenizer adds. Without it, each template in a sequence could
    // double the text.
    return process(stage, ids, 64 * (uint64_t)ids->n + (1u << 16), err);
}

bool ree_postprocess_is_empty(const struct ree_stage *stage) {
    return !stage->kind || stage->kind == &kinds[BYTE_LEVEL];
}

static enum ree_status check_id(const struct ree_tokenizer *tokenizer, uint32_t id,
                                struct ree_error *err) {
    if (ree_tokenizer_piece(tokenizer, (int32_t)id)) return REE_OK;
    return ree_fail(err, REE_INVALID, "post_processor: adds id %u, but no token has this id", id);
}

enum ree_status ree_postprocess_check(const struct ree_tokenizer *tokenizer,
                                      const struct ree_stage *stage, struct ree_error *err) {
    if (!stage->kind) return REE_OK;
    if (stage->kind->op == BERT || stage->kind->op == ROBERTA) {
        REE_TRY(check_id(tokenizer, stage->numbers[0], err));
        return check_id(tokenizer, stage->numbers[1], err);
    }
    for (uint32_t i = 0; i < stage->n_children; i++) {
        const struct ree_stage *child = &stage->children[i];
        REE_TRY(ree_postprocess_check(tokenizer, child, err));
        for (uint32_t j = 0; stage->kind->op == TEMPLATE && j < child->n_children; j++)
            REE_TRY(check_id(tokenizer, child->children[j].numbers[0], err));
    }
    return REE_OK;
}
