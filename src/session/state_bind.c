// Kv caches within a bind: how the graph sees them, and where their outputs are stored.
#include <string.h>

#include "base/dtype.h"
#include "session/session_internal.h"

ptrdiff_t ree_session_state_of_input(const struct ree_session *s, size_t input) {
    for (size_t i = 0; i < s->n_states; i++)
        if (s->states[i].spec.input == input) return (ptrdiff_t)i;
    return -1;
}

ptrdiff_t ree_session_state_of_output(const struct ree_session *s, size_t output) {
    for (size_t i = 0; i < s->n_states; i++)
        if (s->states[i].spec.output == output) return (ptrdiff_t)i;
    return -1;
}

ptrdiff_t ree_session_state_of_value(const struct ree_session *s, const struct ree_value *value) {
    for (size_t i = 0; i < s->n_states; i++)
        if (s->states[i].spec.output != REE_NO_OUTPUT &&
            s->model->graph->outputs[s->states[i].spec.output] == value)
            return (ptrdiff_t)i;
    return -1;
}

enum ree_status ree_bind_state_input(struct ree_bind *b, size_t index, struct ree_view **out,
                                     struct ree_error *err) {
    (void)err; // the lowering holds the same pointer
    const struct ree_session_state *state = &b->session->states[index];
    const struct ree_port *port = &b->session->model->inputs[state->spec.input];
    struct ree_lower_state run_inputs = {.index = (uint32_t)index,
                                         .rank = port->rank,
                                         .axis = state->spec.axis,
                                         .capacity = state->capacity};
    // If another session keeps the cache, only its shape exists here.
    if (state->spec.output == REE_NO_OUTPUT) run_inputs.capacity = state->dims[state->spec.axis];
    memcpy(run_inputs.dims, state->dims, sizeof run_inputs.dims);
    return ree_lower_state(&b->lower, port->dtype, &run_inputs, out);
}

static void set_place(struct ree_view *t, const struct ree_lower_state *state) {
    int64_t stride = 1;
    for (uint32_t i = t->rank; i-- > 0;) {
        t->strides[i] = stride;
        stride *= i == state->axis ? state->capacity : t->dims[i];
    }
    t->offset = 0;
}

// A view of the cache's buffer with the dims of t.
static enum ree_status target(struct ree_bind *b, struct ree_storage *storage,
                              const struct ree_view *t, struct ree_view **out) {
    struct ree_view *view = ree_lower_view(&b->lower, t);
    if (!view) return ree_fail(b->lower.err, REE_NO_MEMORY, "out of memory");
    view->storage = storage;
    set_place(view, storage->state);
    *out = view;
    return REE_OK;
}

// Whether t starts at the beginning of the cache and has its strides, as `place` does.
static bool lies_in(const struct ree_view *t, const struct ree_view *place) {
    bool same = t->storage == place->storage && t->offset == 0;
    for (uint32_t i = 0; same && i < t->rank; i++)
        same = t->dims[i] == 1 || t->strides[i] == place->strides[i];
    return same;
}

bool ree_bind_state_grew(const struct ree_bind *b, size_t index, const struct ree_view *t) {
    const struct ree_session_state *state = &b->session->states[index];
    const struct ree_model *model = b->session->model;
    const struct ree_view *in = b->values[model->input_values[state->spec.input]->id];
    const struct ree_lower_state *kept = in->storage->state;
    if (t->kind != REE_TENSOR || t->storage != in->storage || t->rank != kept->rank ||
        kept->is_scattered || t->dims[kept->axis] < kept->dims[kept->axis])
        return false;
    struct ree_view place = *t;
    set_place(&place, kept);
    return lies_in(t, &place);
}

enum ree_status ree_bind_state_output(struct ree_bind *b, size_t index, struct ree_view *t,
                                      struct ree_error *err) {
    const struct ree_session *s = b->session;
    const struct ree_session_state *state = &s->states[index];
    const struct ree_view *in = b->values[s->model->input_values[state->spec.input]->id];
    const struct ree_lower_state *kept = in->storage->state;
    const char *name = s->model->outputs[state->spec.output].name;
    char text[128];
    bool fits = t->kind == REE_TENSOR && t->rank == kept->rank && t->dtype == in->dtype;
    for (uint32_t i = 0; fits && i < t->rank; i++)
        fits = i == kept->axis ? t->dims[i] <= kept->capacity : t->dims[i] == kept->dims[i];
    if (!fits)
        return ree_fail(
            err, REE_INVALID,
            "the cache '%s' became %s, which does not match its type, shape or capacity", name,
            ree_view_text(t, text, sizeof text));
    b->state_rows[index] = t->dims[kept->axis];
    struct ree_view *place;
    REE_TRY(target(b, in->storage, t, &place));
    if (t->storage == in->storage) {
        if (lies_in(t, place)) return REE_OK;
        // A different part of the cache itself: copy through temporary memory, because the two may
        // overlap.
        struct ree_view *aside;
        REE_TRY(ree_lower_new(&b->lower, t->dtype, t->rank, t->dims, &aside));
        REE_TRY(ree_lower_copy_into(&b->lower, t, aside));
        t = aside;
    }
    if (s->state_rows_input != REE_NO_INPUT)
        return ree_fail(err, REE_UNSUPPORTED,
                        "the new cache '%s' is not its input with new positions appended, which "
                        "sequences of different lengths require",
                        name);
    return ree_lower_copy_into(&b->lower, t, place);
}
