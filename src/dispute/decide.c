// Decides a claim for a program (dispute/referee.h).
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "base/float_env.h"
#include "base/memory.h"
#include "base/options.h"
#include "dispute/referee.h"

// A decision, and the memory that it points to.
struct decided {
    struct ree_decision decision;
    struct ree_ruling ruling;
    char (*hex)[65];
    const char **outputs;
};

static enum ree_status describe(struct decided *d, struct ree_error *err) {
    const struct ree_ruling *r = &d->ruling;
    d->hex = ree_alloc_zeroed((size_t)r->n_outputs + 1, sizeof *d->hex);
    d->outputs = ree_alloc_zeroed((size_t)r->n_outputs + 1, sizeof *d->outputs);
    if (!d->hex || !d->outputs) return ree_no_memory(err);
    for (uint32_t i = 0; i < r->n_outputs; i++) {
        ree_hex(r->outputs[i], d->hex[i]);
        d->outputs[i] = d->hex[i];
    }
    d->decision = (struct ree_decision){.verdict = r->verdict,
                                        .n_outputs = r->n_outputs,
                                        .outputs = d->outputs,
                                        .n_loaded = r->n_loaded,
                                        .n_constant = r->n_constant};
    for (unsigned k = 0; k < 2; k++) {
        d->decision.is_wrong[k] = r->is_wrong[k];
        d->decision.why[k] = r->why[k];
        d->decision.is_bound[k] = r->is_bound[k];
        d->decision.is_end_unknown[k] = r->is_end_unknown[k];
        d->decision.misread[k] = r->misread[k];
        d->decision.wrong_output[k] = r->wrong[k];
    }
    return REE_OK;
}

enum ree_status ree_claim_decide(const struct ree_claim *claim, const char *model,
                                 const struct ree_disputant *parties,
                                 const struct ree_decide_options *requested,
                                 struct ree_decision **out, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_decide_options options;
    *out = NULL;
    REE_TRY(ree_options_read(&options, sizeof options, requested, "ree_decide_options", err));
    struct ree_referee_options referee = {.model = model,
                                          .folder = options.values,
                                          .request = options.request,
                                          .training = options.training,
                                          .progress = options.progress};
    for (unsigned k = 0; k < 2 && parties; k++) {
        referee.receipts[k] = parties[k].receipt;
        referee.keys[k] = parties[k].public_key;
        referee.tokens[k] = (struct ree_stated_tokens){parties[k].n_tokens, parties[k].tokens};
    }
    struct decided *d = ree_alloc_zeroed(1, sizeof *d);
    if (!d) return ree_no_memory(err);
    enum ree_status status = ree_referee(claim, &referee, &d->ruling, err);
    if (status == REE_OK) status = describe(d, err);
    if (status == REE_OK)
        *out = &d->decision;
    else
        ree_decision_destroy(&d->decision);
    return status;
}

void ree_decision_destroy(struct ree_decision *decision) {
    REE_FLOAT_ENV_API();
    if (!decision) return;
    struct decided *d = REE_CONTAINER_OF(decision, struct decided, decision);
    ree_ruling_finish(&d->ruling);
    ree_free(d->hex);
    ree_free(d->outputs);
    ree_free(d);
}
