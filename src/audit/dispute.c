#include "audit/dispute.h"

#include <stdlib.h>
#include <string.h>

#include "audit/dispute_ask.h"

static enum ree_status no_memory(struct ree_bench *b) {
    return ree_fail(b->err, REE_NO_MEMORY, "out of memory");
}

// The first that differs within a step, under tops that were checked.
static enum ree_status first_in_step(struct ree_bench *b, enum ree_ask halves, uint64_t n,
                                     ree_digest tops[2], uint64_t *out) {
    struct ree_tree trees[2] = {{0}, {0}};
    enum ree_status status = REE_OK;
    for (unsigned k = 0; k < 2 && status == REE_OK; k++)
        status = ree_side_tree(&b->sides[k], halves, n, tops[k], &trees[k]);
    if (status == REE_OK) status = ree_tree_first(&trees[0], &trees[1], out, b->err);
    ree_tree_finish(&trees[0]);
    ree_tree_finish(&trees[1]);
    return status;
}

// The claim

static enum ree_status describe(struct ree_bench *b) {
    const struct ree_trace_header *h = b->header;
    struct ree_claim *c = b->out->claim;
    const struct ree_trace_node *node = &h->nodes[b->out->node];
    memcpy(c->header, h->digest, sizeof c->header);
    memcpy(c->graph_sha256, h->graph_sha256, sizeof c->graph_sha256);
    memcpy(c->weights_sha256, h->weights_sha256, sizeof c->weights_sha256);
    c->numerics = ree_arena_strdup(&c->arena, h->numerics);
    c->operation_set = ree_arena_strdup(&c->arena, h->operation_set);
    c->prefill_chunk = h->prefill_chunk;
    c->n_step_inputs = h->n_inputs;
    c->n_nodes = h->n_nodes;
    c->step = b->out->step;
    c->node = b->out->node;
    c->op.name = ree_arena_strdup(&c->arena, node->name);
    c->op.domain = ree_arena_strdup(&c->arena, node->domain);
    c->op.op_type = ree_arena_strdup(&c->arena, node->op_type);
    c->op.opset = node->opset;
    memcpy(c->op.attributes, node->attributes, sizeof c->op.attributes);
    c->n_inputs = node->n_inputs;
    c->n_outputs = node->n_outputs;
    c->inputs = ree_arena_alloc_array(&c->arena, (size_t)c->n_inputs + 1, sizeof *c->inputs);
    bool ok =
        c->numerics && c->operation_set && c->op.name && c->op.domain && c->op.op_type && c->inputs;
    return ok ? REE_OK : no_memory(b);
}

// The node that makes a value.
static uint32_t maker_of(const struct ree_trace_header *h, uint32_t value, uint32_t before) {
    uint32_t node = before;
    while (node-- > 0) {
        const struct ree_trace_node *n = &h->nodes[node];
        if (value >= n->first_output && value - n->first_output < n->n_outputs) break;
    }
    return node;
}

// Both sides' word on where an input of the node comes from. It was found that they agree on all
// that comes before the node.
static enum ree_status trace_input(struct ree_bench *b, int32_t value, struct ree_claim_input *in) {
    const struct ree_trace_header *h = b->header;
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
        REE_TRY(ree_side_input(&b->sides[0], v, in->digest, &in->proofs[0]));
        return ree_side_input(&b->sides[1], v, in->digest, &in->proofs[1]);
    }
    in->source = REE_CLAIM_NODE;
    in->index = maker_of(h, v, b->out->node);
    in->output = v - h->nodes[in->index].first_output;
    in->n_inputs = h->nodes[in->index].n_inputs;
    in->n_outputs = h->nodes[in->index].n_outputs;
    memcpy(in->op, h->ops[in->index], sizeof in->op);
    REE_TRY(ree_side_node(&b->sides[0], in->index, &in->inputs, &in->outputs, &in->proofs[0]));
    memcpy(in->digest, in->outputs[in->output], sizeof in->digest);
    return ree_side_node(&b->sides[1], in->index, &in->inputs, &in->outputs, &in->proofs[1]);
}

static enum ree_status make_claim(struct ree_bench *b) {
    struct ree_claim *c = b->out->claim;
    const struct ree_trace_node *node = &b->header->nodes[b->out->node];
    REE_TRY(describe(b));
    for (unsigned k = 0; k < 2; k++)
        REE_TRY(ree_side_node(&b->sides[k], b->out->node, &c->sides[k].inputs, &c->sides[k].outputs,
                              &c->sides[k].node_proof));
    for (uint32_t i = 0; i < node->n_inputs; i++)
        REE_TRY(trace_input(b, node->inputs[i], &c->inputs[i]));
    return ree_claim_check(c, b->err);
}

static enum ree_status find_in_step(struct ree_bench *b) {
    struct ree_dispute *out = b->out;
    ree_digest inputs[2], nodes[2];
    uint64_t found;
    out->claim = ree_claim_create();
    if (!out->claim) return no_memory(b);
    for (unsigned k = 0; k < 2; k++)
        REE_TRY(ree_side_step(&b->sides[k], inputs[k], nodes[k]));
    if (memcmp(inputs[0], inputs[1], sizeof(ree_digest)) != 0) {
        REE_TRY(first_in_step(b, REE_ASK_INPUTS, b->header->n_inputs, inputs, &found));
        out->kind = REE_DISPUTE_INPUT;
        out->input = (uint32_t)found;
        return REE_OK;
    }
    REE_TRY(first_in_step(b, REE_ASK_NODES, b->header->n_nodes, nodes, &found));
    out->node = (uint32_t)found;
    REE_TRY(make_claim(b));
    out->kind = REE_DISPUTE_NODE;
    return REE_OK;
}

static enum ree_status hold(struct ree_bench *b) {
    struct ree_dispute *out = b->out;
    REE_TRY(ree_side_commit(&b->sides[0]));
    REE_TRY(ree_side_commit(&b->sides[1]));
    const struct ree_side *x = &b->sides[0], *y = &b->sides[1];
    if (memcmp(x->root, y->root, sizeof x->root) == 0) return REE_OK;
    for (unsigned k = 0; k < 2; k++)
        if (memcmp(b->sides[k].header, b->header->digest, sizeof(ree_digest)) != 0) {
            out->kind = REE_DISPUTE_OTHER_RUN;
            return REE_OK;
        }
    REE_TRY(ree_tree_first(&b->sides[0].steps, &b->sides[1].steps, &out->step, b->err));
    bool a_ends = out->step == out->n_steps[0], b_ends = out->step == out->n_steps[1];
    if (!a_ends && !b_ends) return find_in_step(b);
    out->kind = REE_DISPUTE_LENGTH;
    return REE_OK;
}

enum ree_status ree_dispute(const struct ree_trace_header *header,
                            struct ree_party *const parties[2], struct ree_strbuf *transcript,
                            struct ree_dispute *out, struct ree_error *err) {
    struct ree_error local;
    if (!err) err = &local; // prefixes need the message that they prefix
    struct ree_bench b = {.header = header, .transcript = transcript, .out = out, .err = err};
    memset(out, 0, sizeof *out);
    for (unsigned k = 0; k < 2; k++) {
        b.sides[k].bench = &b;
        b.sides[k].party = parties[k];
        b.sides[k].k = k;
    }
    enum ree_status status = hold(&b);
    ree_tree_finish(&b.sides[0].steps);
    ree_tree_finish(&b.sides[1].steps);
    if (status != REE_OK || out->kind != REE_DISPUTE_NODE) {
        ree_claim_destroy(out->claim);
        out->claim = NULL;
    }
    return out->kind == REE_DISPUTE_LIED ? REE_OK : status;
}

void ree_dispute_finish(struct ree_dispute *dispute) {
    ree_claim_destroy(dispute->claim);
    dispute->claim = NULL;
}
