// Computes the probabilities of tokens from a row of logits, in float64: NUMERICS.md, "Perplexity".
#ifndef REE_GENERATE_DISTRIBUTION_H
#define REE_GENERATE_DISTRIBUTION_H

#include <stdbool.h>
#include <stddef.h>

struct ree_distribution {
    const float *logits; // (n), borrowed
    size_t n;
    // max: largest logit. log_sum: natural log of `sum`. The log probability of token i is
    // (logits[i] - max) - log_sum.
    double max, log_sum;
    double sum; // sum of exp(logits[i] - max) over all i
    size_t top; // first index of the largest logit
};

// Fills *out from n logits, which it borrows. Returns false if they give no probabilities: one is
// NaN or +infinity, or none is above -infinity.
bool ree_distribution_init(struct ree_distribution *out, const float *logits, size_t n);
double ree_distribution_logprob(const struct ree_distribution *d, size_t i);
// Returns the Kullback-Leibler divergence of `d` from `reference`, in nats; +infinity if `d` gives
// probability 0 to a token that has more in `reference`. Both must have the same n.
double ree_distribution_divergence(const struct ree_distribution *d,
                                   const struct ree_distribution *reference);
// Returns the sum of x[n] in float64, added in the order of NUMERICS.md, section 3.
double ree_chunk_sum64(const double *x, size_t n);

#endif
