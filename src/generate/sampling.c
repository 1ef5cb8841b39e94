// Chooses a token from logits: NUMERICS.md, "Sampling". After one correctly rounded exponential per
// token, all arithmetic is in exact integers, so the order of additions does not matter.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/float_env.h"
#include "base/memory.h"
#include "ree.h"
#include "repops/scalar/ops.h"
#include "repops/scalar/philox.h"

// Weights are integers in units of 2^-40: floor(e * 2^40), with e at most 1.
#define WEIGHT_BITS 40
#define WEIGHT_ONE ((uint64_t)1 << WEIGHT_BITS)

const struct ree_sampling ree_greedy = {.temperature = 0, .top_p = 1, .repetition_penalty = 1};

enum ree_status ree_sampling_check(const struct ree_sampling *s, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    // With a smaller temperature, different logits could become equal: their quotients would be
    // infinite.
    bool is_greedy = s->temperature == 0;
    if (!is_greedy && !(s->temperature >= 1e-6f && s->temperature <= 1e6f))
        return ree_fail(err, REE_INVALID, "temperature is %g, expected 0, or 0.000001 to 1000000",
                        (double)s->temperature);
    if (!(s->top_p > 0 && s->top_p <= 1))
        return ree_fail(err, REE_INVALID, "top_p is %g, expected more than 0 and at most 1",
                        (double)s->top_p);
    if (!(s->min_p >= 0 && s->min_p <= 1))
        return ree_fail(err, REE_INVALID, "min_p is %g, expected 0 to 1", (double)s->min_p);
    if (!(s->repetition_penalty > 0 && s->repetition_penalty <= 1e6f))
        return ree_fail(err, REE_INVALID,
                        "repetition_penalty is %g, expected more than 0 and at most 1000000",
                        (double)s->repetition_penalty);
    return REE_OK;
}

struct candidate {
    float logit;
    int32_t id;
    uint64_t weight;
};

// Sorts by descending logit, then by ascending id.
static int by_logit(const void *a, const void *b) {
    const struct candidate *x = a, *y = b;
    if (x->logit != y->logit) return x->logit > y->logit ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static int by_id(const void *a, const void *b) {
    const struct candidate *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

static enum ree_status check_logits(const float *logits, size_t n, struct ree_error *err) {
    // The loop has no early exit, so that compilers can vectorise it.
    int any = 0, wrong = 0;
    for (size_t i = 0; i < n; i++) {
        wrong |= logits[i] != logits[i];
        any |= logits[i] > -INFINITY;
    }
    for (size_t i = 0; wrong && i < n; i++)
        if (isnan(logits[i]))
            return ree_fail(err, REE_INVALID, "the logit of token %zu is not a number", i);
    if (any) return REE_OK;
    return ree_fail(err, REE_INVALID, "no token has a logit above -infinity");
}

// Maps floats that are not NaN to integers of the same order, except that -0 comes before +0.
static int32_t key_of(float x) {
    int32_t bits = (int32_t)ree_bits(x);
    return bits ^ (bits >> 31 & INT32_MAX);
}

// Returns the id of the first largest logit. There must be no NaNs.
static int32_t largest_logit(const float *logits, size_t n) {
    int32_t key = INT32_MIN;
    for (size_t i = 0; i < n; i++) {
        int32_t other = key_of(logits[i]);
        key = other > key ? other : key;
    }
    float most = ree_float((uint32_t)(key ^ (key >> 31 & INT32_MAX)));
    size_t best = 0;
    while (logits[best] != most)
        best++;
    return (int32_t)best;
}

static int32_t largest(const struct candidate *c, size_t n) {
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (c[i].logit > c[best].logit) best = i;
    return c[best].id;
}

// Applies the penalty to the tokens in `ids`, to each distinct id once. Uses the weights as marks
// and sets them back to 0.
static void penalise(struct candidate *c, size_t n, float penalty, const int32_t *ids,
                     size_t n_ids) {
    if (penalty == 1) return;
    for (size_t i = 0; i < n_ids; i++)
        if (ids[i] >= 0 && (size_t)ids[i] < n) c[ids[i]].weight = 1;
    for (size_t i = 0; i < n; i++) {
        if (!c[i].weight) continue;
        float x = c[i].logit;
        c[i].logit = x < 0 ? x * penalty : x / penalty;
        c[i].weight = 0;
    }
}

// Returns p in units of 2^-32, rounded down.
static uint64_t fraction(float p) {
    return (uint64_t)((double)p * 4294967296.0);
}

// Sets weight = floor(exp(logit - max) * 2^40) and drops candidates of weight 0. Returns the number
// of candidates that are left.
static size_t weigh(struct candidate *c, size_t n) {
    float max = c[0].logit;
    for (size_t i = 1; i < n; i++)
        if (c[i].logit > max) max = c[i].logit;
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        // inf - inf would be NaN. If the largest logit is infinite, all smaller ones get weight 0.
        float d = c[i].logit == max ? 0 : c[i].logit - max;
        float e = ree_float(ree_op_exp_f32(ree_bits(d)));
        c[i].weight = (uint64_t)((double)e * (double)WEIGHT_ONE);
        if (c[i].weight) c[kept++] = c[i];
    }
    return kept;
}

// Returns the length of the shortest prefix, in descending order, whose weights reach the fraction
// p of the total.
static size_t nucleus(const struct candidate *c, size_t n, float p) {
    unsigned __int128 total = 0, sum = 0;
    for (size_t i = 0; i < n; i++)
        total += c[i].weight;
    for (size_t i = 0; i < n; i++) {
        sum += c[i].weight;
        if (sum << 32 >= total * fraction(p)) return i + 1;
    }
    return n;
}

static size_t above(const struct candidate *c, size_t n, float p) {
    uint64_t most = 0;
    for (size_t i = 0; i < n; i++)
        if (c[i].weight > most) most = c[i].weight;
    size_t kept = 0; // the candidates are sorted, so a prefix is kept
    while (kept < n &&
           (unsigned __int128)c[kept].weight << 32 >= (unsigned __int128)most * fraction(p))
        kept++;
    return kept;
}

static int32_t draw(const struct candidate *c, size_t n, uint64_t random) {
    unsigned __int128 total = 0; // at most 2^40 * 2^24, which does not fit in 64 bits
    for (size_t i = 0; i < n; i++)
        total += c[i].weight;
    uint64_t at = (uint64_t)(random * total >> 64);
    for (size_t i = 0; i < n; i++) {
        if (at < c[i].weight) return c[i].id;
        at -= c[i].weight;
    }
    return c[n - 1].id; // not reached: at < total
}

static int32_t sample(const struct ree_sampling *s, struct candidate *c, size_t n,
                      uint64_t position) {
    bool sorted = s->top_k || s->top_p < 1 || s->min_p > 0;
    for (size_t i = 0; i < n; i++)
        c[i].logit = c[i].logit / s->temperature;
    // Candidates of weight 0 cannot be drawn. They can be dropped before top_k, because the first k
    // do not depend on weights.
    n = weigh(c, n);
    if (sorted) qsort(c, n, sizeof *c, by_logit);
    if (s->top_k && n > s->top_k) n = s->top_k;
    if (s->top_p < 1) n = nucleus(c, n, s->top_p);
    if (s->min_p > 0) n = above(c, n, s->min_p);
    if (sorted) qsort(c, n, sizeof *c, by_id);
    return draw(c, n, ree_op_philox_b64(position, s->seed));
}

enum ree_status ree_sampling_choose(const struct ree_sampling *s, const float *logits,
                                    size_t vocab_size, const int32_t *ids, size_t n,
                                    uint64_t position, int32_t *out_id, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    *out_id = -1;
    REE_TRY(ree_sampling_check(s, err));
    if (vocab_size == 0 || vocab_size > (size_t)1 << 24)
        return ree_fail(err, REE_INVALID, "a vocabulary of %zu tokens, expected 1 to 2^24",
                        vocab_size);
    REE_TRY(check_logits(logits, vocab_size, err));
    if (s->temperature == 0 && s->repetition_penalty == 1) {
        *out_id = largest_logit(logits, vocab_size);
        return REE_OK;
    }
    struct candidate *c = ree_alloc(vocab_size * sizeof *c);
    if (!c) return ree_no_memory(err);
    for (size_t i = 0; i < vocab_size; i++)
        c[i] = (struct candidate){logits[i], (int32_t)i, 0};
    penalise(c, vocab_size, s->repetition_penalty, ids, n);
    *out_id = s->temperature > 0 ? sample(s, c, vocab_size, position) : largest(c, vocab_size);
    ree_free(c);
    return REE_OK;
}
