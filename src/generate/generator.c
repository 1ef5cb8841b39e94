#include "generate/generator.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "session/model.h"

static void describe(struct ree_generator *g, bool one_row) {
    const struct ree_port *logits = ree_model_output(g->model, g->roles.logits);
    const char *format = ree_model_metadata(g->model, "ree.format");
    struct ree_generator_info *info = &g->info;
    info->model_path = g->source.model_path;
    info->folder = g->source.folder;
    info->model_type = g->source.model_type;
    info->context_length = g->source.context_length;
    info->vocab_size = logits->has_shape && logits->dims[2] > 0 ? logits->dims[2] : 0;
    info->bos = g->source.bos;
    info->n_eos = g->source.n_eos;
    info->eos = g->source.eos;
    info->has_cache = g->roles.n_states > 0;
    info->mixes_lengths = !g->options.exact_lengths && info->has_cache && format &&
                          strcmp(format, "ree-causal-lm/1") == 0 &&
                          g->roles.positions != REE_NO_INPUT && !g->roles.fixed_batch;
    info->computes_one_row = one_row;
}

static enum ree_status open_model(struct ree_generator *g, struct ree_error *err) {
    REE_TRY(ree_model_load(g->source.model_path, &g->options.model, &g->model, err));
    enum ree_status status = ree_roles_find(g->model, &g->source.names, &g->roles, err);
    bool one_row = false;
    if (status == REE_OK)
        status = ree_model_select_rows(g->model, g->roles.logits, REE_ROWS_INPUT, &one_row, err);
    if (status == REE_OK && one_row) {
        // The model has one more input now.
        ree_roles_finish(&g->roles);
        status = ree_roles_find(g->model, &g->source.names, &g->roles, err);
    }
    if (status != REE_OK) {
        ree_fail_prefix(err, "%s", g->source.model_path);
        return status;
    }
    describe(g, one_row);
    return REE_OK;
}

static enum ree_status open_set(struct ree_generator *g, size_t i, struct ree_error *err) {
    REE_TRY(ree_session_create(g->model, g->device, &g->options.session, &g->sets[i], err));
    if (i == 0) g->session = g->sets[i];
    if (!g->roles.n_states) return REE_OK;
    return ree_session_keep(g->sets[i], g->roles.states, g->roles.n_states,
                            g->info.mixes_lengths ? g->roles.positions : REE_NO_INPUT, err);
}

enum ree_status ree_generator_create(const char *path, struct ree_device *device,
                                     const struct ree_generator_options *options,
                                     struct ree_generator **out, struct ree_error *err) {
    struct ree_error local;
    if (!err) err = &local; // prefixes need the message that they prefix
    *out = NULL;
    struct ree_generator *g = calloc(1, sizeof *g);
    if (!g) return ree_fail(err, REE_NO_MEMORY, "out of memory");
    g->device = device;
    if (options) g->options = *options;
    if (!g->options.prefill_chunk) g->options.prefill_chunk = 512;
    if (!g->options.max_batch) g->options.max_batch = 16;
    if (!g->options.n_sets) g->options.n_sets = 1;
    g->sets = calloc(g->options.n_sets, sizeof(struct ree_session *));
    g->steps = calloc(g->options.n_sets, sizeof(const struct ree_step *));
    if (!g->sets || !g->steps) {
        ree_generator_destroy(g);
        return ree_fail(err, REE_NO_MEMORY, "out of memory");
    }
    enum ree_status status = ree_model_source_find(path, &g->source, err);
    if (status == REE_OK) status = open_model(g, err);
    for (size_t i = 0; status == REE_OK && i < g->options.n_sets; i++)
        status = open_set(g, i, err);
    if (status != REE_OK) {
        ree_generator_destroy(g);
        return status;
    }
    *out = g;
    return REE_OK;
}

void ree_generator_destroy(struct ree_generator *g) {
    if (!g) return;
    for (size_t i = 0; g->sets && i < g->options.n_sets; i++)
        ree_session_destroy(g->sets[i]);
    free(g->sets);
    free(g->steps);
    ree_model_destroy(g->model);
    ree_roles_finish(&g->roles);
    ree_model_source_finish(&g->source);
    free(g);
}

const struct ree_generator_info *ree_generator_info(const struct ree_generator *g) {
    return &g->info;
}

struct ree_session *ree_generator_session(struct ree_generator *g) {
    return g->session;
}

int64_t ree_generator_cache_rows(const struct ree_generator *g, size_t set) {
    return ree_session_state_rows(g->sets[set]);
}

enum ree_status ree_generator_read_caches(struct ree_generator *g, size_t set, int64_t sequence,
                                          int64_t first, int64_t n, struct ree_tensor *out,
                                          struct ree_error *err) {
    return ree_session_read_states(g->sets[set], sequence, first, n, out, err);
}

uint64_t ree_generator_cache_bytes(const struct ree_generator *g, size_t set) {
    return ree_session_state_bytes(g->sets[set]);
}
