// Perplexity: how well a model predicts a text, and how far its predictions are from those of
// another model. NUMERICS.md, "Perplexity", defines every figure to the bit.
#ifndef REE_PERPLEXITY_H
#define REE_PERPLEXITY_H

#include "generate.h"

#ifdef __cplusplus
extern "C" {
#endif

// Which tokens of a text are scored. The text is divided into windows of consecutive tokens. To
// predict a scored token, the model sees only the earlier tokens of the same window.
enum ree_scored {
    // Windows of `context` tokens that do not overlap. As in llama.cpp, the tokens of the second
    // half are scored: those with index context / 2 + 1 to context - 1 in the window, but at least
    // the last one. Tokens after the last whole window are not used. A text that is shorter than
    // `context` is one window.
    REE_SCORED_SECOND_HALF,
    // Windows of `context` tokens that begin at every multiple of `stride`; the last one may be
    // shorter. Each window scores its tokens that no earlier window contains, except the window's
    // first token. Hugging Face's documentation describes this as perplexity with a sliding window.
    REE_SCORED_ALL,
};

// A scored token. The struct does not change between versions.
struct ree_score {
    size_t position; // index of the token in the text
    size_t n_before; // number of tokens before it in its window
    int32_t id;
    double logprob; // natural log of the probability that the model predicts; may be -infinity
    // The fields below are 0 and false if options.against is NULL.
    double against_logprob; // natural log of the probability that `against` predicts
    double divergence;      // Kullback-Leibler divergence D(against || model), in nats
    bool same_top;          // the same token is the most likely one for both models
};

struct ree_perplexity_options {
    size_t size; // sizeof(struct ree_perplexity_options)
    // The reference with which the model is compared: another generator, whose vocabulary has the
    // same size. NULL: no comparison.
    struct ree_generator *against;
    size_t context; // tokens per window, at least 2; 0: 512, or the models' context if shorter
    enum ree_scored scored;
    // REE_SCORED_ALL: number of tokens from the start of one window to the start of the next, 1 to
    // context; 0 means context. REE_SCORED_SECOND_HALF: must be 0.
    size_t stride;
    // Replaces the first token of every window, as llama.cpp does with the BOS token; NULL: off.
    const int32_t *window_bos;
    size_t max_windows;           // measure at most this many windows, from the first on; 0: all
    struct ree_progress progress; // progress of measuring, in tokens that the models have run
    // Called with each scored token, in the order of the text; NULL: off.
    void (*on_score)(void *user, const struct ree_score *score);
    void *user; // passed to on_score
};

// How well one model predicts the scored tokens. The struct does not change between versions.
struct ree_prediction {
    double nll;        // mean negative log probability of the tokens, in nats; may be infinite
    double perplexity; // e^nll
    // Standard errors of nll and of perplexity, as if tokens were independent of each other. NaN if
    // nll is infinite or only one token is scored.
    double nll_error, perplexity_error;
    double seconds; // time in runs of this model; the only field that is not reproducible
};

// A quantile: `value` is the smallest value such that at least permille / 1000 of the scored tokens
// have values up to it. The struct does not change between versions.
struct ree_quantile {
    uint32_t permille; // 990 means 99 %
    double value;
};
#define REE_DIVERGENCE_QUANTILES 5 // 50, 90, 95, 99 and 99.9 %

struct ree_perplexity {
    size_t size; // sizeof(struct ree_perplexity)
    size_t context, n_windows;
    size_t n_tokens; // number of tokens that each model ran
    size_t n_scored; // number of tokens that were scored
    size_t vocab_size;
    struct ree_prediction model;
    // The fields from here to n_same_top are 0 if options.against is NULL.
    struct ree_prediction against;
    // log_ratio is the model's nll minus the nll of `against`: the logarithm of the quotient of
    // their perplexities. Its standard error is much smaller than those of the two nll, because
    // the same tokens are difficult for both models.
    double log_ratio, log_ratio_error;
    // Over all scored tokens: mean divergence, standard error of the mean, largest divergence.
    double divergence, divergence_error, max_divergence;
    struct ree_quantile divergence_quantiles[REE_DIVERGENCE_QUANTILES];
    size_t n_same_top;      // number of scored tokens whose same_top is true
    char scores_sha256[65]; // hash of all log probabilities and divergences
    // Why there is no proof that the model (or `against`) predicts each token from earlier tokens
    // only; its figures may then be too good. "": there is a proof.
    char why_not_causal[384], against_why_not_causal[384];
};

// Measures the perplexity of a text of n tokens, at least 2: runs the model over the windows of the
// text, each in one pass, like a prompt. The caller sets out->size. `options` may be NULL. Fails
// with
// - REE_INVALID if an option is out of range, a token is outside the vocabulary, the vocabularies
//   differ in size, or logits give no probabilities (a NaN, +infinity, or all -infinity)
// - REE_UNSUPPORTED if a generator runs in several processes
REE_API enum ree_status ree_perplexity_measure(struct ree_generator *generator, const int32_t *ids,
                                               size_t n,
                                               const struct ree_perplexity_options *options,
                                               struct ree_perplexity *out, struct ree_error *err);

#ifdef __cplusplus
}
#endif
#endif
