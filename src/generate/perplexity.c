// The public function of ree/perplexity.h: checks, and how a text is divided into windows.
#include "generate/perplexity.h"

#include <stdio.h>
#include <string.h>

#include "base/float_env.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/status.h"
#include "generate/generator.h"
#include "generate/pass.h"

#define DEFAULT_CONTEXT 512

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

bool ree_window_at(const struct ree_measurement *m, size_t i, struct ree_window *out) {
    const struct ree_perplexity_options *o = &m->options;
    size_t n = m->n, context = o->context, stride = o->stride;
    if (o->max_windows && i >= o->max_windows) return false;
    if (o->scored == REE_SCORED_SECOND_HALF) {
        size_t length = least(context, n);
        if (i >= n / length) return false;
        *out = (struct ree_window){.begin = i * length, .end = (i + 1) * length};
        out->first = out->begin + least(length / 2 + 1, length - 1);
        return true;
    }
    if (i > n / stride) return false;
    // Tokens before position `before` were in an earlier window.
    size_t begin = i * stride, before = i ? least(begin - stride + context, n) : 0;
    size_t first = before > begin ? before : begin + 1;
    *out = (struct ree_window){.begin = begin, .first = first, .end = least(begin + context, n)};
    return first < out->end;
}

// Sets the length of a window. Fails if it exceeds a model's limit.
static enum ree_status choose_context(struct ree_measurement *m, struct ree_error *err) {
    size_t context = m->options.context;
    for (int k = 0; k < 2; k++) {
        const struct ree_generator *g = m->generators[k];
        size_t limit = g ? (size_t)g->info.context_length : 0;
        if (!limit) continue;
        if (m->options.context > limit)
            return ree_fail(err, REE_INVALID,
                            "a context of %zu tokens, but the context of %s has at most %zu",
                            m->options.context, g->source.model_path, limit);
        if (!m->options.context) context = least(context ? context : DEFAULT_CONTEXT, limit);
    }
    m->options.context = context ? context : DEFAULT_CONTEXT;
    if (m->options.context < 2)
        return ree_fail(err, REE_INVALID, "a context of %zu tokens, expected at least 2",
                        m->options.context);
    return REE_OK;
}

static enum ree_status check_options(struct ree_measurement *m, struct ree_error *err) {
    struct ree_perplexity_options *o = &m->options;
    if (o->scored != REE_SCORED_SECOND_HALF && o->scored != REE_SCORED_ALL)
        return ree_fail(err, REE_INVALID, "scored is %d, which is no value of enum ree_scored",
                        (int)o->scored);
    REE_TRY(choose_context(m, err));
    if (o->stride && o->scored != REE_SCORED_ALL)
        return ree_fail(err, REE_INVALID, "a stride requires that all tokens are scored");
    if (o->stride > o->context)
        return ree_fail(err, REE_INVALID,
                        "a stride of %zu tokens is longer than the context of %zu", o->stride,
                        o->context);
    if (!o->stride) o->stride = o->context;
    return REE_OK;
}

enum ree_status ree_measurement_check_ids(const struct ree_measurement *m,
                                          const struct ree_generator *g, size_t vocab_size,
                                          struct ree_error *err) {
    enum ree_status status = ree_pass_check_ids(m->ids, m->n, (int64_t)vocab_size, err);
    if (status == REE_OK && m->options.window_bos)
        status = ree_pass_check_ids(m->options.window_bos, 1, (int64_t)vocab_size, err);
    return status == REE_OK ? REE_OK : ree_fail_prefix(err, "%s", g->source.model_path);
}

enum ree_status ree_measurement_check_vocabularies(const struct ree_measurement *m, size_t own,
                                                   size_t others, struct ree_error *err) {
    if (own == others) return REE_OK;
    return ree_fail(err, REE_INVALID,
                    "the vocabulary of %s has %zu tokens, that of %s has %zu; only models with the "
                    "same vocabulary can be compared",
                    m->generators[0]->source.model_path, own, m->generators[1]->source.model_path,
                    others);
}

static enum ree_status check_generators(const struct ree_measurement *m, struct ree_error *err) {
    const struct ree_generator *g = m->generators[0], *other = m->generators[1];
    if (g == other)
        return ree_fail(err, REE_INVALID,
                        "`against` is the generator itself, expected another one");
    for (int k = 0; k < 2; k++) {
        g = m->generators[k];
        if (g && (g->remote || g->rank.n_ranks > 1))
            return ree_fail(err, REE_UNSUPPORTED,
                            "perplexity is not supported in several processes");
    }
    return REE_OK;
}

// Some models do not declare the size of their vocabulary; perplexity_run.c then takes it from
// their logits.
static enum ree_status check_text(const struct ree_measurement *m, struct ree_error *err) {
    const struct ree_generator *g = m->generators[0], *other = m->generators[1];
    size_t own = (size_t)g->info.vocab_size, others = other ? (size_t)other->info.vocab_size : 0;
    if (m->n < 2)
        return ree_fail(err, REE_INVALID, "a text of %zu tokens, expected at least 2", m->n);
    if (own && others) REE_TRY(ree_measurement_check_vocabularies(m, own, others, err));
    REE_TRY(ree_measurement_check_ids(m, g, own, err));
    return other ? ree_measurement_check_ids(m, other, others, err) : REE_OK;
}

enum ree_status ree_perplexity_measure(struct ree_generator *generator, const int32_t *ids,
                                       size_t n, const struct ree_perplexity_options *options,
                                       struct ree_perplexity *out, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_measurement m = {.ids = ids, .n = n};
    struct ree_perplexity results = {.size = sizeof results};
    struct ree_error local;
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    REE_TRY(ree_stats_check(out, sizeof *out, "ree_perplexity", err));
    REE_TRY(ree_options_read(&m.options, sizeof m.options, options, "ree_perplexity_options", err));
    m.generators[0] = generator;
    m.generators[1] = m.options.against;
    REE_TRY(check_generators(&m, err));
    REE_TRY(check_options(&m, err));
    REE_TRY(check_text(&m, err));
    snprintf(results.why_not_causal, sizeof results.why_not_causal, "%s",
             generator->causality.why_not);
    if (m.generators[1])
        snprintf(results.against_why_not_causal, sizeof results.against_why_not_causal, "%s",
                 m.generators[1]->causality.why_not);
    enum ree_status status = ree_measurement_run(&m, err);
    if (status == REE_OK) status = ree_measurement_summarise(&m, &results, err);
    ree_free(m.scores);
    if (status == REE_OK) ree_stats_fill(out, &results, sizeof results);
    return status;
}
