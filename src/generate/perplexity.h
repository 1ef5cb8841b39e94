// Internal declarations of the perplexity measurement (ree/perplexity.h), shared by perplexity.c,
// perplexity_run.c and perplexity_summary.c.
#ifndef REE_GENERATE_PERPLEXITY_H
#define REE_GENERATE_PERPLEXITY_H

#include "ree.h"

// A window of a text: its tokens are begin to end - 1, counted from the start of the text. Tokens
// first to end - 1 are scored. begin < first < end.
struct ree_window {
    size_t begin, first, end;
};

struct ree_measurement {
    // The caller's options; context and stride have their defaults if the caller left them 0.
    struct ree_perplexity_options options;
    const int32_t *ids; // (n): the tokens of the text; borrowed
    size_t n;
    struct ree_generator *generators[2]; // [0]: the measured model; [1]: the reference, or NULL
    // The fields below are the results, which ree_measurement_run fills.
    struct ree_score *scores; // (n_scored): one entry per scored token
    size_t n_scored, n_windows, n_tokens, vocab_size;
    double seconds[2]; // seconds spent in runs of each generator
};

// perplexity.c

// Writes window i of the text, counted from 0, to *out. Returns false if the text and max_windows
// give no window i.
bool ree_window_at(const struct ree_measurement *m, size_t i, struct ree_window *out);

// ree_measurement_check_ids fails with REE_INVALID if a token of the text, or window_bos, is
// outside the vocabulary of g (vocab_size 0: unknown). ree_measurement_check_vocabularies fails
// with REE_INVALID if the vocabulary sizes of the two models differ. `err` must not be NULL.
enum ree_status ree_measurement_check_ids(const struct ree_measurement *m,
                                          const struct ree_generator *g, size_t vocab_size,
                                          struct ree_error *err);
enum ree_status ree_measurement_check_vocabularies(const struct ree_measurement *m, size_t own,
                                                   size_t others, struct ree_error *err);

// perplexity_run.c: runs the generators over all windows and fills the results in *m. Release
// m->scores with ree_free, also after a failure.
enum ree_status ree_measurement_run(struct ree_measurement *m, struct ree_error *err);

// perplexity_summary.c: computes the means, standard errors, quantiles and scores_sha256 of `out`
// from the scores in *m.
enum ree_status ree_measurement_summarise(const struct ree_measurement *m,
                                          struct ree_perplexity *out, struct ree_error *err);

#endif
