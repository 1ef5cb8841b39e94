// Checkpoints of trainings: a safetensors file with the states. Its "__metadata__" has an entry
// "ree.training", a JSON object:
//
//     {"version": 1, "n_steps", "order": "shuffled" | "in order", "seed": decimal digits,
//      "batch_size", "n_samples", "numerics", "graph_sha256", "weights_sha256", "roles_sha256",
//      "data_sha256", "states_sha256": root of the states}
#include <stdio.h>
#include <string.h>

#include "base/canonical_json.h"
#include "base/file.h"
#include "base/float_env.h"
#include "base/memory.h"
#include "base/tensor_type.h"
#include "graph/hf/safetensors.h"
#include "receipt/receipt_fields.h"
#include "session/model.h"
#include "train/training.h"

#define METADATA "__metadata__"

static const char *order_name(const struct ree_training *t) {
    return t->options.in_order ? "in order" : "shuffled";
}

// Appends the JSON object that says what the states belong to.
static enum ree_status describe(struct ree_training *t, struct ree_strbuf *out,
                                struct ree_error *err) {
    char seed[24], states[65];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)t->options.seed);
    REE_TRY(ree_training_sha256(t, states, err));
    cJSON *root = cJSON_CreateObject();
    bool ok = cJSON_AddNumberToObject(root, "version", 1) &&
              cJSON_AddNumberToObject(root, "n_steps", (double)t->n_steps) &&
              cJSON_AddStringToObject(root, "order", order_name(t)) &&
              cJSON_AddStringToObject(root, "seed", seed) &&
              cJSON_AddNumberToObject(root, "batch_size", (double)t->step.batch_size) &&
              cJSON_AddNumberToObject(root, "n_samples", (double)t->batches.n_samples) &&
              cJSON_AddStringToObject(root, "numerics", ree_numerics_version()) &&
              cJSON_AddStringToObject(root, "graph_sha256", t->hashes.graph) &&
              cJSON_AddStringToObject(root, "weights_sha256", t->hashes.weights) &&
              cJSON_AddStringToObject(root, "roles_sha256", t->roles_sha256) &&
              cJSON_AddStringToObject(root, "data_sha256", t->data_sha256) &&
              cJSON_AddStringToObject(root, "states_sha256", states);
    enum ree_status status = ok ? ree_canonical_json(root, out, err) : ree_no_memory(err);
    cJSON_Delete(root);
    return status;
}

static enum ree_status add_state(cJSON *root, const struct ree_tensor *state, uint64_t *inout_end,
                                 struct ree_error *err) {
    const char *type = ree_safetensors_type(state->dtype);
    if (!type)
        return ree_fail(err, REE_UNSUPPORTED, "state '%.128s' is %s, which safetensors files lack",
                        state->name, ree_dtype_name(state->dtype));
    if (!strcmp(state->name, METADATA))
        return ree_fail(err, REE_UNSUPPORTED, "a state is called '" METADATA "'");
    cJSON *entry = cJSON_AddObjectToObject(root, state->name);
    cJSON *shape = cJSON_AddArrayToObject(entry, "shape");
    bool ok = cJSON_AddStringToObject(entry, "dtype", type) && shape;
    for (uint32_t i = 0; ok && i < state->rank; i++)
        ok = ree_json_put(shape, cJSON_CreateNumber((double)state->dims[i]));
    cJSON *offsets = cJSON_AddArrayToObject(entry, "data_offsets");
    ok = ok && ree_json_put(offsets, cJSON_CreateNumber((double)*inout_end));
    *inout_end += state->nbytes;
    ok = ok && ree_json_put(offsets, cJSON_CreateNumber((double)*inout_end));
    return ok ? REE_OK : ree_no_memory(err);
}

// Makes the file's beginning: the size of the header, and the header, padded with spaces to a
// multiple of 8 bytes.
static enum ree_status make_header(struct ree_training *t, struct ree_strbuf *out,
                                   struct ree_error *err) {
    struct ree_strbuf text;
    uint64_t end = 0;
    ree_strbuf_init(&text);
    cJSON *root = cJSON_CreateObject();
    cJSON *metadata = cJSON_AddObjectToObject(root, METADATA);
    enum ree_status status = describe(t, &text, err);
    if (status == REE_OK &&
        (text.failed || !cJSON_AddStringToObject(metadata, REE_STEP_METADATA, text.data)))
        status = ree_no_memory(err);
    for (size_t i = 0; status == REE_OK && i < t->step.n_states; i++)
        status = add_state(root, &t->states[i], &end, err);
    ree_strbuf_finish(&text);
    ree_strbuf_append(out, "\0\0\0\0\0\0\0", 8); // the size, written below
    if (status == REE_OK) status = ree_canonical_json(root, out, err);
    cJSON_Delete(root);
    REE_TRY(status);
    while (out->size % 8 && !out->failed)
        ree_strbuf_append(out, " ", 1);
    if (out->failed) return ree_no_memory(err);
    if (out->size - 8 > REE_SAFETENSORS_MAX_HEADER)
        return ree_fail(err, REE_UNSUPPORTED, "its header has %zu bytes; the maximum is %d",
                        out->size - 8, REE_SAFETENSORS_MAX_HEADER);
    for (int i = 0; i < 8; i++)
        out->data[i] = (char)(unsigned char)((uint64_t)(out->size - 8) >> 8 * i);
    return REE_OK;
}

static enum ree_status write_file(const struct ree_training *t, const char *path,
                                  const struct ree_strbuf *header, struct ree_error *err) {
    struct ree_file_draft *draft;
    REE_TRY(ree_file_begin(path, 0666, &draft, err));
    enum ree_status status = ree_file_append(draft, header->data, header->size, err);
    for (size_t i = 0; status == REE_OK && i < t->step.n_states; i++)
        status = ree_file_append(draft, t->states[i].data, t->states[i].nbytes, err);
    if (status == REE_OK) return ree_file_commit(draft, err);
    ree_file_abandon(draft);
    return status;
}

enum ree_status ree_training_save(struct ree_training *t, const char *path, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_error local;
    struct ree_strbuf header;
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    REE_TRY(ree_training_hash(t, err));
    REE_TRY(ree_device_states_read(&t->on_device, t->states, err));
    ree_strbuf_init(&header);
    enum ree_status status = make_header(t, &header, err);
    if (status != REE_OK && path) status = ree_fail_prefix(err, "%s", path);
    if (status == REE_OK && path) status = write_file(t, path, &header, err);
    ree_strbuf_finish(&header);
    return status;
}

// Fails unless the checkpoint has the value `expected` for `key`.
static enum ree_status check_hash(const struct ree_fields *fields, const char *key,
                                  const char *expected, const char *what, struct ree_error *err) {
    const char *value = "";
    REE_TRY(ree_field_string(fields, key, &value, err));
    if (!strcmp(value, expected)) return REE_OK;
    return ree_fail(err, REE_INVALID, "it belongs to a training with %s (%s is '%.80s', here '%s')",
                    what, key, value, expected);
}

// Compares what the checkpoint says about its training with this one.
static enum ree_status check_origin(const struct ree_training *t, const char *text,
                                    struct ree_arena *arena, uint64_t *out_step,
                                    char out_states[65], struct ree_error *err) {
    cJSON *json;
    char seed[24];
    int64_t version = 0, n_steps = 0, n_samples = 0, batch_size = 0;
    REE_TRY(ree_json_parse_strict(text, strlen(text), &json, err));
    struct ree_fields fields = {json, "metadata", arena};
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)t->options.seed);
    enum ree_status status = ree_canonical_check(json, err); // no key occurs twice
    if (status == REE_OK)
        status = ree_fields_check(
            &fields,
            "version n_steps order seed batch_size n_samples numerics graph_sha256 "
            "weights_sha256 roles_sha256 data_sha256 states_sha256",
            "", err);
    if (status == REE_OK) status = ree_field_whole(&fields, "version", 1, 1, &version, err);
    if (status == REE_OK)
        status =
            ree_field_whole(&fields, "n_steps", 0, (int64_t)REE_TRAINING_MAX_STEPS, &n_steps, err);
    if (status == REE_OK)
        status = ree_field_whole(&fields, "n_samples", 1, UINT32_MAX, &n_samples, err);
    if (status == REE_OK)
        status = ree_field_whole(&fields, "batch_size", 1, UINT32_MAX, &batch_size, err);
    if (status == REE_OK) status = ree_field_hex(&fields, "states_sha256", out_states, 65, err);
    const char *const checks[][3] = {
        {"numerics", ree_numerics_version(), "other numerics"},
        {"graph_sha256", t->hashes.graph, "another step"},
        {"weights_sha256", t->hashes.weights, "other initial states"},
        {"roles_sha256", t->roles_sha256, "other roles of inputs and outputs"},
        {"data_sha256", t->data_sha256, "other samples"},
        {"order", order_name(t), "another order of samples"},
        {"seed", seed, "another seed"},
    };
    for (size_t i = 0; status == REE_OK && i < sizeof checks / sizeof *checks; i++)
        status = check_hash(&fields, checks[i][0], checks[i][1], checks[i][2], err);
    if (status == REE_OK &&
        (n_samples != (int64_t)t->batches.n_samples || batch_size != t->step.batch_size))
        status = ree_fail(err, REE_INVALID, "n_samples or batch_size is not that of this training");
    cJSON_Delete(json);
    *out_step = (uint64_t)n_steps;
    return status;
}

// Compares the checkpoint's tensors with the states, and their root with `stated`.
static enum ree_status check_states(const struct ree_training *t, const struct ree_dataset *file,
                                    const char *stated, struct ree_error *err) {
    ree_digest root;
    char hex[65];
    for (size_t i = 0; i < t->step.n_states; i++) {
        const struct ree_tensor *state = &t->states[i];
        const struct ree_tensor *stored = ree_dataset_find(file, state->name);
        if (!stored) return ree_fail(err, REE_INVALID, "state '%.128s' is missing", state->name);
        if (!ree_has_type(stored, state->dtype, state->rank, state->dims))
            return ree_fail(err, REE_INVALID, "state '%.128s' has another type or shape",
                            state->name);
    }
    if (file->n != t->step.n_states)
        return ree_fail(err, REE_INVALID, "it has %zu tensors, but the step has %zu states",
                        file->n, t->step.n_states);
    struct ree_tensor *ordered = ree_alloc_zeroed(file->n, sizeof *ordered); // shallow copies
    if (!ordered) return ree_no_memory(err);
    for (size_t i = 0; i < file->n; i++)
        ordered[i] = *ree_dataset_find(file, t->states[i].name);
    enum ree_status status = ree_states_root(ordered, file->n, root, err);
    ree_free(ordered);
    REE_TRY(status);
    ree_hex(root, hex);
    if (!strcmp(hex, stated)) return REE_OK;
    return ree_fail(err, REE_INVALID,
                    "its states are damaged: their SHA-256 is %s, but it states %s", hex, stated);
}

// A checkpoint before the first step must have the initial states: a training that begins with
// others is not one of this step.
static enum ree_status check_beginning(const struct ree_training *t, const struct ree_dataset *file,
                                       uint64_t step, struct ree_error *err) {
    for (size_t i = 0; step == 0 && i < t->step.n_states; i++) {
        const struct ree_value *value = t->model->input_values[t->step.states[i].input];
        const struct ree_tensor *stored = ree_dataset_find(file, t->states[i].name);
        if (stored->nbytes && memcmp(stored->data, value->data, stored->nbytes) != 0)
            return ree_fail(err, REE_INVALID,
                            "no step was made, but state '%.128s' is not the initial one",
                            t->states[i].name);
    }
    return REE_OK;
}

enum ree_status ree_training_read_checkpoint(struct ree_training *t, const char *path,
                                             struct ree_dataset **out, uint64_t *out_step,
                                             struct ree_error *err) {
    struct ree_arena arena;
    const char *text = NULL;
    char states[65] = "";
    *out_step = 0;
    REE_TRY(ree_training_hash(t, err));
    *out = ree_alloc_zeroed(1, sizeof **out);
    if (!*out) return ree_no_memory(err);
    ree_arena_init(&arena);
    enum ree_status status =
        ree_dataset_read(*out, path, false, REE_STEP_METADATA, &arena, &text, err);
    if (status == REE_OK) {
        status = text ? check_origin(t, text, &arena, out_step, states, err)
                      : ree_fail(err, REE_INVALID, "it is not a checkpoint of a training");
        if (status == REE_OK) status = check_states(t, *out, states, err);
        if (status == REE_OK) status = check_beginning(t, *out, *out_step, err);
        if (status != REE_OK) status = ree_fail_prefix(err, "%s", path);
    }
    ree_arena_finish(&arena);
    if (status != REE_OK) {
        ree_dataset_destroy(*out);
        *out = NULL;
    }
    return status;
}

void ree_training_set_states(struct ree_training *t, const struct ree_dataset *file,
                             uint64_t step) {
    for (size_t i = 0; i < t->step.n_states; i++)
        if (t->states[i].nbytes)
            memcpy(t->states[i].data, ree_dataset_find(file, t->states[i].name)->data,
                   t->states[i].nbytes);
    t->on_device.newer = REE_HOST_NEWER;
    t->n_steps = step;
}

enum ree_status ree_training_load(struct ree_training *t, const char *path, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_error local;
    struct ree_dataset *file;
    uint64_t step;
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    if (t->log.interval || t->is_traced)
        return ree_fail(err, REE_INVALID,
                        "the training records a receipt or a trace, so it cannot continue from "
                        "another state");
    if (t->shared)
        return ree_fail(
            err, REE_INVALID,
            "the training is shared by ranks, so it cannot continue from another state");
    REE_TRY(ree_training_read_checkpoint(t, path, &file, &step, err));
    ree_training_set_states(t, file, step);
    ree_dataset_destroy(file);
    return REE_OK;
}
