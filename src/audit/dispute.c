#include "audit/dispute.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/tree.h"

// A number that a party gives is written in messages as JSON has them.
#define MAX_STEPS ((uint64_t)1 << 53)

struct bench;

struct side {
    struct bench *bench;
    struct ree_party *party;
    unsigned k;
    enum ree_ask halves; // what opening a tree asks for, and of which step
    uint64_t step;
    ree_digest header, root, steps_root;
    struct ree_tree steps;
};

// Where the two stand.
struct bench {
    const struct ree_trace_header *header;
    struct side sides[2];
    struct ree_strbuf *transcript;
    struct ree_dispute *out;
    struct ree_error *err;
};

static const char *const who[] = {"A", "B"};

static enum ree_status no_memory(struct bench *b) {
    return ree_fail(b->err, REE_NO_MEMORY, "out of memory");
}

// A lie ends the dispute: a failure on the way up, a result at the top (ree_dispute).
__attribute__((format(printf, 2, 3))) static enum ree_status lied(struct side *s,
                                                                  const char *format, ...) {
    struct ree_dispute *out = s->bench->out;
    va_list args;
    va_start(args, format);
    vsnprintf(out->lie, sizeof out->lie, format, args);
    va_end(args);
    out->kind = REE_DISPUTE_LIED;
    out->liar = s->k;
    return ree_fail(s->bench->err, REE_INVALID, "%s: %s", who[s->k], out->lie);
}

static enum ree_status note(struct bench *b, const struct side *s, const struct ree_query *query,
                            const struct ree_reply *reply) {
    struct ree_strbuf line;
    ree_strbuf_init(&line);
    enum ree_status status = ree_message_encode(who[s->k], query, reply, &line, b->err);
    if (status == REE_OK) {
        b->out->n_messages++;
        b->out->n_bytes += line.size;
        if (b->transcript) ree_strbuf_append(b->transcript, line.data, line.size);
        if (b->transcript && b->transcript->failed) status = no_memory(b);
    }
    ree_strbuf_finish(&line);
    return status;
}

// `n`: digests that the answer has to begin with; the rest is a proof, whose length is checked with
// it.
static enum ree_status ask(struct side *s, const struct ree_query *query, size_t n, bool has_proof,
                           struct ree_reply *reply) {
    struct bench *b = s->bench;
    memset(reply, 0, sizeof *reply);
    REE_TRY(note(b, s, query, NULL));
    enum ree_status status = s->party->answer(s->party, query, reply, b->err);
    if (status != REE_OK) {
        ree_fail_prefix(b->err, "%s does not answer", who[s->k]);
        return status;
    }
    REE_TRY(note(b, s, query, reply));
    if (has_proof ? reply->n < n || reply->n - n > REE_MERKLE_MAX_PROOF : reply->n != n)
        return lied(s, "an answer of %zu digests, where %zu are expected", reply->n, n);
    return REE_OK;
}

// Trees

static enum ree_status open_halves(void *user, uint64_t first, uint64_t count, ree_digest halves[2],
                                   struct ree_error *err) {
    struct side *s = user;
    (void)err;
    struct ree_query query = {.ask = s->halves, .step = s->step, .first = first, .count = count};
    struct ree_reply reply;
    enum ree_status status = ask(s, &query, 2, false, &reply);
    if (status == REE_OK) memcpy(halves, reply.digests, 2 * sizeof(ree_digest));
    ree_reply_finish(&reply);
    return status;
}

static enum ree_status halves_lied(void *user, struct ree_error *err) {
    struct side *s = user;
    (void)err;
    return lied(s, "two halves of a tree do not hash to what is above them");
}

static enum ree_status init_tree(struct side *s, struct ree_tree *tree, uint64_t n,
                                 const ree_digest top) {
    tree->open = open_halves;
    tree->lied = halves_lied;
    tree->user = s;
    return ree_tree_init(tree, n, top, s->bench->err);
}

// The first that differs within a step, under tops that were checked.
static enum ree_status first_in_step(struct bench *b, enum ree_ask halves, uint64_t n,
                                     ree_digest tops[2], uint64_t *out) {
    struct ree_tree trees[2] = {{0}, {0}};
    enum ree_status status = REE_OK;
    for (unsigned k = 0; k < 2 && status == REE_OK; k++) {
        b->sides[k].halves = halves;
        b->sides[k].step = b->out->step;
        status = init_tree(&b->sides[k], &trees[k], n, tops[k]);
    }
    if (status == REE_OK) status = ree_tree_first(&trees[0], &trees[1], out, b->err);
    ree_tree_finish(&trees[0]);
    ree_tree_finish(&trees[1]);
    return status;
}

// What a party is committed to

static enum ree_status commit(struct side *s) {
    struct bench *b = s->bench;
    struct ree_query query = {.ask = REE_ASK_COMMIT};
    struct ree_reply reply;
    ree_digest digest;
    enum ree_status status = ask(s, &query, 3, false, &reply);
    if (status == REE_OK && reply.n_steps > MAX_STEPS) status = lied(s, "more than 2^53 steps");
    if (status == REE_OK) {
        b->out->n_steps[s->k] = reply.n_steps;
        memcpy(s->header, reply.digests[0], sizeof s->header);
        memcpy(s->root, reply.digests[2], sizeof s->root);
        ree_merkle_root_of_top(reply.n_steps, reply.digests[1], s->steps_root);
        ree_claim_trace_digest(s->header, s->steps_root, digest);
        if (memcmp(digest, s->root, sizeof digest) != 0)
            status = lied(s, "its header and steps do not hash to its root");
    }
    s->halves = REE_ASK_STEPS;
    if (status == REE_OK) status = init_tree(s, &s->steps, reply.n_steps, reply.digests[1]);
    ree_reply_finish(&reply);
    return status;
}

static enum ree_status copy_digests(struct bench *b, const ree_digest *from, size_t n,
                                    ree_digest **out) {
    *out = ree_arena_alloc_array(&b->out->claim->arena, n + 1, sizeof **out);
    if (!*out) return no_memory(b);
    if (n) memcpy(*out, from, n * sizeof **out);
    return REE_OK;
}

static enum ree_status copy_proof(struct bench *b, const struct ree_reply *reply, size_t from,
                                  struct ree_claim_proof *out) {
    out->n = (uint32_t)(reply->n - from);
    return copy_digests(b, (const ree_digest *)reply->digests + from, out->n, &out->digests);
}

static bool leads(const ree_digest root, uint64_t n, uint64_t index, const ree_digest leaf,
                  const struct ree_claim_proof *proof) {
    return ree_merkle_verify(root, n, index, leaf, (const ree_digest *)proof->digests, proof->n);
}

// The roots within the disputed step.
static enum ree_status commit_step(struct side *s, ree_digest inputs_top, ree_digest nodes_top) {
    struct bench *b = s->bench;
    struct ree_claim_side *side = &b->out->claim->sides[s->k];
    struct ree_query query = {.ask = REE_ASK_STEP, .step = b->out->step};
    struct ree_reply reply;
    ree_digest leaf;
    memcpy(side->root, s->root, sizeof side->root);
    memcpy(side->steps_root, s->steps_root, sizeof side->steps_root);
    side->n_steps = b->out->n_steps[s->k];
    enum ree_status status = ask(s, &query, 2, true, &reply);
    if (status == REE_OK) status = copy_proof(b, &reply, 2, &side->step_proof);
    if (status == REE_OK) {
        memcpy(inputs_top, reply.digests[0], sizeof(ree_digest));
        memcpy(nodes_top, reply.digests[1], sizeof(ree_digest));
        ree_merkle_root_of_top(b->header->n_inputs, inputs_top, side->inputs_root);
        ree_merkle_root_of_top(b->header->n_nodes, nodes_top, side->nodes_root);
        ree_claim_step_digest(b->out->step, side->inputs_root, side->nodes_root, leaf);
        if (!leads(side->steps_root, side->n_steps, b->out->step, leaf, &side->step_proof))
            status = lied(s, "its inputs and nodes of the step do not lead to its root");
    }
    ree_reply_finish(&reply);
    return status;
}

// What a side says of a node, checked.
static enum ree_status get_record(struct side *s, uint32_t node, ree_digest **inputs,
                                  ree_digest **outputs, struct ree_claim_proof *proof) {
    struct bench *b = s->bench;
    const struct ree_trace_node *n = &b->header->nodes[node];
    struct ree_query query = {.ask = REE_ASK_NODE, .step = b->out->step, .index = node};
    struct ree_reply reply;
    ree_digest leaf;
    size_t total = (size_t)n->n_inputs + n->n_outputs;
    enum ree_status status = ask(s, &query, total, true, &reply);
    const ree_digest *digests = (const ree_digest *)reply.digests;
    if (status == REE_OK) status = copy_digests(b, digests, n->n_inputs, inputs);
    if (status == REE_OK)
        status = copy_digests(b, total ? digests + n->n_inputs : NULL, n->n_outputs, outputs);
    if (status == REE_OK) status = copy_proof(b, &reply, total, proof);
    if (status == REE_OK) {
        ree_claim_node_digest(b->header->ops[node], n->n_inputs, (const ree_digest *)*inputs,
                              n->n_outputs, (const ree_digest *)*outputs, leaf);
        if (!leads(b->out->claim->sides[s->k].nodes_root, b->header->n_nodes, node, leaf, proof))
            status = lied(s, "its record of node %u does not lead to its root", node);
    }
    ree_reply_finish(&reply);
    return status;
}

static enum ree_status get_input(struct side *s, uint32_t input, ree_digest out,
                                 struct ree_claim_proof *proof) {
    struct bench *b = s->bench;
    struct ree_query query = {.ask = REE_ASK_INPUT, .step = b->out->step, .index = input};
    struct ree_reply reply;
    enum ree_status status = ask(s, &query, 1, true, &reply);
    if (status == REE_OK) status = copy_proof(b, &reply, 1, proof);
    if (status == REE_OK) {
        memcpy(out, reply.digests[0], sizeof(ree_digest));
        if (!leads(b->out->claim->sides[s->k].inputs_root, b->header->n_inputs, input, out, proof))
            status = lied(s, "its digest of input %u does not lead to its root", input);
    }
    ree_reply_finish(&reply);
    return status;
}

// The claim

static enum ree_status describe(struct bench *b) {
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
static enum ree_status trace_input(struct bench *b, int32_t value, struct ree_claim_input *in) {
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
        REE_TRY(get_input(&b->sides[0], v, in->digest, &in->proofs[0]));
        return get_input(&b->sides[1], v, in->digest, &in->proofs[1]);
    }
    in->source = REE_CLAIM_NODE;
    in->index = maker_of(h, v, b->out->node);
    in->output = v - h->nodes[in->index].first_output;
    in->n_inputs = h->nodes[in->index].n_inputs;
    in->n_outputs = h->nodes[in->index].n_outputs;
    memcpy(in->op, h->ops[in->index], sizeof in->op);
    REE_TRY(get_record(&b->sides[0], in->index, &in->inputs, &in->outputs, &in->proofs[0]));
    memcpy(in->digest, in->outputs[in->output], sizeof in->digest);
    return get_record(&b->sides[1], in->index, &in->inputs, &in->outputs, &in->proofs[1]);
}

static enum ree_status make_claim(struct bench *b) {
    struct ree_claim *c = b->out->claim;
    const struct ree_trace_node *node = &b->header->nodes[b->out->node];
    REE_TRY(describe(b));
    for (unsigned k = 0; k < 2; k++)
        REE_TRY(get_record(&b->sides[k], b->out->node, &c->sides[k].inputs, &c->sides[k].outputs,
                           &c->sides[k].node_proof));
    for (uint32_t i = 0; i < node->n_inputs; i++)
        REE_TRY(trace_input(b, node->inputs[i], &c->inputs[i]));
    return ree_claim_check(c, b->err);
}

static enum ree_status find_in_step(struct bench *b) {
    struct ree_dispute *out = b->out;
    ree_digest inputs[2], nodes[2];
    uint64_t found;
    out->claim = ree_claim_create();
    if (!out->claim) return no_memory(b);
    for (unsigned k = 0; k < 2; k++)
        REE_TRY(commit_step(&b->sides[k], inputs[k], nodes[k]));
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

static enum ree_status hold(struct bench *b) {
    struct ree_dispute *out = b->out;
    REE_TRY(commit(&b->sides[0]));
    REE_TRY(commit(&b->sides[1]));
    const struct side *x = &b->sides[0], *y = &b->sides[1];
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
    struct bench b = {.header = header, .transcript = transcript, .out = out, .err = err};
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
