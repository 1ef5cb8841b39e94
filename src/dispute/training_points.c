#include "dispute/training_points.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "session/model.h"
#include "trace/model_header.h"
#include "trace/recorded.h"
#include "train/roots.h"

// The digests of a step's states and loss, as its trace has them.
struct reader {
    const struct ree_opened *model;
    const struct ree_step_roles *roles;
    const char **names;                 // (n_states) names of the states
    ree_digest *digests;                // (n_states)
    struct ree_recorded_source *states; // (n_states) sources of the next values
    struct ree_recorded_source loss;
};

static enum ree_status reader_init(struct reader *r, const struct ree_opened *m,
                                   const struct ree_step_roles *roles, struct ree_error *err) {
    *r = (struct reader){.model = m, .roles = roles};
    r->names = ree_alloc_zeroed(roles->n_states, sizeof *r->names);
    r->digests = ree_alloc_zeroed(roles->n_states, sizeof *r->digests);
    r->states = ree_alloc_zeroed(roles->n_states, sizeof *r->states);
    if (!r->names || !r->digests || !r->states) return ree_no_memory(err);
    for (size_t i = 0; i < roles->n_states; i++) {
        r->names[i] = ree_model_input(m->model, roles->states[i].input)->name;
        ree_recorded_source_of_output(m, roles->states[i].output, &r->states[i]);
    }
    ree_recorded_source_of_output(m, roles->loss, &r->loss);
    return REE_OK;
}

static void reader_finish(struct reader *r) {
    ree_free(r->names);
    ree_free(r->digests);
    ree_free(r->states);
}

static void read_source(const struct reader *r, const struct ree_recorded_source *source,
                        const ree_digest *step, ree_digest out) {
    if (source->is_constant)
        memcpy(out, source->digest, sizeof(ree_digest));
    else
        ree_trace_value_digest(&r->model->header, step, (int32_t)source->value, out);
}

// Compares a point with the root and the chain after `n_steps` steps of the trace.
static bool is_point(const struct ree_training_point *point, const ree_digest states,
                     const ree_digest chain) {
    char hex[2][65];
    ree_hex(states, hex[0]);
    ree_hex(chain, hex[1]);
    return !strcmp(hex[0], point->states_sha256) && !strcmp(hex[1], point->chain_sha256);
}

// Whether the step reads the states that the one before it left, whose digests are r->digests. Of
// the states that a node computes this is a rule (dispute/rules.h); a claim about another one
// cannot show where it comes from.
static bool keeps_states(const struct reader *r, const ree_digest *step,
                         char lie[REE_TRAINING_LIE]) {
    for (size_t i = 0; i < r->roles->n_states; i++) {
        const unsigned char *read = step[r->roles->states[i].input];
        if (!r->states[i].is_input || !memcmp(read, r->digests[i], sizeof(ree_digest))) continue;
        snprintf(lie, REE_TRAINING_LIE, "its trace changes the state '%.128s' between two steps",
                 r->names[i]);
        return false;
    }
    return true;
}

static enum ree_status check(struct reader *r, const struct ree_training_receipt *receipt,
                             const struct ree_trace *trace, char lie[REE_TRAINING_LIE],
                             struct ree_error *err) {
    ree_digest root, chain, loss;
    size_t n = r->roles->n_states, point = 0;
    const ree_digest *first = ree_trace_step(trace, 0);
    for (size_t i = 0; i < n; i++)
        memcpy(r->digests[i], first[r->roles->states[i].input], sizeof(ree_digest));
    REE_TRY(ree_digests_root(r->names, (const ree_digest *)r->digests, n, root, err));
    ree_chain_begin(receipt->points[0].step, root, chain);
    for (uint64_t t = 0;; t++) {
        uint64_t number = receipt->points[0].step + t;
        if (receipt->points[point].step == number) {
            if (!is_point(&receipt->points[point], root, chain)) {
                snprintf(lie, REE_TRAINING_LIE, "its trace gives other hashes after step %llu",
                         (unsigned long long)number);
                return REE_OK;
            }
            if (++point == receipt->n_points) return REE_OK;
        }
        const ree_digest *step = ree_trace_step(trace, t);
        if (!keeps_states(r, step, lie)) return REE_OK;
        for (size_t i = 0; i < n; i++)
            read_source(r, &r->states[i], step, r->digests[i]);
        read_source(r, &r->loss, step, loss);
        REE_TRY(ree_digests_root(r->names, (const ree_digest *)r->digests, n, root, err));
        ree_chain_next(chain, loss, root);
    }
}

enum ree_status ree_training_points_check(const struct ree_training_receipt *receipt,
                                          const struct ree_opened *m,
                                          const struct ree_step_roles *roles,
                                          const struct ree_trace *trace, char lie[REE_TRAINING_LIE],
                                          struct ree_error *err) {
    struct reader r;
    char hex[65];
    uint64_t n_steps = receipt->points[receipt->n_points - 1].step - receipt->points[0].step;
    ree_hex(trace->root, hex);
    if (strcmp(hex, receipt->trace_root) != 0 || trace->n_steps != n_steps ||
        memcmp(trace->header.digest, m->header.digest, sizeof(ree_digest)) != 0)
        return REE_OK;
    enum ree_status status = reader_init(&r, m, roles, err);
    if (status == REE_OK) status = check(&r, receipt, trace, lie, err);
    reader_finish(&r);
    return status;
}
