#include "dispute/training_rules.h"

#include <stdio.h>
#include <string.h>

#include "receipt/receipt_internal.h"
#include "session/model.h"
#include "trace/model_header.h"
#include "trace/recorded.h"
#include "train/batches.h"
#include "train/training_receipt.h"

// The receipts

enum ree_status ree_training_terms_check_key(const struct ree_training_terms *terms, unsigned k,
                                             struct ree_error *err) {
    const struct ree_training_receipt *r = terms->receipts[k];
    const char *key = terms->public_keys[k];
    bool failed = false;
    if (r->is_signed &&
        !ree_hash_signature_holds(r->receipt_hash, r->public_key, r->signature, &failed))
        return failed ? ree_no_memory(err)
                      : ree_fail(err, REE_INVALID,
                                 "%c's receipt is altered: its signature is not "
                                 "of this receipt",
                                 "AB"[k]);
    if (key && !r->is_signed)
        return ree_fail(err, REE_INVALID, "%c's receipt is not signed", "AB"[k]);
    if (key && strcmp(key, r->public_key) != 0)
        return ree_fail(err, REE_INVALID, "%c's receipt is signed with another key: %s", "AB"[k],
                        r -> public_key);
    if (r->trace_root[0]) return REE_OK;
    return ree_fail(err, REE_INVALID, "%c's receipt has no trace, so it commits to no root",
                    "AB"[k]);
}

enum ree_status ree_training_terms_check(const struct ree_training_terms *terms,
                                         struct ree_error *err) {
    const struct ree_training_receipt *a = terms->receipts[0], *b = terms->receipts[1];
    if (!a || !b)
        return ree_fail(err, REE_INVALID, "trainings are judged by both receipts, not by one");
    for (unsigned k = 0; k < 2; k++)
        REE_TRY(ree_training_terms_check_key(terms, k, err));
    const struct {
        const char *what;
        bool same;
    } parts[] = {
        {"graph", strcmp(a->graph_sha256, b->graph_sha256) == 0},
        {"weights", strcmp(a->weights_sha256, b->weights_sha256) == 0},
        {"roles", strcmp(a->roles_sha256, b->roles_sha256) == 0},
        {"numerics", strcmp(a->numerics, b->numerics) == 0},
        {"operation set", strcmp(a->operation_set, b->operation_set) == 0},
        {"samples", strcmp(a->data_sha256, b->data_sha256) == 0 && a->n_samples == b->n_samples},
        {"batch size", a->batch_size == b->batch_size},
        {"order", a->in_order == b->in_order},
        {"seed", a->seed == b->seed},
        {"first step", a->points[0].step == b->points[0].step},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!parts[i].same)
            return ree_fail(err, REE_INVALID, "the receipts are of different trainings: %s differs",
                            parts[i].what);
    return REE_OK;
}

uint64_t ree_training_terms_n_steps(const struct ree_training_terms *terms, unsigned k) {
    const struct ree_training_receipt *r = terms->receipts[k];
    return r->points[r->n_points - 1].step - r->points[0].step;
}

const char *ree_training_terms_operation_set(const struct ree_training_terms *terms) {
    return terms->receipts[0]->operation_set;
}

bool ree_training_terms_has_root(const struct ree_training_terms *terms, unsigned k,
                                 const ree_digest root) {
    char hex[65];
    ree_hex(root, hex);
    return strcmp(hex, terms->receipts[k]->trace_root) == 0;
}

enum ree_status ree_training_terms_bind(const struct ree_training_terms *terms,
                                        const struct ree_claim *c, struct ree_error *err) {
    for (unsigned k = 0; k < 2; k++) {
        const struct ree_training_receipt *r = terms->receipts[k];
        if (!ree_training_terms_has_root(terms, k, c->sides[k].root))
            return ree_fail(err, REE_INVALID,
                            "the root of %c in the claim is not the root in its receipt", "AB"[k]);
        if (strcmp(r->graph_sha256, c->graph_sha256) != 0 ||
            strcmp(r->weights_sha256, c->weights_sha256) != 0)
            return ree_fail(err, REE_INVALID, "%c's receipt is of another model", "AB"[k]);
        if (strcmp(r->numerics, c->numerics) != 0 ||
            strcmp(r->operation_set, c->operation_set) != 0 || c->prefill_chunk)
            return ree_fail(err, REE_INVALID,
                            "%c's receipt is of another run: numerics or operation set", "AB"[k]);
    }
    return REE_OK;
}

// Notes the first statement of a receipt that the step or the samples at hand contradict.
static enum ree_status find_lie(const struct ree_training_receipt *r, const struct ree_opened *m,
                                const struct ree_step_roles *roles,
                                const struct ree_dataset *dataset, char lie[REE_TRAINING_LIE],
                                struct ree_error *err) {
    struct ree_batches batches = {0};
    char hex[65] = "";
    lie[0] = 0;
    if (r->batch_size != (uint64_t)roles->batch_size)
        snprintf(lie, REE_TRAINING_LIE,
                 "it states batches of %llu samples, but the step reads %lld",
                 (unsigned long long)r->batch_size, (long long)roles->batch_size);
    else if (r->in_order && !roles->is_random && r->seed)
        snprintf(lie, REE_TRAINING_LIE,
                 "it states the seed %llu, but a seed without effect must be 0",
                 (unsigned long long)r->seed);
    if (lie[0] || !dataset) return REE_OK;
    enum ree_status status = ree_batches_init(&batches, m->model, roles, dataset, 0, true, err);
    if (status == REE_OK) ree_batches_sha256(&batches, hex);
    if (status == REE_OK && !strcmp(hex, r->data_sha256) && r->n_samples != batches.n_samples)
        snprintf(lie, REE_TRAINING_LIE, "it states %llu samples, but those with its hash are %llu",
                 (unsigned long long)r->n_samples, (unsigned long long)batches.n_samples);
    ree_batches_finish(&batches);
    return status;
}

enum ree_status ree_training_terms_lie(const struct ree_training_terms *terms, unsigned k,
                                       const struct ree_opened *m, const struct ree_trace *trace,
                                       char lie[REE_TRAINING_LIE], struct ree_error *err) {
    struct ree_step_roles roles;
    lie[0] = 0;
    REE_TRY(ree_training_terms_check_key(terms, k, err));
    enum ree_status status = ree_step_roles_read(m->model, &roles, err);
    ree_digest digest;
    char hex[65] = "";
    if (status == REE_OK) {
        ree_step_roles_digest(&roles, m->model, digest);
        ree_hex(digest, hex);
    }
    // A receipt of another step, or of other roles, is judged by its own step only.
    bool is_of_step = !strcmp(hex, terms->receipts[k]->roles_sha256) &&
                      !strcmp(terms->receipts[k]->graph_sha256, m->header.graph_sha256);
    if (status == REE_OK && is_of_step)
        status = find_lie(terms->receipts[k], m, &roles, terms->dataset, lie, err);
    if (status == REE_OK && is_of_step && !lie[0] && trace)
        status = ree_training_points_check(terms->receipts[k], m, &roles, trace, lie, err);
    ree_step_roles_finish(&roles);
    return status;
}

// The rules

static enum ree_status check_step(const struct ree_training_terms *terms,
                                  const struct ree_opened *m, const struct ree_step_roles *roles,
                                  struct ree_error *err) {
    const struct ree_training_receipt *r = terms->receipts[0];
    ree_digest digest;
    char hex[65];
    ree_step_roles_digest(roles, m->model, digest);
    ree_hex(digest, hex);
    if (strcmp(r->graph_sha256, m->header.graph_sha256) != 0 ||
        strcmp(r->weights_sha256, m->header.weights_sha256) != 0)
        return ree_fail(err, REE_INVALID, "the receipts are of another model");
    if (strcmp(r->roles_sha256, hex) != 0 || r->batch_size != (uint64_t)roles->batch_size)
        return ree_fail(err, REE_INVALID,
                        "the receipts are of a training step whose inputs and outputs have other "
                        "roles");
    return REE_OK;
}

static enum ree_status open_batches(const struct ree_training_terms *terms,
                                    const struct ree_model *model,
                                    const struct ree_step_roles *roles, struct ree_batches *out,
                                    struct ree_error *err) {
    const struct ree_training_receipt *r = terms->receipts[0];
    char hex[65];
    REE_TRY(ree_batches_init(out, model, roles, terms->dataset, r->seed, r->in_order, err));
    ree_batches_sha256(out, hex);
    if (!strcmp(hex, r->data_sha256) && out->n_samples == r->n_samples) return REE_OK;
    return ree_fail(err, REE_INVALID, "the SHA-256 of the samples is %s, but the receipts state %s",
                    hex, r->data_sha256);
}

static enum ree_status make_rules(const struct ree_training_terms *terms,
                                  const struct ree_opened *m, const struct ree_step_roles *roles,
                                  struct ree_rules *inout, struct ree_error *err) {
    for (uint32_t i = 0; i < inout->n; i++)
        inout->rules[i].kind = REE_RULE_DEFAULT;
    for (size_t i = 0; i < roles->n_data; i++)
        inout->rules[roles->data[i]].kind = REE_RULE_SAMPLES;
    if (roles->is_random)
        inout->rules[roles->seed].kind = inout->rules[roles->counter].kind = REE_RULE_DRAW;
    // The initial value is that of the file. A training that continued began with other states,
    // which the receipts only hash together.
    bool is_first = terms->receipts[0]->points[0].step == 0;
    for (size_t i = 0; i < roles->n_states; i++) {
        struct ree_rule *rule = &inout->rules[roles->states[i].input];
        struct ree_recorded_source next;
        ree_recorded_source_of_output(m, roles->states[i].output, &next);
        rule->kind = REE_RULE_CACHE;
        rule->is_any_first = !is_first;
        ree_state_initial_digest(m->model, roles->states[i].input, rule->empty);
        rule->value = next.is_constant || next.is_input ? UINT32_MAX : next.value;
        // A state that never changes keeps its initial value.
        bool is_kept = next.is_input && next.value == roles->states[i].input && is_first;
        rule->has_later = next.is_constant || is_kept;
        memcpy(rule->later, is_kept ? rule->empty : next.digest, sizeof rule->later);
    }
    if (!terms->dataset) return REE_OK;
    struct ree_batches batches = {0};
    enum ree_status status = open_batches(terms, m->model, roles, &batches, err);
    ree_batches_finish(&batches);
    return status;
}

enum ree_status ree_training_rules_make(const struct ree_training_terms *terms,
                                        const struct ree_opened *m, struct ree_rules *inout,
                                        struct ree_error *err) {
    struct ree_step_roles roles;
    enum ree_status status = ree_step_roles_read(m->model, &roles, err);
    if (status == REE_OK) status = check_step(terms, m, &roles, err);
    if (status == REE_OK) status = make_rules(terms, m, &roles, inout, err);
    ree_step_roles_finish(&roles);
    return status;
}

// Inputs

static enum ree_status sample_digest(const struct ree_training_terms *terms,
                                     const struct ree_model *model,
                                     const struct ree_step_roles *roles, uint64_t step,
                                     uint32_t input, ree_digest out, struct ree_error *err) {
    const struct ree_port *port = ree_model_input(model, input);
    struct ree_batches batches = {0};
    struct ree_tensor batch;
    size_t i = 0;
    if (!terms->dataset)
        return ree_fail(err, REE_NOT_FOUND, "this requires the samples: --data FILE");
    while (roles->data[i] != input)
        i++;
    REE_TRY(ree_tensor_init(&batch, NULL, port->dtype, port->rank, port->dims, err));
    enum ree_status status = open_batches(terms, model, roles, &batches, err);
    if (status == REE_OK) {
        ree_batches_fill(&batches, step, i, &batch);
        ree_trace_tensor_digest(&batch, out);
    }
    ree_batches_finish(&batches);
    ree_tensor_finish(&batch);
    return status;
}

static void draw_digest(uint64_t seed, uint64_t step, bool is_seed, ree_digest out) {
    uint32_t words[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    if (!is_seed) words[0] = (uint32_t)step;
    const struct ree_tensor tensor = {.dtype = REE_U32,
                                      .rank = is_seed,
                                      .dims = {2},
                                      .data = words,
                                      .nbytes = is_seed ? sizeof words : sizeof words[0]};
    ree_tensor_digest(&tensor, out);
}

enum ree_status ree_training_input(const struct ree_training_terms *terms,
                                   const struct ree_opened *m, const struct ree_rule *rule,
                                   uint64_t step, uint32_t input, ree_digest out,
                                   struct ree_error *err) {
    const struct ree_training_receipt *r = terms->receipts[0];
    struct ree_step_roles roles;
    step += r->points[0].step;
    enum ree_status status = ree_step_roles_read(m->model, &roles, err);
    if (status == REE_OK && rule->kind == REE_RULE_SAMPLES)
        status = sample_digest(terms, m->model, &roles, step, input, out, err);
    if (status == REE_OK && rule->kind == REE_RULE_DRAW)
        draw_digest(r->seed, step, input == roles.seed, out);
    if (status == REE_OK && rule->kind == REE_RULE_DEFAULT)
        ree_state_initial_digest(m->model, input, out);
    bool is_known = rule->kind == REE_RULE_SAMPLES || rule->kind == REE_RULE_DRAW ||
                    rule->kind == REE_RULE_DEFAULT;
    if (status == REE_OK && !is_known)
        status = ree_fail(err, REE_UNSUPPORTED,
                          "the source of the input does not follow from the "
                          "receipts");
    ree_step_roles_finish(&roles);
    return status;
}
