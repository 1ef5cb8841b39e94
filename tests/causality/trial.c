#include "trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/status.h"
#include "changes.h"
#include "generate/causality.h"
#include "graph/causality/prove.h"
#include "graph/load.h"

// Loading

bool trial_load(struct trial *t, const char *path, const struct ree_model_options *options) {
    struct ree_error err;
    struct ree_graph *graph = NULL;
    *t = (struct trial){0};
    bool ok = ree_graph_load(path, NULL, &graph, &err) == REE_OK &&
              ree_model_from_graph(graph, options, &t->model, &err) == REE_OK &&
              ree_roles_find(t->model, &(struct ree_port_names){0}, &t->roles, &err) == REE_OK;
    if (!ok) {
        snprintf(t->why, sizeof t->why, "%s", err.message);
        return false;
    }
    t->vocab = (int32_t)ree_model_output(t->model, t->roles.logits)->dims[2];
    t->kv_caches = calloc(t->roles.n_kv_caches + 1, sizeof *t->kv_caches);
    return t->kv_caches != NULL;
}

static void forget(struct trial *t) {
    for (size_t k = 0; k < t->roles.n_kv_caches; k++)
        ree_tensor_finish(&t->kv_caches[k]);
    memset(t->kv_caches, 0, (t->roles.n_kv_caches + 1) * sizeof *t->kv_caches);
}

void trial_finish(struct trial *t) {
    if (t->kv_caches) forget(t);
    free(t->kv_caches);
    ree_session_destroy(t->session);
    claims_finish(&t->claims);
    if (t->model) ree_roles_finish(&t->roles);
    ree_model_destroy(t->model);
    *t = (struct trial){0};
}

void trial_ask(struct trial *t, bool mixes_lengths) {
    struct ree_causality_question question;
    struct ree_causality_input *inputs = calloc(t->roles.n_inputs + 1, sizeof *inputs);
    ree_session_destroy(t->session);
    t->session = NULL;
    claims_finish(&t->claims);
    t->model->n_values = ree_graph_number(t->model->graph);
    ree_graph_count_uses(t->model->graph);
    if (!inputs) abort();
    ree_model_causality_question(t->model, &t->roles, mixes_lengths, inputs, &question);
    t->proved = claims_ask(&t->claims, &question, t->why, sizeof t->why);
    free(inputs);
}

// Runs

static void set_number(struct ree_tensor *t, size_t i, int64_t value) {
    if (t->dtype == REE_I64) ((int64_t *)t->data)[i] = value;
    if (t->dtype == REE_I32) ((int32_t *)t->data)[i] = (int32_t)value;
    if (t->dtype == REE_F32) ((float *)t->data)[i] = (float)value;
}

static enum ree_status make_input(struct trial *t, size_t i, const int32_t *ids, size_t from,
                                  size_t n, struct ree_tensor *out) {
    struct ree_error err;
    const struct ree_port *port = ree_model_input(t->model, i);
    int64_t dims[REE_MAX_RANK] = {1, (int64_t)n, 1};
    uint32_t rank = 2;
    enum ree_role role = t->roles.of_input[i];
    if (role == REE_ROLE_KV_CACHE) {
        size_t k = 0;
        for (size_t j = 0; j < i; j++)
            k += t->roles.of_input[j] == REE_ROLE_KV_CACHE;
        const struct ree_kv_cache_spec *spec = &t->roles.kv_caches[k];
        if (t->kv_caches[k].data || t->kv_caches[k].rank) {
            *out = t->kv_caches[k];
            t->kv_caches[k] = (struct ree_tensor){0};
            free((void *)(uintptr_t)out->name);
            out->name = strdup(port->name);
            return REE_OK;
        }
        rank = port->rank;
        memcpy(dims, port->dims, sizeof dims);
        dims[spec->batch_axis] = 1;
        dims[spec->axis] = 0;
    }
    if (role == REE_ROLE_ATTENTION_MASK) dims[1] = (int64_t)(from + n);
    if (role == REE_ROLE_TOTAL_LENGTH || role == REE_ROLE_PAST_LENGTH) rank = 0;
    if (role == REE_ROLE_POSITIONS && port->rank == 1) {
        rank = 1;
        dims[0] = (int64_t)n;
    }
    REE_TRY(ree_tensor_init(out, port->name, port->dtype, rank, dims, &err));
    for (size_t k = 0; k < out->nbytes / ree_dtype_size(out->dtype); k++)
        set_number(out, k,
                   role == REE_ROLE_TOKENS           ? ids[from + k]
                   : role == REE_ROLE_POSITIONS      ? (int64_t)(from + k)
                   : role == REE_ROLE_ATTENTION_MASK ? 1
                   : role == REE_ROLE_TOTAL_LENGTH   ? (int64_t)(from + n)
                   : role == REE_ROLE_PAST_LENGTH    ? (int64_t)from
                                                     : 0);
    return REE_OK;
}

static float logit(const struct ree_tensor *t, size_t i) {
    if (t->dtype == REE_F32) return ((const float *)t->data)[i];
    uint16_t half = ((const uint16_t *)t->data)[i];
    return (half & 0x7fff) > 0x7c00 ? NAN : (float)half; // compared by bits, except NaN
}

// Copies the rows of logits to rows `from` and on, and keeps the kv caches for the next run.
static enum trial_result take_outputs(struct trial *t, struct ree_tensor *outputs, size_t from,
                                      size_t n, float *logits) {
    const struct ree_tensor *out = &outputs[t->roles.logits];
    bool fits = out->rank == 3 && out->dims[0] == 1 && out->dims[1] == (int64_t)n &&
                (out->dtype == REE_F32 || out->dtype == REE_F16 || out->dtype == REE_BF16);
    if (!fits && t->proved) {
        snprintf(t->why, sizeof t->why, "the logits have another shape");
        return TRIAL_CONTRADICTS;
    }
    t->width = fits ? (size_t)out->dims[2] : 0;
    for (size_t i = 0; i < n * t->width && t->width <= 1024; i++)
        logits[from * t->width + i] = logit(out, i);
    for (size_t k = 0; k < t->roles.n_kv_caches; k++) {
        struct ree_tensor *next = &outputs[t->roles.kv_caches[k].output];
        ree_tensor_finish(&t->kv_caches[k]);
        t->kv_caches[k] = *next;
        *next = (struct ree_tensor){0};
    }
    return TRIAL_AGREES;
}

// Runs ids[from ... from + n - 1] and writes their logits to rows `from` and on. first: an earlier
// run; values that depend only on equal tokens must be equal in both runs. NULL: no comparison.
static enum trial_result run(struct trial *t, const int32_t *ids, size_t from, size_t n,
                             float *logits, const struct record *first, const char *label) {
    struct ree_error err;
    size_t n_in = t->roles.n_inputs, n_out = ree_model_n_outputs(t->model);
    struct ree_tensor *inputs = calloc(n_in + 1, sizeof *inputs);
    struct ree_tensor *outputs = calloc(n_out + 1, sizeof *outputs);
    bool ok = inputs && outputs;
    for (size_t i = 0; i < n_in && ok; i++)
        ok = make_input(t, i, ids, from, n, &inputs[i]) == REE_OK;
    claims_next(&t->claims, (int64_t)from, (int64_t)n, ids);
    ok = ok && ree_session_run(t->session, inputs, n_in, outputs, &err) == REE_OK;
    enum trial_result result = ok ? take_outputs(t, outputs, from, n, logits) : TRIAL_FAILS;
    if (ok && (!claims_check(&t->claims, label) ||
               (first && !claims_compare(&t->claims, first, label)))) {
        snprintf(t->why, sizeof t->why, "a fact is wrong");
        result = TRIAL_CONTRADICTS;
    }
    for (size_t i = 0; inputs && i < n_in; i++)
        ree_tensor_finish(&inputs[i]);
    for (size_t i = 0; ok && i < n_out; i++)
        ree_tensor_finish(&outputs[i]);
    free(inputs);
    free(outputs);
    return result;
}

static bool row_has_nan(const float *row, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (isnan(row[i])) return true;
    return false;
}

static enum trial_result compare_rows(struct trial *t, const float *a, const float *b, size_t n,
                                      const char *how, size_t at) {
    if (!t->proved || t->width > 1024) return TRIAL_AGREES;
    for (size_t r = 0; r < n; r++, a += t->width, b += t->width) {
        if (row_has_nan(a, t->width) || row_has_nan(b, t->width) ||
            !memcmp(a, b, t->width * sizeof *a))
            continue;
        snprintf(t->why, sizeof t->why, "row %zu of logits differs %s %zu", r, how, at);
        return TRIAL_CONTRADICTS;
    }
    return TRIAL_AGREES;
}

// Runs the tokens in steps of `step` tokens. Without a cache, each run starts from the first token.
// Models with a cache that are not proved only run the first step: their caches are of unknown
// form.
static enum trial_result run_chunks(struct trial *t, const int32_t *ids, size_t n, size_t step,
                                    float *logits, const struct record *first, const char *label) {
    bool has_cache = t->roles.n_kv_caches > 0;
    enum trial_result result = TRIAL_AGREES;
    for (size_t from = 0; from < n && result == TRIAL_AGREES;) {
        size_t some = step < n - from ? step : n - from;
        result = has_cache ? run(t, ids, from, some, logits, first, label)
                           : run(t, ids, 0, from + some, logits, first, label);
        from += some;
        if (has_cache && !t->proved) break;
    }
    forget(t);
    return result;
}

static enum trial_result run_all(struct trial *t, int32_t *ids, size_t n, size_t keep,
                                 struct record *first, const char *label) {
    static float a[TRIAL_MAX_TOKENS * 1024], b[TRIAL_MAX_TOKENS * 1024];
    size_t step = draw(2) ? 1 : keep;
    enum trial_result result = run(t, ids, 0, n, a, NULL, label);
    forget(t);
    *first = claims_take(&t->claims);
    if (result == TRIAL_AGREES) result = run_chunks(t, ids, n, step, b, first, label);
    if (result == TRIAL_AGREES)
        result = compare_rows(t, a, b, n, "if the tokens are cut into runs of", step);
    for (size_t i = keep; i < n; i++)
        ids[i] = (int32_t)draw((uint32_t)t->vocab);
    if (result == TRIAL_AGREES) result = run(t, ids, 0, n, b, first, label);
    forget(t);
    if (result != TRIAL_AGREES) return result;
    return compare_rows(t, a, b, keep, "with other tokens from", keep);
}

enum trial_result trial_run(struct trial *t, struct ree_device *device, const char *label) {
    struct ree_error err;
    struct record first = {0};
    int32_t ids[TRIAL_MAX_TOKENS];
    size_t n = 2 + draw(TRIAL_MAX_TOKENS - 1), keep = 1 + draw((uint32_t)n - 1);
    if (!t->session) {
        if (ree_session_create(t->model, device, NULL, &t->session, &err) != REE_OK)
            return TRIAL_FAILS;
        if (!claims_watch(&t->claims, t->session)) abort();
    }
    for (size_t i = 0; i < n; i++)
        ids[i] = (int32_t)draw((uint32_t)t->vocab);
    enum trial_result result = run_all(t, ids, n, keep, &first, label);
    record_finish(&first);
    return result;
}
