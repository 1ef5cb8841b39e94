#include "dispute/dispute_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A party's number of steps must be exactly representable in JSON messages.
#define MAX_STEPS ((uint64_t)1 << 53)

static const char *const who[] = {"A", "B"};

static enum ree_status no_memory(struct ree_bench *b) {
    return ree_no_memory(b->err);
}

// Names the party that ends the dispute. This is a failure for all callers up to ree_dispute, which
// turns it into a result.
static enum ree_status name(struct ree_side *s, enum ree_dispute_kind kind) {
    struct ree_dispute *out = s->bench->out;
    out->kind = kind;
    out->liar = s->k;
    return ree_fail(s->bench->err, REE_INVALID, "%s: %s", who[s->k], out->lie);
}

enum ree_status ree_side_lied(struct ree_side *s, const char *format, ...) {
    struct ree_dispute *out = s->bench->out;
    va_list args;
    va_start(args, format);
    vsnprintf(out->lie, sizeof out->lie, format, args);
    va_end(args);
    return name(s, REE_DISPUTE_LIED);
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

// Any failure counts as silence. If some failures did not count, a party could choose one of them
// and end the dispute without being named. The only exception is the REE_NO_MEMORY of a local party
// (see `ask`): the memory that it lacks is that of this process.
static enum ree_status silent(struct ree_side *s, const struct ree_query *query) {
    struct ree_dispute *out = s->bench->out;
    snprintf(out->lie, sizeof out->lie, "%.*s", (int)sizeof out->lie - 1, s->bench->err->message);
    enum ree_status status = note(s->bench, s, query, &(struct ree_reply){.is_silent = true});
    return status == REE_OK ? name(s, REE_DISPUTE_SILENT) : status;
}

// Asks a question. The answer must begin with n digests. If has_proof is set, a proof follows; its
// length is checked when the proof is.
static enum ree_status ask(struct ree_side *s, const struct ree_query *query, size_t n,
                           bool has_proof, struct ree_reply *reply) {
    struct ree_bench *b = s->bench;
    memset(reply, 0, sizeof *reply);
    REE_TRY(note(b, s, query, NULL));
    b->err->message[0] = 0;
    enum ree_status status = s->party->answer(s->party, query, reply, b->err);
    if (status == REE_NO_MEMORY && s->party->is_local) return status;
    if (status != REE_OK) return silent(s, query);
    size_t given = reply->n, most = n + REE_MERKLE_MAX_PROOF;
    // The transcript keeps only the beginning of an answer that is too long.
    if (given > most + 1) reply->n = most + 1;
    REE_TRY(note(b, s, query, reply));
    if (has_proof ? given < n || given > most : given != n)
        return ree_side_lied(s, "an answer has %zu digests, expected %zu", given, n);
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
    return ree_side_lied(s, "two halves of a tree do not hash to the digest above them");
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

// A tree without leaves has exactly one valid top. With another top the root would differ although
// no leaf does.
static bool is_top(uint64_t n, const ree_digest top) {
    static const ree_digest zeros;
    return n > 0 || memcmp(top, zeros, sizeof zeros) == 0;
}

enum ree_status ree_side_commit(struct ree_side *s) {
    struct ree_bench *b = s->bench;
    struct ree_query query = {.ask = REE_ASK_COMMIT};
    struct ree_reply reply;
    ree_digest digest;
    enum ree_status status = ask(s, &query, 3, false, &reply);
    if (status == REE_OK && reply.n_steps > MAX_STEPS)
        status = ree_side_lied(s, "it has more than 2^53 steps");
    if (status == REE_OK) {
        b->out->n_steps[s->k] = reply.n_steps;
        memcpy(s->header, reply.digests[0], sizeof s->header);
        memcpy(s->steps_top, reply.digests[1], sizeof s->steps_top);
        memcpy(s->root, reply.digests[2], sizeof s->root);
        ree_merkle_root_of_top(reply.n_steps, reply.digests[1], s->steps_root);
        ree_trace_root_digest(b->header->version, s->header, s->steps_root, digest);
        if (memcmp(digest, s->root, sizeof digest) != 0)
            status = ree_side_lied(s, "its header and steps do not hash to its root");
        else if (!is_top(reply.n_steps, reply.digests[1]))
            status = ree_side_lied(s, "it has no steps, but a digest above them");
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

enum ree_status ree_side_step(struct ree_side *s, uint64_t step, struct ree_claim_opening *out,
                              ree_digest inputs_top, ree_digest nodes_top) {
    struct ree_bench *b = s->bench;
    struct ree_query query = {.ask = REE_ASK_STEP, .step = step};
    struct ree_reply reply;
    ree_digest leaf;
    enum ree_status status = ask(s, &query, 2, true, &reply);
    if (status == REE_OK) status = copy_proof(b, &reply, 2, &out->step_proof);
    if (status == REE_OK) {
        if (inputs_top) memcpy(inputs_top, reply.digests[0], sizeof(ree_digest));
        if (nodes_top) memcpy(nodes_top, reply.digests[1], sizeof(ree_digest));
        ree_merkle_root_of_top(b->header->n_inputs, reply.digests[0], out->inputs_root);
        ree_merkle_root_of_top(b->header->n_nodes, reply.digests[1], out->nodes_root);
        ree_claim_step_digest(step, out->inputs_root, out->nodes_root, leaf);
        if (!leads(s->steps_root, b->out->n_steps[s->k], step, leaf, &out->step_proof))
            status = ree_side_lied(s, "its inputs and nodes of step %llu do not lead to its root",
                                   (unsigned long long)step);
        else if (!is_top(b->header->n_inputs, reply.digests[0]) ||
                 !is_top(b->header->n_nodes, reply.digests[1]))
            status = ree_side_lied(s, "it has no inputs or nodes, but a digest above them");
    }
    ree_reply_finish(&reply);
    return status;
}

enum ree_status ree_side_node(struct ree_side *s, uint64_t step, const struct ree_claim_opening *of,
                              uint32_t node, ree_digest **inputs, ree_digest **outputs,
                              struct ree_claim_proof *proof) {
    struct ree_bench *b = s->bench;
    const struct ree_trace_node *n = &b->header->nodes[node];
    struct ree_query query = {.ask = REE_ASK_NODE, .step = step, .index = node};
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
        if (!leads(of->nodes_root, b->header->n_nodes, node, leaf, proof))
            status = ree_side_lied(s, "its record of node %u does not lead to its root", node);
    }
    ree_reply_finish(&reply);
    return status;
}

enum ree_status ree_side_input(struct ree_side *s, uint64_t step,
                               const struct ree_claim_opening *of, uint32_t input, ree_digest out,
                               struct ree_claim_proof *proof) {
    struct ree_bench *b = s->bench;
    struct ree_query query = {.ask = REE_ASK_INPUT, .step = step, .index = input};
    struct ree_reply reply;
    enum ree_status status = ask(s, &query, 1, true, &reply);
    if (status == REE_OK) status = copy_proof(b, &reply, 1, proof);
    if (status == REE_OK) {
        memcpy(out, reply.digests[0], sizeof(ree_digest));
        if (!leads(of->inputs_root, b->header->n_inputs, input, out, proof))
            status = ree_side_lied(s, "its digest of input %u does not lead to its root", input);
    }
    ree_reply_finish(&reply);
    return status;
}
