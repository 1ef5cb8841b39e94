// Computes means, standard errors and quantiles of a text's scores, and the hash of the scores.
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/sha256.h"
#include "base/status.h"
#include "generate/distribution.h"
#include "generate/perplexity.h"
#include "repops/elementary64.h"

static const uint32_t permilles[REE_DIVERGENCE_QUANTILES] = {500, 900, 950, 990, 999};

// Replaces every NaN by the same one, because the sign of a computed NaN depends on the processor.
static double canonical(double x) {
    return isnan(x) ? NAN : x;
}

// Computes the mean of n values and its standard error: NAN if n is 1 or the mean is not finite.
// Replaces the values by the squares of their deviations.
static void mean_of(double *x, size_t n, double *out_mean, double *out_error) {
    double mean = ree_chunk_sum64(x, n) / (double)n;
    for (size_t i = 0; i < n; i++) {
        double deviation = x[i] - mean;
        x[i] = deviation * deviation;
    }
    double variance = ree_chunk_sum64(x, n) / (double)(n - 1);
    *out_mean = canonical(mean);
    *out_error = n > 1 && isfinite(mean) ? sqrt(variance / (double)n) : NAN;
}

static void predict(const struct ree_measurement *m, int side, double *values,
                    struct ree_prediction *out) {
    for (size_t i = 0; i < m->n_scored; i++)
        values[i] = -(side ? m->scores[i].against_logprob : m->scores[i].logprob);
    mean_of(values, m->n_scored, &out->nll, &out->nll_error);
    out->perplexity = ree_exact_exp(out->nll);
    out->perplexity_error = canonical(out->perplexity * out->nll_error);
    out->seconds = m->seconds[side];
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void compare(const struct ree_measurement *m, double *values, struct ree_perplexity *out) {
    size_t n = m->n_scored;
    predict(m, 1, values, &out->against);
    for (size_t i = 0; i < n; i++)
        values[i] = m->scores[i].against_logprob - m->scores[i].logprob;
    mean_of(values, n, &out->log_ratio, &out->log_ratio_error);
    for (size_t i = 0; i < n; i++)
        values[i] = m->scores[i].divergence;
    mean_of(values, n, &out->divergence, &out->divergence_error);
    for (size_t i = 0; i < n; i++) {
        values[i] = m->scores[i].divergence;
        out->n_same_top += m->scores[i].same_top;
    }
    qsort(values, n, sizeof *values, by_value);
    out->max_divergence = values[n - 1];
    for (size_t k = 0; k < REE_DIVERGENCE_QUANTILES; k++)
        out->divergence_quantiles[k] = (struct ree_quantile){
            .permille = permilles[k], .value = values[(n * permilles[k] + 999) / 1000 - 1]};
}

static enum ree_status hash(const struct ree_measurement *m, char hex[65], struct ree_error *err) {
    struct ree_hasher *hasher = ree_hasher_try_create("ree-scores/1");
    if (!hasher) return ree_no_memory(err);
    for (size_t i = 0; i < m->n_scored; i++) {
        const struct ree_score *s = &m->scores[i];
        const double numbers[3] = {s->logprob, s->against_logprob, s->divergence};
        ree_hasher_update(hasher, numbers, (m->generators[1] ? 3 : 1) * sizeof *numbers);
    }
    ree_hasher_finish(hasher, hex);
    return REE_OK;
}

enum ree_status ree_measurement_summarise(const struct ree_measurement *m,
                                          struct ree_perplexity *out, struct ree_error *err) {
    double *values = ree_alloc(m->n_scored * sizeof *values);
    if (!values) return ree_no_memory(err);
    out->context = m->options.context;
    out->n_windows = m->n_windows;
    out->n_tokens = m->n_tokens;
    out->n_scored = m->n_scored;
    out->vocab_size = m->vocab_size;
    predict(m, 0, values, &out->model);
    if (m->generators[1]) compare(m, values, out);
    ree_free(values);
    return hash(m, out->scores_sha256, err);
}
