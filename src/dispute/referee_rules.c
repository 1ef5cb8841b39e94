// Decides claims about inputs, tokens, headers and lengths: compares the statements of each party
// with its own root, its own receipt and the model (dispute/rules.h).
#include <stdlib.h>
#include <string.h>

#include "trace/recorded.h"
#include "dispute/referee_internal.h"
#include "dispute/training_rules.h"
#include "base/memory.h"
#include "base/status.h"
#include "repops/scalar/convert.h"

static bool same(const ree_digest a, const ree_digest b) {
    return memcmp(a, b, sizeof(ree_digest)) == 0;
}

static enum ree_status need_receipts(const struct ree_hearing *hearing, struct ree_error *err) {
    if (hearing->has_receipts || hearing->training) return REE_OK;
    return ree_fail(err, REE_NOT_FOUND,
                    "a claim of the kind '%s' requires both receipts: --a-receipt and --b-receipt",
                    ree_claim_kind_name(hearing->claim->kind));
}

// Checks that the claim's node of the previous step is the model's node that computes this value.
static enum ree_status check_before(const struct ree_hearing *hearing, uint32_t value,
                                    struct ree_error *err) {
    const struct ree_trace_header *h = &hearing->model->header;
    const struct ree_claim_before *b = &hearing->claim->before;
    if (!hearing->claim->has_before)
        return ree_fail(err, REE_INVALID,
                        "the claim does not open the previous step: make it with --model");
    if (b->node >= h->n_nodes || b->output >= h->nodes[b->node].n_outputs ||
        h->nodes[b->node].first_output + b->output != value || !same(b->op, h->ops[b->node]) ||
        b->n_inputs != h->nodes[b->node].n_inputs || b->n_outputs != h->nodes[b->node].n_outputs)
        return ree_fail(err, REE_INVALID,
                        "the node of the previous step is not the one that the model requires");
    return REE_OK;
}

static const unsigned char *output_before(const struct ree_claim *c, unsigned k) {
    return c->sides[k].before.outputs[c->before.output];
}

// Tokens

static float widen(enum ree_dtype dtype, const void *data, size_t i) {
    float x;
    if (dtype == REE_F32) {
        memcpy(&x, (const char *)data + i * sizeof x, sizeof x);
        return x;
    }
    uint16_t bits;
    memcpy(&bits, (const char *)data + i * sizeof bits, sizeof bits);
    uint32_t wide = dtype == REE_BF16 ? (uint32_t)bits << 16 : ree_soft_f16_to_f32(bits);
    memcpy(&x, &wide, sizeof x);
    return x;
}

// Copies the last row of logits [1, rows, vocabulary] as binary32. It belongs to the last token of
// the previous step. Release *out with ree_free.
static enum ree_status last_row(const struct ree_tensor *t, float **out, size_t *out_n,
                                struct ree_error *err) {
    bool is_known = t->dtype == REE_F32 || t->dtype == REE_F16 || t->dtype == REE_BF16;
    if (t->kind != REE_TENSOR || !is_known || t->rank != 3 || t->dims[0] != 1 || t->dims[1] < 1 ||
        t->dims[2] < 1)
        return ree_fail(err, REE_UNSUPPORTED,
                        "the logits do not have the shape [1, rows, vocabulary]");
    size_t n = (size_t)t->dims[2], first = ((size_t)t->dims[1] - 1) * n;
    float *row = ree_alloc(n * sizeof *row);
    if (!row) return ree_no_memory(err);
    for (size_t i = 0; i < n; i++)
        row[i] = widen(t->dtype, t->data, first + i);
    *out = row;
    *out_n = n;
    return REE_OK;
}

static enum ree_status load_logits(const struct ree_hearing *hearing, const ree_digest digest,
                                   float **out, size_t *out_n, struct ree_error *err) {
    struct ree_tensor logits;
    if (!hearing->recorded)
        return ree_fail(err, REE_NOT_FOUND,
                        "the logits from which a token was chosen are required: --inputs DIR");
    enum ree_status status =
        ree_recorded_load(hearing->recorded, hearing->model, hearing->claim->step - 1,
                          hearing->rules.logits, digest, &logits, err);
    if (status == REE_OK) status = last_row(&logits, out, out_n, err);
    ree_tensor_finish(&logits);
    if (status != REE_OK) ree_fail_prefix(err, "logits of the previous step");
    return status;
}

// Judges the token at `index` of a side's receipt by the side's own logits. The receipt must list
// its tokens and have one at `index`.
static enum ree_status judge_choice(const struct ree_hearing *hearing, unsigned k, size_t index,
                                    struct ree_ruling *out, struct ree_error *err) {
    const struct ree_stated_run *t = &hearing->stated_runs[k];
    float *logits = NULL;
    size_t n;
    int32_t id = -1;
    REE_TRY(load_logits(hearing, output_before(hearing->claim, k), &logits, &n, err));
    out->n_loaded++;
    enum ree_status status =
        ree_sampling_choose(&t->receipt->sampling, logits, n, t->ids, index, index, &id, err);
    ree_free(logits);
    if (status != REE_OK && status != REE_INVALID) return status;
    if (status != REE_OK)
        ree_ruling_wrong(out, k, "token %zu is %d, but no token can be chosen there: %s", index,
                         t->ids[index], err->message);
    else if (id != t->ids[index])
        ree_ruling_wrong(out, k, "token %zu is %d, but its logits choose %d", index, t->ids[index],
                         id);
    return REE_OK;
}

enum ree_status ree_referee_withheld(const struct ree_hearing *hearing, struct ree_ruling *out,
                                     struct ree_error *err) {
    for (unsigned k = 0; k < 2; k++)
        out->is_withheld[k] = !hearing->stated_runs[k].ids;
    if (out->is_withheld[0] && out->is_withheld[1])
        return ree_fail(err, REE_UNSUPPORTED,
                        "both parties withhold the tokens of their private receipts, which decide "
                        "this: --a-tokens and --b-tokens");
    unsigned k = out->is_withheld[1];
    return ree_fail(
        err, REE_UNSUPPORTED,
        "%c withholds the tokens of its private receipt, which decide this: --%c-tokens", "AB"[k],
        "ab"[k]);
}

static enum ree_status judge_choices(const struct ree_hearing *hearing, struct ree_ruling *out,
                                     struct ree_error *err) {
    uint64_t step = hearing->claim->step;
    if (hearing->rules.logits == UINT32_MAX)
        return ree_fail(err, REE_UNSUPPORTED, "no node of the model computes the logits");
    bool is_withheld = !hearing->stated_runs[0].ids || !hearing->stated_runs[1].ids;
    bool is_chosen = hearing->claim->has_before && step >= hearing->stated_runs[0].n_prompt_steps;
    // With the recorded logits, the token of the party that shows its tokens can still be judged.
    if (is_withheld && (!hearing->recorded || !is_chosen))
        return ree_referee_withheld(hearing, out, err);
    REE_TRY(check_before(hearing, hearing->rules.logits, err));
    for (unsigned k = 0; k < 2; k++) {
        const struct ree_stated_run *t = &hearing->stated_runs[k];
        if (step < t->n_prompt_steps || step - t->n_prompt_steps >= t->n_output)
            return ree_fail(err, REE_INVALID, "%c's receipt has no token after step %llu", "AB"[k],
                            (unsigned long long)step - 1);
    }
    for (unsigned k = 0; k < 2; k++) {
        size_t index = hearing->stated_runs[k].n_prompt +
                       (size_t)(step - hearing->stated_runs[k].n_prompt_steps);
        if (hearing->stated_runs[k].ids) REE_TRY(judge_choice(hearing, k, index, out, err));
    }
    bool is_decided = out->is_wrong[0] || out->is_wrong[1];
    return is_withheld && !is_decided ? ree_referee_withheld(hearing, out, err) : REE_OK;
}

enum ree_status ree_referee_token(const struct ree_hearing *hearing, struct ree_ruling *out,
                                  struct ree_error *err) {
    REE_TRY(need_receipts(hearing, err));
    return judge_choices(hearing, out, err);
}

// Inputs

static enum ree_status judge_cache(const struct ree_hearing *hearing, const struct ree_rule *rule,
                                   struct ree_ruling *out, struct ree_error *err) {
    const struct ree_claim *c = hearing->claim;
    const char *name = hearing->model->header.inputs[c->input].name;
    const char *what = hearing->training ? "state" : "cache";
    if (c->step == 0 && rule->is_any_first)
        return ree_fail(err, REE_UNSUPPORTED,
                        "the trainings continued from earlier steps: which states they began with "
                        "does not follow from their receipts");
    bool is_computed = rule->value != UINT32_MAX;
    if (c->step > 0 && !is_computed && !rule->has_later)
        return ree_fail(err, REE_UNSUPPORTED,
                        "the source of the input '%s' does not follow from the model", name);
    if (c->step > 0 && is_computed) REE_TRY(check_before(hearing, rule->value, err));
    for (unsigned k = 0; k < 2; k++) {
        const unsigned char *expected = c->step == 0  ? rule->empty
                                        : is_computed ? output_before(c, k)
                                                      : rule->later;
        if (same(c->sides[k].input, expected)) continue;
        if (c->step > 0)
            ree_ruling_wrong(out, k, "its %s '%s' is not the one that its own step %llu wrote",
                             what, name, (unsigned long long)c->step - 1);
        else
            ree_ruling_wrong(out, k, "its %s '%s' is not %s in the first step", what, name,
                             hearing->training ? "the initial one" : "empty");
    }
    return REE_OK;
}

// Computes the digest that the disputed input must have in side k. A receipt of version 1 hashes a
// float tensor with unchanged NaNs, a trace with canonical NaNs, so for floats the digest can be
// computed only from the tensor itself.
static enum ree_status expected_input(const struct ree_hearing *hearing, unsigned k,
                                      enum ree_rule_kind kind, ree_digest out,
                                      struct ree_error *err) {
    const struct ree_claim *c = hearing->claim;
    const struct ree_receipt *r = hearing->stated_runs[k].receipt;
    const char *name = hearing->model->header.inputs[c->input].name;
    enum ree_status status = ree_stated_run_input(&hearing->stated_runs[k], hearing->model,
                                                  &hearing->rules, c->step, c->input, out, err);
    if (kind != REE_RULE_RUN_INPUT || status != REE_UNSUPPORTED || !hearing->recorded)
        return status;
    for (size_t i = 0; i < r->n_inputs; i++)
        if (strcmp(r->inputs[i].name, name) == 0)
            return ree_recorded_run_input(hearing->recorded, hearing->model, c->input,
                                          r->inputs[i].sha256, out, err);
    return ree_fail(err, REE_INVALID, "the receipt has no input '%s'", name);
}

// Both parties have receipts of one training, so its input must be the same in both sides.
static enum ree_status judge_training_input(const struct ree_hearing *hearing,
                                            const struct ree_rule *rule, struct ree_ruling *out,
                                            struct ree_error *err) {
    const struct ree_claim *c = hearing->claim;
    ree_digest expected;
    REE_TRY(ree_training_input(hearing->training, hearing->model, rule, c->step, c->input, expected,
                               err));
    for (unsigned k = 0; k < 2; k++)
        if (!same(c->sides[k].input, expected))
            ree_ruling_wrong(out, k, "its input '%s' does not follow from its receipt",
                             hearing->model->header.inputs[c->input].name);
    return REE_OK;
}

enum ree_status ree_referee_input(const struct ree_hearing *hearing, struct ree_ruling *out,
                                  struct ree_error *err) {
    const struct ree_claim *c = hearing->claim;
    if (c->input >= hearing->rules.n)
        return ree_fail(err, REE_INVALID, "the model has no input %u", c->input);
    const struct ree_rule *rule = &hearing->rules.rules[c->input];
    const char *name = hearing->model->header.inputs[c->input].name;
    if (rule->kind == REE_RULE_NONE)
        return ree_fail(err, REE_UNSUPPORTED,
                        "the source of the input '%s' does not follow from the model", name);
    if (rule->kind == REE_RULE_CACHE) return judge_cache(hearing, rule, out, err);
    REE_TRY(need_receipts(hearing, err));
    if (hearing->training) return judge_training_input(hearing, rule, out, err);
    for (unsigned k = 0; k < 2; k++) {
        ree_digest expected;
        if (rule->kind == REE_RULE_TOKENS && !hearing->stated_runs[k].ids)
            continue; // the other party may still be wrong
        REE_TRY(expected_input(hearing, k, rule->kind, expected, err));
        if (!same(c->sides[k].input, expected))
            ree_ruling_wrong(out, k, "its input '%s' does not follow from its receipt", name);
    }
    bool is_decided = out->is_wrong[0] || out->is_wrong[1];
    if (rule->kind != REE_RULE_TOKENS || is_decided) return REE_OK;
    // Each party reads the tokens of its own receipt, so the receipts have different tokens. At
    // least one of them has a token that the logits of the previous step did not choose.
    return judge_choices(hearing, out, err);
}

// Headers

// The version of ree that the receipt of side k states; NULL: none.
static const char *version_of(const struct ree_hearing *hearing, unsigned k) {
    return hearing->training ? hearing->training->receipts[k]->ree_version
                             : hearing->stated_runs[k].receipt->ree_version;
}

// Another version of ree may transform the graph in another way, so an honest party's header may
// differ. A receipt's hash does not cover its version: a party that states another one is not named
// here, and not found right either.
enum ree_status ree_referee_header(const struct ree_hearing *hearing, struct ree_ruling *out,
                                   struct ree_error *err) {
    REE_TRY(need_receipts(hearing, err));
    for (unsigned k = 0; k < 2; k++) {
        const char *version = version_of(hearing, k);
        if (!same(hearing->claim->sides[k].header, hearing->model->header.digest) && version &&
            strcmp(version, ree_version()) != 0)
            return ree_fail(err, REE_UNSUPPORTED,
                            "%c's header is not the one that this version of ree makes from the "
                            "model, but its receipt states ree %.32s: a referee of that version "
                            "decides",
                            "AB"[k], version);
    }
    for (unsigned k = 0; k < 2; k++)
        if (!same(hearing->claim->sides[k].header, hearing->model->header.digest))
            ree_ruling_wrong(
                out, k, "its header is not the one that this version of ree makes from the model");
    return REE_OK;
}

// Lengths

// Fails with the reason why neither party is wrong: both runs have the same tokens, and one
// continues. Each ends as its own receipt's parameters require. A party that breaks no rule is
// right, whatever parameters the other party used.
static enum ree_status say_why(const struct ree_hearing *hearing, const struct ree_ruling *out,
                               struct ree_error *err) {
    const char *differences[REE_REFEREE_MAX_DIFFERENCES];
    const struct ree_receipt *receipts[2] = {hearing->stated_runs[0].receipt,
                                             hearing->stated_runs[1].receipt};
    unsigned s = hearing->stated_runs[0].n_output > hearing->stated_runs[1].n_output;
    if (out->is_end_unknown[0] || out->is_end_unknown[1])
        return ree_fail(err, REE_INVALID,
                        "the model's folder does not have the receipts' tokenizer");
    if (strcmp(receipts[s]->finish_reason, "interrupted") == 0)
        return ree_fail(err, REE_UNSUPPORTED,
                        "%c's answer was interrupted; up to there, both are right", "AB"[s]);
    size_t n;
    REE_TRY(ree_referee_differences(receipts[0], receipts[1], differences, &n, err));
    return ree_fail(
        err, REE_INVALID,
        "each answer ends according to its own receipt, and the receipts are of different runs: %s "
        "differs ('ree-run verify --request' shows which of them answers a request)",
        receipts[0]->version != receipts[1]->version ? "schema"
        : n                                          ? differences[0]
                                                     : "no known field");
}

enum ree_status ree_referee_length(const struct ree_hearing *hearing, struct ree_ruling *out,
                                   struct ree_error *err) {
    REE_TRY(need_receipts(hearing, err));
    const struct ree_stated_run *a = &hearing->stated_runs[0], *b = &hearing->stated_runs[1];
    if (hearing->training) // count_steps has compared each receipt with its own root
        return ree_fail(err, REE_INVALID,
                        "this claim shows only that the trainings of the receipts have "
                        "different lengths, which each receipt states");
    if (a->n_output == b->n_output)
        return ree_fail(err, REE_INVALID, "the receipts have the same number of tokens");
    if (ree_stated_run_differ(a, b) != SIZE_MAX)
        return ree_fail(
            err, REE_INVALID,
            "the receipts differ in a token: a claim about this token must be decided first");
    REE_TRY(ree_referee_receipts(hearing, out, err));
    if (out->is_wrong[0] || out->is_wrong[1]) return REE_OK;
    if (!a->ids || !b->ids) return ree_referee_withheld(hearing, out, err);
    return say_why(hearing, out, err);
}
