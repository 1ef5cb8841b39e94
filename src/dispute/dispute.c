#include "dispute/dispute.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "dispute/bind.h"
#include "dispute/dispute_internal.h"
#include "dispute/training_rules.h"

static enum ree_status no_memory(struct ree_bench *b) {
    return ree_no_memory(b->err);
}

// Finds the first leaf in which two trees of a step differ: an input or a node, depending on
// `halves`. `tops` must already be checked.
static enum ree_status first_in_step(struct ree_bench *b, enum ree_ask halves, uint64_t n,
                                     ree_digest tops[2], uint64_t *out) {
    struct ree_tree trees[2] = {{0}, {0}};
    enum ree_status status = REE_OK;
    for (unsigned k = 0; k < 2 && status == REE_OK; k++)
        status = ree_side_tree(&b->sides[k], halves, n, tops[k], &trees[k]);
    if (status == REE_OK) status = ree_tree_first(&trees[0], &trees[1], out, b->err);
    // *out >= n is possible only after a collision of SHA-256.
    if (status == REE_OK && *out >= n)
        status = ree_fail(b->err, REE_INTERNAL, "two tops differ, but no leaf below them differs");
    ree_tree_finish(&trees[0]);
    ree_tree_finish(&trees[1]);
    return status;
}

// The claim

enum ree_status ree_bench_begin_claim(struct ree_bench *b, enum ree_claim_kind kind,
                                      uint64_t step) {
    const struct ree_trace_header *h = b->header;
    struct ree_claim *c = b->out->claim = ree_claim_create();
    if (!c) return no_memory(b);
    c->kind = kind;
    c->step = step;
    memcpy(c->header, h->digest, sizeof c->header);
    memcpy(c->graph_sha256, h->graph_sha256, sizeof c->graph_sha256);
    memcpy(c->weights_sha256, h->weights_sha256, sizeof c->weights_sha256);
    c->numerics = ree_arena_strdup(&c->arena, h->numerics);
    c->operation_set = ree_arena_strdup(&c->arena, h->operation_set);
    c->prefill_chunk = h->prefill_chunk;
    c->trace_version = h->version;
    c->n_step_inputs = h->n_inputs;
    c->n_nodes = h->n_nodes;
    for (unsigned k = 0; k < 2; k++) {
        struct ree_claim_side *side = &c->sides[k];
        memcpy(side->root, b->sides[k].root, sizeof side->root);
        memcpy(side->header, b->sides[k].header, sizeof side->header);
        memcpy(side->steps_top, b->sides[k].steps_top, sizeof side->steps_top);
        memcpy(side->steps_root, b->sides[k].steps_root, sizeof side->steps_root);
        side->n_steps = b->out->n_steps[k];
    }
    return c->numerics && c->operation_set ? REE_OK : no_memory(b);
}

static enum ree_status describe_node(struct ree_bench *b) {
    const struct ree_trace_header *h = b->header;
    struct ree_claim *c = b->out->claim;
    const struct ree_trace_node *node = &h->nodes[b->out->node];
    c->node = b->out->node;
    c->op.name = ree_arena_strdup(&c->arena, node->name);
    c->op.domain = ree_arena_strdup(&c->arena, node->domain);
    c->op.op_type = ree_arena_strdup(&c->arena, node->op_type);
    c->op.opset = node->opset;
    memcpy(c->op.attributes, node->attributes, sizeof c->op.attributes);
    c->n_inputs = node->n_inputs;
    c->n_outputs = node->n_outputs;
    c->inputs = ree_arena_alloc_array(&c->arena, (size_t)c->n_inputs + 1, sizeof *c->inputs);
    bool ok = c->op.name && c->op.domain && c->op.op_type && c->inputs;
    return ok ? REE_OK : no_memory(b);
}

uint32_t ree_maker_of(const struct ree_trace_header *h, uint32_t value, uint32_t before) {
    uint32_t first = 0, n = before; // first_output never falls
    while (n > 0) {
        if (h->nodes[first + n / 2].first_output <= value)
            first += n / 2 + 1, n -= n / 2 + 1;
        else
            n /= 2;
    }
    if (first == 0) return UINT32_MAX;
    const struct ree_trace_node *node = &h->nodes[first - 1];
    return value - node->first_output < node->n_outputs ? first - 1 : UINT32_MAX;
}

// Fills in where input i of the disputed node comes from, and asks both sides for its proofs. The
// bisection has shown that they agree on everything before the node. first_from[node] is 1 + the
// first input that comes from the node; 0: none so far.
static enum ree_status trace_input(struct ree_bench *b, uint32_t i, uint32_t *first_from) {
    const struct ree_trace_header *h = b->header;
    const int32_t value = h->nodes[b->out->node].inputs[i];
    struct ree_claim_input *in = &b->out->claim->inputs[i];
    if (value == REE_TRACE_OMITTED) {
        in->source = REE_CLAIM_OMITTED;
        return REE_OK;
    }
    uint32_t v = (uint32_t)value;
    if (v >= h->n_inputs && v < h->n_inputs + h->n_constants) {
        in->source = REE_CLAIM_CONSTANT;
        in->index = v - h->n_inputs;
        memcpy(in->digest, h->constants[in->index].digest, sizeof in->digest);
        return REE_OK;
    }
    if (v < h->n_inputs) {
        in->source = REE_CLAIM_INPUT;
        in->index = v;
        for (unsigned k = 0; k < 2; k++)
            REE_TRY(ree_side_input(&b->sides[k], b->out->step, &b->out->claim->sides[k].at, v,
                                   in->digest, &in->proofs[k]));
        return REE_OK;
    }
    in->source = REE_CLAIM_NODE;
    in->index = ree_maker_of(h, v, b->out->node);
    in->output = v - h->nodes[in->index].first_output;
    in->record_of = i;
    if (first_from[in->index]) {
        const uint32_t output = in->output;
        *in = b->out->claim->inputs[first_from[in->index] - 1];
        in->output = output;
        memcpy(in->digest, in->outputs[in->output], sizeof in->digest);
        return REE_OK;
    }
    first_from[in->index] = i + 1;
    in->n_inputs = h->nodes[in->index].n_inputs;
    in->n_outputs = h->nodes[in->index].n_outputs;
    memcpy(in->op, h->ops[in->index], sizeof in->op);
    for (unsigned k = 0; k < 2; k++)
        REE_TRY(ree_side_node(&b->sides[k], b->out->step, &b->out->claim->sides[k].at, in->index,
                              &in->inputs, &in->outputs, &in->proofs[k]));
    memcpy(in->digest, in->outputs[in->output], sizeof in->digest);
    return REE_OK;
}

static enum ree_status claim_node(struct ree_bench *b) {
    struct ree_claim *c = b->out->claim;
    const struct ree_trace_node *node = &b->header->nodes[b->out->node];
    REE_TRY(describe_node(b));
    for (unsigned k = 0; k < 2; k++) {
        struct ree_claim_opening *at = &c->sides[k].at;
        REE_TRY(ree_side_node(&b->sides[k], b->out->step, at, b->out->node, &at->inputs,
                              &at->outputs, &at->node_proof));
    }
    uint32_t *first_from = ree_alloc_zeroed((size_t)b->header->n_nodes + 1, sizeof *first_from);
    if (!first_from) return no_memory(b);
    enum ree_status status = REE_OK;
    for (uint32_t i = 0; status == REE_OK && i < node->n_inputs; i++)
        status = trace_input(b, i, first_from);
    ree_free(first_from);
    b->out->kind = status == REE_OK ? REE_DISPUTE_NODE : b->out->kind;
    return status;
}

// Opens the node of the previous step that computes this value: asks both sides for its record.
static enum ree_status open_before(struct ree_bench *b, uint32_t value) {
    const struct ree_trace_header *h = b->header;
    struct ree_claim *c = b->out->claim;
    uint32_t node = ree_maker_of(h, value, h->n_nodes);
    if (node == UINT32_MAX)
        return ree_fail(b->err, REE_INTERNAL, "no node computes value %u", value);
    c->has_before = true;
    c->before.node = node;
    c->before.output = value - h->nodes[node].first_output;
    c->before.n_inputs = h->nodes[node].n_inputs;
    c->before.n_outputs = h->nodes[node].n_outputs;
    memcpy(c->before.op, h->ops[node], sizeof c->before.op);
    for (unsigned k = 0; k < 2; k++) {
        struct ree_claim_opening *o = &c->sides[k].before;
        REE_TRY(ree_side_step(&b->sides[k], c->step - 1, o, NULL, NULL));
        REE_TRY(ree_side_node(&b->sides[k], c->step - 1, o, node, &o->inputs, &o->outputs,
                              &o->node_proof));
    }
    return REE_OK;
}

// Claims an input of a step that both sides have opened (ree_side_step). Without rules the result
// only names the input, and no referee can decide it.
static enum ree_status claim_input(struct ree_bench *b, uint32_t input) {
    const struct ree_rules *rules = b->terms->rules;
    struct ree_claim *c = b->out->claim;
    c->input = b->out->input = input;
    if (rules) {
        for (unsigned k = 0; k < 2; k++)
            REE_TRY(ree_side_input(&b->sides[k], c->step, &c->sides[k].at, input, c->sides[k].input,
                                   &c->sides[k].input_proof));
        const struct ree_rule *rule = &rules->rules[input];
        bool chosen = rule->kind == REE_RULE_TOKENS && rules->logits != UINT32_MAX;
        if (c->step > 0 && (chosen || (rule->kind == REE_RULE_CACHE && rule->value != UINT32_MAX)))
            REE_TRY(open_before(b, chosen ? rules->logits : rule->value));
    }
    b->out->kind = REE_DISPUTE_INPUT;
    return REE_OK;
}

static enum ree_status find_in_step(struct ree_bench *b) {
    struct ree_dispute *out = b->out;
    ree_digest inputs[2], nodes[2];
    uint64_t found;
    REE_TRY(ree_bench_begin_claim(b, REE_CLAIM_OF_NODE, out->step));
    for (unsigned k = 0; k < 2; k++)
        REE_TRY(
            ree_side_step(&b->sides[k], out->step, &out->claim->sides[k].at, inputs[k], nodes[k]));
    if (memcmp(inputs[0], inputs[1], sizeof(ree_digest)) != 0) {
        REE_TRY(first_in_step(b, REE_ASK_INPUTS, b->header->n_inputs, inputs, &found));
        out->claim->kind = REE_CLAIM_OF_INPUT;
        return claim_input(b, (uint32_t)found);
    }
    REE_TRY(first_in_step(b, REE_ASK_NODES, b->header->n_nodes, nodes, &found));
    out->node = (uint32_t)found;
    return claim_node(b);
}

// Claims the first token in which the receipts differ: as an input of the step that reads it, or,
// if a trace does not have that step, as a claim of the kind TOKEN. A referee judges each party by
// the token that the logits of its own previous step choose.
static enum ree_status find_token(struct ree_bench *b, uint64_t step) {
    const struct ree_rules *rules = b->terms->rules;
    bool is_read = step < b->out->n_steps[0] && step < b->out->n_steps[1];
    b->out->step = step;
    if (is_read) {
        REE_TRY(ree_bench_begin_claim(b, REE_CLAIM_OF_INPUT, step));
        for (unsigned k = 0; k < 2; k++)
            REE_TRY(ree_side_step(&b->sides[k], step, &b->out->claim->sides[k].at, NULL, NULL));
        return claim_input(b, rules->tokens);
    }
    REE_TRY(ree_bench_begin_claim(b, REE_CLAIM_OF_TOKEN, step));
    REE_TRY(open_before(b, rules->logits));
    b->out->kind = REE_DISPUTE_TOKEN;
    return REE_OK;
}

// Returns whether the receipt states n steps. If its tokens determine the number of steps, that
// must be n too.
static bool has_steps(const struct ree_stated_run *t, uint64_t n) {
    return t->receipt->trace_steps == n && ree_stated_run_has_steps(t, n);
}

// Checks what follows from the roots and receipts without further questions. *done: this decides
// the dispute.
static enum ree_status check_whole(struct ree_bench *b, bool *done) {
    const struct ree_dispute_terms *t = b->terms;
    bool is_other = false, is_length = false;
    for (unsigned k = 0; k < 2; k++) {
        struct ree_side *s = &b->sides[k];
        const struct ree_receipt *r = t->runs[k] ? t->runs[k]->receipt : NULL;
        if (r && ree_bind_lacks_salt(r)) return ree_side_lied(s, REE_DISPUTE_NO_SALT);
        if ((r && !ree_bind_root(r, s->root)) ||
            (t->training && !ree_training_terms_has_root(t->training, k, s->root)))
            return ree_side_lied(s, REE_DISPUTE_OTHER_ROOT);
        is_length |=
            t->training && ree_training_terms_n_steps(t->training, k) != b->out->n_steps[k];
        is_other |= memcmp(s->header, b->header->digest, sizeof s->header) != 0;
        is_length |= r && !has_steps(t->runs[k], b->out->n_steps[k]);
    }
    *done = is_other || is_length;
    // If both parties have the same header and it is not the model's, neither is named: another
    // version of ree may have made both traces.
    bool is_shared = memcmp(b->sides[0].header, b->sides[1].header, sizeof(ree_digest)) == 0;
    bool is_named = t->is_model && !is_shared;
    b->out->kind = !is_other  ? REE_DISPUTE_LENGTH
                   : is_named ? REE_DISPUTE_HEADER
                              : REE_DISPUTE_OTHER_RUN;
    if (is_other) return is_named ? ree_bench_begin_claim(b, REE_CLAIM_OF_HEADER, 0) : REE_OK;
    return is_length ? ree_bench_begin_claim(b, REE_CLAIM_OF_LENGTH, 0) : REE_OK;
}

static enum ree_status hold(struct ree_bench *b) {
    const struct ree_dispute_terms *t = b->terms;
    struct ree_dispute *out = b->out;
    bool done = false;
    REE_TRY(ree_side_commit(&b->sides[0]));
    REE_TRY(ree_side_commit(&b->sides[1]));
    const struct ree_side *x = &b->sides[0], *y = &b->sides[1];
    bool is_same = memcmp(x->root, y->root, sizeof x->root) == 0;
    if (!is_same || t->runs[0] || t->training) {
        REE_TRY(check_whole(b, &done));
        if (done) return REE_OK;
    }
    bool has_tensors = t->runs[0] && t->rules && t->runs[0]->receipt->kind == REE_RECEIPT_TENSORS;
    // Compare receipts with traces only if no claim follows. If the inputs agree and the roots
    // differ, the dispute ends with a claim, which proves more.
    bool compares_receipts =
        has_tensors && (is_same || ree_stated_run_compare_inputs(t->runs[0], t->runs[1],
                                                                 t->rules->model, NULL) != REE_OK);
    if (compares_receipts) REE_TRY(ree_bench_check_tensors(b));
    out->kind = REE_DISPUTE_SAME;
    uint64_t token_step = UINT64_MAX;
    if (t->runs[0] && t->rules && t->rules->logits != UINT32_MAX) {
        size_t index = ree_stated_run_differ(t->runs[0], t->runs[1]);
        if (index != SIZE_MAX && index >= t->runs[0]->n_prompt)
            token_step = ree_stated_run_step_of(t->runs[0], index);
    }
    out->step = out->n_steps[0];
    if (!is_same)
        REE_TRY(ree_tree_first(&b->sides[0].steps, &b->sides[1].steps, &out->step, b->err));
    if (token_step <= out->step) return find_token(b, token_step);
    if (is_same) return REE_OK;
    bool a_ends = out->step == out->n_steps[0], b_ends = out->step == out->n_steps[1];
    if (!a_ends && !b_ends) return find_in_step(b);
    out->kind = REE_DISPUTE_LENGTH;
    return t->rules ? ree_bench_begin_claim(b, REE_CLAIM_OF_LENGTH, 0) : REE_OK;
}

// True if this kind of dispute ends with a claim. The claims of LIED and SILENT are incomplete.
static bool has_claim(const struct ree_bench *b) {
    switch (b->out->kind) {
    case REE_DISPUTE_NODE:
    case REE_DISPUTE_HEADER:
    case REE_DISPUTE_TOKEN: return true;
    case REE_DISPUTE_LENGTH: return b->out->claim != NULL;
    case REE_DISPUTE_INPUT: return b->terms->rules != NULL;
    default: return false;
    }
}

enum ree_status ree_dispute(const struct ree_dispute_terms *terms,
                            struct ree_party *const parties[2], struct ree_strbuf *transcript,
                            struct ree_dispute *out, struct ree_error *err) {
    struct ree_error local;
    if (!err) err = &local; // the message is part of the result
    struct ree_bench b = {
        .terms = terms, .header = terms->header, .transcript = transcript, .out = out, .err = err};
    memset(out, 0, sizeof *out);
    for (unsigned k = 0; k < 2; k++) {
        b.sides[k].bench = &b;
        b.sides[k].party = parties[k];
        b.sides[k].k = k;
    }
    enum ree_status status = hold(&b);
    bool is_named = out->kind == REE_DISPUTE_LIED || out->kind == REE_DISPUTE_SILENT;
    if (status == REE_OK && has_claim(&b)) status = ree_claim_check(out->claim, err);
    ree_tree_finish(&b.sides[0].steps);
    ree_tree_finish(&b.sides[1].steps);
    if (status != REE_OK || !has_claim(&b)) {
        ree_claim_destroy(out->claim);
        out->claim = NULL;
    }
    if (!is_named) return status;
    return transcript ? ree_message_encode_name(out->liar ? "B" : "A", out, transcript, err)
                      : REE_OK;
}

enum ree_status ree_dispute_withheld(struct ree_dispute *d, unsigned k,
                                     struct ree_strbuf *transcript, struct ree_error *err) {
    ree_dispute_finish(d);
    d->kind = REE_DISPUTE_SILENT;
    d->liar = k;
    snprintf(d->lie, sizeof d->lie,
             "it withholds the tokens of its private receipt, which decide this (--%c-tokens)",
             "ab"[k]);
    return transcript ? ree_message_encode_name(k ? "B" : "A", d, transcript, err) : REE_OK;
}

void ree_dispute_finish(struct ree_dispute *dispute) {
    ree_claim_destroy(dispute->claim);
    dispute->claim = NULL;
}
