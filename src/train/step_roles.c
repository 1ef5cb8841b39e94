#include "train/step_roles.h"

#include <stdlib.h>
#include <string.h>

#include "base/canonical_json.h"
#include "base/memory.h"
#include "base/name_index.h"
#include "base/sha256.h"
#include "session/model.h"
#include "trace/model_header.h"

// Numbers the inputs or outputs of a model by name, and marks those that the metadata name.
struct ports {
    const char *what; // "input" or "output"
    size_t n;
    const struct ree_port **ports;
    struct ree_name_index names;
    bool *is_named;
};

static void ports_finish(struct ports *ports) {
    ree_free(ports->ports);
    ree_free(ports->is_named);
    ree_name_index_finish(&ports->names);
}

// Release with ports_finish, also after a failure.
static enum ree_status ports_init(struct ports *ports, const char *what, size_t n,
                                  const struct ree_port *(*port)(const struct ree_model *, size_t),
                                  const struct ree_model *model, struct ree_error *err) {
    *ports = (struct ports){.what = what, .n = n};
    ports->ports = ree_alloc_zeroed(n + 1, sizeof *ports->ports);
    ports->is_named = ree_alloc_zeroed(n + 1, sizeof *ports->is_named);
    if (!ports->ports || !ports->is_named || !ree_name_index_reserve(&ports->names, n))
        return ree_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        ports->ports[i] = port(model, i);
        ree_name_index_add(&ports->names, ports->ports[i]->name, i);
    }
    ree_name_index_sort(&ports->names);
    return REE_OK;
}

// Finds the port `name`, which must not have been named before.
static enum ree_status ports_take(struct ports *ports, const char *name, size_t *out,
                                  struct ree_error *err) {
    size_t i = name ? ree_name_index_find(&ports->names, name) : REE_NO_NAME;
    if (!name) return ree_fail(err, REE_INVALID, "the name of an %s is missing", ports->what);
    if (i == REE_NO_NAME)
        return ree_fail(err, REE_INVALID, "the model has no %s '%.128s'", ports->what, name);
    if (ports->is_named[i])
        return ree_fail(err, REE_INVALID, "%s '%.128s' is named twice", ports->what, name);
    ports->is_named[i] = true;
    *out = i;
    return REE_OK;
}

// Fails unless the port is a tensor of numbers with a fixed shape.
static enum ree_status check_fixed(const char *what, const struct ree_port *port,
                                   struct ree_error *err) {
    bool ok = port->kind == REE_TENSOR && !port->nullable && port->has_shape &&
              ree_dtype_size(port->dtype) && port->dtype != REE_STRING;
    for (uint32_t i = 0; ok && i < port->rank; i++)
        ok = port->dims[i] >= 0;
    if (ok) return REE_OK;
    return ree_fail(err, REE_INVALID, "%s '%.128s' is not a tensor of numbers with a fixed shape",
                    what, port->name);
}

static int by_index(const void *a, const void *b) {
    const size_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static enum ree_status read_data(const cJSON *json, struct ports *inputs,
                                 struct ree_step_roles *out, struct ree_error *err) {
    const cJSON *list = ree_json_find(json, "data"), *item;
    if (!cJSON_IsArray(list) || !list->child)
        return ree_fail(err, REE_INVALID, "'data' is not a list of inputs");
    out->data = ree_alloc_zeroed((size_t)cJSON_GetArraySize(list), sizeof *out->data);
    if (!out->data) return ree_no_memory(err);
    cJSON_ArrayForEach(item, list) {
        size_t i;
        REE_TRY(ports_take(inputs, cJSON_GetStringValue(item), &i, err));
        const struct ree_port *port = inputs->ports[i];
        REE_TRY(check_fixed("the batch's input", port, err));
        if (!port->rank || !port->dims[0])
            return ree_fail(err, REE_INVALID, "input '%.128s' has no dimension of samples",
                            port->name);
        if (out->n_data && port->dims[0] != out->batch_size)
            return ree_fail(err, REE_INVALID,
                            "input '%.128s' has %lld samples, but other inputs of the batch %lld",
                            port->name, (long long)port->dims[0], (long long)out->batch_size);
        out->batch_size = port->dims[0];
        out->data[out->n_data++] = i;
    }
    qsort(out->data, out->n_data, sizeof *out->data, by_index);
    return REE_OK;
}

static int by_input(const void *a, const void *b) {
    const struct ree_step_state *x = a, *y = b;
    return (x->input > y->input) - (x->input < y->input);
}

static enum ree_status read_states(const cJSON *json, struct ports *inputs, struct ports *outputs,
                                   struct ree_step_roles *out, struct ree_error *err) {
    const cJSON *list = ree_json_find(json, "states"), *item;
    if (!cJSON_IsObject(list) || !list->child)
        return ree_fail(err, REE_INVALID, "'states' is not an object with names of states");
    out->states = ree_alloc_zeroed((size_t)cJSON_GetArraySize(list), sizeof *out->states);
    if (!out->states) return ree_no_memory(err);
    cJSON_ArrayForEach(item, list) {
        struct ree_step_state *state = &out->states[out->n_states];
        REE_TRY(ports_take(inputs, item->string, &state->input, err));
        REE_TRY(ports_take(outputs, cJSON_GetStringValue(item), &state->output, err));
        const struct ree_port *in = inputs->ports[state->input];
        REE_TRY(check_fixed("state", in, err));
        if (!in->optional)
            return ree_fail(err, REE_INVALID, "state '%.128s' has no initial value", in->name);
        if (outputs->ports[state->output]->dtype != in->dtype)
            return ree_fail(err, REE_INVALID, "state '%.128s' is %s, but its next value %s",
                            in->name, ree_dtype_name(in->dtype),
                            ree_dtype_name(outputs->ports[state->output]->dtype));
        out->n_states++;
    }
    qsort(out->states, out->n_states, sizeof *out->states, by_input);
    return REE_OK;
}

static enum ree_status read_random(const cJSON *json, struct ports *inputs,
                                   struct ree_step_roles *out, struct ree_error *err) {
    REE_TRY(ree_json_bool(json, "random", &out->is_random, err));
    if (!out->is_random) return REE_OK;
    REE_TRY(ports_take(inputs, "random.seed", &out->seed, err));
    REE_TRY(ports_take(inputs, "random.step", &out->counter, err));
    const struct ree_port *seed = inputs->ports[out->seed];
    const struct ree_port *counter = inputs->ports[out->counter];
    REE_TRY(check_fixed("input", seed, err));
    REE_TRY(check_fixed("input", counter, err));
    if (seed->dtype != REE_U32 || seed->rank != 1 || seed->dims[0] != 2)
        return ree_fail(err, REE_INVALID, "input 'random.seed' is not uint32[2]");
    if (counter->dtype != REE_U32 || counter->rank != 0)
        return ree_fail(err, REE_INVALID, "input 'random.step' is not a uint32 without dimensions");
    return REE_OK;
}

static enum ree_status read_all(const cJSON *json, struct ports *inputs, struct ports *outputs,
                                struct ree_step_roles *out, struct ree_error *err) {
    int64_t version;
    const char *loss = NULL;
    REE_TRY(ree_json_need_int(json, "version", 1, INT32_MAX, &version, err));
    if (version != 1)
        return ree_fail(err, REE_UNSUPPORTED, "its version is %lld; this version of ree knows 1",
                        (long long)version);
    REE_TRY(read_data(json, inputs, out, err));
    REE_TRY(read_states(json, inputs, outputs, out, err));
    REE_TRY(read_random(json, inputs, out, err));
    REE_TRY(ree_json_string(json, "loss", &loss, err));
    REE_TRY(ports_take(outputs, loss, &out->loss, err));
    enum ree_dtype dtype = outputs->ports[out->loss]->dtype;
    if (outputs->ports[out->loss]->kind != REE_TENSOR || (dtype != REE_F32 && dtype != REE_F64))
        return ree_fail(err, REE_INVALID, "the loss '%.128s' is not a float32 or float64 number",
                        loss);
    // What a step computes beside these would be neither kept nor hashed.
    for (size_t i = 0; i < outputs->n; i++)
        if (!outputs->is_named[i])
            return ree_fail(err, REE_INVALID, "output '%.128s' is neither the loss nor a state",
                            outputs->ports[i]->name);
    for (size_t i = 0; i < inputs->n; i++)
        if (!inputs->is_named[i] && !inputs->ports[i]->optional)
            return ree_fail(err, REE_INVALID,
                            "input '%.128s' is neither of the batch nor a state, and has no value",
                            inputs->ports[i]->name);
    return REE_OK;
}

enum ree_status ree_step_roles_read(const struct ree_model *model, struct ree_step_roles *out,
                                    struct ree_error *err) {
    memset(out, 0, sizeof *out);
    const char *text = ree_model_metadata(model, REE_STEP_METADATA);
    if (!text)
        return ree_fail(err, REE_INVALID,
                        "the model is not a training step: it has no metadata entry "
                        "'" REE_STEP_METADATA "', which ree.export_training writes");
    cJSON *json = NULL;
    struct ports inputs = {0}, outputs = {0};
    enum ree_status status = ree_json_parse_strict(text, strlen(text), &json, err);
    if (status == REE_OK) status = ree_canonical_check(json, err); // no key occurs twice
    if (status == REE_OK && !cJSON_IsObject(json))
        status = ree_fail(err, REE_INVALID, "it is not a JSON object");
    if (status == REE_OK)
        status =
            ports_init(&inputs, "input", ree_model_n_inputs(model), ree_model_input, model, err);
    if (status == REE_OK)
        status = ports_init(&outputs, "output", ree_model_n_outputs(model), ree_model_output, model,
                            err);
    if (status == REE_OK) status = read_all(json, &inputs, &outputs, out, err);
    ports_finish(&inputs);
    ports_finish(&outputs);
    cJSON_Delete(json);
    return status == REE_OK ? REE_OK
                            : ree_fail_prefix(err, "metadata entry '" REE_STEP_METADATA "'");
}

void ree_step_roles_finish(struct ree_step_roles *step) {
    ree_free(step->data);
    ree_free(step->states);
    memset(step, 0, sizeof *step);
}

static void hash_name(struct ree_hasher *hasher, const char *name) {
    unsigned char size[4];
    uint64_t n = strlen(name);
    for (int i = 0; i < 4; i++)
        size[i] = (unsigned char)(n >> 8 * i);
    ree_hasher_update(hasher, size, sizeof size);
    ree_hasher_update(hasher, name, n);
}

static void hash_number(struct ree_hasher *hasher, size_t n) {
    unsigned char bytes[4];
    for (int i = 0; i < 4; i++)
        bytes[i] = (unsigned char)((uint64_t)n >> 8 * i);
    ree_hasher_update(hasher, bytes, sizeof bytes);
}

void ree_step_roles_digest(const struct ree_step_roles *step, const struct ree_model *model,
                           ree_digest out) {
    struct ree_hasher *hasher = ree_hasher_create("ree-training-roles/1");
    hash_number(hasher, step->n_data);
    for (size_t i = 0; i < step->n_data; i++)
        hash_name(hasher, ree_model_input(model, step->data[i])->name);
    hash_name(hasher, ree_model_output(model, step->loss)->name);
    hash_number(hasher, step->n_states);
    for (size_t i = 0; i < step->n_states; i++) {
        hash_name(hasher, ree_model_input(model, step->states[i].input)->name);
        hash_name(hasher, ree_model_output(model, step->states[i].output)->name);
    }
    hash_number(hasher, step->is_random);
    ree_hasher_digest(hasher, out);
}

void ree_state_initial_digest(const struct ree_model *model, size_t input, ree_digest out) {
    const struct ree_value *value = model->input_values[input];
    struct ree_tensor tensor = {.dtype = value->dtype,
                                .rank = value->rank,
                                .data = (void *)(uintptr_t)value->data, // only read
                                .nbytes = value->nbytes};
    memcpy(tensor.dims, value->dims, sizeof tensor.dims);
    ree_trace_tensor_digest(&tensor, out);
}
