// Statements about the run, and the party that answers a dispute's questions from one.
#include "base/container.h"
#include "liars.h"

#include <stdlib.h>
#include <string.h>

#include "receipt/make_receipt.h"
#include "generate/answer.h"
#include "test.h"
#include "splitmix.h"

struct truth truth;

int repeated(int n) {
    return truth.is_short ? (n + 7) / 8 : n;
}

static struct splitmix rng = {1};

uint64_t draw(uint64_t below) {
    return splitmix_next(&rng) % below;
}

void draw_digest(ree_digest out) {
    for (size_t i = 0; i < sizeof(ree_digest); i++)
        out[i] = (unsigned char)draw(256);
}

static void copy_header(struct said *s) {
    struct ree_trace_header *h = &s->trace.header;
    const struct ree_trace_header *from = &truth.trace->header;
    *h = *from;
    h->inputs = ree_arena_alloc_array(&s->arena, h->n_inputs + 1, sizeof *h->inputs);
    h->constants = ree_arena_alloc_array(&s->arena, h->n_constants + 1, sizeof *h->constants);
    h->nodes = ree_arena_alloc_array(&s->arena, h->n_nodes + 1, sizeof *h->nodes);
    REQUIRE(h->inputs && h->constants && h->nodes);
    memcpy(h->inputs, from->inputs, h->n_inputs * sizeof *h->inputs);
    memcpy(h->constants, from->constants, h->n_constants * sizeof *h->constants);
    memcpy(h->nodes, from->nodes, h->n_nodes * sizeof *h->nodes);
}

void said_init(struct said *s) {
    struct ree_error err;
    memset(s, 0, sizeof *s);
    ree_arena_init(&s->arena);
    copy_header(s);
    s->trace.n_steps = truth.trace->n_steps;
    size_t n = s->trace.n_steps * s->trace.header.n_step_digests;
    s->trace.digests = calloc(2 * n, sizeof(ree_digest));
    REQUIRE(s->trace.digests);
    memcpy(s->trace.digests, truth.trace->digests, n * sizeof(ree_digest));
    REQUIRE(ree_receipt_read(truth.receipt_path, &s->receipt, &err) == REE_OK);
    s->output =
        ree_arena_alloc_array(&s->arena, 2 * s->receipt.output.n_tokens + 2, sizeof *s->output);
    REQUIRE(s->output);
    memcpy(s->output, s->receipt.output.tokens, s->receipt.output.n_tokens * sizeof *s->output);
    s->receipt.output.tokens = s->output;
}

void said_finish(struct said *s) {
    free(s->trace.digests);
    ree_receipt_finish(&s->receipt);
    ree_arena_finish(&s->arena);
}

ree_digest *step_of(struct said *s, uint64_t step) {
    return s->trace.digests + step * s->trace.header.n_step_digests;
}

void record_of(const struct said *s, uint64_t step, uint32_t node, ree_digest *inputs,
               ree_digest *outputs) {
    const struct ree_trace_header *h = &s->trace.header;
    const struct ree_trace_node *n = &h->nodes[node];
    const ree_digest *at = ree_trace_step(&s->trace, step);
    for (uint32_t i = 0; i < n->n_inputs; i++)
        ree_trace_value_digest(h, at, n->inputs[i], inputs[i]);
    if (s->misreads && s->misread_step == step && s->misread_node == node)
        memcpy(inputs[0], s->misread, sizeof(ree_digest));
    for (uint32_t i = 0; i < n->n_outputs; i++)
        memcpy(outputs[i], at[ree_trace_digest_index(h, n->first_output) + i], sizeof(ree_digest));
}

void leaves_of(const struct said *s, uint64_t step, ree_digest *nodes, ree_digest out) {
    const struct ree_trace_header *h = &s->trace.header;
    ree_digest inputs[MOST], outputs[MOST], roots[2];
    ree_trace_step_digest(h, step, ree_trace_step(&s->trace, step), nodes, out);
    if (!s->misreads || s->misread_step != step) return;
    uint32_t node = s->misread_node;
    record_of(s, step, node, inputs, outputs);
    ree_claim_node_digest(h->ops[node], h->nodes[node].n_inputs, (const ree_digest *)inputs,
                          h->nodes[node].n_outputs, (const ree_digest *)outputs, nodes[node]);
    ree_merkle_root(ree_trace_step(&s->trace, step), h->n_inputs, roots[0]);
    ree_merkle_root((const ree_digest *)nodes, h->n_nodes, roots[1]);
    ree_claim_step_digest(step, roots[0], roots[1], out);
}

// Fills in the texts of the tokens, as an honest receipt has them.
static void encode_text(struct said *s) {
    struct ree_error err;
    struct ree_answer answer;
    struct ree_receipt *r = &s->receipt;
    if (!r->tokenizer_sha256[0]) return;
    REQUIRE(ree_answer_begin(&answer, truth.tokenizer, r->stops, r->n_stops, r->prompt.tokens,
                             r->prompt.n_tokens,
                             r->version == 1 ? REE_BOUNDARY_JOINED : REE_BOUNDARY_SETTLED,
                             &err) == REE_OK);
    for (size_t i = 0; i < r->output.n_tokens; i++)
        REQUIRE(ree_answer_push(&answer, s->output[i], &err) == REE_OK);
    REQUIRE(ree_answer_end(&answer, &err) == REE_OK);
    r->prompt.text = ree_receipt_encode_text(&s->arena, &answer.prompt);
    if (!s->keeps_text) r->output.text = ree_receipt_encode_text(&s->arena, &answer.text);
    REQUIRE(r->prompt.text && r->output.text);
    ree_answer_finish(&answer);
}

void seal(struct said *s) {
    struct ree_error err;
    struct ree_trace_header *h = &s->trace.header;
    REQUIRE(ree_trace_header_complete(h, &s->arena, &err) == REE_OK);
    ree_digest *nodes = calloc(h->n_nodes + 1, sizeof *nodes);
    ree_digest *steps = calloc(s->trace.n_steps + 1, sizeof *steps);
    REQUIRE(nodes && steps);
    for (uint64_t i = 0; i < s->trace.n_steps; i++)
        leaves_of(s, i, nodes, steps[i]);
    ree_trace_root(h, (const ree_digest *)steps, s->trace.n_steps, s->trace.root);
    free(nodes);
    free(steps);
    ree_hex(s->trace.root, s->receipt.trace_root);
    encode_text(s);
    REQUIRE(ree_receipt_seal(&s->receipt, &err) == REE_OK);
    REQUIRE(ree_stated_run_make(&s->receipt, &truth.rules, NULL, &s->arena, &s->stated_run, &err) ==
            REE_OK);
}

static bool add_top(struct ree_reply *out, const ree_digest *leaves, uint64_t n) {
    ree_digest top;
    ree_merkle_top(leaves, n, top);
    return ree_reply_add(out, (const ree_digest *)&top, 1);
}

static bool add_halves(struct ree_reply *out, const ree_digest *leaves,
                       const struct ree_query *query) {
    uint64_t left = ree_tree_left(query->count);
    return add_top(out, leaves + query->first, left) &&
           add_top(out, leaves + query->first + left, query->count - left);
}

static bool add_proof(struct ree_reply *out, const ree_digest *leaves, uint64_t n, uint64_t index) {
    ree_digest proof[REE_MERKLE_MAX_PROOF];
    uint32_t length = ree_merkle_proof(leaves, n, index, proof);
    return ree_reply_add(out, (const ree_digest *)proof, length);
}

static bool say(struct teller *t, const struct ree_query *query, struct ree_reply *out) {
    const struct said *s = t->said;
    const struct ree_trace_header *h = &s->trace.header;
    const ree_digest *steps = (const ree_digest *)t->steps, *nodes = (const ree_digest *)t->nodes;
    ree_digest inputs[MOST], outputs[MOST], leaf;
    if (query->ask == REE_ASK_COMMIT) {
        out->n_steps = s->trace.n_steps;
        return ree_reply_add(out, &h->digest, 1) && add_top(out, steps, s->trace.n_steps) &&
               ree_reply_add(out, &s->trace.root, 1);
    }
    if (query->ask == REE_ASK_STEPS) return add_halves(out, steps, query);
    if (query->step >= s->trace.n_steps) return false;
    const ree_digest *at = ree_trace_step(&s->trace, query->step);
    leaves_of(s, query->step, t->nodes, leaf);
    switch (query->ask) {
    case REE_ASK_STEP:
        return add_top(out, at, h->n_inputs) && add_top(out, nodes, h->n_nodes) &&
               add_proof(out, steps, s->trace.n_steps, query->step);
    case REE_ASK_INPUTS: return add_halves(out, at, query);
    case REE_ASK_NODES: return add_halves(out, nodes, query);
    case REE_ASK_INPUT:
        return query->index < h->n_inputs && ree_reply_add(out, at + query->index, 1) &&
               add_proof(out, at, h->n_inputs, query->index);
    case REE_ASK_NODE:
        if (query->index >= h->n_nodes) return false;
        record_of(s, query->step, query->index, inputs, outputs);
        return ree_reply_add(out, (const ree_digest *)inputs, h->nodes[query->index].n_inputs) &&
               ree_reply_add(out, (const ree_digest *)outputs, h->nodes[query->index].n_outputs) &&
               add_proof(out, nodes, h->n_nodes, query->index);
    default: return false;
    }
}

static enum ree_status tell(struct ree_party *party, const struct ree_query *query,
                            struct ree_reply *out, struct ree_error *err) {
    static const enum ree_status reasons[] = {REE_NO_MEMORY, REE_NOT_FOUND, REE_INVALID,
                                              REE_UNAVAILABLE};
    struct teller *t = REE_CONTAINER_OF(party, struct teller, base);
    if (++t->asked == t->leaves_at) return reasons[draw(4)];
    if (!say(t, query, out)) return ree_fail(err, REE_INVALID, "there is no such part");
    if (t->asked == t->bends_at && out->n) out->digests[draw(out->n)][draw(32)] ^= 1;
    return REE_OK;
}

void teller_init(struct teller *t, const struct said *s) {
    *t = (struct teller){.base.answer = tell, .said = s};
    t->steps = calloc(s->trace.n_steps + 1, sizeof *t->steps);
    t->nodes = calloc(s->trace.header.n_nodes + 1, sizeof *t->nodes);
    REQUIRE(t->steps && t->nodes);
    for (uint64_t i = 0; i < s->trace.n_steps; i++)
        leaves_of(s, i, t->nodes, t->steps[i]);
}

void teller_finish(struct teller *t) {
    free(t->steps);
    free(t->nodes);
}
