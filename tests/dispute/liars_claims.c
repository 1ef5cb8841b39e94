// Claims about arbitrary places of two traces, which no dispute produced.
#include "liars.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

static void prove(struct ree_claim *c, const ree_digest *leaves, uint64_t n, uint64_t index,
                  struct ree_claim_proof *out) {
    out->digests = ree_arena_alloc_array(&c->arena, REE_MERKLE_MAX_PROOF, sizeof(ree_digest));
    REQUIRE(out->digests);
    out->n = ree_merkle_proof(leaves, n, index, out->digests);
}

static void open_step(struct ree_claim *c, const struct said *s, uint64_t step, uint32_t node,
                      struct ree_claim_opening *out) {
    const struct ree_trace_header *h = &s->trace.header;
    struct teller t;
    ree_digest leaf;
    teller_init(&t, s);
    leaves_of(s, step, t.nodes, leaf);
    ree_merkle_root(ree_trace_step(&s->trace, step), h->n_inputs, out->inputs_root);
    ree_merkle_root((const ree_digest *)t.nodes, h->n_nodes, out->nodes_root);
    prove(c, (const ree_digest *)t.steps, s->trace.n_steps, step, &out->step_proof);
    prove(c, (const ree_digest *)t.nodes, h->n_nodes, node, &out->node_proof);
    out->inputs = ree_arena_alloc_array(&c->arena, MOST, sizeof(ree_digest));
    out->outputs = ree_arena_alloc_array(&c->arena, MOST, sizeof(ree_digest));
    REQUIRE(out->inputs && out->outputs);
    record_of(s, step, node, out->inputs, out->outputs);
    teller_finish(&t);
}

static uint32_t maker_of(uint32_t value) {
    const struct ree_trace_header *h = &truth.opened.header;
    uint32_t node = 0;
    while (value < h->nodes[node].first_output ||
           value - h->nodes[node].first_output >= h->nodes[node].n_outputs)
        node++;
    return node;
}

// Makes a claim of any kind except node, about any place, that leads to both roots.
static struct ree_claim *claim_anything(const struct said *const sides[2], enum ree_claim_kind kind,
                                        uint64_t step, uint32_t input, uint32_t before) {
    const struct ree_trace_header *h = &truth.opened.header;
    struct ree_claim *c = ree_claim_create();
    REQUIRE(c);
    c->kind = kind;
    c->step = step;
    c->input = input;
    memcpy(c->header, h->digest, sizeof c->header);
    memcpy(c->graph_sha256, h->graph_sha256, 65);
    memcpy(c->weights_sha256, h->weights_sha256, 65);
    c->numerics = h->numerics;
    c->operation_set = h->operation_set;
    c->prefill_chunk = h->prefill_chunk;
    c->n_step_inputs = h->n_inputs;
    c->n_nodes = h->n_nodes;
    c->has_before = before != UINT32_MAX && step > 0 &&
                    (kind == REE_CLAIM_OF_INPUT || kind == REE_CLAIM_OF_TOKEN);
    if (c->has_before) {
        c->before.node = maker_of(before);
        c->before.output = before - h->nodes[c->before.node].first_output;
        c->before.n_inputs = h->nodes[c->before.node].n_inputs;
        c->before.n_outputs = h->nodes[c->before.node].n_outputs;
        memcpy(c->before.op, h->ops[c->before.node], sizeof(ree_digest));
    }
    for (unsigned k = 0; k < 2; k++) {
        struct ree_claim_side *side = &c->sides[k];
        struct teller t;
        teller_init(&t, sides[k]);
        memcpy(side->root, sides[k]->trace.root, sizeof side->root);
        memcpy(side->header, sides[k]->trace.header.digest, sizeof side->header);
        side->n_steps = sides[k]->trace.n_steps;
        ree_merkle_top((const ree_digest *)t.steps, side->n_steps, side->steps_top);
        ree_merkle_root((const ree_digest *)t.steps, side->n_steps, side->steps_root);
        if (kind == REE_CLAIM_OF_INPUT) {
            const ree_digest *at = ree_trace_step(&sides[k]->trace, step);
            open_step(c, sides[k], step, 0, &side->at);
            memcpy(side->input, at[input], sizeof side->input);
            prove(c, at, h->n_inputs, input, &side->input_proof);
        }
        if (c->has_before) open_step(c, sides[k], step - 1, c->before.node, &side->before);
        teller_finish(&t);
    }
    return c;
}

// Makes a claim about any node.
static struct ree_claim *claim_node(const struct said *const sides[2], uint64_t step,
                                    uint32_t node) {
    const struct ree_trace_header *h = &truth.opened.header;
    const struct ree_trace_node *n = &h->nodes[node];
    struct ree_claim *c = claim_anything(sides, REE_CLAIM_OF_NODE, step, 0, UINT32_MAX);
    c->node = node;
    c->op = *n;
    c->n_inputs = n->n_inputs;
    c->n_outputs = n->n_outputs;
    c->inputs = ree_arena_alloc_array(&c->arena, n->n_inputs + 1, sizeof *c->inputs);
    REQUIRE(c->inputs);
    for (unsigned k = 0; k < 2; k++)
        open_step(c, sides[k], step, node, &c->sides[k].at);
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        struct ree_claim_input *in = &c->inputs[i];
        if (n->inputs[i] == REE_TRACE_OMITTED) continue;
        uint32_t v = (uint32_t)n->inputs[i];
        in->source = v < h->n_inputs                    ? REE_CLAIM_INPUT
                     : v < h->n_inputs + h->n_constants ? REE_CLAIM_CONSTANT
                                                        : REE_CLAIM_NODE;
        in->index = in->source == REE_CLAIM_INPUT ? v : v - h->n_inputs;
        if (in->source == REE_CLAIM_CONSTANT)
            memcpy(in->digest, h->constants[in->index].digest, sizeof in->digest);
        if (in->source == REE_CLAIM_NODE) in->index = maker_of(v);
        in->record_of = i;
        // The digest that one party states; the claim holds only if both parties have it.
        unsigned teller = (unsigned)draw(2);
        const ree_digest *at = ree_trace_step(&sides[teller]->trace, step);
        if (in->source == REE_CLAIM_INPUT) memcpy(in->digest, at[v], sizeof in->digest);
        for (unsigned k = 0; k < 2; k++) {
            struct ree_claim_opening o = {0};
            if (in->source == REE_CLAIM_INPUT)
                prove(c, ree_trace_step(&sides[k]->trace, step), h->n_inputs, v, &in->proofs[k]);
            if (in->source != REE_CLAIM_NODE) continue;
            open_step(c, sides[k], step, in->index, &o);
            in->proofs[k] = o.node_proof;
            if (k != teller) continue;
            in->output = v - h->nodes[in->index].first_output;
            in->n_inputs = h->nodes[in->index].n_inputs;
            in->n_outputs = h->nodes[in->index].n_outputs;
            memcpy(in->op, h->ops[in->index], sizeof in->op);
            in->inputs = o.inputs;
            in->outputs = o.outputs;
            memcpy(in->digest, o.outputs[in->output], sizeof in->digest);
        }
    }
    return c;
}

// Claims about nodes after the first that differs, too. A party is wrong if it reads what both
// agree on and its output is not what the node computes; only that party may be named.
void test_claims_about_nodes(void) {
    unsigned n_decided = 0, n_named_here = 0, n = 0;
    for (int k = 0; k < repeated(400); k++) {
        struct said honest, lying;
        struct ree_error err;
        struct ree_ruling ruling;
        unsigned liar = draw(2);
        said_init(&honest);
        said_init(&lying);
        seal(&honest);
        size_t n_outputs = honest.trace.header.n_step_digests - honest.trace.header.n_inputs;
        uint64_t step = some_step(&honest);
        uint32_t node = (uint32_t)draw(honest.trace.header.n_nodes);
        if (k % 4 == 0) lie_misread(&lying);
        if (k % 4 == 1) lie_cache(&lying);
        // Change several outputs of one step; the claim is about one of them.
        for (int i = 0; k % 4 > 1 && i < 12; i++)
            draw_digest(step_of(&lying, step)[truth.rules.n + draw(n_outputs)]);
        const struct ree_trace_node *damaged = &honest.trace.header.nodes[node];
        if (k % 2)
            draw_digest(step_of(
                &lying, step)[ree_trace_digest_index(&honest.trace.header, damaged->first_output)]);
        seal(&lying);
        const struct said *const sides[2] = {liar ? &honest : &lying, liar ? &lying : &honest};
        struct ree_claim *c = claim_node(sides, step, node);
        if (ree_claim_check(c, &err) == REE_OK) {
            enum ree_status status = rule_on(c, sides, &ruling, &err);
            CHECK_MSG(!ruling.is_wrong[!liar], "node %u in step %llu: %s", node,
                      (unsigned long long)step, ruling.why[!liar]);
            CHECK_MSG(status == REE_OK && ruling.is_wrong[liar], "%s", err.message);
            n_named_here += ruling.is_wrong[liar];
            n_decided += status == REE_OK;
            ree_ruling_finish(&ruling);
        }
        n++;
        ree_claim_destroy(c);
        said_finish(&honest);
        said_finish(&lying);
    }
    printf("%u claims about nodes, %u decided, %u named\n", n, n_decided, n_named_here);
    CHECK(n_decided > (unsigned)repeated(50));
}

// One character of a claim is changed: the honest party is never named. For each kind except node.
void test_altered_claims(void) {
    bool seen[5] = {false};
    unsigned n_altered = 0, n_ruled = 0;
    for (size_t i = 0; i < n_lies; i++) {
        struct said honest, lying;
        struct teller tellers[2];
        struct ree_dispute d;
        struct ree_error err;
        struct ree_ruling ruling;
        struct ree_strbuf text;
        said_init(&honest);
        said_init(&lying);
        seal(&honest);
        lies[i].tell(&lying);
        seal(&lying);
        const struct said *const sides[2] = {&honest, &lying};
        teller_init(&tellers[0], sides[0]);
        teller_init(&tellers[1], sides[1]);
        hold_dispute(sides, tellers, &d);
        ree_strbuf_init(&text);
        bool is_new = d.claim && d.claim->kind != REE_CLAIM_OF_NODE && !seen[d.claim->kind];
        if (is_new) REQUIRE(ree_claim_encode(d.claim, &text, &err) == REE_OK);
        if (is_new) seen[d.claim->kind] = true;
        for (size_t at = 0; at < text.size; at++) {
            struct ree_claim *read;
            char was = text.data[at];
            text.data[at] = was == '0' ? '1' : was == '9' ? '8' : was ^ 1;
            err.message[0] = 0;
            n_altered++;
            if (ree_claim_decode(text.data, text.size, &read, &err) == REE_OK) {
                enum ree_status status = rule_on(read, sides, &ruling, &err);
                CHECK_MSG(!ruling.is_wrong[0], "byte %zu: %s", at, ruling.why[0]);
                CHECK(status == REE_OK || err.message[0]);
                n_ruled += status == REE_OK;
                ree_ruling_finish(&ruling);
                ree_claim_destroy(read);
            } else {
                CHECK(err.message[0]);
            }
            text.data[at] = was;
        }
        ree_strbuf_finish(&text);
        ree_dispute_finish(&d);
        teller_finish(&tellers[0]);
        teller_finish(&tellers[1]);
        said_finish(&honest);
        said_finish(&lying);
    }
    CHECK(seen[REE_CLAIM_OF_INPUT] && seen[REE_CLAIM_OF_TOKEN] && seen[REE_CLAIM_OF_HEADER] &&
          seen[REE_CLAIM_OF_LENGTH]);
    printf("%u altered claims, %u still decided\n", n_altered, n_ruled);
}

static uint32_t value_before(uint32_t input) {
    const struct ree_rule *r = &truth.rules.rules[input];
    return r->kind == REE_RULE_CACHE    ? r->value
           : r->kind == REE_RULE_TOKENS ? truth.rules.logits
                                        : UINT32_MAX;
}

// Whatever place of the traces a claim is about, and whatever it opens, an honest party is never
// named.
void test_claims_about_anything(void) {
    unsigned n_decided = 0, n = 0;
    for (int k = 0; k < repeated(600); k++) {
        struct said honest, lying;
        struct ree_error err;
        struct ree_ruling ruling;
        unsigned liar = draw(2);
        said_init(&honest);
        said_init(&lying);
        seal(&honest);
        size_t which = draw(n_lies);
        if (k % 8 && lies[which].tell != lie_header && lies[which].tell != lie_fewer_nodes)
            lies[which].tell(&lying);
        seal(&lying);
        const struct said *const sides[2] = {liar ? &honest : &lying, liar ? &lying : &honest};
        uint64_t n_steps =
            honest.trace.n_steps < lying.trace.n_steps ? honest.trace.n_steps : lying.trace.n_steps;
        enum ree_claim_kind kind = (enum ree_claim_kind)(1 + draw(4));
        uint32_t input = (uint32_t)draw(truth.rules.n), before = value_before(input);
        uint64_t step = draw(n_steps);
        if (kind == REE_CLAIM_OF_TOKEN) {
            step = 1 + draw(n_steps);
            before = truth.rules.logits;
        } else if (draw(4) == 0) { // any value of the previous step
            before = value_before((uint32_t)draw(truth.rules.n));
        }
        struct ree_claim *c = claim_anything(sides, kind, step, input, before);
        enum ree_status status = rule_on(c, sides, &ruling, &err);
        CHECK_MSG(!ruling.is_wrong[!liar], "%s, a claim of the kind %s: %s", lies[which].name,
                  ree_claim_kind_name(kind), ruling.why[!liar]);
        CHECK(status == REE_OK || err.message[0]);
        n_decided += status == REE_OK;
        n++;
        bool holds = ree_claim_check(c, &err) == REE_OK; // otherwise it is refused
        ree_ruling_finish(&ruling);
        // A root that no receipt states, receipts of other runs, and exchanged receipts.
        struct said stranger;
        said_init(&stranger);
        lie_output(&stranger);
        seal(&stranger);
        const struct said *const strangers[2] = {sides[0], &stranger};
        CHECK(rule_on(c, strangers, &ruling, &err) == REE_INVALID &&
              (!holds || strstr(err.message, "the root of B in the claim")));
        ree_ruling_finish(&ruling);
        const struct said *const swapped[2] = {sides[1], sides[0]};
        if (memcmp(honest.trace.root, lying.trace.root, sizeof(ree_digest)) != 0)
            CHECK(rule_on(c, swapped, &ruling, &err) == REE_INVALID &&
                  (!holds || strstr(err.message, "the root of ")));
        ree_ruling_finish(&ruling);
        status = rule_on(c, NULL, &ruling, &err);
        CHECK(!ruling.is_bound[0] && !ruling.is_bound[1] && !ruling.is_wrong[!liar]);
        CHECK(status != REE_OK || kind == REE_CLAIM_OF_INPUT);
        ree_ruling_finish(&ruling);
        said_finish(&stranger);
        ree_claim_destroy(c);
        said_finish(&honest);
        said_finish(&lying);
    }
    printf("%u claims about anything, %u decided\n", n, n_decided);
    CHECK(n_decided > (unsigned)repeated(50));
}

// A party that contradicts its own receipt does not hide the other party's lie. The first party
// lies with `first`, which needs no value to decide; the second lies about a cache. Both are named.
static void name_two(void (*first)(struct said *)) {
    struct said said[2];
    struct ree_ruling ruling;
    struct ree_error err;
    uint32_t input = 0;
    while (truth.rules.rules[input].kind != REE_RULE_CACHE)
        input++;
    said_init(&said[0]);
    said_init(&said[1]);
    first(&said[0]);
    draw_digest(step_of(&said[1], 1)[input]);
    seal(&said[0]);
    seal(&said[1]);
    const struct said *const sides[2] = {&said[0], &said[1]};
    struct ree_claim *c = claim_anything(sides, REE_CLAIM_OF_INPUT, 1, input, value_before(input));
    enum ree_status status = rule_on(c, sides, &ruling, &err);
    CHECK_MSG(status == REE_OK && ruling.verdict == REE_VERDICT_NEITHER, "A '%s', B '%s'",
              ruling.why[0], ruling.why[1]);
    ree_ruling_finish(&ruling);
    ree_claim_destroy(c);
    said_finish(&said[0]);
    said_finish(&said[1]);
}

static void lie_number(struct said *s) {
    s->receipt.trace_steps++;
}

// More tokens than the receipt allows: the receipt contradicts itself.
static void lie_limit(struct said *s) {
    s->receipt.max_new_tokens = 1;
}

void test_two_named(void) {
    name_two(lie_number);
    name_two(lie_limit);
}
