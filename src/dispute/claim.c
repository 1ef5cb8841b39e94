#include "dispute/claim.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/float_env.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/status.h"

struct ree_claim *ree_claim_create(void) {
    struct ree_claim *claim = ree_alloc_zeroed(1, sizeof *claim);
    if (!claim) return NULL;
    ree_arena_init(&claim->arena);
    claim->version = 2;
    claim->trace_version = REE_TRACE_LATEST;
    return claim;
}

const char *ree_claim_kind_name(enum ree_claim_kind kind) {
    static const char *const names[] = {"node", "input", "token", "header", "length"};
    return (size_t)kind < sizeof names / sizeof *names ? names[kind] : "?";
}

void ree_claim_destroy(struct ree_claim *claim) {
    if (!claim) return;
    ree_arena_finish(&claim->arena);
    ree_free(claim);
}

enum ree_status ree_claim_load(const char *path, struct ree_claim **out, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_error local;
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    *out = NULL;
    void *bytes;
    size_t n;
    REE_TRY(ree_file_read(path, &bytes, &n, err));
    enum ree_status status = ree_claim_decode(bytes, n, out, err);
    ree_free(bytes);
    if (status != REE_OK) ree_fail_prefix(err, "%s", path);
    return status;
}

enum ree_status ree_claim_save(const struct ree_claim *claim, const char *path,
                               struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    enum ree_status status = ree_claim_encode(claim, &text, err);
    if (status == REE_OK) status = ree_file_write(path, text.data, text.size, err);
    ree_strbuf_finish(&text);
    return status;
}

static const char *or_empty(const char *text) {
    return text ? text : "";
}

enum ree_status ree_claim_info(const struct ree_claim *c, struct ree_claim_info *out,
                               struct ree_error *err) {
    struct ree_claim_info info = {.kind = c->kind,
                                  .step = c->step,
                                  .input = c->input,
                                  .node = c->node,
                                  .name = or_empty(c->op.name),
                                  .domain = or_empty(c->op.domain),
                                  .op_type = or_empty(c->op.op_type),
                                  .n_inputs = c->n_inputs};
    for (unsigned k = 0; k < 2; k++) {
        ree_hex(c->sides[k].root, info.roots[k]);
        info.n_steps[k] = c->sides[k].n_steps;
    }
    return ree_stats_write(out, &info, sizeof info, "ree_claim_info", err);
}

// Digests

void ree_claim_node_digest(const ree_digest op, uint32_t n_inputs, const ree_digest *inputs,
                           uint32_t n_outputs, const ree_digest *outputs, ree_digest out) {
    struct ree_hasher *h = ree_hasher_create("ree-node/1");
    ree_hasher_update(h, op, sizeof(ree_digest));
    ree_hasher_update(h, &n_inputs, sizeof n_inputs);
    ree_hasher_update(h, inputs, n_inputs * sizeof *inputs);
    ree_hasher_update(h, &n_outputs, sizeof n_outputs);
    ree_hasher_update(h, outputs, n_outputs * sizeof *outputs);
    ree_hasher_digest(h, out);
}

void ree_claim_step_digest(uint64_t step, const ree_digest inputs_root, const ree_digest nodes_root,
                           ree_digest out) {
    struct ree_hasher *h = ree_hasher_create("ree-step/1");
    ree_hasher_update(h, &step, sizeof step);
    ree_hasher_update(h, inputs_root, sizeof(ree_digest));
    ree_hasher_update(h, nodes_root, sizeof(ree_digest));
    ree_hasher_digest(h, out);
}

// Checking

static bool same(const ree_digest a, const ree_digest b) {
    return memcmp(a, b, sizeof(ree_digest)) == 0;
}

static bool leads(const ree_digest root, uint64_t n, uint64_t index, const ree_digest leaf,
                  const struct ree_claim_proof *proof) {
    return ree_merkle_verify(root, n, index, leaf, (const ree_digest *)proof->digests, proof->n);
}

static void record_digest(const struct ree_claim *c, const struct ree_claim_side *side,
                          ree_digest out) {
    ree_digest op;
    ree_trace_op_digest(&c->op, c->trace_version, op);
    ree_claim_node_digest(op, c->n_inputs, (const ree_digest *)side->at.inputs, c->n_outputs,
                          (const ree_digest *)side->at.outputs, out);
}

static const char who[] = "AB";

static enum ree_status check_step(const struct ree_claim_side *side, unsigned k, uint64_t step,
                                  const struct ree_claim_opening *o, struct ree_error *err) {
    ree_digest digest;
    ree_claim_step_digest(step, o->inputs_root, o->nodes_root, digest);
    if (leads(side->steps_root, side->n_steps, step, digest, &o->step_proof)) return REE_OK;
    return ree_fail(err, REE_INVALID, "%c's step does not lead to the root of its steps", who[k]);
}

static enum ree_status check_node(const struct ree_claim *c, unsigned k, uint32_t node,
                                  const ree_digest record, const struct ree_claim_opening *o,
                                  struct ree_error *err) {
    if (leads(o->nodes_root, c->n_nodes, node, record, &o->node_proof)) return REE_OK;
    return ree_fail(err, REE_INVALID,
                    "%c's record of the node does not lead to the root of its nodes", who[k]);
}

static enum ree_status check_before(const struct ree_claim *c, unsigned k, struct ree_error *err) {
    const struct ree_claim_opening *o = &c->sides[k].before;
    ree_digest digest;
    if (c->step == 0) return ree_fail(err, REE_INVALID, "the first step has no previous step");
    if (c->before.output >= c->before.n_outputs)
        return ree_fail(err, REE_INVALID, "the node of the previous step has no output %u",
                        c->before.output);
    ree_claim_node_digest(c->before.op, c->before.n_inputs, (const ree_digest *)o->inputs,
                          c->before.n_outputs, (const ree_digest *)o->outputs, digest);
    REE_TRY(check_node(c, k, c->before.node, digest, o, err));
    return check_step(&c->sides[k], k, c->step - 1, o, err);
}

static enum ree_status check_side(const struct ree_claim *c, unsigned k, struct ree_error *err) {
    const struct ree_claim_side *side = &c->sides[k];
    ree_digest digest;
    if (c->kind == REE_CLAIM_OF_NODE) {
        record_digest(c, side, digest);
        REE_TRY(check_node(c, k, c->node, digest, &side->at, err));
    }
    if (c->kind == REE_CLAIM_OF_INPUT &&
        !leads(side->at.inputs_root, c->n_step_inputs, c->input, side->input, &side->input_proof))
        return ree_fail(err, REE_INVALID, "%c's input does not lead to the root of its inputs",
                        who[k]);
    if (c->kind == REE_CLAIM_OF_NODE || c->kind == REE_CLAIM_OF_INPUT)
        REE_TRY(check_step(side, k, c->step, &side->at, err));
    if (c->has_before) REE_TRY(check_before(c, k, err));
    if (c->kind == REE_CLAIM_OF_HEADER || c->kind == REE_CLAIM_OF_LENGTH) {
        ree_merkle_root_of_top(side->n_steps, side->steps_top, digest);
        if (!same(digest, side->steps_root))
            return ree_fail(err, REE_INVALID,
                            "%c's number of steps is not the number that it states", who[k]);
    }
    ree_trace_root_digest(c->trace_version, side->header, side->steps_root, digest);
    if (!same(digest, side->root))
        return ree_fail(err, REE_INVALID, "%c's steps do not lead to the root of its trace",
                        who[k]);
    if (c->kind != REE_CLAIM_OF_HEADER && !same(side->header, c->header))
        return ree_fail(err, REE_INVALID, "%c's header is not the header of the claim", who[k]);
    return REE_OK;
}

bool ree_claim_shares_record(const struct ree_claim *c, uint32_t i) {
    const struct ree_claim_input *in = &c->inputs[i];
    if (in->record_of >= i) return false;
    const struct ree_claim_input *first = &c->inputs[in->record_of];
    if (first->source != REE_CLAIM_NODE || first->index != in->index) return false;
    for (unsigned k = 0; k < 2; k++)
        if (in->proofs[k].n != first->proofs[k].n ||
            in->proofs[k].digests != first->proofs[k].digests)
            return false;
    return in->inputs == first->inputs && in->outputs == first->outputs &&
           in->n_inputs == first->n_inputs && in->n_outputs == first->n_outputs &&
           same(in->op, first->op);
}

static enum ree_status check_input(const struct ree_claim *c, uint32_t i, struct ree_error *err) {
    const struct ree_claim_input *in = &c->inputs[i];
    ree_digest digest;
    if (in->source == REE_CLAIM_OMITTED || in->source == REE_CLAIM_CONSTANT) return REE_OK;
    if (in->source == REE_CLAIM_NODE) {
        if (in->index >= c->node)
            return ree_fail(err, REE_INVALID, "input %u comes from node %u, which runs later", i,
                            in->index);
        if (in->output >= in->n_outputs || !same(in->digest, in->outputs[in->output]))
            return ree_fail(err, REE_INVALID, "input %u is not an output of its producer", i);
        if (ree_claim_shares_record(c, i)) return REE_OK; // checked there
        ree_claim_node_digest(in->op, in->n_inputs, (const ree_digest *)in->inputs, in->n_outputs,
                              (const ree_digest *)in->outputs, digest);
    } else {
        memcpy(digest, in->digest, sizeof digest);
    }
    for (unsigned k = 0; k < 2; k++) {
        const struct ree_claim_side *side = &c->sides[k];
        bool is_node = in->source == REE_CLAIM_NODE;
        if (!leads(is_node ? side->at.nodes_root : side->at.inputs_root,
                   is_node ? c->n_nodes : c->n_step_inputs, in->index, digest, &in->proofs[k]))
            return ree_fail(err, REE_INVALID,
                            "input %u does not lead to the root that %c is committed to", i,
                            "AB"[k]);
    }
    return REE_OK;
}

// Checks that the parties differ in claims of the kinds HEADER and NODE. In claims of the other
// kinds both traces may be equal: then the parties differ in what their receipts state.
static enum ree_status check_difference(const struct ree_claim *c, struct ree_error *err) {
    const struct ree_claim_side *x = &c->sides[0], *y = &c->sides[1];
    ree_digest a, b;
    if (c->kind == REE_CLAIM_OF_HEADER && same(x->header, y->header))
        return ree_fail(err, REE_INVALID, "both parties have the same header");
    if (c->kind != REE_CLAIM_OF_NODE) return REE_OK;
    record_digest(c, x, a);
    record_digest(c, y, b);
    if (same(a, b)) return ree_fail(err, REE_INVALID, "both parties state the same for the node");
    return REE_OK;
}

enum ree_status ree_claim_check(const struct ree_claim *c, struct ree_error *err) {
    for (unsigned k = 0; k < 2; k++)
        REE_TRY(check_side(c, k, err));
    for (uint32_t i = 0; c->kind == REE_CLAIM_OF_NODE && i < c->n_inputs; i++)
        REE_TRY(check_input(c, i, err));
    return check_difference(c, err);
}

int64_t ree_claim_misread(const struct ree_claim *c, unsigned side) {
    static const ree_digest zeros;
    for (uint32_t i = 0; i < c->n_inputs; i++) {
        const unsigned char *agreed =
            c->inputs[i].source == REE_CLAIM_OMITTED ? zeros : c->inputs[i].digest;
        if (!same(agreed, c->sides[side].at.inputs[i])) return i;
    }
    return -1;
}
