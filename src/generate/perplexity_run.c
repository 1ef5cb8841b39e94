// Runs the windows of a text through one or two models and scores their tokens.
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/float_env.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/status.h"
#include "generate/distribution.h"
#include "generate/pass.h"
#include "generate/perplexity.h"

// One model within a window. Positions count from the window's first token.
struct side {
    struct ree_generator *g;
    struct ree_pass pass;
    // logits: of the model's latest run. Those of the tokens at row ... row + n_rows - 1 are not
    // scored yet.
    struct ree_tensor logits;
    const float *next; // in `logits`: the logits of the token at `row`
    size_t row, n_rows;
};

struct run {
    struct ree_measurement *m;
    struct side sides[2];
    size_t n_sides;
    int32_t *ids;           // tokens of the window: (context), or (n) if the text is shorter
    size_t n_ran, n_to_run; // tokens already run, tokens to run; all models, all windows
};

static enum ree_status check_vocabulary(struct run *run, const struct side *side,
                                        struct ree_error *err) {
    struct ree_measurement *m = run->m;
    size_t vocab = (size_t)side->logits.dims[2];
    if (m->vocab_size == vocab) return REE_OK;
    if (m->vocab_size) return ree_measurement_check_vocabularies(m, m->vocab_size, vocab, err);
    m->vocab_size = vocab;
    return ree_measurement_check_ids(m, side->g, vocab, err);
}

// Runs the model until the side has logits that are not scored yet. Some tokens must still have no
// score.
static enum ree_status advance(struct run *run, struct side *side, struct ree_error *err) {
    struct ree_measurement *m = run->m;
    while (side->n_rows == 0) {
        size_t before = side->pass.from;
        ree_tensor_finish(&side->logits);
        REE_TRY(
            ree_progress_report(&m->options.progress, "measuring", run->n_ran, run->n_to_run, err));
        double begin = ree_clock();
        enum ree_status status =
            ree_pass_next(&side->pass, &side->row, &side->n_rows, &side->logits, err);
        m->seconds[side - run->sides] += ree_clock() - begin;
        if (status != REE_OK) return status;
        run->n_ran += side->pass.from - before;
        if (side->n_rows) REE_TRY(check_vocabulary(run, side, err));
        side->next = side->logits.data;
    }
    return REE_OK;
}

// Scores the token that follows the token of row r of the sides' logits. If the logits give no
// probabilities, the log probability is NaN.
static void score(const struct run *run, size_t r, struct ree_score *out) {
    struct ree_distribution d[2];
    bool ok[2] = {true, true};
    for (size_t k = 0; k < run->n_sides; k++) {
        size_t vocab = run->m->vocab_size;
        ok[k] = ree_distribution_init(&d[k], run->sides[k].next + r * vocab, vocab);
    }
    out->logprob = ok[0] ? ree_distribution_logprob(&d[0], (size_t)out->id) : NAN;
    if (run->n_sides == 1) return;
    out->against_logprob = ok[1] ? ree_distribution_logprob(&d[1], (size_t)out->id) : NAN;
    if (!ok[0] || !ok[1]) return;
    out->divergence = ree_distribution_divergence(&d[0], &d[1]);
    out->same_top = d[0].top == d[1].top;
}

static enum ree_status check_score(const struct run *run, const struct ree_score *s,
                                   struct ree_error *err) {
    if (!isnan(s->logprob) && !isnan(s->against_logprob)) return REE_OK;
    return ree_fail(err, REE_INVALID,
                    "the logits of %s have no probabilities for token %zu of the text: one is NaN "
                    "or +infinity, or none is above -infinity",
                    run->sides[isnan(s->logprob) ? 0 : 1].g->source.model_path, s->position);
}

// Scores the tokens whose logits all sides have.
static enum ree_status score_rows(struct run *run, const struct ree_window *w,
                                  struct ree_error *err) {
    struct ree_measurement *m = run->m;
    const struct ree_perplexity_options *o = &m->options;
    size_t n = run->sides[0].n_rows, row = run->sides[0].row;
    for (size_t k = 1; k < run->n_sides; k++)
        n = run->sides[k].n_rows < n ? run->sides[k].n_rows : n;
    struct ree_score *scores = m->scores + m->n_scored;
    for (size_t r = 0; r < n; r++) {
        size_t n_before = row + r + 1;
        scores[r] = (struct ree_score){.position = w->begin + n_before,
                                       .n_before = n_before,
                                       .id = m->ids[w->begin + n_before]};
    }
#pragma omp parallel for if (n > 1) schedule(dynamic)
    for (size_t r = 0; r < n; r++) {
        REE_FLOAT_ENV_WORKER();
        score(run, r, &scores[r]);
    }
    for (size_t k = 0; k < run->n_sides; k++) {
        run->sides[k].row += n;
        run->sides[k].n_rows -= n;
        run->sides[k].next += n * m->vocab_size;
    }
    for (size_t r = 0; r < n; r++) {
        REE_TRY(check_score(run, &scores[r], err));
        m->n_scored++;
        if (o->on_score) {
            REE_FLOAT_ENV_CALLBACK();
            o->on_score(o->user, &scores[r]);
        }
    }
    return REE_OK;
}

static enum ree_status run_window(struct run *run, const struct ree_window *w,
                                  struct ree_error *err) {
    struct ree_measurement *m = run->m;
    // The logits of the last token are not needed.
    size_t n = w->end - w->begin - 1, first_row = w->first - w->begin - 1;
    size_t before = run->n_ran;
    memcpy(run->ids, m->ids + w->begin, n * sizeof *run->ids);
    if (m->options.window_bos) run->ids[0] = *m->options.window_bos;
    for (size_t k = 0; k < run->n_sides; k++)
        REE_TRY(ree_pass_begin(&run->sides[k].pass, run->sides[k].g, run->ids, n, first_row, err));
    for (size_t left = w->end - w->first; left;) {
        size_t scored = m->n_scored;
        for (size_t k = 0; k < run->n_sides; k++)
            REE_TRY(advance(run, &run->sides[k], err));
        REE_TRY(score_rows(run, w, err));
        left -= m->n_scored - scored;
    }
    for (size_t k = 0; k < run->n_sides; k++) {
        ree_tensor_finish(&run->sides[k].logits);
        ree_pass_finish(&run->sides[k].pass);
    }
    // `advance` does not count the tokens of a model without a kv cache
    run->n_ran = before + n * run->n_sides;
    m->n_windows++;
    m->n_tokens += n;
    return REE_OK;
}

enum ree_status ree_measurement_run(struct ree_measurement *m, struct ree_error *err) {
    struct run run = {.m = m};
    struct ree_window w;
    size_t n_scored = 0;
    for (int k = 0; k < 2; k++)
        if (m->generators[k]) run.sides[run.n_sides++].g = m->generators[k];
    for (size_t i = 0; ree_window_at(m, i, &w); i++) {
        n_scored += w.end - w.first;
        run.n_to_run += (w.end - w.begin - 1) * run.n_sides;
    }
    m->scores = ree_alloc_zeroed(n_scored, sizeof *m->scores);
    // No window is longer than the text, whatever the context.
    size_t longest = m->options.context < m->n ? m->options.context : m->n;
    run.ids = ree_alloc_zeroed(longest, sizeof *run.ids);
    enum ree_status status = m->scores && run.ids ? REE_OK : ree_no_memory(err);
    for (size_t i = 0; status == REE_OK && ree_window_at(m, i, &w); i++)
        status = run_window(&run, &w, err);
    for (size_t k = 0; k < run.n_sides; k++) {
        ree_tensor_finish(&run.sides[k].logits);
        ree_pass_finish(&run.sides[k].pass);
    }
    ree_free(run.ids);
    return status;
}
