#include "generate/generator.h"

#include <stdlib.h>
#include <string.h>

#include "base/float_env.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/status.h"
#include "base/strbuf.h"
#include "generate/causality.h"
#include "generate/remote.h"
#include "session/model.h"

// Sequences of different lengths may share a batch if unused positions at the end of each kv cache
// do not change the results. The metadata of ree's own exports states this. But no hash covers
// metadata, so the graph must also prove it; otherwise the output bits would depend on a file's
// claim.
static bool may_mix_lengths(const struct ree_generator *g) {
    const char *format = ree_model_metadata(g->model, "ree.format");
    return !g->options.exact_lengths && g->roles.n_kv_caches > 0 && format &&
           strcmp(format, "ree-causal-lm/1") == 0 && g->roles.positions != REE_NO_INPUT &&
           !g->roles.shared_positions && !g->roles.fixed_batch;
}

static enum ree_status prove_causality(struct ree_generator *g, struct ree_error *err) {
    bool *mixes = &g->info.mixes_lengths;
    *mixes = may_mix_lengths(g);
    REE_TRY(ree_causality_of_model(g->model, &g->roles, *mixes, &g->causality, err));
    if (!*mixes || g->causality.is_proved) return REE_OK;
    *mixes = false;
    return ree_causality_of_model(g->model, &g->roles, false, &g->causality, err);
}

static void describe(struct ree_generator *g, bool one_row) {
    const struct ree_port *logits = ree_model_output(g->model, g->roles.logits);
    struct ree_generator_info *info = &g->info;
    info->model_path = g->source.model_path;
    info->folder = g->source.folder;
    info->model_type = g->source.model_type;
    info->context_length = g->source.context_length;
    info->vocab_size = logits->has_shape && logits->dims[2] > 0 ? logits->dims[2] : 0;
    info->bos = g->source.bos;
    info->n_eos = g->source.n_eos;
    info->eos = g->source.eos;
    info->has_cache = g->roles.n_kv_caches > 0;
    info->computes_one_row = one_row;
}

static enum ree_status open_model(struct ree_generator *g, struct ree_error *err) {
    REE_TRY(ree_model_load(g->source.model_path, &g->model_options, &g->model, err));
    enum ree_status status = ree_model_source_complete(&g->source, g->model, err);
    if (status == REE_OK) status = ree_roles_find(g->model, &g->source.names, &g->roles, err);
    bool one_row = false;
    if (status == REE_OK)
        status = ree_model_select_rows(g->model, g->roles.logits, REE_ROWS_INPUT, &one_row, err);
    if (status == REE_OK && one_row) {
        // the model now has one more input
        ree_roles_finish(&g->roles);
        status = ree_roles_find(g->model, &g->source.names, &g->roles, err);
    }
    if (status == REE_OK) status = prove_causality(g, err);
    if (status != REE_OK) {
        ree_fail_prefix(err, "%s", g->source.model_path);
        return status;
    }
    for (size_t i = 0; i < g->roles.n_kv_caches; i++)
        g->roles.kv_caches[i].in_order = g->causality.is_proved;
    describe(g, one_row);
    if (!g->causality.is_proved && ree_chunk_needs_causality(&g->roles, g->options.prefill_chunk))
        g->options.prefill_chunk = REE_UNPROVED_CHUNK;
    return REE_OK;
}

static enum ree_status name_devices(struct ree_generator *g, struct ree_device *const *devices,
                                    size_t n, struct ree_error *err) {
    struct ree_strbuf names;
    ree_strbuf_init(&names);
    for (size_t i = 0; i < n; i++)
        ree_strbuf_printf(&names, "%s%s", i ? ", " : "", ree_device_name(devices[i]));
    g->device_names = ree_strbuf_take(&names);
    g->operation_set = ree_device_operation_set(devices[0]);
    ree_strbuf_finish(&names);
    return g->device_names ? REE_OK : ree_no_memory(err);
}

static enum ree_status open_pipeline(struct ree_generator *g, struct ree_device *device,
                                     struct ree_error *err) {
    const struct ree_generator_options *o = &g->options;
    struct ree_pipeline_options options = {.n_stages = o->n_partitions,
                                           .plan_path = o->partition_plan,
                                           .context_length = g->info.context_length,
                                           .max_memory = o->max_device_memory,
                                           .n_cache_slots = o->n_cache_slots,
                                           .rank = g->rank.rank,
                                           .n_ranks = g->rank.n_ranks,
                                           .session = g->session_options};
    struct ree_device **devices =
        ree_alloc_zeroed(1 + o->n_more_devices, sizeof(struct ree_device *));
    g->flights = ree_alloc_zeroed(o->n_cache_slots, sizeof *g->flights);
    enum ree_status status = devices && g->flights ? REE_OK : ree_no_memory(err);
    if (status == REE_OK) {
        devices[0] = device;
        for (size_t i = 0; i < o->n_more_devices; i++)
            devices[1 + i] = o->more_devices[i];
        status = name_devices(g, devices, 1 + o->n_more_devices, err);
    }
    if (status == REE_OK)
        status = ree_pipeline_create(g->model, devices, 1 + o->n_more_devices, &options,
                                     g->roles.kv_caches, g->roles.n_kv_caches,
                                     g->info.mixes_lengths ? g->roles.positions : REE_NO_INPUT,
                                     &g->pipeline, err);
    ree_free(devices);
    return status;
}

// Copies the options, and the structs model, session and rank that they point to.
static enum ree_status read_options(struct ree_generator *g, const struct ree_generator_options *o,
                                    struct ree_error *err) {
    g->options = *o;
    if (o->rank) g->rank = *o->rank;
    REE_TRY(ree_options_read(&g->model_options, sizeof g->model_options, o->model,
                             "ree_model_options", err));
    REE_TRY(ree_options_read(&g->session_options, sizeof g->session_options, o->session,
                             "ree_session_options", err));
    g->options.model = &g->model_options;
    g->options.session = &g->session_options;
    g->options.rank = &g->rank;
    return REE_OK;
}

enum ree_status ree_generator_create(const char *path, struct ree_device *device,
                                     const struct ree_generator_options *options,
                                     struct ree_generator **out, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_error local;
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    *out = NULL;
    struct ree_generator_options own;
    REE_TRY(ree_options_read(&own, sizeof own, options, "ree_generator_options", err));
    struct ree_generator *g = ree_alloc_zeroed(1, sizeof *g);
    if (!g) return ree_no_memory(err);
    enum ree_status status = read_options(g, &own, err);
    if (!g->options.prefill_chunk) g->options.prefill_chunk = 512;
    if (!g->options.max_batch) g->options.max_batch = 16;
    if (!g->options.n_cache_slots) g->options.n_cache_slots = 1;
    if (status == REE_OK) status = ree_model_source_find(path, &g->source, err);
    if (status == REE_OK) status = open_model(g, err);
    if (status == REE_OK) status = open_pipeline(g, device, err);
    if (status != REE_OK) {
        ree_generator_destroy(g);
        return status;
    }
    *out = g;
    return REE_OK;
}

void ree_generator_destroy(struct ree_generator *g) {
    REE_FLOAT_ENV_API();
    if (!g) return;
    ree_pipeline_destroy(g->pipeline);
    for (size_t i = 0; g->flights && i < g->options.n_cache_slots; i++)
        ree_flight_finish(&g->flights[i]);
    ree_free(g->flights);
    ree_model_destroy(g->model);
    ree_roles_finish(&g->roles);
    ree_model_source_finish(&g->source);
    ree_free(g->device_names);
    ree_free(g);
}

size_t ree_token_limit(const struct ree_generator *g, size_t n_prompt, size_t max_new_tokens) {
    int64_t context = g->info.context_length;
    size_t limit = context ? (size_t)context : (size_t)1 << 30;
    if (max_new_tokens && max_new_tokens < limit && n_prompt + max_new_tokens < limit)
        limit = n_prompt + max_new_tokens;
    return limit;
}

const struct ree_generator_info *ree_generator_info(const struct ree_generator *g) {
    return &g->info;
}

const struct ree_model *ree_generator_model(const struct ree_generator *g) {
    return g->model;
}

enum ree_status ree_generator_hashes(struct ree_generator *g, const struct ree_progress *progress,
                                     const struct ree_model_hashes **out, struct ree_error *err) {
    struct ree_model_hashes hashes;
    if (!g->hashes.graph[0]) {
        REE_TRY(ree_model_hashes_make(g->model, progress, &hashes, err));
        g->hashes = hashes;
    }
    *out = &g->hashes;
    return REE_OK;
}

struct ree_session *ree_generator_session(struct ree_generator *g) {
    return ree_pipeline_session(g->pipeline);
}

struct ree_pipeline *ree_generator_pipeline(struct ree_generator *g) {
    return g->pipeline;
}

enum ree_status ree_generator_stats(const struct ree_generator *g,
                                    struct ree_session_stats *out_stats, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_session_stats stats;
    REE_TRY(ree_stats_check(out_stats, sizeof stats, "ree_session_stats", err));
    ree_pipeline_sum_stats(g->pipeline, &stats);
    ree_stats_fill(out_stats, &stats, sizeof stats);
    return REE_OK;
}

uint64_t ree_generator_kv_cache_bytes(const struct ree_generator *g, size_t slot) {
    return ree_pipeline_kv_cache_bytes(g->pipeline, slot);
}

enum ree_status ree_generator_read_kv_caches(struct ree_generator *g, size_t slot, int64_t sequence,
                                             int64_t first, int64_t n, struct ree_tensor *out,
                                             struct ree_error *err) {
    if (g->remote) return g->remote->read(g->remote->user, slot, sequence, first, n, out, err);
    return ree_pipeline_read_kv_caches(g->pipeline, slot, sequence, first, n, out, err);
}
