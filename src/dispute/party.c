#include "base/container.h"
#include "base/memory.h"
#include "dispute/party.h"

#include <stdlib.h>
#include <string.h>

#include "dispute/tree.h"

void ree_reply_finish(struct ree_reply *reply) {
    ree_free(reply->digests);
    memset(reply, 0, sizeof *reply);
}

bool ree_reply_add(struct ree_reply *reply, const ree_digest *digests, size_t n) {
    if (reply->n + n > reply->capacity) {
        size_t capacity = (reply->n + n) * 2;
        ree_digest *grown = ree_realloc(reply->digests, capacity * sizeof *grown);
        if (!grown) return false;
        reply->digests = grown;
        reply->capacity = capacity;
    }
    if (n) memcpy(reply->digests + reply->n, digests, n * sizeof *digests);
    reply->n += n;
    return true;
}

// A party that answers from a trace

// The tree of a step's inputs or nodes, kept because one step may be asked about all of them.
struct kept_tree {
    uint64_t step; // of the tree; undefined without one
    struct ree_merkle_tree tree;
};

struct trace_party {
    struct ree_party base;
    const struct ree_trace *trace;
    ree_digest *steps; // leaves of the tree of steps
    uint64_t step;     // the step of `nodes`; UINT64_MAX: none yet
    ree_digest *nodes; // leaves of the tree of nodes
    struct kept_tree of_inputs, of_nodes;
};

static enum ree_status out_of_range(struct ree_error *err) {
    return ree_fail(err, REE_INVALID, "the trace has no such entry");
}

static const ree_digest *nodes_of(struct trace_party *p, uint64_t step) {
    if (p->step != step) {
        const struct ree_trace *t = p->trace;
        ree_digest unused;
        ree_trace_step_digest(&t->header, step, ree_trace_step(t, step), p->nodes, unused);
        p->step = step;
    }
    return (const ree_digest *)p->nodes;
}

static enum ree_status add(struct ree_reply *out, const ree_digest *digests, size_t n,
                           struct ree_error *err) {
    return ree_reply_add(out, digests, n) ? REE_OK : ree_no_memory(err);
}

static enum ree_status add_top(struct ree_reply *out, const ree_digest *leaves, uint64_t n,
                               struct ree_error *err) {
    ree_digest top;
    ree_merkle_top(leaves, n, top);
    return add(out, (const ree_digest *)&top, 1, err);
}

static enum ree_status add_halves(const struct ree_query *query, const ree_digest *leaves,
                                  uint64_t n, struct ree_reply *out, struct ree_error *err) {
    if (query->count < 2 || query->first > n || query->count > n - query->first)
        return out_of_range(err);
    uint64_t left = ree_tree_left(query->count);
    REE_TRY(add_top(out, leaves + query->first, left, err));
    return add_top(out, leaves + query->first + left, query->count - left, err);
}

static enum ree_status add_proof(struct ree_reply *out, const ree_digest *leaves, uint64_t n,
                                 uint64_t index, struct ree_error *err) {
    ree_digest proof[REE_MERKLE_MAX_PROOF];
    uint32_t length = ree_merkle_proof(leaves, n, index, proof);
    return add(out, (const ree_digest *)proof, length, err);
}

// Adds a proof about the inputs or the nodes of the step of the query; `leaves` are all of them.
static enum ree_status add_kept_proof(struct kept_tree *kept, const struct ree_query *query,
                                      const ree_digest *leaves, uint64_t n, struct ree_reply *out,
                                      struct ree_error *err) {
    ree_digest proof[REE_MERKLE_MAX_PROOF];
    if (!kept->tree.inner || kept->step != query->step) {
        ree_merkle_tree_finish(&kept->tree);
        if (!ree_merkle_tree_init(&kept->tree, leaves, n)) return ree_no_memory(err);
        kept->step = query->step;
    }
    uint32_t length = ree_merkle_tree_proof(&kept->tree, query->index, proof);
    return add(out, (const ree_digest *)proof, length, err);
}

static enum ree_status add_node(struct trace_party *p, const struct ree_query *query,
                                struct ree_reply *out, struct ree_error *err) {
    const struct ree_trace_header *h = &p->trace->header;
    const ree_digest *step = ree_trace_step(p->trace, query->step);
    if (query->index >= h->n_nodes) return out_of_range(err);
    const struct ree_trace_node *node = &h->nodes[query->index];
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        ree_digest digest;
        ree_trace_value_digest(h, step, node->inputs[i], digest);
        REE_TRY(add(out, (const ree_digest *)&digest, 1, err));
    }
    if (node->n_outputs)
        REE_TRY(
            add(out, step + ree_trace_digest_index(h, node->first_output), node->n_outputs, err));
    return add_kept_proof(&p->of_nodes, query, nodes_of(p, query->step), h->n_nodes, out, err);
}

static enum ree_status answer_commit(struct trace_party *p, struct ree_reply *out,
                                     struct ree_error *err) {
    const struct ree_trace *t = p->trace;
    out->n_steps = t->n_steps;
    REE_TRY(add(out, &t->header.digest, 1, err));
    REE_TRY(add_top(out, (const ree_digest *)p->steps, t->n_steps, err));
    return add(out, &t->root, 1, err);
}

static enum ree_status answer_step(struct trace_party *p, const struct ree_query *query,
                                   struct ree_reply *out, struct ree_error *err) {
    const struct ree_trace *t = p->trace;
    const struct ree_trace_header *h = &t->header;
    const ree_digest *step = ree_trace_step(t, query->step);
    switch (query->ask) {
    case REE_ASK_STEP:
        REE_TRY(add_top(out, step, h->n_inputs, err));
        REE_TRY(add_top(out, nodes_of(p, query->step), h->n_nodes, err));
        return add_proof(out, (const ree_digest *)p->steps, t->n_steps, query->step, err);
    case REE_ASK_INPUTS: return add_halves(query, step, h->n_inputs, out, err);
    case REE_ASK_NODES: return add_halves(query, nodes_of(p, query->step), h->n_nodes, out, err);
    case REE_ASK_INPUT:
        if (query->index >= h->n_inputs) return out_of_range(err);
        REE_TRY(add(out, step + query->index, 1, err));
        return add_kept_proof(&p->of_inputs, query, step, h->n_inputs, out, err);
    case REE_ASK_NODE: return add_node(p, query, out, err);
    default: return out_of_range(err);
    }
}

static enum ree_status answer(struct ree_party *party, const struct ree_query *query,
                              struct ree_reply *out, struct ree_error *err) {
    struct trace_party *p = REE_CONTAINER_OF(party, struct trace_party, base);
    if (query->ask == REE_ASK_COMMIT) return answer_commit(p, out, err);
    if (query->ask == REE_ASK_STEPS)
        return add_halves(query, (const ree_digest *)p->steps, p->trace->n_steps, out, err);
    return query->step < p->trace->n_steps ? answer_step(p, query, out, err) : out_of_range(err);
}

enum ree_status ree_party_of_trace(const struct ree_trace *trace, struct ree_party **out,
                                   struct ree_error *err) {
    *out = NULL;
    struct trace_party *p = ree_alloc_zeroed(1, sizeof *p);
    if (!p) return ree_no_memory(err);
    p->base.answer = answer;
    p->base.is_local = true;
    p->trace = trace;
    p->step = UINT64_MAX;
    p->steps = ree_alloc_zeroed((size_t)trace->n_steps + 1, sizeof *p->steps);
    p->nodes = ree_alloc_zeroed((size_t)trace->header.n_nodes + 1, sizeof *p->nodes);
    if (!p->steps || !p->nodes) {
        ree_party_of_trace_destroy(&p->base);
        return ree_no_memory(err);
    }
    for (uint64_t i = 0; i < trace->n_steps; i++)
        ree_trace_step_digest(&trace->header, i, ree_trace_step(trace, i), p->nodes, p->steps[i]);
    *out = &p->base;
    return REE_OK;
}

void ree_party_of_trace_destroy(struct ree_party *party) {
    if (!party) return;
    struct trace_party *p = REE_CONTAINER_OF(party, struct trace_party, base);
    ree_merkle_tree_finish(&p->of_inputs.tree);
    ree_merkle_tree_finish(&p->of_nodes.tree);
    ree_free(p->steps);
    ree_free(p->nodes);
    ree_free(p);
}
