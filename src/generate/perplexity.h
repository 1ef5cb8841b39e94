// Declarations shared by perplexity.c, perplexity_run.c and perplexity_summary.c.
#ifndef REE_GENERATE_PERPLEXITY_H
#define REE_GENERATE_PERPLEXITY_H

#include "ree.h"

// Tokens begin ... end - 1 of a text, of which first ... end - 1 are scored; begin < first < end.
struct ree_window {
    size_t begin, first, end;
};

struct ree_measurement {
    struct ree_perplexity_options options; // context and stride are set
    const int32_t *ids;                    // (n), borrowed
    size_t n;
    struct ree_generator *generators[2]; // the model; the reference, or NULL
    // Results of the runs.
    struct ree_score *scores; // (n_scored)
    size_t n_scored, n_windows, n_tokens, vocab_size;
    double seconds[2]; // per generator
};

// perplexity.c

// Window i of the text. false: there is none.
bool ree_window_at(const struct ree_measurement *m, size_t i, struct ree_window *out);

// Fail with REE_INVALID: a token is outside the vocabulary of g (vocab_size 0: unknown); the two
// vocabularies have different sizes. `err` must not be NULL.
enum ree_status ree_measurement_check_ids(const struct ree_measurement *m,
                                          const struct ree_generator *g, size_t vocab_size,
                                          struct ree_error *err);
enum ree_status ree_measurement_check_vocabularies(const struct ree_measurement *m, size_t own,
                                                   size_t others, struct ree_error *err);

// perplexity_run.c: runs all windows and fills the results. Release m->scores with ree_free, also
// after a failure.
enum ree_status ree_measurement_run(struct ree_measurement *m, struct ree_error *err);

// perplexity_summary.c: computes means, errors, quantiles and the hash.
enum ree_status ree_measurement_summarise(const struct ree_measurement *m,
                                          struct ree_perplexity *out, struct ree_error *err);

#endif
