#include "trace/record.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"

struct ree_recorder {
    struct ree_arena arena;
    struct ree_trace_header header;
    struct ree_trace_writer *writer; // NULL: no file is written
    size_t n_kv_caches;
    struct ree_kv_cache_spec *specs;
    struct ree_cache_digest *positions; // per kv cache: chain over its positions so far
    bool *begun;
    ree_digest *step; // digests of the current step
    bool *known;      // per digest of the current step: whether it has been computed
    uint64_t n_steps, capacity;
    // One leaf per step. Used only without a file; otherwise the writer keeps the leaves.
    ree_digest *leaves;
    enum ree_status (*on_step)(void *user, uint64_t step, const ree_digest *digests,
                               struct ree_error *err);
    void *user;
};

static enum ree_status begin(struct ree_recorder *r, const struct ree_model *model,
                             const struct ree_trace_header_options *options, const char *path,
                             struct ree_error *err) {
    struct ree_arena *arena = &r->arena;
    REE_TRY(ree_trace_describe(model, options, arena, &r->header, err));
    size_t n = r->header.n_step_digests;
    r->n_kv_caches = options->n_kv_caches;
    r->specs = ree_arena_alloc_array(arena, r->n_kv_caches + 1, sizeof *r->specs);
    r->positions = ree_arena_alloc_array(arena, r->n_kv_caches + 1, sizeof *r->positions);
    r->begun = ree_arena_alloc_array(arena, r->n_kv_caches + 1, sizeof *r->begun);
    r->step = ree_arena_alloc_array(arena, n + 1, sizeof *r->step);
    r->known = ree_arena_alloc_array(arena, n + 1, sizeof *r->known);
    if (!r->specs || !r->positions || !r->begun || !r->step || !r->known) return ree_no_memory(err);
    if (r->n_kv_caches) memcpy(r->specs, options->kv_caches, r->n_kv_caches * sizeof *r->specs);
    return path ? ree_trace_writer_create(path, options->is_secret ? 0600 : 0666, &r->header,
                                          &r->writer, err)
                : REE_OK;
}

enum ree_status ree_recorder_create(const struct ree_model *model,
                                    const struct ree_trace_header_options *options,
                                    const char *path, struct ree_recorder **out,
                                    struct ree_error *err) {
    *out = NULL;
    struct ree_recorder *r = ree_alloc_zeroed(1, sizeof *r);
    if (!r) return ree_no_memory(err);
    ree_arena_init(&r->arena);
    enum ree_status status = begin(r, model, options, path, err);
    if (status == REE_OK)
        *out = r;
    else
        ree_recorder_destroy(r);
    return status;
}

const struct ree_trace_header *ree_recorder_header(const struct ree_recorder *r) {
    return &r->header;
}

void ree_recorder_on_step(struct ree_recorder *r,
                          enum ree_status (*on_step)(void *, uint64_t, const ree_digest *,
                                                     struct ree_error *),
                          void *user) {
    r->on_step = on_step;
    r->user = user;
}

static ptrdiff_t kv_cache_of_input(const struct ree_recorder *r, size_t input) {
    for (size_t i = 0; i < r->n_kv_caches; i++)
        if (r->specs[i].input == input) return (ptrdiff_t)i;
    return -1;
}

static enum ree_status on_inputs(void *user, const struct ree_tensor *inputs, size_t n,
                                 struct ree_error *err) {
    struct ree_recorder *r = user;
    if (n != r->header.n_inputs)
        return ree_fail(err, REE_INTERNAL, "a trace of %u inputs received %zu", r->header.n_inputs,
                        n);
    memset(r->step, 0, r->header.n_step_digests * sizeof *r->step);
    memset(r->known, 0, r->header.n_step_digests * sizeof *r->known);
    for (size_t i = 0; i < n; i++) {
        ptrdiff_t cache = kv_cache_of_input(r, i);
        r->known[i] = true;
        if (cache < 0) {
            ree_trace_tensor_digest(&inputs[i], r->step[i]);
            continue;
        }
        struct ree_cache_digest *positions = &r->positions[cache];
        uint32_t axis = r->specs[cache].axis;
        if (!r->begun[cache] || inputs[i].dims[axis] == 0)
            ree_cache_digest_begin(positions, &inputs[i], axis);
        r->begun[cache] = true;
        if (positions->n_positions != inputs[i].dims[axis])
            return ree_fail(err, REE_INVALID,
                            "the cache '%s' has %lld positions, but %lld were traced",
                            r->header.inputs[i].name, (long long)inputs[i].dims[axis],
                            (long long)positions->n_positions);
        memcpy(r->step[i], positions->digest, sizeof positions->digest);
    }
    return REE_OK;
}

static enum ree_status on_value(void *user, const struct ree_observed *value,
                                struct ree_error *err) {
    struct ree_recorder *r = user;
    const struct ree_trace_node *node = &r->header.nodes[value->node];
    int64_t index =
        ree_trace_digest_index(&r->header, node->first_output + (uint32_t)value->output);
    r->known[index] = true;
    if (value->kv_cache < 0) {
        ree_tensor_digest(value->tensor, r->step[index]);
        return REE_OK;
    }
    struct ree_cache_digest *positions = &r->positions[value->kv_cache];
    if (value->first_position == 0)
        ree_cache_digest_begin(positions, value->tensor, positions->axis);
    if (value->first_position != positions->n_positions)
        return ree_fail(err, REE_INTERNAL,
                        "the positions of '%s' begin at %lld, but %lld were traced",
                        value->tensor->name, (long long)value->first_position,
                        (long long)positions->n_positions);
    ree_cache_digest_add(positions, value->tensor);
    memcpy(r->step[index], positions->digest, sizeof positions->digest);
    return REE_OK;
}

static enum ree_status keep_leaf(struct ree_recorder *r, struct ree_error *err) {
    if (r->n_steps == r->capacity) {
        uint64_t capacity = r->capacity ? r->capacity * 2 : 64;
        ree_digest *grown = ree_realloc(r->leaves, (size_t)capacity * sizeof *grown);
        if (!grown) return ree_no_memory(err);
        r->leaves = grown;
        r->capacity = capacity;
    }
    ree_trace_step_digest(&r->header, r->n_steps, (const ree_digest *)r->step, NULL,
                          r->leaves[r->n_steps]);
    return REE_OK;
}

static enum ree_status on_end(void *user, struct ree_error *err) {
    struct ree_recorder *r = user;
    const ree_digest *step = (const ree_digest *)r->step;
    for (uint32_t i = 0; i < r->header.n_nodes; i++)
        for (uint32_t k = 0; k < r->header.nodes[i].n_outputs; k++)
            if (!r->header.nodes[i].omitted[k] &&
                !r->known[ree_trace_digest_index(&r->header, r->header.nodes[i].first_output + k)])
                return ree_fail(err, REE_INTERNAL, "output %u of node %u was not observed", k, i);
    REE_TRY(r->writer ? ree_trace_writer_step(r->writer, step, err) : keep_leaf(r, err));
    if (r->on_step) REE_TRY(r->on_step(r->user, r->n_steps, step, err));
    r->n_steps++;
    return REE_OK;
}

struct ree_observer ree_recorder_observer(struct ree_recorder *r) {
    return (struct ree_observer){on_inputs, on_value, on_end, r, true};
}

enum ree_status ree_recorder_finish(struct ree_recorder *r, struct ree_record_summary *out,
                                    struct ree_error *err) {
    struct ree_record_summary summary = {.n_steps = r->n_steps};
    enum ree_status status = REE_OK;
    if (r->writer)
        status = ree_trace_writer_finish(r->writer, summary.root, err);
    else
        ree_trace_root(&r->header, (const ree_digest *)r->leaves, r->n_steps, summary.root);
    r->writer = NULL;
    if (status == REE_OK && out) *out = summary;
    ree_recorder_destroy(r);
    return status;
}

void ree_recorder_destroy(struct ree_recorder *r) {
    if (!r) return;
    ree_trace_writer_abandon(r->writer);
    ree_free(r->leaves);
    ree_arena_finish(&r->arena);
    ree_free(r);
}
