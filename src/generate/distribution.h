// The probabilities that a row of logits gives, in float64: NUMERICS.md, "Perplexity".
#ifndef REE_GENERATE_DISTRIBUTION_H
#define REE_GENERATE_DISTRIBUTION_H

#include <stdbool.h>
#include <stddef.h>

struct ree_distribution {
    const float *logits; // (n), borrowed
    size_t n;
    double max, log_sum; // log probability of i: (logits[i] - max) - log_sum
    double sum;          // of exp(logits[i] - max)
    size_t top;          // first index of the largest logit
};

// Returns false if the logits have no probabilities: one is NaN or +infinity, or none is above
// -infinity.
bool ree_distribution_init(struct ree_distribution *out, const float *logits, size_t n);
double ree_distribution_logprob(const struct ree_distribution *d, size_t i);
// The Kullback-Leibler divergence of `d` from the reference, in nats; +infinity if the reference
// has a token that `d` excludes. Both must have the same n.
double ree_distribution_divergence(const struct ree_distribution *d,
                                   const struct ree_distribution *reference);
// The sum of NUMERICS.md, section 3, in float64.
double ree_chunk_sum64(const double *x, size_t n);

#endif
