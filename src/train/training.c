// Creates trainings and makes steps.
#include "train/training.h"

#include <string.h>

#include "base/float_env.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/tensor_type.h"
#include "session/model.h"
#include "train/shared.h"

// Copies the default value of each state.
static enum ree_status init_states(struct ree_training *t, struct ree_error *err) {
    for (size_t i = 0; i < t->step.n_states; i++) {
        const struct ree_value *value = t->model->input_values[t->step.states[i].input];
        const struct ree_port *port = ree_model_input(t->model, t->step.states[i].input);
        struct ree_tensor initial = {.dtype = value->dtype, .rank = value->rank};
        memcpy(initial.dims, value->dims, sizeof initial.dims);
        if (!ree_has_type(&initial, port->dtype, port->rank, port->dims))
            return ree_wrong_type("the initial value of state", port->name, &initial, port->dtype,
                                  port->rank, port->dims, err);
        REE_TRY(
            ree_tensor_init(&t->states[i], port->name, port->dtype, port->rank, port->dims, err));
        if (t->states[i].nbytes != value->nbytes || (value->nbytes && !value->data))
            return ree_fail(err, REE_INVALID, "the initial value of state '%.128s' is incomplete",
                            port->name);
        if (value->nbytes) memcpy(t->states[i].data, value->data, value->nbytes);
    }
    return REE_OK;
}

// Allocates the inputs of a run, except the states.
static enum ree_status init_inputs(struct ree_training *t, struct ree_error *err) {
    struct ree_tensor *next = t->inputs;
    for (size_t i = 0; i < t->step.n_data; i++, next++) {
        const struct ree_port *port = ree_model_input(t->model, t->step.data[i]);
        REE_TRY(ree_tensor_init(next, port->name, port->dtype, port->rank, port->dims, err));
    }
    if (t->step.is_random) {
        const int64_t two = 2;
        const uint32_t seed[2] = {(uint32_t)t->options.seed, (uint32_t)(t->options.seed >> 32)};
        REE_TRY(ree_tensor_init(&next[0], "random.seed", REE_U32, 1, &two, err));
        memcpy(next[0].data, seed, sizeof seed);
        REE_TRY(ree_tensor_init(&next[1], "random.step", REE_U32, 0, NULL, err));
    }
    return REE_OK;
}

static enum ree_status init(struct ree_training *t, struct ree_error *err) {
    REE_TRY(ree_step_roles_read(t->model, &t->step, err));
    // A seed without effect is 0, so that equal trainings have equal receipts.
    if (t->options.in_order && !t->step.is_random) t->options.seed = 0;
    size_t n_outputs = ree_model_n_outputs(t->model);
    t->n_own_inputs = t->step.n_data + (t->step.is_random ? 2 : 0);
    t->n_inputs = t->n_own_inputs + t->step.n_states;
    t->states = ree_alloc_zeroed(t->step.n_states, sizeof *t->states);
    t->inputs = ree_alloc_zeroed(t->n_inputs, sizeof *t->inputs);
    t->outputs = ree_alloc_zeroed(n_outputs, sizeof *t->outputs);
    if (!t->states || !t->inputs || !t->outputs) return ree_no_memory(err);
    REE_TRY(ree_batches_init(&t->batches, t->model, &t->step, t->dataset, t->options.seed,
                             t->options.in_order, err));
    REE_TRY(init_states(t, err));
    REE_TRY(init_inputs(t, err));
    struct ree_session_options options = {
        .size = sizeof options, .no_fuse = t->options.no_fuse, .progress = t->options.progress};
    return ree_session_create(t->model, t->device, &options, &t->session, err);
}

enum ree_status ree_training_create(struct ree_model *model, struct ree_device *device,
                                    const struct ree_dataset *dataset,
                                    const struct ree_training_options *options,
                                    struct ree_training **out, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_error local;
    struct ree_training_options own;
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    *out = NULL;
    REE_TRY(ree_options_read(&own, sizeof own, options, "ree_training_options", err));
    struct ree_training *t = ree_alloc_zeroed(1, sizeof *t);
    if (!t) return ree_no_memory(err);
    t->model = model;
    t->device = device;
    t->dataset = dataset;
    t->options = own;
    enum ree_status status = init(t, err);
    if (status != REE_OK && model->graph->file[0]) ree_fail_prefix(err, "%s", model->graph->file);
    if (status != REE_OK) {
        ree_training_destroy(t);
        return status;
    }
    *out = t;
    return REE_OK;
}

void ree_training_destroy(struct ree_training *t) {
    REE_FLOAT_ENV_API();
    if (!t) return;
    ree_session_destroy(t->session);
    ree_shared_step_destroy(t->shared);
    ree_device_states_finish(&t->on_device);
    for (size_t i = 0; t->inputs && i < t->n_own_inputs; i++)
        ree_tensor_finish(&t->inputs[i]);
    for (size_t i = 0; t->states && i < t->step.n_states; i++)
        ree_tensor_finish(&t->states[i]);
    ree_batches_finish(&t->batches);
    ree_free(t->states);
    ree_free(t->inputs);
    ree_free(t->outputs);
    ree_free(t->log.points);
    ree_step_roles_finish(&t->step);
    ree_free(t);
}

struct ree_training_info ree_training_info(const struct ree_training *t) {
    const struct ree_batches *b = &t->batches;
    return (struct ree_training_info){.n_steps = t->n_steps,
                                      .batch_size = b->batch_size,
                                      .n_samples = b->n_samples,
                                      .steps_per_epoch = b->n_samples / b->batch_size};
}

enum ree_status ree_training_states(struct ree_training *t, const struct ree_tensor **out,
                                    size_t *out_n, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    *out = NULL;
    *out_n = 0;
    REE_TRY(ree_device_states_read(&t->on_device, t->states, err));
    *out = t->states;
    *out_n = t->step.n_states;
    return REE_OK;
}

static enum ree_status check_loss(const struct ree_training *t, struct ree_error *err) {
    const struct ree_tensor *loss = &t->outputs[t->step.loss];
    enum ree_dtype dtype = ree_model_output(t->model, t->step.loss)->dtype;
    // An output may have another shape than the model declares.
    if (!ree_has_type(loss, dtype, 0, NULL) && !ree_has_type(loss, dtype, 1, (const int64_t[]){1}))
        return ree_wrong_type("the loss", ree_model_output(t->model, t->step.loss)->name, loss,
                              dtype, 0, NULL, err);
    return REE_OK;
}

// Fails unless the outputs of a run on the host have the types of the states.
static enum ree_status check_next(const struct ree_training *t, struct ree_error *err) {
    for (size_t i = 0; i < t->step.n_states; i++) {
        const struct ree_tensor *state = &t->states[i];
        const struct ree_tensor *next = &t->outputs[t->step.states[i].output];
        if (!ree_has_type(next, state->dtype, state->rank, state->dims))
            return ree_wrong_type("the next value of state", state->name, next, state->dtype,
                                  state->rank, state->dims, err);
    }
    return REE_OK;
}

static void swap_data(struct ree_tensor *a, struct ree_tensor *b) {
    void *data = a->data;
    a->data = b->data;
    b->data = data;
}

// Makes the next values the present ones, or back.
static void exchange_states(struct ree_training *t, bool on_device) {
    if (on_device) {
        ree_device_states_exchange(&t->on_device);
        t->on_device.newer = REE_DEVICE_NEWER;
        return;
    }
    for (size_t i = 0; i < t->step.n_states; i++)
        swap_data(&t->states[i], &t->outputs[t->step.states[i].output]);
    t->on_device.newer = REE_HOST_NEWER;
}

static enum ree_status run_on_device(struct ree_training *t, struct ree_error *err) {
    REE_TRY(ree_device_states_write(&t->on_device, &t->step, t->model, t->device, t->states, err));
    return ree_device_states_run(&t->on_device, t->session, t->inputs, t->n_own_inputs, t->outputs,
                                 err);
}

// Runs the step with states in host memory, whose next values become outputs.
static enum ree_status run_on_host(struct ree_training *t, struct ree_error *err) {
    REE_TRY(ree_device_states_read(&t->on_device, t->states, err));
    memcpy(t->inputs + t->n_own_inputs, t->states, t->step.n_states * sizeof *t->states);
    if (!t->shared) return ree_session_run(t->session, t->inputs, t->n_inputs, t->outputs, err);
    REE_TRY(ree_shared_step_begin(t, err));
    return ree_shared_step_run(t->shared, t->outputs, err);
}

static enum ree_status make_step(struct ree_training *t, double *out_loss, struct ree_error *err) {
    if (t->n_steps >= REE_TRAINING_MAX_STEPS)
        return ree_fail(err, REE_INVALID, "a training has at most 2^32 - 1 steps");
    REE_TRY(ree_training_log_check(t, err));
    for (size_t i = 0; i < t->step.n_data; i++)
        ree_batches_fill(&t->batches, t->n_steps, i, &t->inputs[i]);
    if (t->step.is_random) {
        uint32_t counter = (uint32_t)t->n_steps;
        memcpy(t->inputs[t->n_own_inputs - 1].data, &counter, sizeof counter);
    }
    // Ranks exchange values, and a trace has them, so both need them on the host.
    const bool on_device = !t->shared && !t->is_traced;
    REE_TRY(on_device ? run_on_device(t, err) : run_on_host(t, err));
    const struct ree_tensor *loss = &t->outputs[t->step.loss];
    enum ree_status status = check_loss(t, err);
    if (status == REE_OK && !on_device) status = check_next(t, err);
    if (status == REE_OK) {
        exchange_states(t, on_device);
        if (t->log.interval) status = ree_training_log_step(t, loss, err);
        if (status != REE_OK) exchange_states(t, on_device);
    }
    if (status == REE_OK) {
        t->n_steps++;
        if (out_loss && loss->dtype == REE_F32) *out_loss = (double)*(const float *)loss->data;
        if (out_loss && loss->dtype == REE_F64) *out_loss = *(const double *)loss->data;
    }
    size_t n_outputs = ree_model_n_outputs(t->model);
    for (size_t i = 0; i < n_outputs; i++)
        ree_tensor_finish(&t->outputs[i]);
    return status;
}

enum ree_status ree_training_step(struct ree_training *t, double *out_loss, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_error local;
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    if (out_loss) *out_loss = 0;
    if (make_step(t, out_loss, err) == REE_OK) return REE_OK;
    if (err->status == REE_CANCELLED) return err->status;
    return ree_fail_prefix(err, "step %llu", (unsigned long long)t->n_steps + 1);
}

enum ree_status ree_training_trace(struct ree_training *t, const struct ree_record_options *options,
                                   struct ree_recording **out, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    if (t->shared)
        return ree_fail(err, REE_INVALID, "a training that ranks share cannot be traced");
    REE_TRY(ree_record_session(t->session, options, out, err));
    t->is_traced = true;
    return REE_OK;
}

enum ree_status ree_training_hash(struct ree_training *t, struct ree_error *err) {
    ree_digest digest;
    if (t->has_hashes) return REE_OK;
    REE_TRY(ree_model_hashes_make(t->model, &t->options.progress, &t->hashes, err));
    ree_step_roles_digest(&t->step, t->model, digest);
    ree_hex(digest, t->roles_sha256);
    ree_batches_sha256(&t->batches, t->data_sha256);
    t->has_hashes = true;
    return REE_OK;
}

enum ree_status ree_training_sha256(struct ree_training *t, char hex[65], struct ree_error *err) {
    REE_FLOAT_ENV_API();
    ree_digest root;
    hex[0] = 0;
    REE_TRY(ree_device_states_read(&t->on_device, t->states, err));
    REE_TRY(ree_states_root(t->states, t->step.n_states, root, err));
    ree_hex(root, hex);
    return REE_OK;
}
