// ree_perplexity_measure as a program calls it: the scores of single tokens, options that are out
// of range. perplexity.py compares the figures with an oracle.
#include <math.h>
#include <string.h>

#include "ree.h"
#include "test.h"

#define STORIES REE_SAMPLES "/stories"
#define N 40

static struct ree_generator *model, *reference;
static int32_t ids[N];
static struct ree_error err;

struct seen {
    size_t n, position;
    double logprobs, against, divergence;
    size_t n_same_top;
    size_t most_before, least_before;
};

static void on_score(void *user, const struct ree_score *s) {
    struct seen *seen = user;
    CHECK(s->position < N && s->id == ids[s->position]);
    CHECK(!seen->n || s->position > seen->position);
    CHECK(s->n_before >= 1 && s->n_before <= s->position);
    CHECK(s->logprob < 0 && s->against_logprob < 0 && s->divergence >= 0);
    seen->n++;
    seen->position = s->position;
    seen->logprobs += s->logprob;
    seen->against += s->against_logprob;
    seen->divergence += s->divergence;
    seen->n_same_top += s->same_top;
    if (s->n_before > seen->most_before) seen->most_before = s->n_before;
    if (!seen->least_before || s->n_before < seen->least_before) seen->least_before = s->n_before;
}

// Sums in another order differ by roundings.
static bool is_near(double a, double b) {
    return fabs(a - b) <= 1e-13 * fmax(1, fabs(b));
}

static void test_scores(void) {
    static const struct {
        size_t context, stride, n_scored, n_windows, least, most;
        enum ree_scored scored;
    } cases[] = {
        // clang-format off
        {0, 0, 19, 1, 21, 39, REE_SCORED_SECOND_HALF}, // a text shorter than 512
        {10, 0, 16, 4, 6, 9, REE_SCORED_SECOND_HALF}, // 4 of 10
        {11, 0, 15, 3, 6, 10, REE_SCORED_SECOND_HALF}, // the last 7 tokens are not used
        {2, 0, 20, 20, 1, 1, REE_SCORED_SECOND_HALF}, // at least one of a window
        {3, 0, 13, 13, 2, 2, REE_SCORED_SECOND_HALF},
        {0, 0, 39, 1, 1, 39, REE_SCORED_ALL},
        {10, 0, 36, 4, 1, 9, REE_SCORED_ALL},
        {39, 0, 38, 1, 1, 38, REE_SCORED_ALL}, // one token is left: not a window
        {10, 4, 39, 9, 1, 9, REE_SCORED_ALL}, // the last window has 8 tokens, 2 of them new
        {10, 1, 39, 31, 1, 9, REE_SCORED_ALL},
        // clang-format on
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct seen seen = {0};
        const struct ree_perplexity_options options = {.size = sizeof options,
                                                       .against = reference,
                                                       .context = cases[i].context,
                                                       .stride = cases[i].stride,
                                                       .scored = cases[i].scored,
                                                       .on_score = on_score,
                                                       .user = &seen};
        struct ree_perplexity out = {.size = sizeof out};
        CHECK_MSG(ree_perplexity_measure(model, ids, N, &options, &out, &err) == REE_OK, "%s",
                  err.message);
        double n = (double)seen.n;
        CHECK_MSG(seen.n == cases[i].n_scored && out.n_scored == seen.n, "case %zu: %zu scored", i,
                  seen.n);
        CHECK_MSG(out.n_windows == cases[i].n_windows, "case %zu: %zu windows", i, out.n_windows);
        CHECK_MSG(seen.least_before == cases[i].least && seen.most_before == cases[i].most,
                  "case %zu: %zu to %zu tokens before", i, seen.least_before, seen.most_before);
        CHECK(is_near(out.model.nll, -seen.logprobs / n));
        CHECK(is_near(out.against.nll, -seen.against / n));
        CHECK(is_near(out.divergence, seen.divergence / n));
        CHECK(out.n_same_top == seen.n_same_top && out.vocab_size == 640);
        CHECK(!out.why_not_causal[0] && !out.against_why_not_causal[0]);
        CHECK(strlen(out.scores_sha256) == 64);
    }
}

static void fails(const struct ree_perplexity_options *options, size_t n, const char *message) {
    struct ree_perplexity out, before;
    memset(&out, 7, sizeof out);
    out.size = sizeof out;
    before = out;
    CHECK(ree_perplexity_measure(model, ids, n, options, &out, &err) == REE_INVALID);
    CHECK_MSG(strstr(err.message, message), "'%s' is not in '%s'", message, err.message);
    CHECK(memcmp(&out, &before, sizeof out) == 0);
    // No message is requested.
    CHECK(ree_perplexity_measure(model, ids, n, options, &out, NULL) == REE_INVALID);
}

static void test_errors(void) {
    const int32_t bos = 640;
    struct ree_perplexity_options o = {.size = sizeof o};
    fails(&o, 0, "a text of 0 tokens, expected at least 2");
    fails(NULL, 1, "a text of 1 tokens, expected at least 2");
    o.against = model;
    fails(&o, N, "`against` is the generator itself");
    o = (struct ree_perplexity_options){.size = sizeof o, .context = 1};
    fails(&o, N, "a context of 1 tokens");
    o.context = 513;
    fails(&o, N, "has at most 512");
    o = (struct ree_perplexity_options){.size = sizeof o, .stride = 4};
    fails(&o, N, "a stride requires that all tokens are scored");
    o.scored = REE_SCORED_ALL;
    o.stride = 600;
    fails(&o, N, "a stride of 600 tokens is longer than the context of 512");
    o = (struct ree_perplexity_options){.size = sizeof o, .scored = (enum ree_scored)2};
    fails(&o, N, "scored is 2");
    o = (struct ree_perplexity_options){.size = sizeof o, .window_bos = &bos};
    fails(&o, N, "stories: token 0 is 640");
    o.window_bos = NULL;
    ids[N - 1] = 640; // the last token is only scored, not run
    fails(&o, N, "stories: token 39 is 640");
    ids[N - 1] = -1;
    fails(&o, N, "token 39 is -1");
}

int main(void) {
    const struct ree_model_options quantised = {.size = sizeof quantised, .quantize_bits = 4};
    const struct ree_generator_options options = {.size = sizeof options, .model = &quantised};
    struct ree_device *device;
    for (int i = 0; i < N; i++)
        ids[i] = 2 + (i * 7919 + 13) % 600;
    REQUIRE(ree_device_open("cpu", NULL, &device, &err) == REE_OK);
    REQUIRE(ree_generator_create(STORIES, device, &options, &model, &err) == REE_OK);
    REQUIRE(ree_generator_create(STORIES, device, NULL, &reference, &err) == REE_OK);
    test_scores();
    test_errors();
    ree_generator_destroy(reference);
    ree_generator_destroy(model);
    ree_device_destroy(device);
    return test_finish();
}
