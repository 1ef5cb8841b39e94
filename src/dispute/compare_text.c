#include "dispute/compare_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"

struct course {
    const struct ree_compare_text *text;
    int32_t *ids; // tokens of prompt and answer
    size_t n, limit;
    struct ree_error *err;
};

// Runs both generators over ids[from ... from + length - 1]. *out_id receives the token that the
// first generator finds most likely.
static enum ree_status step(struct course *c, size_t from, size_t length, int32_t *out_id) {
    bool has_cache = c->text->generators[0]->info.has_cache;
    int64_t start = has_cache ? (int64_t)from : 0, row = (int64_t)length - 1;
    struct ree_step step = {1, length, c->ids + from, &start, 1, &row};
    for (int k = 0; k < 2; k++) {
        struct ree_tensor logits;
        REE_TRY(ree_generator_step(c->text->generators[k], &step, &logits, c->err));
        enum ree_status status = REE_OK;
        if (k == 0 && out_id)
            status = ree_sampling_choose(&ree_greedy, logits.data, (size_t)logits.dims[2], c->ids,
                                         c->n, c->n, out_id, c->err);
        ree_tensor_finish(&logits);
        REE_TRY(status);
    }
    if (c->text->on_step) c->text->on_step(c->text->user);
    return REE_OK;
}

static bool is_end(const struct ree_compare_text *text, int32_t id) {
    for (size_t i = 0; i < text->n_eos; i++)
        if (text->eos[i] == id) return true;
    return false;
}

static enum ree_status run(struct course *c) {
    const struct ree_compare_text *text = c->text;
    const struct ree_generator *g = text->generators[0];
    size_t chunk = g->info.has_cache ? g->options.prefill_chunk : c->n, from = 0;
    int32_t id = 0;
    for (; from < text->n_prompt; from += chunk) {
        size_t left = text->n_prompt - from, length = left < chunk ? left : chunk;
        REE_TRY(step(c, from, length, length == left && text->max_new_tokens ? &id : NULL));
    }
    while (c->n < c->limit) {
        c->ids[c->n++] = id;
        if (is_end(text, id) || c->n == c->limit) break;
        from = g->info.has_cache ? c->n - 1 : 0;
        REE_TRY(step(c, from, c->n - from, &id));
    }
    return REE_OK;
}

enum ree_status ree_compare_text(const struct ree_compare_text *text, int32_t **out_ids,
                                 size_t *out_n, struct ree_error *err) {
    const struct ree_generator_info *info = &text->generators[0]->info;
    struct course c = {.text = text, .n = text->n_prompt, .err = err};
    *out_ids = NULL;
    *out_n = 0;
    c.limit = text->n_prompt + text->max_new_tokens;
    if (info->context_length > 0 && c.limit > (uint64_t)info->context_length)
        c.limit = (size_t)info->context_length;
    if (text->n_prompt == 0) return ree_fail(err, REE_INVALID, "the prompt has no tokens");
    if (info->context_length > 0 && text->n_prompt > (uint64_t)info->context_length)
        return ree_fail(err, REE_INVALID,
                        "the prompt has %zu tokens, but the model's context is %lld",
                        text->n_prompt, (long long)info->context_length);
    for (size_t i = 0; i < text->n_prompt; i++)
        if (text->prompt[i] < 0 || (info->vocab_size && text->prompt[i] >= info->vocab_size))
            return ree_fail(
                err, REE_INVALID,
                "token %zu of the prompt is %d, but the model's vocabulary has %lld tokens", i,
                text->prompt[i], (long long)info->vocab_size);
    c.ids = ree_alloc((c.limit + 1) * sizeof *c.ids);
    if (!c.ids) return ree_no_memory(err);
    memcpy(c.ids, text->prompt, text->n_prompt * sizeof *c.ids);
    enum ree_status status = REE_OK;
    for (int k = 0; k < 2 && status == REE_OK; k++)
        status = ree_generator_begin(text->generators[k], 0, 1, (int64_t)c.limit, err);
    if (status == REE_OK) status = run(&c);
    if (status != REE_OK) {
        ree_free(c.ids);
        return status;
    }
    *out_n = c.n - text->n_prompt;
    memmove(c.ids, c.ids + text->n_prompt, *out_n * sizeof *c.ids);
    *out_ids = c.ids;
    return REE_OK;
}
