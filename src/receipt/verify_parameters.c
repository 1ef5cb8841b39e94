// Compares the eos tokens and the context length of a receipt with those of the model.
#include <stdio.h>
#include <stdlib.h>

#include "receipt/verify_internal.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/strbuf.h"
#include "generate/causality.h"
#include "generate/eos.h"
#include "generate/id_set.h"
#include "session/model.h"

// Returns whether a token of the answer is in only one of the two sets of eos tokens.
static bool changes_answer(const struct ree_id_set *a, const struct ree_id_set *b,
                           const int32_t *answer, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (ree_id_set_has(a, answer[i]) != ree_id_set_has(b, answer[i])) return true;
    return false;
}

// Writes the ids, for example "2 32000", or "none". The text ends with "..." if it does not fit.
static void list_ids(const int32_t *ids, size_t n, char *out, size_t size) {
    size_t at = (size_t)snprintf(out, size, "%s", n ? "" : "none");
    for (size_t i = 0; i < n && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%d", i ? " " : "", ids[i]);
    if (at >= size) snprintf(out + size - 4, 4, "...");
}

// The eos tokens of the model and those of the receipt.
struct ends {
    int32_t *ids; // the model's ids, in its order
    size_t n;
    size_t n_of_tokenizer; // how many of them the tokenizer's files state
    struct ree_id_set model, receipt;
    struct ree_id_set alone; // those that the model names, without its tokenizer's
};

static void finish_ends(struct ends *ends) {
    ree_free(ends->ids);
    ree_id_set_finish(&ends->model);
    ree_id_set_finish(&ends->receipt);
    ree_id_set_finish(&ends->alone);
}

static enum ree_status find_ends(const struct ree_verify_text *what, struct ends *out,
                                 struct ree_error *err) {
    const struct ree_receipt *r = what->receipt;
    if (!ree_eos_ids(ree_generator_info(what->generator), what->tokenizer, &out->ids, &out->n))
        return ree_no_memory(err);
    const struct ree_generator_info *info = ree_generator_info(what->generator);
    out->n_of_tokenizer = ree_eos_of_tokenizer(info, what->tokenizer);
    REE_TRY(ree_id_set_make(out->ids, out->n, &out->model, err));
    REE_TRY(ree_id_set_make(info->eos, info->n_eos, &out->alone, err));
    return ree_id_set_make(r->eos, r->n_eos, &out->receipt, err);
}

static void compare_ends(struct ree_verification *v, const struct ree_verify_text *what,
                         const struct ends *ends, const int32_t *answer, size_t n_answer) {
    const struct ree_receipt *r = what->receipt;
    char here[160], stated[160];
    list_ids(ends->ids, ends->n, here, sizeof here);
    list_ids(r->eos, r->n_eos, stated, sizeof stated);
    const char *hint = r->n_eos ? "" : " (--ignore-eos accepts that)";
    if (ree_id_set_is_same(&ends->model, &ends->receipt) || (what->ignores_eos && r->n_eos == 0))
        ree_verify_add(v, "ends", REE_VERIFY_AGREES, "%s", "");
    else if (ends->n == 0)
        ree_verify_add(
            v, "ends", REE_VERIFY_NOT_CHECKED,
            "this copy of the model does not state which tokens end a text; the receipt has %s",
            stated);
    else if (!changes_answer(&ends->model, &ends->receipt, answer, n_answer))
        ree_verify_add(v, "ends", REE_VERIFY_NOT_CHECKED,
                       "tokens that end a text: the model has %s, the receipt has %s; this makes "
                       "no difference for this answer%s",
                       here, stated, hint);
    else if (!r->tokenizer_sha256[0] && ree_id_set_is_same(&ends->alone, &ends->receipt))
        ree_verify_add(v, "ends", REE_VERIFY_NOT_CHECKED,
                       "tokens that end a text: the model with its tokenizer has %s, the receipt, "
                       "which was made without a tokenizer, has %s",
                       here, stated);
    else if (what->has_other_tokenizer && ends->n_of_tokenizer == 0 &&
             ree_id_set_contains(&ends->receipt, &ends->model))
        ree_verify_add(v, "ends", REE_VERIFY_NOT_CHECKED,
                       "tokens that end a text: the model has %s, the receipt has %s; the files "
                       "beside the passed tokenizer do not say whether it has more",
                       here, stated);
    else
        ree_verify_add(v, "ends", REE_VERIFY_DIFFERS,
                       "tokens that end a text: the model has %s, but the receipt has %s%s", here,
                       stated, hint);
}

enum ree_status ree_verify_ends(struct ree_verification *v, const struct ree_verify_text *what,
                                const int32_t *answer, size_t n_answer, struct ree_error *err) {
    struct ends ends = {0};
    enum ree_status status = find_ends(what, &ends, err);
    if (status == REE_OK) compare_ends(v, what, &ends, answer, n_answer);
    finish_ends(&ends);
    return status;
}

void ree_verify_context(struct ree_verification *v, const struct ree_verify_text *what,
                        size_t n_prompt, size_t n_answer) {
    const size_t n = n_prompt + n_answer;
    int64_t here = ree_generator_info(what->generator)->context_length;
    int64_t stated = what->receipt->context_length;
    if (here && (int64_t)n_prompt >= here)
        ree_verify_add(v, "context length", REE_VERIFY_DIFFERS,
                       "the model's is %lld; a prompt of %zu tokens leaves no position for an "
                       "answer",
                       (long long)here, n_prompt);
    else if (here && (int64_t)n > here)
        ree_verify_add(v, "context length", REE_VERIFY_DIFFERS,
                       "the model's is %lld, but prompt and answer have %zu tokens",
                       (long long)here, n);
    else if (here == stated)
        ree_verify_add(v, "context length", REE_VERIFY_AGREES, "%s", "");
    else if (stated == 0)
        ree_verify_add(v, "context length", REE_VERIFY_NOT_CHECKED,
                       "the receipt does not state it; the model's is %lld", (long long)here);
    else if (here)
        ree_verify_add(v, "context length", REE_VERIFY_DIFFERS,
                       "the model's is %lld, but the receipt has %lld", (long long)here,
                       (long long)stated);
    else if ((int64_t)n < stated)
        ree_verify_add(
            v, "context length", REE_VERIFY_NOT_CHECKED,
            "this copy of the model does not state it; the receipt has %lld, which is not reached",
            (long long)stated);
    else
        ree_verify_add(v, "context length", REE_VERIFY_NOT_CHECKED,
                       "this copy of the model does not state it; the receipt has %lld",
                       (long long)stated);
}

void ree_verify_chunk(struct ree_verification *v, const struct ree_verify_text *what,
                      size_t n_prompt) {
    const struct ree_generator *g = what->generator;
    const struct ree_receipt *r = what->receipt;
    const bool is_old = r->version == 1;
    const bool matters = n_prompt > r->trace_chunk || n_prompt > REE_UNPROVED_CHUNK;
    if (!r->has_trace || (is_old && !matters) || g->causality.is_proved ||
        !ree_chunk_needs_causality(&g->roles, r->trace_chunk))
        return;
    // What is proved depends on folding.
    const bool is_sure = !is_old && !g->model->no_fold;
    ree_verify_add(
        v, "prefill chunk", is_sure ? REE_VERIFY_DIFFERS : REE_VERIFY_NOT_CHECKED,
        "%u%s: the model is not proved to be causal, so its prompts run in chunks of %u "
        "tokens: %s",
        r->trace_chunk,
        is_old ? ", which ree-receipt/1 leaves to the prover; the answer may depend on it" : "",
        REE_UNPROVED_CHUNK, g->causality.why_not);
}
