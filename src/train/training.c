// Creates trainings and makes steps.
#include "train/training.h"

#include <string.h>

#include "base/float_env.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/strbuf.h"
#include "session/model.h"
#include "train/order.h"

// Appends, for example, "float32[8,3]".
static void append_type(struct ree_strbuf *out, enum ree_dtype dtype, uint32_t rank,
                        const int64_t *dims) {
    ree_strbuf_printf(out, "%s[", ree_dtype_name(dtype));
    for (uint32_t i = 0; i < rank; i++)
        ree_strbuf_printf(out, "%s%lld", i ? "," : "", (long long)dims[i]);
    ree_strbuf_printf(out, "]");
}

// Fails with "WHAT 'name' is float32[3], expected float32[4]".
static enum ree_status wrong_type(const char *what, const char *name,
                                  const struct ree_tensor *tensor, enum ree_dtype dtype,
                                  uint32_t rank, const int64_t *dims, struct ree_error *err) {
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    append_type(&text, tensor->dtype, tensor->rank, tensor->dims);
    ree_strbuf_printf(&text, ", expected ");
    append_type(&text, dtype, rank, dims);
    ree_fail(err, REE_INVALID, "%s '%.128s' is %s", what, name, text.data ? text.data : "?");
    ree_strbuf_finish(&text);
    return REE_INVALID;
}

static bool has_type(const struct ree_tensor *tensor, enum ree_dtype dtype, uint32_t rank,
                     const int64_t *dims) {
    return tensor->kind == REE_TENSOR && tensor->dtype == dtype && tensor->rank == rank &&
           !memcmp(tensor->dims, dims, rank * sizeof *dims);
}

// Finds the tensor of the dataset for each input of the batch.
static enum ree_status match_data(struct ree_training *t, struct ree_error *err) {
    for (size_t i = 0; i < t->step.n_data; i++) {
        const struct ree_port *port = ree_model_input(t->model, t->step.data[i]);
        const struct ree_tensor *tensor = ree_dataset_find(t->dataset, port->name);
        int64_t dims[REE_MAX_RANK];
        if (!tensor)
            return ree_fail(err, REE_INVALID,
                            "the dataset has no tensor '%.128s', which the step "
                            "reads",
                            port->name);
        memcpy(dims, port->dims, sizeof dims);
        dims[0] = tensor->rank ? tensor->dims[0] : -1;
        if (!has_type(tensor, port->dtype, port->rank, dims)) {
            dims[0] = port->dims[0];
            return wrong_type("the dataset's tensor", port->name, tensor, port->dtype, port->rank,
                              dims, err);
        }
        if (i && (uint64_t)dims[0] != t->n_samples)
            return ree_fail(err, REE_INVALID,
                            "the dataset's tensor '%.128s' has %lld samples, but '%.128s' %llu",
                            port->name, (long long)dims[0],
                            ree_model_input(t->model, t->step.data[0])->name,
                            (unsigned long long)t->n_samples);
        t->n_samples = (uint64_t)dims[0];
        t->data[i] = tensor;
    }
    if (t->n_samples < (uint64_t)t->step.batch_size)
        return ree_fail(err, REE_INVALID,
                        "the dataset has %llu samples, fewer than a batch of %lld",
                        (unsigned long long)t->n_samples, (long long)t->step.batch_size);
    if (t->n_samples >= UINT32_MAX)
        return ree_fail(err, REE_UNSUPPORTED,
                        "the dataset has %llu samples; the maximum is 2^32 - "
                        "2",
                        (unsigned long long)t->n_samples);
    return REE_OK;
}

// Copies the default value of each state.
static enum ree_status init_states(struct ree_training *t, struct ree_error *err) {
    for (size_t i = 0; i < t->step.n_states; i++) {
        const struct ree_value *value = t->model->input_values[t->step.states[i].input];
        const struct ree_port *port = ree_model_input(t->model, t->step.states[i].input);
        struct ree_tensor initial = {.dtype = value->dtype, .rank = value->rank};
        memcpy(initial.dims, value->dims, sizeof initial.dims);
        if (!has_type(&initial, port->dtype, port->rank, port->dims))
            return wrong_type("the initial value of state", port->name, &initial, port->dtype,
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

// Allocates the inputs of a run: batch, states, random.seed, random.step.
static enum ree_status init_inputs(struct ree_training *t, struct ree_error *err) {
    struct ree_tensor *next = t->inputs;
    for (size_t i = 0; i < t->step.n_data; i++, next++) {
        const struct ree_port *port = ree_model_input(t->model, t->step.data[i]);
        REE_TRY(ree_tensor_init(next, port->name, port->dtype, port->rank, port->dims, err));
    }
    next += t->step.n_states; // borrowed from t->states in each run
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
    size_t n_outputs = ree_model_n_outputs(t->model);
    t->n_inputs = t->step.n_data + t->step.n_states + (t->step.is_random ? 2 : 0);
    t->data = ree_alloc_zeroed(t->step.n_data, sizeof *t->data);
    t->states = ree_alloc_zeroed(t->step.n_states, sizeof *t->states);
    t->inputs = ree_alloc_zeroed(t->n_inputs, sizeof *t->inputs);
    t->outputs = ree_alloc_zeroed(n_outputs, sizeof *t->outputs);
    if (!t->data || !t->states || !t->inputs || !t->outputs) return ree_no_memory(err);
    if (match_data(t, err) != REE_OK)
        return t->dataset->file ? ree_fail_prefix(err, "%s", t->dataset->file) : err->status;
    t->order = ree_alloc(t->n_samples * sizeof *t->order);
    t->epoch = UINT64_MAX;
    if (!t->order) return ree_no_memory(err);
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
    size_t first = t->step.n_data, last = first + t->step.n_states;
    for (size_t i = 0; t->inputs && i < t->n_inputs; i++)
        if (i < first || i >= last) ree_tensor_finish(&t->inputs[i]); // the states are borrowed
    for (size_t i = 0; t->states && i < t->step.n_states; i++)
        ree_tensor_finish(&t->states[i]);
    ree_free(t->data);
    ree_free(t->states);
    ree_free(t->inputs);
    ree_free(t->outputs);
    ree_free(t->order);
    ree_free(t->log.points);
    ree_step_roles_finish(&t->step);
    ree_free(t);
}

struct ree_training_info ree_training_info(const struct ree_training *t) {
    uint64_t batch_size = (uint64_t)t->step.batch_size;
    return (struct ree_training_info){.n_steps = t->n_steps,
                                      .batch_size = batch_size,
                                      .n_samples = t->n_samples,
                                      .steps_per_epoch = t->n_samples / batch_size};
}

size_t ree_training_states(const struct ree_training *t, const struct ree_tensor **out) {
    *out = t->states;
    return t->step.n_states;
}

// Copies the samples of the next step into the batch.
static void gather(struct ree_training *t) {
    uint64_t batch_size = (uint64_t)t->step.batch_size, per_epoch = t->n_samples / batch_size;
    uint64_t epoch = t->n_steps / per_epoch, first = t->n_steps % per_epoch * batch_size;
    if (epoch != t->epoch && !t->options.in_order)
        ree_order_shuffle(t->order, t->n_samples, t->options.seed, epoch);
    t->epoch = epoch;
    for (size_t i = 0; i < t->step.n_data; i++) {
        size_t n = t->inputs[i].nbytes / batch_size; // bytes of a sample
        unsigned char *to = t->inputs[i].data;
        const unsigned char *from = t->data[i]->data;
        for (uint64_t k = 0; n && k < batch_size; k++) {
            uint64_t sample = t->options.in_order ? first + k : t->order[first + k];
            memcpy(to + k * n, from + sample * n, n);
        }
    }
}

// Fails unless the outputs of a run are a loss and values for the states.
static enum ree_status check_outputs(const struct ree_training *t, struct ree_error *err) {
    const struct ree_tensor *loss = &t->outputs[t->step.loss];
    enum ree_dtype dtype = ree_model_output(t->model, t->step.loss)->dtype;
    // An output may have another shape than the model declares.
    if (!has_type(loss, dtype, 0, NULL) && !has_type(loss, dtype, 1, (const int64_t[]){1}))
        return wrong_type("the loss", ree_model_output(t->model, t->step.loss)->name, loss, dtype,
                          0, NULL, err);
    for (size_t i = 0; i < t->step.n_states; i++) {
        const struct ree_tensor *state = &t->states[i];
        const struct ree_tensor *next = &t->outputs[t->step.states[i].output];
        if (!has_type(next, state->dtype, state->rank, state->dims))
            return wrong_type("the next value of state", state->name, next, state->dtype,
                              state->rank, state->dims, err);
    }
    return REE_OK;
}

static void swap_data(struct ree_tensor *a, struct ree_tensor *b) {
    void *data = a->data;
    a->data = b->data;
    b->data = data;
}

static void exchange_states(struct ree_training *t) {
    for (size_t i = 0; i < t->step.n_states; i++)
        swap_data(&t->states[i], &t->outputs[t->step.states[i].output]);
}

static enum ree_status make_step(struct ree_training *t, double *out_loss, struct ree_error *err) {
    if (t->n_steps >= REE_TRAINING_MAX_STEPS)
        return ree_fail(err, REE_INVALID, "a training has at most 2^32 steps");
    gather(t);
    struct ree_tensor *states = t->inputs + t->step.n_data;
    memcpy(states, t->states, t->step.n_states * sizeof *states);
    if (t->step.is_random) {
        uint32_t counter = (uint32_t)t->n_steps;
        memcpy(t->inputs[t->n_inputs - 1].data, &counter, sizeof counter);
    }
    REE_TRY(ree_session_run(t->session, t->inputs, t->n_inputs, t->outputs, err));
    const struct ree_tensor *loss = &t->outputs[t->step.loss];
    enum ree_status status = check_outputs(t, err);
    if (status == REE_OK) {
        exchange_states(t);
        if (t->log.interval) status = ree_training_log_step(t, loss, err);
        if (status != REE_OK) exchange_states(t);
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
    return ree_record_session(t->session, options, out, err);
}

enum ree_status ree_training_hash(struct ree_training *t, struct ree_error *err) {
    ree_digest digest;
    if (t->has_hashes) return REE_OK;
    REE_TRY(ree_model_hashes_make(t->model, &t->options.progress, &t->hashes, err));
    ree_step_roles_digest(&t->step, t->model, digest);
    ree_hex(digest, t->roles_sha256);
    // Shallow copies in the order of the inputs.
    struct ree_tensor *tensors = ree_alloc_zeroed(t->step.n_data, sizeof *tensors);
    if (!tensors) return ree_no_memory(err);
    for (size_t i = 0; i < t->step.n_data; i++)
        tensors[i] = *t->data[i];
    ree_tensors_sha256(tensors, t->step.n_data, t->data_sha256);
    ree_free(tensors);
    t->has_hashes = true;
    return REE_OK;
}

enum ree_status ree_training_sha256(const struct ree_training *t, char hex[65],
                                    struct ree_error *err) {
    REE_FLOAT_ENV_API();
    ree_digest root;
    hex[0] = 0;
    REE_TRY(ree_states_root(t->states, t->step.n_states, root, err));
    ree_hex(root, hex);
    return REE_OK;
}
