#include "audit/dispute_ask.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A number that a party gives is written in messages as JSON has them.
#define MAX_STEPS ((uint64_t)1 << 53)

static const char *const who[] = {"A", "B"};

static enum ree_status no_memory(struct ree_bench *b) {
    return ree_fail(b->err, REE_NO_MEMORY, "out of memory");
}

// A lie ends the dispute: a failure on the way up, a result at the top (ree_dispute).
__attribute__((format(printf, 2, 3))) static enum ree_status lied(struct ree_side *s,
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

static enum ree_status note(struct ree_bench *b, const struct ree_side *s,
                            const struct ree_query *query, const struct ree_reply *reply) {
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
static enum ree_status ask(struct ree_side *s, const struct ree_query *query, size_t n,
                           bool has_proof, struct ree_reply *reply) {
    struct ree_bench *b = s->bench;
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
    struct ree_side *s = user;
    (void)err;
    struct ree_query query = {
        .ask = s->halves, .step = s->bench->out->step, .first = first, .count = count};
    struct ree_reply reply;
    enum ree_status status = ask(s, &query, 2, false, &reply);
    if (status == REE_OK) memcpy(halves, reply.digests, 2 * sizeof(ree_digest));
    ree_reply_finish(&reply);
    return status;
}

static enum ree_status halves_lied(void *user, struct ree_error *err) {
    struct ree_side *s = user;
    (void)err;
    return lied(s, "two halves of a tree do not hash to what is above them");
}

enum ree_status ree_side_tree(struct ree_side *s, enum ree_ask halves, uint64_t n,
                              const ree_digest top, struct ree_tree *tree) {
    tree->open = open_halves;
    tree->lied = halves_lied;
    tree->user = s;
    s->halves = halves;
    return ree_tree_init(tree, n, top, s->bench->err);
}

// What a party is committed to

enum ree_status ree_side_commit(struct ree_side *s) {
    struct ree_bench *b = s->bench;
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
    if (status == REE_OK)
        status = ree_side_tree(s, REE_ASK_STEPS, reply.n_steps, reply.digests[1], &s->steps);
    ree_reply_finish(&reply);
    return status;
}

static enum ree_status copy_digests(struct ree_bench *b, const ree_digest *from, size_t n,
                                    ree_digest **out) {
    *out = ree_arena_alloc_array(&b->out->claim->arena, n + 1, sizeof **out);
    if (!*out) return no_memory(b);
    if (n) memcpy(*out, from, n * sizeof **out);
    return REE_OK;
}

static enum ree_status copy_proof(struct ree_bench *b, const struct ree_reply *reply, size_t from,
                                  struct ree_claim_proof *out) {
    out->n = (uint32_t)(reply->n - from);
    return copy_digests(b, (const ree_digest *)reply->digests + from, out->n, &out->digests);
}

static bool leads(const ree_digest root, uint64_t n, uint64_t index, const ree_digest leaf,
                  const struct ree_claim_proof *proof) {
    return ree_merkle_verify(root, n, index, leaf, (const ree_digest *)proof->digests, proof->n);
}

// The roots within the disputed step.
enum ree_status ree_side_step(struct ree_side *s, ree_digest inputs_top, ree_digest nodes_top) {
    struct ree_bench *b = s->bench;
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
enum ree_status ree_side_node(struct ree_side *s, uint32_t node, ree_digest **inputs,
                              ree_digest **outputs, struct ree_claim_proof *proof) {
    struct ree_bench *b = s->bench;
    const struct ree_trace_node *n = &b->header->nodes[node];
    struct ree_query query = {.ask = REE_ASK_NODE, .step = b->out->step, .index = node};
    struct ree_reply reply;
    ree_digest leaf;
    size_t total = (size_t)n->n_inputs + n->n_outputs;
    enum ree_status status = ask(s, &query, total, true, &reply);
    const ree_digest *digests = (const ree_digest *)reply.digests;
    if (status == REE_OK) status = copy_digests(b, digests, n->n_inputs, inputs);
    if (status == REE_OK)
        status =
            copy_digests(b, n->n_outputs ? digests + n->n_inputs : NULL, n->n_outputs, outputs);
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

enum ree_status ree_side_input(struct ree_side *s, uint32_t input, ree_digest out,
                               struct ree_claim_proof *proof) {
    struct ree_bench *b = s->bench;
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
