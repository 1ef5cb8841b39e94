// Parties that lie about a run of the sample model, each consistent in itself: a value of the trace
// is made up, everything above it is hashed anew and the receipt is sealed again. Whatever is made
// up, the dispute and the referee name the party that did, and never the other one. The same holds
// for a party that stops answering at any message, and for claims about any place of two traces.
//
//     liars_test MODEL FOLDER     FOLDER: clean.trace, clean.json, values (tests/audit/liars.py)
#include "liars.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

// Disputes and rulings

static struct ree_dispute_terms terms_of(const struct said *const sides[2]) {
    return (struct ree_dispute_terms){.header = &truth.opened.header,
                                      .is_model = true,
                                      .rules = &truth.rules,
                                      .runs = {&sides[0]->told, &sides[1]->told}};
}

static void hold(const struct said *const sides[2], struct teller tellers[2],
                 struct ree_dispute *out) {
    struct ree_strbuf transcript;
    ree_strbuf_init(&transcript);
    struct ree_error err = {0};
    struct ree_party *parties[2] = {&tellers[0].base, &tellers[1].base};
    struct ree_dispute_terms terms = terms_of(sides);
    enum ree_status status = ree_dispute(&terms, parties, &transcript, out, &err);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    bool is_named = out->kind == REE_DISPUTE_LIED || out->kind == REE_DISPUTE_SILENT;
    ree_strbuf_append(&transcript, "", 1);
    CHECK(!transcript.failed && !!strstr(transcript.data, "none for others") == is_named);
    CHECK(!!strstr(transcript.data, "\"silent\":true") == (out->kind == REE_DISPUTE_SILENT));
    ree_strbuf_finish(&transcript);
}

// A claim as whoever gets its file has it.
static struct ree_claim *reread(const struct ree_claim *claim) {
    struct ree_error err;
    struct ree_strbuf text;
    struct ree_claim *out = NULL;
    ree_strbuf_init(&text);
    REQUIRE(ree_claim_encode(claim, &text, &err) == REE_OK);
    enum ree_status status = ree_claim_decode(text.data, text.size, &out, &err);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    ree_strbuf_finish(&text);
    return out;
}

static enum ree_status rule(const struct ree_claim *claim, const struct said *const sides[2],
                            struct ree_ruling *out, struct ree_error *err) {
    struct ree_referee_options options = {
        .model = truth.model,
        .folder = truth.values,
        .receipts = {sides ? &sides[0]->receipt : NULL, sides ? &sides[1]->receipt : NULL}};
    err->message[0] = 0;
    return claim->kind == REE_CLAIM_OF_NODE
               ? ree_referee(claim, &options, out, err)
               : ree_referee_opened(claim, &truth.opened, &options, out, err);
}

static unsigned n_named, n_kinds[16];

// The party `liar` is named, and the other one is not.
static void judge(const char *lie, const struct ree_dispute *d, const struct said *const sides[2],
                  unsigned liar) {
    struct ree_error err;
    struct ree_ruling ruling;
    n_kinds[d->kind]++;
    CHECK_MSG(d->claim != NULL, "%s: nothing is claimed: kind %d", lie, (int)d->kind);
    if (!d->claim) return;
    struct ree_claim *claim = reread(d->claim);
    if (!claim) return;
    enum ree_status status = rule(claim, sides, &ruling, &err);
    CHECK_MSG(status == REE_OK, "%s: kind %d: %s", lie, (int)d->kind, err.message);
    if (status == REE_OK) {
        CHECK_MSG(ruling.verdict == (liar ? REE_VERDICT_A : REE_VERDICT_B) &&
                      ruling.is_wrong[liar] && !ruling.is_wrong[!liar] && ruling.why[liar][0],
                  "%s: kind %d: verdict %d, liar %u: %s%s", lie, (int)d->kind, (int)ruling.verdict,
                  liar, ruling.why[0], ruling.why[1]);
        CHECK(ruling.is_bound[0] && ruling.is_bound[1]);
        n_named += ruling.is_wrong[liar];
    }
    ree_ruling_finish(&ruling);
    ree_claim_destroy(claim);
}

// A dispute in which one lies, and whose receipt has another form (NULL: the usual one).
static void test_lie(const struct lie *lie, const struct form *form) {
    struct said honest, lying;
    struct teller tellers[2];
    struct ree_dispute d;
    char name[100];
    unsigned liar = draw(2);
    said_init(&honest);
    said_init(&lying);
    if (form && draw(2)) { // not with --ignore-eos
        honest.receipt.eos = lying.receipt.eos = truth.opened.source.eos;
        honest.receipt.n_eos = lying.receipt.n_eos = truth.opened.source.n_eos;
    }
    seal(&honest);
    lie->tell(&lying);
    if (form) form->change(&lying);
    seal(&lying);
    const struct said *const sides[2] = {liar ? &honest : &lying, liar ? &lying : &honest};
    teller_init(&tellers[0], sides[0]);
    teller_init(&tellers[1], sides[1]);
    hold(sides, tellers, &d);
    snprintf(name, sizeof name, "%s, %s", lie->name, form ? form->name : "the usual form");
    judge(name, &d, sides, liar);
    ree_dispute_finish(&d);
    teller_finish(&tellers[0]);
    teller_finish(&tellers[1]);
    said_finish(&honest);
    said_finish(&lying);
}

static void test_lies(void) {
    for (size_t i = 0; i < n_lies; i++)
        for (int k = 0; k < lies[i].times; k++)
            test_lie(&lies[i], NULL);
    for (size_t i = 0; i < n_lies; i++)
        for (size_t k = 0; k < n_forms; k++)
            test_lie(&lies[i], &forms[k]);
}

// A receipt of another form over the true run: both roots are the same, and it is wrong if it
// contradicts the run or the model, and not otherwise.
static void test_forms(void) {
    for (size_t i = 0; i < n_forms; i++)
        for (int k = 0; k < 4; k++) {
            struct said said[2];
            struct ree_error err = {0};
            struct ree_ruling ruling;
            const char *differences[REE_REFEREE_MAX_DIFFERENCES];
            unsigned other = draw(2);
            said_init(&said[0]);
            said_init(&said[1]);
            forms[i].change(&said[other]);
            seal(&said[0]);
            seal(&said[1]);
            struct ree_referee_options options = {.receipts = {&said[0].receipt, &said[1].receipt}};
            enum ree_status status = ree_referee_same(&truth.opened, &options, &ruling, &err);
            CHECK_MSG(status == REE_OK, "%s: %s", forms[i].name, err.message);
            CHECK_MSG(ruling.is_wrong[other] == forms[i].is_lie && !ruling.is_wrong[!other],
                      "%s: %s%s", forms[i].name, ruling.why[0], ruling.why[1]);
            size_t n;
            CHECK(ree_referee_differences(&said[0].receipt, &said[1].receipt, differences, &n,
                                          &err) == REE_OK);
            CHECK_MSG(n > 0 || !forms[i].is_lie, "%s: no difference", forms[i].name);
            ree_ruling_finish(&ruling);
            said_finish(&said[0]);
            said_finish(&said[1]);
        }
}

// What ends the answers of a dispute about the length: the model's token, a stop text, a limit, the
// context.
enum end { END_TOKEN, END_STOP, END_LIMIT, END_CONTEXT, N_ENDS };

static void end_after(struct said *s, enum end end, size_t n) {
    static int32_t id;
    static char stop[64];
    static const char *const stop_list[] = {stop};
    const char *piece;
    struct ree_decoder *decoder;
    struct ree_error err;
    size_t size;
    switch (end) {
    case END_TOKEN:
        id = s->output[n - 1];
        s->receipt.eos = truth.opened.source.eos = &id;
        s->receipt.n_eos = truth.opened.source.n_eos = 1;
        break;
    case END_STOP: // text of a token in the middle of a text
        REQUIRE(ree_decoder_create(truth.tokenizer, REE_SKIP_SPECIAL, &decoder, &err) == REE_OK);
        for (size_t i = 0; i < n; i++)
            REQUIRE(ree_decoder_push(decoder, s->output[i], &piece, &size, &err) == REE_OK);
        snprintf(stop, sizeof stop, "%.*s", (int)size, piece);
        ree_decoder_destroy(decoder);
        s->receipt.stops = stop_list;
        s->receipt.n_stops = stop[0] != 0;
        break;
    case END_LIMIT: s->receipt.max_new_tokens = n; break;
    default:
        s->receipt.context_length = (int64_t)(s->receipt.prompt.n_tokens + n);
        truth.opened.source.context_length = s->receipt.context_length;
    }
}

// Tokens up to the first end, by the text of ever more tokens; SIZE_MAX: there is none.
static size_t first_end(const struct said *s, const char **reason) {
    const struct ree_receipt *r = &s->receipt;
    struct ree_error err;
    size_t size;
    for (size_t n = 1; n <= r->output.n_tokens; n++) {
        char *text, *at;
        *reason = "eos";
        if (r->n_eos && s->output[n - 1] == r->eos[0]) return n;
        *reason = "stop";
        REQUIRE(ree_tokenizer_decode(truth.tokenizer, s->output, n, REE_SKIP_SPECIAL, &text, &size,
                                     &err) == REE_OK);
        at = r->n_stops ? strstr(text, r->stops[0]) : NULL;
        free(text);
        if (at) return n;
        *reason = "length";
        if (n == r->max_new_tokens) return n;
        if (r->prompt.n_tokens + n == (size_t)r->context_length) return n;
    }
    return SIZE_MAX;
}

// Two answers of different lengths, each cut or gone on with at random, and what ends them at a
// place of its own: each party is right if its first end is its last token, and it says why, or if
// it says that it was interrupted before. Both can be wrong.
static void test_ends(void) {
    static const char *const reasons[] = {"eos", "stop", "length", "interrupted"};
    struct ree_model_source was = truth.opened.source;
    unsigned n_wrong[3] = {0};
    for (int k = 0; k < 400; k++) {
        struct said said[2];
        struct teller tellers[2];
        struct ree_dispute d;
        struct ree_ruling ruling;
        struct ree_error err;
        bool wrong[2];
        enum end end = (enum end)draw(N_ENDS);
        size_t n[2], all;
        for (unsigned i = 0; i < 2; i++) {
            said_init(&said[i]);
            all = said[i].receipt.output.n_tokens;
            said[i].receipt.max_new_tokens = 0;
        }
        size_t place = 1 + draw(all);
        n[0] = draw(3) ? place : 1 + draw(all);
        do
            n[1] = 1 + draw(all);
        while (n[1] == n[0]);
        for (unsigned i = 0; i < 2; i++) {
            const char *reason = NULL;
            struct ree_receipt *r = &said[i].receipt;
            end_after(&said[i], end, place);
            said[i].trace.n_steps -= all - n[i];
            r->trace_steps = said[i].trace.n_steps;
            r->output.n_tokens = n[i];
            size_t first = first_end(&said[i], &reason);
            r->finish_reason = first == n[i] && draw(4) ? reason : reasons[draw(4)];
            wrong[i] = first < n[i] ||
                       strcmp(r->finish_reason, first == n[i] ? reason : "interrupted") != 0;
            seal(&said[i]);
            teller_init(&tellers[i], &said[i]);
        }
        const struct said *const sides[2] = {&said[0], &said[1]};
        hold(sides, tellers, &d);
        REQUIRE(d.kind == REE_DISPUTE_LENGTH && d.claim);
        enum ree_status status = rule(d.claim, sides, &ruling, &err);
        CHECK_MSG(ruling.is_wrong[0] == wrong[0] && ruling.is_wrong[1] == wrong[1] &&
                      (status == REE_OK) == (wrong[0] || wrong[1]),
                  "end %d after %zu, answers of %zu (%s) and %zu (%s): A '%s', B '%s', %s",
                  (int)end, place, n[0], said[0].receipt.finish_reason, n[1],
                  said[1].receipt.finish_reason, ruling.why[0], ruling.why[1],
                  status == REE_OK ? "" : err.message);
        n_wrong[wrong[0] + wrong[1]]++;
        ree_ruling_finish(&ruling);
        ree_dispute_finish(&d);
        truth.opened.source = was;
        for (unsigned i = 0; i < 2; i++) {
            teller_finish(&tellers[i]);
            said_finish(&said[i]);
        }
    }
    printf("400 pairs of ends: %u of none wrong, %u of one, %u of both\n", n_wrong[0], n_wrong[1],
           n_wrong[2]);
    CHECK(n_wrong[0] > 20 && n_wrong[1] > 20 && n_wrong[2] > 20);
}

// Leaving, or bending an answer, at every message.
static void test_leaving(void) {
    unsigned n_left = 0, n_bent = 0;
    for (size_t i = 0; i < n_lies; i++) {
        struct said honest, lying;
        struct teller tellers[2];
        struct ree_dispute d;
        said_init(&honest);
        said_init(&lying);
        seal(&honest);
        lies[i].tell(&lying);
        seal(&lying);
        const struct said *const sides[2] = {&honest, &lying};
        teller_init(&tellers[0], sides[0]);
        teller_init(&tellers[1], sides[1]);
        hold(sides, tellers, &d);
        ree_dispute_finish(&d);
        uint64_t n[2] = {tellers[0].asked, tellers[1].asked};
        for (unsigned side = 0; side < 2; side++)
            for (uint64_t at = 1; at <= n[side]; at++)
                for (int bends = 0; bends < 2; bends++) {
                    tellers[0].asked = tellers[1].asked = 0;
                    *(bends ? &tellers[side].bends_at : &tellers[side].leaves_at) = at;
                    hold(sides, tellers, &d);
                    CHECK_MSG(d.kind == (bends ? REE_DISPUTE_LIED : REE_DISPUTE_SILENT) &&
                                  d.liar == side && !d.claim,
                              "%s: message %llu of %u: kind %d, liar %u", lies[i].name,
                              (unsigned long long)at, side, (int)d.kind, d.liar);
                    *(bends ? &n_bent : &n_left) += 1;
                    ree_dispute_finish(&d);
                    tellers[side].bends_at = tellers[side].leaves_at = 0;
                }
        teller_finish(&tellers[0]);
        teller_finish(&tellers[1]);
        said_finish(&honest);
        said_finish(&lying);
    }
    printf("left at %u messages, bent %u\n", n_left, n_bent);
}

// An answer that was interrupted is nobody's lie.
static void test_interrupted(void) {
    for (int k = 0; k < 8; k++) {
        struct said whole, part;
        struct teller tellers[2];
        struct ree_dispute d;
        struct ree_ruling ruling;
        struct ree_error err;
        said_init(&whole);
        said_init(&part);
        seal(&whole);
        lie_early_end(&part);
        part.receipt.finish_reason = "interrupted";
        seal(&part);
        const struct said *const sides[2] = {k % 2 ? &whole : &part, k % 2 ? &part : &whole};
        teller_init(&tellers[0], sides[0]);
        teller_init(&tellers[1], sides[1]);
        hold(sides, tellers, &d);
        REQUIRE(d.kind == REE_DISPUTE_LENGTH && d.claim);
        CHECK(rule(d.claim, sides, &ruling, &err) == REE_UNSUPPORTED &&
              strstr(err.message, "interrupted"));
        CHECK(!ruling.is_wrong[0] && !ruling.is_wrong[1]);
        ree_ruling_finish(&ruling);
        ree_dispute_finish(&d);
        teller_finish(&tellers[0]);
        teller_finish(&tellers[1]);
        said_finish(&whole);
        said_finish(&part);
    }
}

// Two that have the same header, which is not this version's, are not judged by it.
static void test_shared_header(void) {
    struct said said[2];
    struct teller tellers[2];
    struct ree_dispute d;
    for (unsigned k = 0; k < 2; k++) {
        said_init(&said[k]);
        said[k].trace.header.nodes[3].name = "another";
        if (k) lie_output(&said[k]);
        seal(&said[k]);
        teller_init(&tellers[k], &said[k]);
    }
    const struct said *const sides[2] = {&said[0], &said[1]};
    hold(sides, tellers, &d);
    CHECK(d.kind == REE_DISPUTE_OTHER_RUN && !d.claim);
    ree_dispute_finish(&d);
    for (unsigned k = 0; k < 2; k++) {
        teller_finish(&tellers[k]);
        said_finish(&said[k]);
    }
}

// Two that lie, each about something of its own: no dispute fails, and whoever is named did lie.
static void test_two_liars(void) {
    unsigned n_decided = 0;
    for (int k = 0; k < 100; k++) {
        struct said said[2];
        struct teller tellers[2];
        struct ree_dispute d;
        struct ree_ruling ruling;
        struct ree_error err;
        for (unsigned i = 0; i < 2; i++) {
            said_init(&said[i]);
            lies[draw(n_lies)].tell(&said[i]);
            seal(&said[i]);
            teller_init(&tellers[i], &said[i]);
        }
        const struct said *const sides[2] = {&said[0], &said[1]};
        hold(sides, tellers, &d);
        if (d.claim) {
            enum ree_status status = rule(d.claim, sides, &ruling, &err);
            CHECK(status == REE_OK ? ruling.is_wrong[0] || ruling.is_wrong[1] : err.message[0]);
            n_decided += status == REE_OK;
            ree_ruling_finish(&ruling);
        }
        ree_dispute_finish(&d);
        for (unsigned i = 0; i < 2; i++) {
            teller_finish(&tellers[i]);
            said_finish(&said[i]);
        }
    }
    printf("100 disputes of two liars, %u decided\n", n_decided);
    CHECK(n_decided > 50);
}

// Claims that no dispute led to

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

// A claim of any kind but node, about any place, that leads to both roots.
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

// A claim about any node.
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
        // What the one party says: both must have it for the claim to hold.
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

// Nodes behind the first that differs, too: whoever reads what both agree on and gives something
// else than the node does is wrong, and only that party.
static void test_claims_about_nodes(void) {
    unsigned n_decided = 0, n_named_here = 0, n = 0;
    for (int k = 0; k < 400; k++) {
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
        // Several outputs of one step; the claim is about one of them.
        for (int i = 0; k % 4 > 1 && i < 12; i++)
            draw_digest(step_of(&lying, step)[truth.rules.n + draw(n_outputs)]);
        const struct ree_trace_node *damaged = &honest.trace.header.nodes[node];
        if (k % 2)
            draw_digest(step_of(
                &lying, step)[ree_trace_place(&honest.trace.header, damaged->first_output)]);
        seal(&lying);
        const struct said *const sides[2] = {liar ? &honest : &lying, liar ? &lying : &honest};
        struct ree_claim *c = claim_node(sides, step, node);
        if (ree_claim_check(c, &err) == REE_OK) {
            enum ree_status status = rule(c, sides, &ruling, &err);
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
    CHECK(n_decided > 50);
}

// A claim of each kind with one character changed: it is refused, or says the same.
static void test_altered_claims(void) {
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
        hold(sides, tellers, &d);
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
                enum ree_status status = rule(read, sides, &ruling, &err);
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

// Whatever place of the traces a claim is about, and whatever it opens, the honest party is not
// named; nor is either of two honest ones.
static void test_claims_about_anything(void) {
    unsigned n_decided = 0, n = 0;
    for (int k = 0; k < 600; k++) {
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
        } else if (draw(4) == 0) { // any value of the step before
            before = value_before((uint32_t)draw(truth.rules.n));
        }
        struct ree_claim *c = claim_anything(sides, kind, step, input, before);
        enum ree_status status = rule(c, sides, &ruling, &err);
        CHECK_MSG(!ruling.is_wrong[!liar], "%s, a claim of the kind %s: %s", lies[which].name,
                  ree_claim_kind_name(kind), ruling.why[!liar]);
        CHECK(status == REE_OK || err.message[0]);
        n_decided += status == REE_OK;
        n++;
        bool holds = ree_claim_check(c, &err) == REE_OK; // what does not is refused for that
        ree_ruling_finish(&ruling);
        // A root that no receipt carries, receipts of others, and receipts the other way round.
        struct said stranger;
        said_init(&stranger);
        lie_output(&stranger);
        seal(&stranger);
        const struct said *const strangers[2] = {sides[0], &stranger};
        CHECK(rule(c, strangers, &ruling, &err) == REE_INVALID &&
              (!holds || strstr(err.message, "root that the claim has for B")));
        ree_ruling_finish(&ruling);
        const struct said *const swapped[2] = {sides[1], sides[0]};
        if (memcmp(honest.trace.root, lying.trace.root, sizeof(ree_digest)) != 0)
            CHECK(rule(c, swapped, &ruling, &err) == REE_INVALID &&
                  (!holds || strstr(err.message, "root that the claim has")));
        ree_ruling_finish(&ruling);
        status = rule(c, NULL, &ruling, &err);
        CHECK(!ruling.is_bound[0] && !ruling.is_bound[1] && !ruling.is_wrong[!liar]);
        CHECK(status != REE_OK || kind == REE_CLAIM_OF_INPUT);
        ree_ruling_finish(&ruling);
        said_finish(&stranger);
        ree_claim_destroy(c);
        said_finish(&honest);
        said_finish(&lying);
    }
    printf("%u claims about anything, %u decided\n", n, n_decided);
    CHECK(n_decided > 50);
}

// A token of the answer ends a text by the model. Two runs with --ignore-eos are right, but for a
// request, which does not allow it; against one that ends by the model's tokens such a run is
// wrong.
static void test_ignored(void) {
    struct ree_model_source was = truth.opened.source;
    const struct ree_request request = {0};
    for (int k = 0; k < 4; k++) {
        struct said said[2];
        struct ree_ruling ruling;
        struct ree_error err = {0};
        bool is_requested = k & 1, ends = k & 2;
        said_init(&said[0]);
        said_init(&said[1]);
        truth.opened.source.eos = &said[0].output[5];
        truth.opened.source.n_eos = 1;
        for (unsigned i = 0; i < 2; i++)
            said[i].receipt.n_eos = 0;
        if (ends) { // its answer goes on, too
            said[0].receipt.eos = truth.opened.source.eos;
            said[0].receipt.n_eos = 1;
        }
        seal(&said[0]);
        seal(&said[1]);
        struct ree_referee_options options = {.receipts = {&said[0].receipt, &said[1].receipt},
                                              .request = is_requested ? &request : NULL};
        enum ree_status status = ree_referee_same(&truth.opened, &options, &ruling, &err);
        bool wrong = is_requested || ends;
        CHECK_MSG(status == REE_OK && ruling.is_wrong[0] == wrong && ruling.is_wrong[1] == wrong &&
                      (!wrong || strstr(ruling.why[1], "no token ends a text")),
                  "%d: A '%s', B '%s'", k, ruling.why[0], ruling.why[1]);
        ree_ruling_finish(&ruling);
        truth.opened.source = was;
        said_finish(&said[0]);
        said_finish(&said[1]);
    }
}

// A party that contradicts its own receipt does not hide what the other one did: `first` lies in a
// way that needs no value, the other one about a cache, and both are named.
static void test_two_named(void (*first)(struct said *)) {
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
    enum ree_status status = rule(c, sides, &ruling, &err);
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

// More tokens than the receipt allows: it contradicts itself.
static void lie_limit(struct said *s) {
    s->receipt.max_new_tokens = 1;
}

// The rules give what an honest run has, in every step.
static void test_rules(void) {
    struct said s;
    struct ree_error err;
    unsigned n_kinds_seen[5] = {0};
    said_init(&s);
    seal(&s);
    for (uint64_t step = 0; step < s.trace.n_steps; step++)
        for (uint32_t i = 0; i < truth.rules.n; i++) {
            const struct ree_rule *r = &truth.rules.rules[i];
            ree_digest expected;
            n_kinds_seen[r->kind]++;
            if (r->kind == REE_RULE_CACHE) {
                int64_t place = ree_trace_place(&s.trace.header, r->value);
                memcpy(expected, step ? step_of(&s, step - 1)[place] : r->empty, sizeof expected);
            } else {
                enum ree_status status =
                    ree_told_input(&s.told, &truth.opened, &truth.rules, step, i, expected, &err);
                CHECK_MSG(status == REE_OK, "%s", err.message);
            }
            CHECK_MSG(memcmp(expected, step_of(&s, step)[i], sizeof expected) == 0,
                      "step %llu, input %u: not what the rule '%s' says", (unsigned long long)step,
                      i, ree_rule_name(r->kind));
        }
    CHECK(s.told.n_steps == s.trace.n_steps);
    printf("%llu steps: inputs made %u, tokens %u, caches %u\n",
           (unsigned long long)s.trace.n_steps, n_kinds_seen[REE_RULE_MADE],
           n_kinds_seen[REE_RULE_TOKENS], n_kinds_seen[REE_RULE_CACHE]);
    CHECK(n_kinds_seen[REE_RULE_TOKENS] && !n_kinds_seen[REE_RULE_NONE]);
    said_finish(&s);
}

int main(int argc, char **argv) {
    static char trace[4096], values[4096];
    struct ree_error err;
    if (argc < 3) return 2;
    bool only_rules = argc > 3 && strcmp(argv[3], "--rules") == 0;
    truth.model = argv[1];
    snprintf(trace, sizeof trace, "%s/clean.trace", argv[2]);
    snprintf(values, sizeof values, "%s/values", argv[2]);
    snprintf(truth.receipt_path, sizeof truth.receipt_path, "%s/clean.json", argv[2]);
    truth.values = values;
    REQUIRE(ree_trace_load(trace, &truth.trace, &err) == REE_OK);
    struct ree_open_options open = {REE_REPRODUCIBLE, truth.trace->header.prefill_chunk, NULL};
    REQUIRE(ree_open_model(truth.model, &open, &truth.opened, &err) == REE_OK);
    REQUIRE(ree_rules_make(&truth.opened, &truth.opened.arena, &truth.rules, &err) == REE_OK);
    REQUIRE(ree_tokenizer_load(truth.model, &truth.tokenizer, &err) == REE_OK);
    test_rules();
    if (!only_rules) {
        test_lies();
        test_forms();
        test_ends();
        test_ignored();
        test_two_named(lie_number);
        test_two_named(lie_limit);
        test_leaving();
        test_interrupted();
        test_shared_header();
        test_two_liars();
        test_claims_about_anything();
        test_claims_about_nodes();
        test_altered_claims();
        printf("%u lies named by claims: %u inputs, %u nodes, %u lengths, %u headers, %u tokens\n",
               n_named, n_kinds[REE_DISPUTE_INPUT], n_kinds[REE_DISPUTE_NODE],
               n_kinds[REE_DISPUTE_LENGTH], n_kinds[REE_DISPUTE_HEADER],
               n_kinds[REE_DISPUTE_TOKEN]);
        CHECK(n_named > 500);
    }
    ree_tokenizer_destroy(truth.tokenizer);
    ree_opened_finish(&truth.opened);
    ree_trace_destroy(truth.trace);
    return test_finish();
}
