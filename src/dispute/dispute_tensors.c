// Compares receipts of tensors with the traces of the same party.
#include <string.h>

#include "base/memory.h"
#include "dispute/dispute_internal.h"
#include "dispute/given_inputs.h"

// How many inputs of a receipt of version 1 may have another hash in the trace, because of NaNs,
// before the rest is not compared: each takes as long as all questions about the others.
#define MAX_UNSURE 64

static bool has_hex(const ree_digest digest, const char *stated) {
    char hex[65];
    ree_hex(digest, hex);
    return strcmp(hex, stated) == 0;
}

// The inputs' tree that the receipt requires; its nodes are computed from the leaves.
static enum ree_status open_leaves(void *user, uint64_t first, uint64_t count, ree_digest halves[2],
                                   struct ree_error *err) {
    const ree_digest *leaves = user;
    uint64_t left = ree_tree_left(count);
    (void)err;
    ree_merkle_top(leaves + first, left, halves[0]);
    ree_merkle_top(leaves + first + left, count - left, halves[1]);
    return REE_OK;
}

static enum ree_status leaves_lied(void *user, struct ree_error *err) {
    (void)user;
    return ree_fail(err, REE_INTERNAL, "a tree of inputs contradicts itself");
}

// Finds the first input of the trace, whose tree is `made`, that is not the receipt's leaf.
static enum ree_status first_other(struct ree_tree *made, ree_digest *leaves, uint64_t n,
                                   uint64_t *out, struct ree_error *err) {
    struct ree_tree required = {.open = open_leaves, .lied = leaves_lied, .user = leaves};
    ree_digest top;
    ree_merkle_top((const ree_digest *)leaves, n, top);
    enum ree_status status = ree_tree_init(&required, n, top, err);
    if (status == REE_OK) status = ree_tree_first(made, &required, out, err);
    ree_tree_finish(&required);
    return status;
}

// Compares the inputs of a side's trace with `given`. Only the input's values, which are not at
// hand, decide about an unsure input whose hash differs; *out_unsure receives the name of the first
// one.
static enum ree_status compare_inputs(struct ree_side *s, const struct ree_given_input *given,
                                      ree_digest *leaves, struct ree_tree *made,
                                      const struct ree_claim_opening *at, const char **out_unsure) {
    const struct ree_trace_header *h = s->bench->header;
    for (int n_unsure = 0; n_unsure < MAX_UNSURE; n_unsure++) {
        struct ree_claim_proof proof;
        uint64_t i;
        REE_TRY(first_other(made, leaves, h->n_inputs, &i, s->bench->err));
        if (i >= h->n_inputs) return REE_OK;
        const char *name = h->inputs[i].name;
        if (!given[i].is_stated)
            return ree_side_lied(
                s,
                "its receipt has no input '%.48s', but its trace does not have the "
                "default value",
                name);
        if (!given[i].is_unsure)
            return ree_side_lied(s, "the input '%.48s' differs between its receipt and its trace",
                                 name);
        if (!*out_unsure) *out_unsure = name;
        REE_TRY(ree_side_input(s, 0, at, (uint32_t)i, leaves[i], &proof));
    }
    return REE_OK;
}

// Compares the inputs of a receipt with those of its trace. `top` is the top of the tree that the
// trace's inputs form.
static enum ree_status check_inputs(struct ree_side *s, const struct ree_receipt *r,
                                    const struct ree_claim_opening *at, const ree_digest top,
                                    const char **out_unsure) {
    uint32_t n = s->bench->header->n_inputs;
    struct ree_given_input *given = ree_alloc_zeroed((size_t)n + 1, sizeof *given);
    ree_digest *leaves = ree_alloc_zeroed((size_t)n + 1, sizeof *leaves);
    struct ree_tree made = {0};
    struct ree_error lie;
    enum ree_status status = given && leaves ? REE_OK : ree_no_memory(s->bench->err);
    if (status == REE_OK &&
        ree_given_inputs_make(r, s->bench->terms->rules->model, given, &lie) != REE_OK)
        status = ree_side_lied(s, "%s", lie.message);
    for (uint32_t i = 0; status == REE_OK && i < n; i++)
        memcpy(leaves[i], given[i].digest, sizeof leaves[i]);
    if (status == REE_OK) status = ree_side_tree(s, REE_ASK_INPUTS, n, top, &made);
    if (status == REE_OK) status = compare_inputs(s, given, leaves, &made, at, out_unsure);
    ree_tree_finish(&made);
    ree_free(given);
    ree_free(leaves);
    return status;
}

// Finds the digest of an output in a side's trace. known[node] has what the side stated about the
// node's outputs; NULL: nothing so far.
static enum ree_status output_digest(struct ree_side *s, const struct ree_recorded_source *source,
                                     const struct ree_claim_opening *at, ree_digest **known,
                                     ree_digest out) {
    const struct ree_trace_header *h = s->bench->header;
    struct ree_claim_proof proof;
    ree_digest *inputs;
    if (source->is_constant) {
        memcpy(out, source->digest, sizeof(ree_digest));
        return REE_OK;
    }
    if (source->is_input) return ree_side_input(s, 0, at, source->value, out, &proof);
    uint32_t node = ree_maker_of(h, source->value, h->n_nodes);
    if (!known[node]) REE_TRY(ree_side_node(s, 0, at, node, &inputs, &known[node], &proof));
    memcpy(out, known[node][source->value - h->nodes[node].first_output], sizeof(ree_digest));
    return REE_OK;
}

static enum ree_status compare_outputs(struct ree_side *s, const struct ree_receipt *r,
                                       const struct ree_claim_opening *at, ree_digest **known) {
    const struct ree_rules *rules = s->bench->terms->rules;
    if (r->n_outputs != rules->n_outputs)
        return ree_side_lied(s, "its receipt has %zu outputs, but the model has %u", r->n_outputs,
                             rules->n_outputs);
    for (uint32_t i = 0; i < rules->n_outputs; i++) {
        const struct ree_rule_output *output = &rules->outputs[i];
        ree_digest digest;
        if (strcmp(r->outputs[i].name, output->name) != 0)
            return ree_side_lied(s,
                                 "output %u of its receipt is '%.40s', but the model's is '%.40s'",
                                 i, r->outputs[i].name, output->name);
        REE_TRY(output_digest(s, &output->source, at, known, digest));
        if (!has_hex(digest, r->outputs[i].sha256))
            return ree_side_lied(s, "the output '%.48s' differs between its receipt and its trace",
                                 output->name);
    }
    return REE_OK;
}

static enum ree_status check_outputs(struct ree_side *s, const struct ree_receipt *r,
                                     const struct ree_claim_opening *at) {
    ree_digest **known = ree_alloc_zeroed((size_t)s->bench->header->n_nodes + 1, sizeof *known);
    if (!known) return ree_no_memory(s->bench->err);
    enum ree_status status = compare_outputs(s, r, at, known);
    ree_free(known);
    return status;
}

enum ree_status ree_bench_check_tensors(struct ree_bench *b) {
    const struct ree_dispute_terms *t = b->terms;
    const char *unknown[2] = {NULL, NULL};
    // the claim's arena holds the answers
    enum ree_status status = ree_bench_begin_claim(b, REE_CLAIM_OF_NODE, 0);
    for (unsigned k = 0; k < 2 && status == REE_OK; k++) {
        const struct ree_receipt *r = t->runs[k]->receipt;
        struct ree_claim_opening *at = &b->out->claim->sides[k].at;
        ree_digest top;
        status = ree_side_step(&b->sides[k], 0, at, top, NULL);
        if (status == REE_OK) status = check_inputs(&b->sides[k], r, at, top, &unknown[k]);
        if (status == REE_OK) status = check_outputs(&b->sides[k], r, at);
    }
    ree_claim_destroy(b->out->claim);
    b->out->claim = NULL;
    REE_TRY(status);
    status = ree_stated_run_compare_inputs(t->runs[0], t->runs[1], t->rules->model, b->err);
    for (unsigned k = 0; status != REE_OK && k < 2; k++)
        if (unknown[k])
            return ree_fail(b->err, REE_UNSUPPORTED,
                            "the receipts state different inputs, and %c's receipt and trace have "
                            "different hashes of the floats '%.48s', which NaNs may explain: "
                            "'ree-run verify' of this receipt with the input decides",
                            "AB"[k], unknown[k]);
    return status;
}
