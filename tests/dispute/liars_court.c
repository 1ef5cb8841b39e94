// Disputes between two statements, and rulings on the resulting claims.
#include "liars.h"

#include <string.h>

#include "test.h"

static struct ree_dispute_terms terms_of(const struct said *const sides[2]) {
    return (struct ree_dispute_terms){.header = &truth.opened.header,
                                      .is_model = true,
                                      .rules = &truth.rules,
                                      .runs = {&sides[0]->stated_run, &sides[1]->stated_run}};
}

void hold_dispute(const struct said *const sides[2], struct teller tellers[2],
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

struct ree_claim *read_claim_again(const struct ree_claim *claim) {
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

enum ree_status rule_on(const struct ree_claim *claim, const struct said *const sides[2],
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

unsigned n_named, n_disputes[16];

void check_named(const char *lie, const struct ree_dispute *d, const struct said *const sides[2],
                 unsigned liar) {
    struct ree_error err;
    struct ree_ruling ruling;
    n_disputes[d->kind]++;
    CHECK_MSG(d->claim != NULL, "%s: nothing is claimed: kind %d", lie, (int)d->kind);
    if (!d->claim) return;
    struct ree_claim *claim = read_claim_again(d->claim);
    if (!claim) return;
    enum ree_status status = rule_on(claim, sides, &ruling, &err);
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
