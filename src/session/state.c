// Memory of kv caches: reserving, growing, clearing.
#include "session/state.h"

#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "session/session_internal.h"

static enum ree_status no_memory(struct ree_error *err) {
    return ree_fail(err, REE_NO_MEMORY, "out of memory");
}

static const struct ree_port *port_of(const struct ree_session *s,
                                      const struct ree_session_state *state) {
    return &s->model->inputs[state->spec.input];
}

static enum ree_status check_spec(const struct ree_session *s, const struct ree_state_spec *spec,
                                  struct ree_error *err) {
    bool elsewhere = spec->output == REE_NO_OUTPUT;
    if (spec->input >= s->model->n_inputs || (!elsewhere && spec->output >= s->model->n_outputs))
        return ree_fail(
            err, REE_INVALID,
            "a cache refers to input %zu or output %zu, but the model does not have both",
            spec->input, spec->output);
    const struct ree_port *in = &s->model->inputs[spec->input];
    const struct ree_port *out = elsewhere ? in : &s->model->outputs[spec->output];
    if (!in->has_shape || in->kind != REE_TENSOR || out->kind != REE_TENSOR ||
        spec->axis >= in->rank || spec->batch_axis >= in->rank || spec->axis == spec->batch_axis)
        return ree_fail(err, REE_INVALID,
                        "the cache '%s' has no declared shape with a dimension for tokens and one "
                        "for sequences",
                        in->name);
    if (in->dtype != out->dtype || (out->has_shape && out->rank != in->rank))
        return ree_fail(err, REE_INVALID, "the cache '%s' and its output '%s' have different types",
                        in->name, out->name);
    for (uint32_t i = 0; i < in->rank; i++)
        if (in->dims[i] < 0 && i != spec->axis && i != spec->batch_axis)
            return ree_fail(err, REE_UNSUPPORTED, "the cache '%s' does not declare dimension %u",
                            in->name, i);
    return REE_OK;
}

enum ree_status ree_session_keep(struct ree_session *s, const struct ree_state_spec *specs,
                                 size_t n, size_t rows_input, struct ree_error *err) {
    for (size_t i = 0; i < n; i++)
        REE_TRY(check_spec(s, &specs[i], err));
    struct ree_session_state *states = calloc(n + 1, sizeof *states);
    struct ree_session_state **sets = calloc(1, sizeof(struct ree_session_state *));
    if (!states || !sets) {
        free(states);
        free(sets);
        return no_memory(err);
    }
    for (size_t k = 0; k < s->n_sets; k++)
        free(s->sets[k]);
    free(s->sets);
    s->sets = sets;
    s->n_sets = 1;
    sets[0] = s->states = states;
    s->n_states = n;
    s->state_rows_input = rows_input;
    for (size_t i = 0; i < n; i++) {
        states[i].spec = specs[i];
        memcpy(states[i].dims, s->model->inputs[specs[i].input].dims, sizeof states[i].dims);
        states[i].dims[specs[i].axis] = 0;
    }
    return REE_OK;
}

enum ree_status ree_session_keep_sets(struct ree_session *s, size_t n_sets, struct ree_error *err) {
    if (s->n_sets == 0) return REE_OK; // no kv caches
    struct ree_session_state **sets = realloc(s->sets, n_sets * sizeof(struct ree_session_state *));
    if (!sets) return no_memory(err);
    s->sets = sets;
    while (s->n_sets < n_sets) {
        struct ree_session_state *states = calloc(s->n_states + 1, sizeof *states);
        if (!states) return no_memory(err);
        memcpy(states, sets[0], s->n_states * sizeof *states);
        sets[s->n_sets++] = states;
    }
    return REE_OK;
}

void ree_session_use_set(struct ree_session *s, size_t set) {
    if (set < s->n_sets) s->states = s->sets[set];
}

// Products of the dims before the axis (*outer) and after it (*inner).
static void split_dims(const struct ree_session *s, const struct ree_session_state *state,
                       int64_t *outer, int64_t *inner) {
    *outer = *inner = 1;
    for (uint32_t i = 0; i < port_of(s, state)->rank; i++)
        if (i != state->spec.axis) *(i < state->spec.axis ? outer : inner) *= state->dims[i];
}

static uint64_t state_size(const struct ree_session *s, const struct ree_session_state *state) {
    int64_t outer, inner;
    if (!state->capacity) return 0;
    split_dims(s, state, &outer, &inner);
    return (uint64_t)(outer * inner * state->capacity) * ree_dtype_size(port_of(s, state)->dtype);
}

static void drop(struct ree_session *s, struct ree_session_state *state) {
    if (state->buffer) {
        s->device->vtable->buffer_destroy(s->device, state->buffer);
        ree_session_give(s, state_size(s, state) + 4);
    }
    state->buffer = NULL;
    state->capacity = 0;
}

enum ree_status ree_session_reset_states(struct ree_session *s, int64_t batch,
                                         struct ree_error *err) {
    for (size_t i = 0; i < s->n_states; i++) {
        struct ree_session_state *state = &s->states[i];
        int64_t declared = port_of(s, state)->dims[state->spec.batch_axis];
        if (declared >= 0 && declared != batch)
            return ree_fail(err, REE_INVALID, "the model takes %lld sequences at a time, not %lld",
                            (long long)declared, (long long)batch);
        if (state->dims[state->spec.batch_axis] != batch) drop(s, state);
        state->dims[state->spec.batch_axis] = batch;
        state->dims[state->spec.axis] = 0;
    }
    return REE_OK;
}

// Zeroes `to`, which has capacity for `rows` positions, and copies the filled positions from the
// current buffer: two dispatches on the device.
static enum ree_status move_rows(struct ree_session *s, const struct ree_session_state *state,
                                 struct ree_device_buffer *to, int64_t rows,
                                 struct ree_error *err) {
    const struct ree_device_vtable *v = s->device->vtable;
    int64_t outer, inner, filled = state->dims[state->spec.axis];
    split_dims(s, state, &outer, &inner);
    uint32_t size = (uint32_t)ree_dtype_size(port_of(s, state)->dtype);
    uint64_t nbytes = (uint64_t)(outer * rows * inner) * size;
    struct ree_dispatch d[2];
    memset(d, 0, sizeof d);
    struct ree_copy_params *p = &d[0].params.copy;
    *p = (struct ree_copy_params){
        .elem_size = size, .rank = 1, .n_elements = (uint32_t)(outer * rows * inner)};
    p->dims[0] = p->n_elements;
    p->dst_strides[0] = 1;
    d[0].operands[0] = (struct ree_operand){0, 0, 64};
    d[0].operands[1] = (struct ree_operand){1, 0, nbytes};
    p = &d[1].params.copy;
    *p = (struct ree_copy_params){
        .elem_size = size, .rank = 2, .n_elements = (uint32_t)(outer * filled * inner)};
    p->dims[0] = (uint32_t)outer;
    p->dims[1] = (uint32_t)(filled * inner);
    p->src_strides[0] = (int32_t)(state->capacity * inner);
    p->dst_strides[0] = (int32_t)(rows * inner);
    p->src_strides[1] = p->dst_strides[1] = 1;
    d[1].operands[0] =
        (struct ree_operand){2, 0, (uint64_t)(outer * state->capacity * inner) * size};
    d[1].operands[1] = d[0].operands[1];
    for (uint32_t i = 0; i < 2; i++) {
        d[i].op = REE_REPOP_COPY;
        d[i].n_operands = 2;
        d[i].n_outputs = 1;
    }
    bool has_rows = state->buffer && filled && outer && inner;
    const char *name = "growing a cache";
    struct ree_program program = {.dispatches = d,
                                  .n_dispatches = has_rows ? 2 : 1,
                                  .n_slots = has_rows ? 3 : 2,
                                  .node_names = &name,
                                  .n_node_names = 1};
    const char zeros[64] = {0};
    struct ree_device_buffer *zero = NULL, *none[3] = {NULL};
    struct ree_device_program *made = NULL;
    enum ree_status status = v->buffer_create(s->device, sizeof zeros, &zero, err);
    if (status == REE_OK) status = v->buffer_write(s->device, zero, 0, zeros, sizeof zeros, err);
    if (status == REE_OK) status = v->program_create(s->device, &program, none, &made, err);
    struct ree_device_buffer *slots[3] = {zero, to, state->buffer};
    if (status == REE_OK) status = v->program_run(s->device, made, slots, err);
    if (made) v->program_destroy(s->device, made);
    if (zero) v->buffer_destroy(s->device, zero);
    return status;
}

static enum ree_status reserve(struct ree_session *s, struct ree_session_state *state, int64_t rows,
                               struct ree_error *err) {
    if (state->capacity >= rows) return REE_OK;
    if (state->spec.output == REE_NO_OUTPUT) return REE_OK;
    const struct ree_port *port = port_of(s, state);
    int64_t dims[REE_MAX_RANK], count;
    memcpy(dims, state->dims, sizeof dims);
    dims[state->spec.axis] = rows;
    // Element counts must fit in 32 bits; devices write words of 4 bytes.
    if (!ree_count_elements(port->rank, dims, &count) || count >= INT64_C(1) << 31)
        return ree_fail(err, REE_UNSUPPORTED, "the cache '%s' would have 2^31 elements or more",
                        port->name);
    uint64_t nbytes = (uint64_t)count * ree_dtype_size(port->dtype);
    struct ree_device_buffer *buffer = NULL;
    const uint64_t before = state->buffer ? state_size(s, state) + 4 : 0;
    REE_TRY(ree_session_take(s, nbytes + 4, port->name, err));
    enum ree_status status = s->device->vtable->buffer_create(s->device, nbytes + 4, &buffer, err);
    if (status == REE_OK && count) status = move_rows(s, state, buffer, rows, err);
    if (status != REE_OK) {
        if (buffer) s->device->vtable->buffer_destroy(s->device, buffer);
        ree_session_give(s, nbytes + 4);
        ree_fail_prefix(err, "the cache '%s' of %lld positions (%llu MiB)", port->name,
                        (long long)rows, (unsigned long long)(nbytes >> 20));
        return status;
    }
    if (state->buffer) s->device->vtable->buffer_destroy(s->device, state->buffer);
    ree_session_give(s, before);
    state->buffer = buffer;
    state->capacity = rows;
    return REE_OK;
}

// Bytes held, as counted by ree_session_take.
static uint64_t held_bytes(const struct ree_session *s, const struct ree_session_state *states) {
    uint64_t n = 0;
    for (size_t i = 0; i < s->n_states; i++)
        if (states[i].buffer) n += state_size(s, &states[i]) + 4;
    return n;
}

uint64_t ree_session_set_bytes(const struct ree_session *s,
                               const struct ree_session_state *states) {
    uint64_t n = 0;
    for (size_t i = 0; i < s->n_states; i++)
        n += state_size(s, &states[i]);
    return n;
}

void ree_session_estimate(const struct ree_session *s, const struct ree_session_state *states,
                          int64_t rows, uint64_t *used, uint64_t *peak) {
    for (size_t i = 0; i < s->n_states; i++) {
        const struct ree_session_state *state = &states[i];
        int64_t dims[REE_MAX_RANK], count;
        if (state->capacity >= rows || state->spec.output == REE_NO_OUTPUT) continue;
        memcpy(dims, state->dims, sizeof dims);
        dims[state->spec.axis] = rows;
        // A cache that is too large is rejected later, with its name.
        if (!ree_count_elements(port_of(s, state)->rank, dims, &count) || count >= INT64_C(1) << 31)
            continue;
        uint64_t nbytes = (uint64_t)count * ree_dtype_size(port_of(s, state)->dtype) + 4;
        *used = nbytes > UINT64_MAX - *used ? UINT64_MAX : *used + nbytes;
        if (*used > *peak) *peak = *used;
        if (state->buffer) *used -= state_size(s, state) + 4;
    }
}

// Checks the total of all kv caches against the device's memory before any of them grows. On a
// system that overcommits memory, the process would be killed later. If all sessions on the device
// count what they hold, the other sessions are included.
static enum ree_status check_memory(const struct ree_session *s, int64_t rows,
                                    struct ree_error *err) {
    double need = (double)s->weight_bytes; // double: cannot overflow
    for (size_t k = 0; k < s->n_sets; k++)
        if (s->sets[k] != s->states) need += (double)ree_session_set_bytes(s, s->sets[k]);
    if (s->memory) need = (double)s->memory->used - (double)held_bytes(s, s->states);
    for (size_t i = 0; i < s->n_states; i++) {
        const struct ree_session_state *state = &s->states[i];
        if (state->spec.output == REE_NO_OUTPUT) continue;
        double size = (double)ree_dtype_size(port_of(s, state)->dtype);
        for (uint32_t d = 0; d < port_of(s, state)->rank; d++)
            size *= (double)(d == state->spec.axis ? rows : state->dims[d]);
        need += size;
    }
    if (need <= (double)s->device->memory_size) return REE_OK;
    return ree_fail(err, REE_NO_MEMORY,
                    "caches of %lld tokens for %lld sequences and the other data on the device "
                    "require %.1f GiB, but %s has %.1f GiB",
                    (long long)rows, (long long)s->states[0].dims[s->states[0].spec.batch_axis],
                    need / (1 << 30), s->device->name, (double)s->device->memory_size / (1 << 30));
}

enum ree_status ree_session_reserve_states(struct ree_session *s, int64_t rows,
                                           struct ree_error *err) {
    REE_TRY(check_memory(s, rows, err));
    for (size_t i = 0; i < s->n_states; i++)
        REE_TRY(reserve(s, &s->states[i], rows, err));
    return REE_OK;
}

void ree_session_set_state_rows(struct ree_session *s, int64_t rows) {
    for (size_t i = 0; i < s->n_states; i++)
        s->states[i].dims[s->states[i].spec.axis] = rows;
}

int64_t ree_session_state_rows(const struct ree_session *s) {
    return s->n_states ? s->states[0].dims[s->states[0].spec.axis] : 0;
}

int64_t ree_session_state_capacity(const struct ree_session *s) {
    int64_t least = INT64_MAX; // some may have grown before memory for the others was exhausted
    for (size_t i = 0; i < s->n_states; i++)
        if (s->states[i].spec.output != REE_NO_OUTPUT && s->states[i].capacity < least)
            least = s->states[i].capacity;
    return least == INT64_MAX ? 0 : least;
}

uint64_t ree_session_state_bytes(const struct ree_session *s) {
    return ree_session_set_bytes(s, s->states);
}
