// Runs whose inputs and outputs are device tensors.
#include <string.h>

#include "base/float_env.h"
#include "base/memory.h"
#include "base/tensor_type.h"
#include "session/device_tensor.h"
#include "session/session_internal.h"

enum ree_status ree_bind_check_outputs(const struct ree_bind *b,
                                       const struct ree_run_inputs *run_inputs,
                                       struct ree_error *err) {
    for (size_t i = 0; run_inputs->outputs && i < b->session->model->n_outputs; i++) {
        const struct ree_device_tensor *to = run_inputs->outputs[i];
        const struct ree_view *t = b->outputs[i];
        if (to && t->kind != REE_TENSOR)
            return ree_fail(err, REE_INVALID,
                            "output '%.128s' is no tensor, so no device tensor can receive it",
                            b->session->model->outputs[i].name);
        struct ree_tensor made = {.kind = t->kind, .dtype = t->dtype, .rank = t->rank};
        memcpy(made.dims, t->dims, sizeof made.dims);
        if (!to || ree_has_type(&made, to->type.dtype, to->type.rank, to->type.dims)) continue;
        return ree_wrong_type("output", b->session->model->outputs[i].name, &made, to->type.dtype,
                              to->type.rank, to->type.dims, err);
    }
    return REE_OK;
}

// Enters the device tensors into `at`, which has an entry for each name of the index.
static enum ree_status enter(const struct ree_session *s, const char *what,
                             const struct ree_name_index *names,
                             const struct ree_named_device_tensor *named, size_t n,
                             struct ree_device_tensor **at, struct ree_error *err) {
    for (size_t k = 0; k < n; k++) {
        const char *name = named[k].name ? named[k].name : "";
        size_t i = ree_name_index_find(names, name);
        if (i == REE_NO_NAME)
            return ree_fail(err, REE_INVALID, "the model has no %s '%s'", what, name);
        if (at[i]) return ree_fail(err, REE_INVALID, "%s '%s' is given more than once", what, name);
        if (named[k].tensor->device != s->device)
            return ree_fail(err, REE_INVALID, "the tensor of %s '%s' is on another device, %s",
                            what, name, named[k].tensor->device->name);
        at[i] = named[k].tensor;
        at[i]->n_uses++;
    }
    return REE_OK;
}

// A tensor that is written must have no other use.
static enum ree_status check_uses(const struct ree_model *m,
                                  const struct ree_device_tensors *on_device,
                                  struct ree_error *err) {
    for (size_t i = 0; i < m->n_outputs; i++)
        if (on_device->outputs[i] && on_device->outputs[i]->n_uses > 1)
            return ree_fail(err, REE_INVALID,
                            "the device tensor of output '%s' has another use in the same run",
                            m->outputs[i].name);
    return REE_OK;
}

static enum ree_status enter_all(const struct ree_session *s,
                                 const struct ree_named_device_tensor *inputs, size_t n_inputs,
                                 const struct ree_named_device_tensor *outputs, size_t n_outputs,
                                 const struct ree_device_tensors *on_device,
                                 struct ree_error *err) {
    const struct ree_model *m = s->model;
    enum ree_status status =
        enter(s, "input", &m->input_names, inputs, n_inputs, on_device->inputs, err);
    if (status == REE_OK)
        status = enter(s, "output", &m->output_names, outputs, n_outputs, on_device->outputs, err);
    if (status == REE_OK) status = check_uses(m, on_device, err);
    for (size_t i = 0; i < n_inputs; i++)
        inputs[i].tensor->n_uses = 0;
    for (size_t i = 0; i < n_outputs; i++)
        outputs[i].tensor->n_uses = 0;
    return status;
}

enum ree_status ree_session_run_on_device(struct ree_session *s, const struct ree_tensor *inputs,
                                          size_t n_inputs,
                                          const struct ree_named_device_tensor *device_inputs,
                                          size_t n_device_inputs,
                                          const struct ree_named_device_tensor *device_outputs,
                                          size_t n_device_outputs, struct ree_tensor *outputs,
                                          struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_error local;
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    const struct ree_model *m = s->model;
    memset(outputs, 0, m->n_outputs * sizeof *outputs);
    if (s->observer)
        return ree_fail(err, REE_UNSUPPORTED, "a recorded run cannot use device tensors");
    struct ree_tensor *ordered = ree_alloc_zeroed(m->n_inputs + 1, sizeof *ordered);
    struct ree_device_tensor **entries =
        ree_alloc_zeroed(m->n_inputs + m->n_outputs + 1, sizeof(struct ree_device_tensor *));
    const struct ree_device_tensors on_device = {entries, entries ? entries + m->n_inputs : NULL};
    enum ree_status status = ordered && entries ? REE_OK : ree_no_memory(err);
    if (status == REE_OK)
        status = enter_all(s, device_inputs, n_device_inputs, device_outputs, n_device_outputs,
                           &on_device, err);
    if (status == REE_OK)
        status = ree_inputs_match(m, s->kv_caches, s->n_kv_caches, on_device.inputs, inputs,
                                  n_inputs, ordered, err);
    if (status == REE_OK) status = ree_session_run_ordered(s, ordered, &on_device, outputs, err);
    ree_free(ordered);
    ree_free(entries);
    return status;
}
