// The end of an answer: two parties that differ in it, and runs with --ignore-eos.
#include "liars.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

// What ends the answers in a dispute about the length: an eos token of the model, a stop text, the
// token limit, the context length.
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
    case END_STOP: // the text of a token inside an answer
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

// Returns the number of tokens up to the first end, found by decoding ever longer prefixes;
// SIZE_MAX if there is none.
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

// Two answers of different lengths: beginnings of the true answer. The same end, at a random place,
// applies to both. A party is right in two cases: its first end is its last token and it states
// that reason, or it states that it was interrupted before any end. Both parties can be wrong.
void test_ends(void) {
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
        hold_dispute(sides, tellers, &d);
        REQUIRE(d.kind == REE_DISPUTE_LENGTH && d.claim);
        enum ree_status status = rule_on(d.claim, sides, &ruling, &err);
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

// A token of the answer is one of the model's eos tokens. Two runs with --ignore-eos are right,
// except against a request, which does not allow the option. Against a run that ends by the model's
// eos tokens, a run with --ignore-eos is wrong.
void test_ignored(void) {
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
        if (ends) { // its answer, too, continues after the token
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
