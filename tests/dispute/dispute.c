// Disputes over random traces. The dispute finds the node that diff finds, within the promised
// number of messages. The claim holds, survives encoding, and does not survive a change. A party
// that alters any of its answers is named.
#include "base/container.h"
#include "dispute/dispute.h"

#include <string.h>

#include "trace/trace.h"
#include "test.h"
#include "splitmix.h"

static struct splitmix rng = {88172645463325252u};

static uint64_t draw(uint64_t below) {
    return splitmix_next(&rng) % below;
}

static void draw_digest(ree_digest out) {
    for (size_t i = 0; i < sizeof(ree_digest); i++)
        out[i] = (unsigned char)draw(256);
}

// Traces

static void make_header(struct ree_trace_header *h, struct ree_arena *arena, uint32_t n_nodes) {
    static const char *const names[] = {"MatMul", "Add", "a \"quoted\" one", ""};
    memset(h, 0, sizeof *h);
    h->version = REE_TRACE_LATEST;
    memset(h->graph_sha256, 'a', 64);
    memset(h->weights_sha256, 'b', 64);
    h->numerics = "RepOps/1";
    h->operation_set = "reproducible";
    h->prefill_chunk = 64;
    h->n_inputs = 1 + (uint32_t)draw(4);
    h->inputs = ree_arena_alloc_array(arena, h->n_inputs, sizeof *h->inputs);
    h->n_constants = (uint32_t)draw(3);
    h->constants = ree_arena_alloc_array(arena, h->n_constants + 1, sizeof *h->constants);
    h->n_nodes = n_nodes;
    h->nodes = ree_arena_alloc_array(arena, n_nodes, sizeof *h->nodes);
    REQUIRE(h->inputs && h->constants && h->nodes);
    for (uint32_t i = 0; i < h->n_inputs; i++)
        h->inputs[i] = (struct ree_trace_input){"x", -1};
    for (uint32_t i = 0; i < h->n_constants; i++) {
        h->constants[i].name = "w";
        draw_digest(h->constants[i].digest);
    }
    uint32_t n_values = h->n_inputs + h->n_constants;
    for (uint32_t i = 0; i < n_nodes; i++) {
        struct ree_trace_node *node = &h->nodes[i];
        node->name = node->op_type = names[draw(4)];
        node->domain = "";
        node->opset = 1 + (int64_t)draw(20);
        draw_digest(node->attributes);
        node->n_inputs = (uint32_t)draw(4);
        node->n_outputs = 1 + (uint32_t)draw(2);
        node->inputs = ree_arena_alloc_array(arena, 4, sizeof *node->inputs);
        node->omitted = ree_arena_alloc_array(arena, 4, sizeof *node->omitted);
        REQUIRE(node->inputs && node->omitted);
        for (uint32_t k = 0; k < node->n_inputs; k++)
            node->inputs[k] = (int32_t)draw(n_values + 1) - 1;
        n_values += node->n_outputs;
    }
    struct ree_error err;
    REQUIRE(ree_trace_header_complete(h, arena, &err) == REE_OK);
}

static void set_root(struct ree_trace *t) {
    ree_digest *leaves = calloc(t->n_steps + 1, sizeof *leaves);
    REQUIRE(leaves);
    for (uint64_t i = 0; i < t->n_steps; i++)
        ree_trace_step_digest(&t->header, i, ree_trace_step(t, i), NULL, leaves[i]);
    ree_trace_root(&t->header, (const ree_digest *)leaves, t->n_steps, t->root);
    free(leaves);
}

// Two runs. `b` equals `a` up to one value; that value differs, and so do some of the later ones.
struct runs {
    struct ree_arena arena;
    struct ree_trace a, b;
};

static void runs_init(struct runs *r, uint32_t n_nodes, uint64_t n_steps, bool input) {
    memset(r, 0, sizeof *r);
    ree_arena_init(&r->arena);
    make_header(&r->a.header, &r->arena, n_nodes);
    r->b.header = r->a.header;
    r->a.n_steps = r->b.n_steps = n_steps;
    size_t each = r->a.header.n_step_digests, total = each * n_steps;
    r->a.digests = calloc(total, sizeof(ree_digest));
    r->b.digests = calloc(total, sizeof(ree_digest));
    REQUIRE(r->a.digests && r->b.digests);
    for (size_t i = 0; i < total; i++)
        draw_digest(r->a.digests[i]);
    memcpy(r->b.digests, r->a.digests, total * sizeof(ree_digest));
    size_t n_inputs = r->a.header.n_inputs;
    size_t first =
        draw(n_steps) * each + (input ? draw(n_inputs) : n_inputs + draw(each - n_inputs));
    for (size_t i = first; i < total; i++)
        if (i == first || draw(3) == 0) draw_digest(r->b.digests[i]);
    set_root(&r->a);
    set_root(&r->b);
}

static void runs_finish(struct runs *r) {
    free(r->a.digests);
    free(r->b.digests);
    ree_arena_finish(&r->arena);
}

static unsigned log2_up(uint64_t n) {
    unsigned k = 0;
    while (((uint64_t)1 << k) < n)
        k++;
    return k;
}

static enum ree_status hold(const struct runs *r, struct ree_dispute *out) {
    struct ree_party *parties[2];
    struct ree_error err;
    REQUIRE(ree_party_of_trace(&r->a, &parties[0], &err) == REE_OK);
    REQUIRE(ree_party_of_trace(&r->b, &parties[1], &err) == REE_OK);
    enum ree_status status =
        ree_dispute(&(struct ree_dispute_terms){.header = &r->a.header}, parties, NULL, out, &err);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    ree_party_of_trace_destroy(parties[0]);
    ree_party_of_trace_destroy(parties[1]);
    return status;
}

// Properties

static void test_found(void) {
    for (int k = 0; k < 400; k++) {
        struct runs r;
        struct ree_dispute d;
        struct ree_diff diff = {.size = sizeof diff};
        runs_init(&r, 1 + (uint32_t)draw(k < 350 ? 40 : 700), 1 + draw(k < 350 ? 20 : 200),
                  k % 5 == 0);
        ree_trace_diff(&r.a, &r.b, &diff, NULL);
        hold(&r, &d);
        CHECK_MSG(d.step == diff.step, "step %llu, diff says %llu", (unsigned long long)d.step,
                  (unsigned long long)diff.step);
        uint64_t levels = 3 + log2_up(r.a.n_steps);
        if (diff.kind == REE_DIFF_INPUT) {
            CHECK(d.kind == REE_DISPUTE_INPUT && d.input == diff.input && !d.claim);
            levels += log2_up(r.a.header.n_inputs);
        } else {
            CHECK(d.kind == REE_DISPUTE_NODE && d.node == diff.node && d.claim);
            levels += log2_up(r.a.header.n_nodes) + r.a.header.nodes[d.node].n_inputs;
        }
        // One question and one answer for each party.
        CHECK_MSG(d.n_messages <= 4 * levels, "%llu messages over %llu steps of %u nodes",
                  (unsigned long long)d.n_messages, (unsigned long long)r.a.n_steps,
                  r.a.header.n_nodes);
        ree_dispute_finish(&d);
        runs_finish(&r);
    }
}

// One run may continue after the end of the other.
static void test_lengths(void) {
    for (int k = 0; k < 200; k++) {
        struct runs r;
        struct ree_dispute d;
        struct ree_diff diff = {.size = sizeof diff};
        runs_init(&r, 1 + (uint32_t)draw(10), 2 + draw(90), false);
        struct ree_trace *cut = draw(2) ? &r.a : &r.b;
        cut->n_steps = draw(cut->n_steps);
        set_root(cut);
        ree_trace_diff(&r.a, &r.b, &diff, NULL);
        hold(&r, &d);
        CHECK(d.kind == (diff.kind == REE_DIFF_NODE ? REE_DISPUTE_NODE : REE_DISPUTE_LENGTH));
        CHECK(d.step == diff.step && (!d.claim || d.node == diff.node));
        uint64_t most = r.a.n_steps > r.b.n_steps ? r.a.n_steps : r.b.n_steps;
        uint64_t levels = 3 + 2 * log2_up(most) + log2_up(r.a.header.n_nodes) + 3;
        CHECK_MSG(d.n_messages <= 4 * levels, "%llu messages over %llu and %llu steps",
                  (unsigned long long)d.n_messages, (unsigned long long)r.a.n_steps,
                  (unsigned long long)r.b.n_steps);
        ree_dispute_finish(&d);
        runs_finish(&r);
    }
}

static void test_same(void) {
    struct runs r;
    struct ree_dispute d;
    runs_init(&r, 5, 5, false);
    memcpy(r.b.digests, r.a.digests, 5 * r.a.header.n_step_digests * sizeof(ree_digest));
    set_root(&r.b);
    hold(&r, &d);
    CHECK(d.kind == REE_DISPUTE_SAME && d.n_messages == 4);
    struct ree_arena other;
    ree_arena_init(&other);
    make_header(&r.b.header, &other, 5);
    r.b.n_steps = 0;
    set_root(&r.b);
    hold(&r, &d);
    CHECK(d.kind == REE_DISPUTE_OTHER_RUN);
    ree_arena_finish(&other);
    runs_finish(&r);
}

// A party has no answer to a question about what its trace does not have.
static void test_absent(void) {
    struct runs r;
    struct ree_party *party;
    struct ree_error err;
    runs_init(&r, 6, 5, false);
    const struct ree_trace_header *h = &r.a.header;
    const uint64_t past = UINT64_MAX;
    const struct ree_query absent[] = {
        {.ask = REE_ASK_STEP, .step = 5},
        {.ask = REE_ASK_STEP, .step = past},
        {.ask = REE_ASK_STEPS, .count = 6},
        {.ask = REE_ASK_STEPS, .count = 1},
        {.ask = REE_ASK_STEPS, .first = 4, .count = 2},
        {.ask = REE_ASK_STEPS, .first = 6, .count = 2},
        {.ask = REE_ASK_STEPS, .first = past, .count = 2},
        {.ask = REE_ASK_STEPS, .first = 2, .count = past},
        {.ask = REE_ASK_NODES, .step = 5, .count = 2},
        {.ask = REE_ASK_NODES, .first = 5, .count = 2},
        {.ask = REE_ASK_NODES, .first = 1, .count = past},
        {.ask = REE_ASK_INPUTS, .first = h->n_inputs, .count = 2},
        {.ask = REE_ASK_INPUTS, .count = (uint64_t)h->n_inputs + 1},
        {.ask = REE_ASK_INPUT, .index = h->n_inputs},
        {.ask = REE_ASK_INPUT, .index = UINT32_MAX},
        {.ask = REE_ASK_INPUT, .step = 5},
        {.ask = REE_ASK_NODE, .index = 6},
        {.ask = REE_ASK_NODE, .step = 5},
        {.ask = (enum ree_ask)(REE_ASK_NODE + 1)},
    };
    const struct ree_query present[] = {
        {.ask = REE_ASK_STEPS, .count = 5},
        {.ask = REE_ASK_STEPS, .first = 3, .count = 2},
        {.ask = REE_ASK_NODES, .step = 4, .count = 6},
        {.ask = REE_ASK_NODES, .first = 4, .count = 2},
        {.ask = REE_ASK_NODE, .step = 4, .index = 5},
        {.ask = REE_ASK_INPUT, .index = h->n_inputs - 1},
    };
    REQUIRE(ree_party_of_trace(&r.a, &party, &err) == REE_OK);
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        struct ree_reply reply = {0};
        err.message[0] = 0;
        CHECK_MSG(party->answer(party, &absent[i], &reply, &err) == REE_INVALID && err.message[0],
                  "question %zu", i);
        ree_reply_finish(&reply);
    }
    for (size_t i = 0; i < sizeof present / sizeof *present; i++) {
        struct ree_reply reply = {0};
        CHECK_MSG(party->answer(party, &present[i], &reply, &err) == REE_OK && reply.n,
                  "question %zu: %s", i, err.message);
        ree_reply_finish(&reply);
    }
    ree_party_of_trace_destroy(party);
    runs_finish(&r);
}

// A party that alters one answer: it flips one bit of a digest or removes a digest.
struct liar {
    struct ree_party base;
    struct ree_party *honest;
    uint64_t at, asked;
    bool shorten;
    bool lied;
};

static enum ree_status lie(struct ree_party *party, const struct ree_query *query,
                           struct ree_reply *out, struct ree_error *err) {
    struct liar *l = REE_CONTAINER_OF(party, struct liar, base);
    enum ree_status status = l->honest->answer(l->honest, query, out, err);
    if (l->asked++ != l->at || !out->n) return status;
    l->lied = true;
    if (l->shorten)
        out->n--;
    else
        out->digests[draw(out->n)][draw(32)] ^= (unsigned char)(1u << draw(8));
    return status;
}

static void test_liars(void) {
    unsigned n_lies = 0;
    for (uint64_t k = 0; k < 600; k++) {
        struct runs r;
        struct ree_dispute d;
        struct ree_error err;
        struct ree_party *parties[2], *honest[2];
        unsigned side = k % 2;
        runs_init(&r, 1 + (uint32_t)draw(40), 1 + draw(20), false);
        REQUIRE(ree_party_of_trace(&r.a, &honest[0], &err) == REE_OK);
        REQUIRE(ree_party_of_trace(&r.b, &honest[1], &err) == REE_OK);
        struct liar liar = {
            .base.answer = lie, .honest = honest[side], .at = draw(16), .shorten = draw(4) == 0};
        parties[side] = &liar.base;
        parties[!side] = honest[!side];
        enum ree_status status = ree_dispute(&(struct ree_dispute_terms){.header = &r.a.header},
                                             parties, NULL, &d, &err);
        CHECK_MSG(status == REE_OK, "%s", err.message);
        if (liar.lied) {
            CHECK_MSG(d.kind == REE_DISPUTE_LIED && d.liar == side && d.lie[0] && !d.claim,
                      "answer %llu: kind %d, liar %u", (unsigned long long)liar.at, (int)d.kind,
                      d.liar);
            n_lies++;
        } else {
            CHECK(d.kind == REE_DISPUTE_NODE);
        }
        ree_dispute_finish(&d);
        ree_party_of_trace_destroy(honest[0]);
        ree_party_of_trace_destroy(honest[1]);
        runs_finish(&r);
    }
    CHECK_MSG(n_lies > 300, "%u lies were told", n_lies);
}

// A party that states 0 steps, but the top of a tree that has some. Its root follows from this top,
// and it has no step that could differ.
static enum ree_status say_nothing(struct ree_party *party, const struct ree_query *query,
                                   struct ree_reply *out, struct ree_error *err) {
    struct liar *l = REE_CONTAINER_OF(party, struct liar, base);
    ree_digest digests[3] = {{0}, {1}, {0}}, steps;
    if (query->ask != REE_ASK_COMMIT) return l->honest->answer(l->honest, query, out, err);
    REQUIRE(l->honest->answer(l->honest, query, out, err) == REE_OK);
    memcpy(digests[0], out->digests[0], sizeof(ree_digest));
    ree_merkle_root_of_top(0, digests[1], steps);
    ree_trace_root_digest(REE_TRACE_LATEST, digests[0], steps, digests[2]);
    out->n_steps = 0;
    memcpy(out->digests, digests, sizeof digests);
    return REE_OK;
}

static void test_tops_of_nothing(void) {
    struct runs r;
    struct ree_dispute d;
    struct ree_error err;
    struct ree_party *honest[2];
    runs_init(&r, 5, 5, false);
    r.a.n_steps = 0;
    set_root(&r.a);
    REQUIRE(ree_party_of_trace(&r.a, &honest[0], &err) == REE_OK);
    REQUIRE(ree_party_of_trace(&r.b, &honest[1], &err) == REE_OK);
    struct liar liar = {.base.answer = say_nothing, .honest = honest[1]};
    struct ree_party *parties[2] = {honest[0], &liar.base};
    struct ree_dispute_terms terms = {.header = &r.a.header};
    CHECK(ree_dispute(&terms, parties, NULL, &d, &err) == REE_OK);
    CHECK(d.kind == REE_DISPUTE_LIED && d.liar == 1);
    ree_party_of_trace_destroy(honest[0]);
    ree_party_of_trace_destroy(honest[1]);
    runs_finish(&r);
}

// A party that invents a record of its inputs. Everything that it commits to is consistent.
static void test_misread(const struct ree_claim *claim) {
    CHECK(ree_claim_misread(claim, 0) == -1 && ree_claim_misread(claim, 1) == -1);
    if (!claim->n_inputs) return;
    claim->sides[1].at.inputs[0][5] ^= 1;
    CHECK(ree_claim_misread(claim, 0) == -1 && ree_claim_misread(claim, 1) == 0);
    claim->sides[1].at.inputs[0][5] ^= 1;
}

// Returns whether a text is a claim whose digests lead to the roots, and that differs from
// `original`. Differences in fields that only the header's digest binds do not count, because the
// referee checks them: the header's fields, and which constant or output an input is.
static bool holds(const char *text, size_t n, const struct ree_claim *original) {
    struct ree_claim *claim;
    struct ree_error err;
    err.message[0] = 0;
    if (ree_claim_decode(text, n, &claim, &err) != REE_OK) {
        CHECK(err.message[0]);
        return false;
    }
    bool ok = ree_claim_check(claim, &err) == REE_OK;
    CHECK(ok || err.message[0]);
    if (ok) {
        struct ree_strbuf a, b;
        ree_strbuf_init(&a);
        ree_strbuf_init(&b);
        memcpy(claim->graph_sha256, original->graph_sha256, 65);
        memcpy(claim->weights_sha256, original->weights_sha256, 65);
        claim->numerics = original->numerics;
        claim->operation_set = original->operation_set;
        claim->prefill_chunk = original->prefill_chunk;
        claim->n_step_inputs = original->n_step_inputs;
        for (uint32_t i = 0; i < claim->n_inputs && i < original->n_inputs; i++)
            if (original->inputs[i].source == REE_CLAIM_CONSTANT)
                claim->inputs[i] = original->inputs[i];
            else if (original->inputs[i].source == REE_CLAIM_NODE)
                claim->inputs[i].output = original->inputs[i].output;
        REQUIRE(ree_claim_encode(claim, &a, &err) == REE_OK);
        REQUIRE(ree_claim_encode(original, &b, &err) == REE_OK);
        ok = a.size != b.size || memcmp(a.data, b.data, a.size) != 0;
        ree_strbuf_finish(&a);
        ree_strbuf_finish(&b);
    }
    ree_claim_destroy(claim);
    return ok;
}

static void test_claims(void) {
    for (int k = 0; k < 8; k++) {
        struct runs r;
        struct ree_dispute d;
        struct ree_error err;
        struct ree_strbuf text, again;
        struct ree_claim *read;
        runs_init(&r, 1 + (uint32_t)draw(30), 1 + draw(20), false);
        hold(&r, &d);
        REQUIRE(d.claim);
        test_misread(d.claim);
        ree_strbuf_init(&text);
        ree_strbuf_init(&again);
        REQUIRE(ree_claim_encode(d.claim, &text, &err) == REE_OK);
        REQUIRE(ree_claim_decode(text.data, text.size, &read, &err) == REE_OK);
        CHECK(ree_claim_check(read, &err) == REE_OK);
        REQUIRE(ree_claim_encode(read, &again, &err) == REE_OK);
        CHECK(text.size == again.size && memcmp(text.data, again.data, text.size) == 0);
        ree_claim_destroy(read);
        for (size_t i = 0; i < text.size; i++) {
            char was = text.data[i];
            text.data[i] = was == '0' ? '1' : was == '9' ? '8' : was ^ 1;
            CHECK_MSG(!holds(text.data, text.size, d.claim), "byte %zu of a claim can be changed",
                      i);
            text.data[i] = was;
        }
        for (size_t n = 0; n < text.size; n += 1 + draw(20))
            CHECK(!holds(text.data, n, d.claim));
        ree_strbuf_finish(&text);
        ree_strbuf_finish(&again);
        ree_dispute_finish(&d);
        runs_finish(&r);
    }
}

int main(void) {
    test_found();
    test_lengths();
    test_same();
    test_absent();
    test_liars();
    test_tops_of_nothing();
    test_claims();
    return test_finish();
}
