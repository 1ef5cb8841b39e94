// Perplexity: how well a model predicts a text, and how far its predictions are from those of
// another model. NUMERICS.md, "Perplexity", defines every figure to the bit.
#ifndef REE_PERPLEXITY_H
#define REE_PERPLEXITY_H

#include "generate.h"

#ifdef __cplusplus
extern "C" {
#endif

// Which tokens of a text are scored. A window is a run of consecutive tokens; the model sees only
// the tokens of a window before the scored one.
enum ree_scored {
    // Windows of `context` tokens that do not overlap. Scored are the tokens behind the middle, as
    // by llama.cpp: those with index context / 2 + 1 to context - 1 in the window, but at least its
    // last. What remains of the text after the last whole window is not used. A text that is
    // shorter than `context` is one window.
    REE_SCORED_SECOND_HALF,
    // Windows of `context` tokens that begin at every multiple of `stride`; the last one may be
    // shorter. Scored are the tokens of a window that no earlier window had, except its first:
    // what Hugging Face's documentation describes as perplexity with a sliding window.
    REE_SCORED_ALL,
};

// A scored token. Does not change between versions.
struct ree_score {
    size_t position; // index in the text
    size_t n_before; // tokens of the window before it
    int32_t id;
    double logprob; // log probability that the model gives the token; -infinity is possible
    // With `against`; otherwise 0 and false.
    double against_logprob;
    double divergence; // Kullback-Leibler divergence of the model from `against`, in nats
    bool same_top;     // the same token is the most likely one for both
};

struct ree_perplexity_options {
    size_t size; // sizeof(struct ree_perplexity_options)
    // The reference of the comparison: another generator, whose vocabulary has the same size. NULL:
    // no comparison.
    struct ree_generator *against;
    size_t context; // tokens of a window, at least 2; 0: 512, or the models' context if shorter
    enum ree_scored scored;
    size_t stride; // with REE_SCORED_ALL: 1 to context; 0: context. Otherwise 0
    // Replaces the first token of every window, as llama.cpp does with the BOS token; NULL: off.
    const int32_t *window_bos;
    size_t max_windows;           // measure only the first windows; 0: all
    struct ree_progress progress; // "measuring", in tokens, those of `against` included
    // Called with each scored token, in the order of the text; NULL: off.
    void (*on_score)(void *user, const struct ree_score *score);
    void *user; // of on_score
};

// How well one model predicts the scored tokens. Does not change between versions.
struct ree_prediction {
    double nll;        // mean negative log probability of a token, in nats; may be infinite
    double perplexity; // e^nll
    // Standard errors of both, as if tokens were independent of each other. NaN if nll is infinite
    // or only one token is scored.
    double nll_error, perplexity_error;
    double seconds; // time in runs of this model; the only field that is not reproducible
};

// The smallest value that is not below the values of this share of the tokens. Does not change
// between versions.
struct ree_quantile {
    uint32_t permille; // 990: 99 %
    double value;
};
#define REE_DIVERGENCE_QUANTILES 5 // 50, 90, 95, 99 and 99.9 %

struct ree_perplexity {
    size_t size; // sizeof(struct ree_perplexity)
    size_t context, n_windows;
    size_t n_tokens; // tokens that each model ran
    size_t n_scored; // tokens that were scored
    size_t vocab_size;
    struct ree_prediction model;
    // The fields from here to n_same_top are 0 without `against`.
    struct ree_prediction against;
    // nll of the model minus that of `against`, which is the logarithm of the quotient of their
    // perplexities; its standard error. The error is much smaller than those of the two, because
    // both models have the same difficult tokens.
    double log_ratio, log_ratio_error;
    double divergence, divergence_error, max_divergence; // mean, its standard error, maximum
    struct ree_quantile divergence_quantiles[REE_DIVERGENCE_QUANTILES];
    size_t n_same_top;      // scored tokens at which both models have the same most likely token
    char scores_sha256[65]; // of all log probabilities and divergences
    // Why a model is not proved to predict each token from earlier tokens only; its figures may
    // then be too good. "": it is proved.
    char why_not_causal[384], against_why_not_causal[384];
};

// Runs the model over the n tokens of a text, at least 2, in windows; each window in one pass, like
// a prompt. The caller sets out->size. `options` may be NULL. Fails with
// - REE_INVALID if an option is out of range, a token is outside the vocabulary, the vocabularies
//   differ in size, or logits have no probabilities (a NaN, +infinity, or all -infinity)
// - REE_UNSUPPORTED if a generator is one of several processes
REE_API enum ree_status ree_perplexity_measure(struct ree_generator *generator, const int32_t *ids,
                                               size_t n,
                                               const struct ree_perplexity_options *options,
                                               struct ree_perplexity *out, struct ree_error *err);

#ifdef __cplusplus
}
#endif
#endif
