// Parties that lie about a run of the sample model. Each lie is consistent in itself: a value of
// the trace is invented, everything above it is hashed again and the receipt is sealed again.
// Whatever is invented, the dispute and the referee name the lying party and never the other party.
// The same holds for a party that stops answering at any message, and for claims about any place of
// two traces.
//
//     liars_test MODEL FOLDER [--rules | --short]
//
// FOLDER contains clean.trace, clean.json and values (see tests/dispute/liars.py). With --rules,
// only test_rules runs, which needs no values; with --short, the tests tell fewer lies.
#include "liars.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

// A dispute in which one party lies and its receipt has another form. form NULL: the usual form.
static void test_lie(const struct lie *lie, const struct form *form) {
    struct said honest, lying;
    struct teller tellers[2];
    struct ree_dispute d;
    char name[100];
    unsigned liar = draw(2);
    said_init(&honest);
    said_init(&lying);
    if (form && draw(2)) { // as of a run without --ignore-eos
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
    hold_dispute(sides, tellers, &d);
    snprintf(name, sizeof name, "%s, %s", lie->name, form ? form->name : "the usual form");
    check_named(name, &d, sides, liar);
    ree_dispute_finish(&d);
    teller_finish(&tellers[0]);
    teller_finish(&tellers[1]);
    said_finish(&honest);
    said_finish(&lying);
}

static void test_lies(void) {
    for (size_t i = 0; i < n_lies; i++)
        for (int k = 0; k < repeated(lies[i].times); k++)
            test_lie(&lies[i], NULL);
    for (size_t i = 0; i < n_lies; i++)
        for (size_t k = 0; k < n_forms; k++)
            if (!truth.is_short || (i + k) % 8 == 0) test_lie(&lies[i], &forms[k]);
}

// A receipt of another form over the true run: both roots are equal. The referee must find it wrong
// if and only if it contradicts the run or the model.
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

// At every message in turn, a party stops answering or alters its answer.
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
        hold_dispute(sides, tellers, &d);
        ree_dispute_finish(&d);
        uint64_t n[2] = {tellers[0].asked, tellers[1].asked};
        for (unsigned side = 0; side < 2; side++)
            for (uint64_t at = 1; at <= n[side]; at++)
                for (int bends = 0; bends < 2; bends++) {
                    tellers[0].asked = tellers[1].asked = 0;
                    *(bends ? &tellers[side].bends_at : &tellers[side].leaves_at) = at;
                    hold_dispute(sides, tellers, &d);
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

// An interrupted answer is not a lie of either party.
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
        hold_dispute(sides, tellers, &d);
        REQUIRE(d.kind == REE_DISPUTE_LENGTH && d.claim);
        CHECK(rule_on(d.claim, sides, &ruling, &err) == REE_UNSUPPORTED &&
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

// If both parties have the same header, and it is not this version's, neither is judged by it.
static void test_shared_header(void) {
    struct said said[2];
    struct teller tellers[2];
    struct ree_dispute d;
    for (unsigned k = 0; k < 2; k++) {
        said_init(&said[k]);
        said[k].trace.header.nodes[3].op_type = "another";
        if (k) lie_output(&said[k]);
        seal(&said[k]);
        teller_init(&tellers[k], &said[k]);
    }
    const struct said *const sides[2] = {&said[0], &said[1]};
    hold_dispute(sides, tellers, &d);
    CHECK(d.kind == REE_DISPUTE_OTHER_RUN && !d.claim);
    ree_dispute_finish(&d);
    for (unsigned k = 0; k < 2; k++) {
        teller_finish(&tellers[k]);
        said_finish(&said[k]);
    }
}

// Both parties lie: no dispute fails, and the referee names a party or says why it cannot.
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
        hold_dispute(sides, tellers, &d);
        if (d.claim) {
            enum ree_status status = rule_on(d.claim, sides, &ruling, &err);
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

// The rules give the inputs that an honest run has in every step.
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
                int64_t place = ree_trace_digest_index(&s.trace.header, r->value);
                memcpy(expected, step ? step_of(&s, step - 1)[place] : r->empty, sizeof expected);
            } else {
                enum ree_status status = ree_stated_run_input(
                    &s.stated_run, &truth.opened, &truth.rules, step, i, expected, &err);
                CHECK_MSG(status == REE_OK, "%s", err.message);
            }
            CHECK_MSG(memcmp(expected, step_of(&s, step)[i], sizeof expected) == 0,
                      "step %llu, input %u: not what the rule '%s' says", (unsigned long long)step,
                      i, ree_rule_name(r->kind));
        }
    CHECK(s.stated_run.n_steps == s.trace.n_steps);
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
    truth.is_short = argc > 3 && strcmp(argv[3], "--short") == 0;
    truth.model = argv[1];
    snprintf(trace, sizeof trace, "%s/clean.trace", argv[2]);
    snprintf(values, sizeof values, "%s/values", argv[2]);
    snprintf(truth.receipt_path, sizeof truth.receipt_path, "%s/clean.json", argv[2]);
    truth.values = values;
    REQUIRE(ree_trace_load(trace, &truth.trace, &err) == REE_OK);
    struct ree_open_options open = {.operation_set = REE_REPRODUCIBLE,
                                    .prefill_chunk = truth.trace->header.prefill_chunk};
    REQUIRE(ree_open_model(truth.model, &open, &truth.opened, &err) == REE_OK);
    REQUIRE(ree_rules_make(&truth.opened, &truth.opened.arena, &truth.rules, &err) == REE_OK);
    REQUIRE(ree_tokenizer_load(truth.model, &truth.tokenizer, &err) == REE_OK);
    test_rules();
    if (!only_rules) {
        test_lies();
        test_forms();
        test_ends();
        test_ignored();
        test_two_named();
        test_leaving();
        test_interrupted();
        test_shared_header();
        test_two_liars();
        test_claims_about_anything();
        test_claims_about_nodes();
        test_altered_claims();
        printf("%u lies named by claims: %u inputs, %u nodes, %u lengths, %u headers, %u tokens\n",
               n_named, n_disputes[REE_DISPUTE_INPUT], n_disputes[REE_DISPUTE_NODE],
               n_disputes[REE_DISPUTE_LENGTH], n_disputes[REE_DISPUTE_HEADER],
               n_disputes[REE_DISPUTE_TOKEN]);
        CHECK(n_named > (unsigned)repeated(500));
    }
    ree_tokenizer_destroy(truth.tokenizer);
    ree_opened_finish(&truth.opened);
    ree_trace_destroy(truth.trace);
    return test_finish();
}
