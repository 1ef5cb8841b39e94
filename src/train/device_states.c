#include "train/device_states.h"

#include "base/memory.h"

void ree_device_states_finish(struct ree_device_states *s) {
    for (size_t i = 0; s->present && s->next && i < s->n; i++) {
        ree_device_tensor_destroy(s->present[i]);
        ree_device_tensor_destroy(s->next[i]);
    }
    ree_free(s->present);
    ree_free(s->next);
    ree_free(s->inputs);
    ree_free(s->outputs);
    *s = (struct ree_device_states){0};
}

static enum ree_status create(struct ree_device_states *s, const struct ree_step_roles *step,
                              const struct ree_model *model, struct ree_device *device,
                              const struct ree_tensor *host, struct ree_error *err) {
    s->n = step->n_states;
    s->present = ree_alloc_zeroed(s->n, sizeof(struct ree_device_tensor *));
    s->next = ree_alloc_zeroed(s->n, sizeof(struct ree_device_tensor *));
    s->inputs = ree_alloc_zeroed(s->n, sizeof *s->inputs);
    s->outputs = ree_alloc_zeroed(s->n, sizeof *s->outputs);
    if (!s->present || !s->next || !s->inputs || !s->outputs) return ree_no_memory(err);
    for (size_t i = 0; i < s->n; i++) {
        REE_TRY(ree_device_tensor_create(device, &host[i], &s->present[i], err));
        REE_TRY(ree_device_tensor_create(device, &host[i], &s->next[i], err));
        s->inputs[i].name = ree_model_input(model, step->states[i].input)->name;
        s->outputs[i].name = ree_model_output(model, step->states[i].output)->name;
    }
    return REE_OK;
}

enum ree_status ree_device_states_write(struct ree_device_states *s,
                                        const struct ree_step_roles *step,
                                        const struct ree_model *model, struct ree_device *device,
                                        const struct ree_tensor *host, struct ree_error *err) {
    if (!s->n) {
        enum ree_status status = create(s, step, model, device, host, err);
        if (status != REE_OK) ree_device_states_finish(s);
        return status;
    }
    if (s->newer != REE_HOST_NEWER) return REE_OK;
    for (size_t i = 0; i < s->n; i++)
        REE_TRY(ree_device_tensor_write(s->present[i], &host[i], err));
    s->newer = REE_NEITHER_NEWER;
    return REE_OK;
}

enum ree_status ree_device_states_run(struct ree_device_states *s, struct ree_session *session,
                                      const struct ree_tensor *inputs, size_t n_inputs,
                                      struct ree_tensor *outputs, struct ree_error *err) {
    for (size_t i = 0; i < s->n; i++) {
        s->inputs[i].tensor = s->present[i];
        s->outputs[i].tensor = s->next[i];
    }
    return ree_session_run_on_device(session, inputs, n_inputs, s->inputs, s->n, s->outputs, s->n,
                                     outputs, err);
}

void ree_device_states_exchange(struct ree_device_states *s) {
    struct ree_device_tensor **present = s->present;
    s->present = s->next;
    s->next = present;
}

enum ree_status ree_device_states_read(struct ree_device_states *s, struct ree_tensor *host,
                                       struct ree_error *err) {
    if (s->newer != REE_DEVICE_NEWER) return REE_OK;
    for (size_t i = 0; i < s->n; i++)
        REE_TRY(ree_device_tensor_copy(s->present[i], host[i].data, host[i].nbytes, err));
    s->newer = REE_NEITHER_NEWER;
    return REE_OK;
}
