// Runs the model over new tokens, one step at a time: makes its inputs and takes its logits.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "generate/generator.h"
#include "generate/remote.h"
#include "repops/scalar/convert.h"

// A bind serves until the longest sequence passes a multiple of this number. That adds one more
// chunk of the reduction scheme.
#define POSITIONS_STEP REE_PARTITION_POSITIONS

static int64_t round_up(int64_t n, int64_t to) {
    return (n + to - 1) / to * to;
}

enum ree_status ree_generator_begin(struct ree_generator *g, size_t slot, size_t batch,
                                    int64_t most, struct ree_error *err) {
    REE_TRY(ree_pipeline_reset_kv_caches(g->pipeline, slot, (int64_t)batch, err));
    // Reserve memory for the maximum length now if it is known and moderate.
    if (most > 0 && most <= 4096)
        REE_TRY(
            ree_pipeline_reserve_kv_caches(g->pipeline, slot, round_up(most, POSITIONS_STEP), err));
    if (g->remote) return g->remote->begin(g->remote->user, slot, batch, most, err);
    return REE_OK;
}

static int64_t longest(const struct ree_step *step) {
    int64_t most = 0;
    for (size_t b = 0; b < step->batch; b++)
        if (step->starts[b] > most) most = step->starts[b];
    return most;
}

// Ensures capacity for `total` positions. Requests half as much more, so that a long text rarely
// moves its caches. If memory does not suffice for that, requests only what is needed now.
static enum ree_status reserve_positions(struct ree_generator *g, size_t slot, int64_t total,
                                         struct ree_error *err) {
    int64_t positions = round_up(total, POSITIONS_STEP),
            most = round_up(g->info.context_length, POSITIONS_STEP);
    if (positions <= ree_pipeline_kv_cache_capacity(g->pipeline, slot)) return REE_OK;
    int64_t grown = round_up(total + total / 2, POSITIONS_STEP);
    if (most && grown > most) grown = most;
    enum ree_status status = ree_pipeline_reserve_kv_caches(
        g->pipeline, slot, grown > positions ? grown : positions, err);
    if (status != REE_NO_MEMORY || grown <= positions) return status;
    return ree_pipeline_reserve_kv_caches(g->pipeline, slot, positions, err);
}

static void set_number(struct ree_tensor *t, size_t i, int64_t value) {
    switch (t->dtype) {
    case REE_I64: ((int64_t *)t->data)[i] = value; break;
    case REE_I32: ((int32_t *)t->data)[i] = (int32_t)value; break;
    case REE_BOOL: ((uint8_t *)t->data)[i] = value != 0; break;
    default: ((float *)t->data)[i] = (float)value; break;
    }
}

enum ree_status ree_step_input(const struct ree_model *model, const struct ree_roles *roles,
                               const struct ree_step *step, int64_t total, size_t input,
                               struct ree_tensor *t, struct ree_error *err) {
    const struct ree_port *port = ree_model_input(model, input);
    int64_t batch = (int64_t)step->batch, n = (int64_t)step->length;
    enum ree_role role = roles->of_input[input];
    int64_t dims[3] = {batch, n, 1};
    uint32_t rank = 2;
    if (role == REE_ROLE_ATTENTION_MASK) dims[1] = total;
    if (role == REE_ROLE_ROWS) {
        rank = 3;
        dims[1] = (int64_t)step->n_rows;
    }
    if (role == REE_ROLE_USE_CACHE || role == REE_ROLE_PAST_LENGTH ||
        role == REE_ROLE_TOTAL_LENGTH) {
        rank = port->has_shape ? port->rank : 0;
        for (uint32_t i = 0; i < 3; i++)
            dims[i] = 1;
        if (rank > 1)
            return ree_fail(err, REE_UNSUPPORTED, "the input '%s' has rank %u, expected one number",
                            port->name, rank);
    }
    bool shared = role == REE_ROLE_POSITIONS && port->has_shape && port->rank == 1;
    if (shared) {
        rank = 1;
        dims[0] = n;
    }
    REE_TRY(ree_tensor_init(t, port->name, port->dtype, rank, dims, err));
    size_t count = t->nbytes / ree_dtype_size(t->dtype);
    for (size_t i = 0; i < count; i++) {
        size_t b = shared ? 0 : i / (size_t)n, s = shared ? i : i % (size_t)n;
        int64_t value = 0;
        switch (role) {
        case REE_ROLE_TOKENS: value = step->ids[i]; break;
        case REE_ROLE_ATTENTION_MASK: value = 1; break;
        case REE_ROLE_POSITIONS: value = step->starts[b] + (int64_t)s; break;
        case REE_ROLE_ROWS: value = step->rows[i]; break;
        case REE_ROLE_USE_CACHE: value = step->starts[0] > 0; break;
        case REE_ROLE_PAST_LENGTH: value = step->starts[0]; break;
        case REE_ROLE_TOTAL_LENGTH: value = total; break;
        case REE_ROLE_TOKEN_TYPES:
        case REE_ROLE_KV_CACHE: break;
        }
        set_number(t, i, value);
    }
    return REE_OK;
}

static float widen(enum ree_dtype dtype, const void *data, size_t i) {
    if (dtype == REE_F32) return ((const float *)data)[i];
    uint16_t bits = ((const uint16_t *)data)[i];
    uint32_t wide = dtype == REE_BF16 ? (uint32_t)bits << 16 : ree_soft_f16_to_f32(bits);
    float x;
    memcpy(&x, &wide, sizeof x);
    return x;
}

// Converts the requested rows of logits (batch, computed rows, vocab_size) to float32. Moves the
// tensor if it already has exactly these rows and this type.
enum ree_status ree_step_logits(const struct ree_generator *g, const struct ree_step *step,
                                struct ree_tensor *logits, struct ree_tensor *out,
                                struct ree_error *err) {
    bool chosen = g->info.computes_one_row;
    size_t computed = chosen ? step->n_rows : step->length;
    if (logits->rank != 3 || logits->dims[0] != (int64_t)step->batch ||
        logits->dims[1] != (int64_t)computed || logits->dims[2] < 1)
        return ree_fail(err, REE_INVALID,
                        "the shape of the output '%s' is not [batch %zu, sequence %zu, vocabulary]",
                        ree_model_output(g->model, g->roles.logits)->name, step->batch, computed);
    if (logits->dtype == REE_F32 && (chosen || (step->length == 1 && step->n_rows == 1))) {
        *out = *logits;
        *logits = (struct ree_tensor){0};
        return REE_OK;
    }
    size_t vocab = (size_t)logits->dims[2];
    int64_t dims[3] = {(int64_t)step->batch, (int64_t)step->n_rows, (int64_t)vocab};
    REE_TRY(ree_tensor_init(out, "logits", REE_F32, 3, dims, err));
    for (size_t b = 0; b < step->batch; b++)
        for (size_t r = 0; r < step->n_rows; r++) {
            size_t k = b * step->n_rows + r;
            size_t from = chosen ? k : b * computed + (size_t)step->rows[k];
            float *to = (float *)out->data + k * vocab;
            for (size_t i = 0; i < vocab; i++)
                to[i] = widen(logits->dtype, logits->data, from * vocab + i);
        }
    return REE_OK;
}

void ree_flight_finish(struct ree_flight *flight) {
    for (size_t i = 0; i < flight->n_inputs; i++)
        ree_tensor_finish(&flight->inputs[i]);
    ree_free(flight->inputs);
    *flight = (struct ree_flight){0};
}

enum ree_status ree_step_inputs(const struct ree_generator *g, const struct ree_step *step,
                                int64_t total, struct ree_tensor *out, size_t *n,
                                struct ree_error *err) {
    for (size_t i = 0; i < g->roles.n_inputs; i++)
        if (g->roles.of_input[i] != REE_ROLE_KV_CACHE)
            REE_TRY(ree_step_input(g->model, &g->roles, step, total, i, &out[(*n)++], err));
    return REE_OK;
}

static enum ree_status fill_all(const struct ree_generator *g, int64_t total,
                                struct ree_flight *flight, struct ree_error *err) {
    flight->inputs = ree_alloc_zeroed(g->roles.n_inputs + 1, sizeof *flight->inputs);
    if (!flight->inputs) return ree_no_memory(err);
    return ree_step_inputs(g, &flight->step, total, flight->inputs, &flight->n_inputs, err);
}

// Makes the step's inputs, and ensures capacity for its positions in the kv caches.
static enum ree_status prepare(struct ree_generator *g, size_t slot, const struct ree_step *step,
                               struct ree_error *err) {
    int64_t total = longest(step) + (int64_t)step->length;
    if (g->roles.n_kv_caches) REE_TRY(reserve_positions(g, slot, total, err));
    if (g->info.mixes_lengths) {
        total = round_up(total, POSITIONS_STEP);
        ree_pipeline_set_filled_positions(g->pipeline, slot, total - (int64_t)step->length);
    }
    ree_pipeline_set_positions_elsewhere(g->pipeline, slot, total - (int64_t)step->length);
    g->flights[slot].step = *step;
    g->flights[slot].total = total;
    return fill_all(g, total, &g->flights[slot], err);
}

enum ree_status ree_generator_submit(struct ree_generator *g, size_t slot,
                                     const struct ree_step *step, struct ree_error *err) {
    if (slot >= g->options.n_cache_slots)
        return ree_fail(err, REE_INVALID, "there is no cache slot %zu of %u", slot,
                        g->options.n_cache_slots);
    struct ree_flight *flight = &g->flights[slot];
    if (flight->inputs || flight->is_remote)
        return ree_fail(err, REE_INVALID, "cache slot %zu has a step in flight", slot);
    if (g->remote) {
        flight->is_remote = true;
        flight->step = *step;
        enum ree_status status = g->remote->submit(g->remote->user, slot, step, err);
        if (status != REE_OK) ree_flight_finish(flight);
        return status;
    }
    enum ree_status status = prepare(g, slot, step, err);
    if (status == REE_OK)
        status = ree_pipeline_submit(g->pipeline, slot, flight->inputs, flight->n_inputs, err);
    if (status != REE_OK) ree_flight_finish(flight);
    return status;
}

enum ree_status ree_generator_collect(struct ree_generator *g, size_t slot,
                                      struct ree_tensor *out_logits, struct ree_error *err) {
    memset(out_logits, 0, sizeof *out_logits);
    if (slot >= g->options.n_cache_slots ||
        !(g->flights[slot].inputs || g->flights[slot].is_remote))
        return ree_fail(err, REE_INVALID, "cache slot %zu has no step in flight", slot);
    struct ree_flight *flight = &g->flights[slot];
    if (flight->is_remote) {
        const struct ree_step step = flight->step;
        ree_flight_finish(flight);
        return g->remote->collect(g->remote->user, slot, &step, out_logits, err);
    }
    size_t n_outputs = ree_model_n_outputs(g->model);
    struct ree_tensor *outputs = ree_alloc_zeroed(n_outputs + 1, sizeof *outputs);
    if (!outputs) return ree_no_memory(err);
    enum ree_status status = ree_pipeline_collect(g->pipeline, slot, outputs, err);
    if (status == REE_OK)
        status = ree_pipeline_check_positions(g->pipeline, slot, flight->total, err);
    if (status == REE_OK)
        status = ree_step_logits(g, &flight->step, &outputs[g->roles.logits], out_logits, err);
    for (size_t i = 0; i < n_outputs; i++)
        ree_tensor_finish(&outputs[i]);
    ree_free(outputs);
    ree_flight_finish(flight);
    return status;
}

static enum ree_status run_stages(struct ree_generator *g, size_t slot, struct ree_flight *flight,
                                  struct ree_tensor *ordered, struct ree_boundary *in,
                                  struct ree_boundary *out, struct ree_tensor *outputs,
                                  struct ree_error *err) {
    size_t first, n, n_stages = ree_pipeline_n_stages(g->pipeline);
    struct ree_boundary boundary = {0};
    ree_partition_share(n_stages, g->rank.n_ranks, g->rank.rank, &first, &n);
    REE_TRY(ree_pipeline_match(g->pipeline, slot, flight->inputs, flight->n_inputs, ordered, err));
    if (in) {
        boundary = *in;
        *in = (struct ree_boundary){0};
    }
    for (size_t i = first; i < first + n; i++) {
        struct ree_boundary next = {0};
        REE_TRY(ree_pipeline_run_stage(g->pipeline, i, slot, ordered, i ? &boundary : NULL,
                                       i + 1 < n_stages ? &next : NULL, outputs, err));
        boundary = next;
    }
    if (out) *out = boundary;
    return REE_OK;
}

enum ree_status ree_generator_run_stages(struct ree_generator *g, size_t slot,
                                         const struct ree_step *step, struct ree_boundary *in,
                                         struct ree_boundary *out, struct ree_tensor *out_logits,
                                         struct ree_error *err) {
    size_t n_outputs = ree_model_n_outputs(g->model);
    struct ree_flight *flight = &g->flights[slot];
    struct ree_tensor *outputs = ree_alloc_zeroed(n_outputs + 1, sizeof *outputs);
    struct ree_tensor *ordered =
        ree_alloc_zeroed(ree_model_n_inputs(g->model) + 1, sizeof *ordered);
    enum ree_status status = outputs && ordered ? REE_OK : ree_no_memory(err);
    if (out) *out = (struct ree_boundary){0};
    if (out_logits) memset(out_logits, 0, sizeof *out_logits);
    if (status == REE_OK) status = prepare(g, slot, step, err);
    if (status == REE_OK) status = run_stages(g, slot, flight, ordered, in, out, outputs, err);
    if (status == REE_OK)
        status = ree_pipeline_check_positions(g->pipeline, slot, flight->total, err);
    if (status == REE_OK && out_logits)
        status = ree_step_logits(g, step, &outputs[g->roles.logits], out_logits, err);
    for (size_t i = 0; outputs && i < n_outputs; i++)
        ree_tensor_finish(&outputs[i]);
    ree_free(outputs);
    ree_free(ordered);
    // If this step is in flight over several processes, its flight must stay until
    // ree_generator_collect.
    bool is_remote = flight->is_remote;
    struct ree_step kept = flight->step;
    ree_flight_finish(flight);
    if (is_remote) *flight = (struct ree_flight){.step = kept, .is_remote = true};
    return status;
}

enum ree_status ree_generator_step(struct ree_generator *g, const struct ree_step *step,
                                   struct ree_tensor *out_logits, struct ree_error *err) {
    memset(out_logits, 0, sizeof *out_logits);
    REE_TRY(ree_generator_submit(g, 0, step, err));
    return ree_generator_collect(g, 0, out_logits, err);
}
