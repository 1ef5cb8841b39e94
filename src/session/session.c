// Sessions: checking inputs against what the model wants, and finding or making the bind that runs
// them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/dtype.h"
#include "base/strbuf.h"
#include "session/session_internal.h"

// Binds kept for shapes seen before; each holds a program and its literals.
#define MAX_BINDS 16

enum ree_status ree_session_create(struct ree_model *model, struct ree_device *device,
                                   const struct ree_session_options *options,
                                   struct ree_session **out_session, struct ree_error *err) {
    *out_session = NULL;
    if (!model->runnable)
        return ree_fail(err, REE_INVALID, "%s was opened for inspection only", model->graph->file);
    struct ree_session *s = calloc(1, sizeof *s);
    if (!s) return ree_fail(err, REE_NO_MEMORY, "out of memory");
    s->model = model;
    s->device = device;
    if (options) s->options = *options;
    s->state_rows_input = REE_NO_INPUT;
    s->constants = calloc(model->n_values + 1, sizeof(struct ree_device_buffer *));
    if (!s->constants) {
        ree_session_destroy(s);
        return ree_fail(err, REE_NO_MEMORY, "out of memory");
    }
    *out_session = s;
    return REE_OK;
}

void ree_session_destroy(struct ree_session *s) {
    if (!s) return;
    while (s->binds) {
        struct ree_bind *next = s->binds->next;
        ree_bind_destroy(s->binds);
        s->binds = next;
    }
    const struct ree_device_vtable *v = s->device->vtable;
    for (size_t i = 0; s->constants && i < s->model->n_values; i++)
        if (s->constants[i]) v->buffer_destroy(s->device, s->constants[i]);
    for (size_t i = 0; i < s->inputs_capacity; i++)
        if (s->inputs[i]) v->buffer_destroy(s->device, s->inputs[i]);
    for (size_t i = 0; i < s->n_states; i++)
        if (s->states[i].buffer) v->buffer_destroy(s->device, s->states[i].buffer);
    free(s->states);
    if (s->arena) v->buffer_destroy(s->device, s->arena);
    free(s->constants);
    free(s->observer);
    free(s->observed);
    free(s->inputs);
    free(s->input_sizes);
    free(s);
}

// "float32[batch,3,224,224]"
static void print_port(struct ree_strbuf *out, const struct ree_port *port) {
    ree_strbuf_printf(out, "'%s' ", port->name);
    if (port->nullable) ree_strbuf_printf(out, "optional ");
    if (port->kind == REE_SEQUENCE) ree_strbuf_printf(out, "sequence of ");
    ree_strbuf_printf(out, "%s", ree_dtype_name(port->dtype));
    if (!port->has_shape) {
        ree_strbuf_printf(out, " of any shape");
        return;
    }
    ree_strbuf_printf(out, "[");
    for (uint32_t i = 0; i < port->rank; i++) {
        if (i) ree_strbuf_printf(out, ",");
        if (port->dims[i] >= 0)
            ree_strbuf_printf(out, "%lld", (long long)port->dims[i]);
        else
            ree_strbuf_printf(out, "%s", port->symbols[i] ? port->symbols[i] : "?");
    }
    ree_strbuf_printf(out, "]");
}

// "<message>; the model wants 'x' float32[1,3,224,224], ..."
static enum ree_status refuse_inputs(const struct ree_session *s, struct ree_error *err,
                                     const char *message) {
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    for (size_t i = 0; i < s->model->n_inputs; i++) {
        if (i) ree_strbuf_printf(&text, ", ");
        print_port(&text, &s->model->inputs[i]);
    }
    if (!s->model->n_inputs) ree_strbuf_printf(&text, "no inputs");
    ree_fail(err, REE_INVALID, "%s; the model wants %s", message, text.data ? text.data : "?");
    ree_strbuf_finish(&text);
    return REE_INVALID;
}

static void tensor_text(const struct ree_tensor *t, char *out, size_t size) {
    struct ree_tval v = {.dtype = t->dtype, .rank = t->rank};
    memcpy(v.dims, t->dims, sizeof v.dims);
    ree_tval_text(&v, out, size);
}

static enum ree_status check_tensor(const struct ree_session *s, const struct ree_port *port,
                                    const struct ree_tensor *t, struct ree_error *err) {
    char text[160], message[512];
    int64_t count;
    if (t->rank > REE_MAX_RANK || !ree_count_elements(t->rank, t->dims, &count) ||
        (ree_dtype_size(t->dtype) && t->nbytes / ree_dtype_size(t->dtype) != (uint64_t)count) ||
        (count && !t->data))
        return ree_fail(err, REE_INVALID, "input '%s': its data does not fill its shape",
                        port->name);
    tensor_text(t, text, sizeof text);
    if (t->dtype != port->dtype) {
        snprintf(message, sizeof message, "input '%s' is %s, expected %s", port->name, text,
                 ree_dtype_name(port->dtype));
        return refuse_inputs(s, err, message);
    }
    const uint8_t *bytes = t->data;
    bool is_partial = t->dtype == REE_BOOL || ree_dtype_bits(t->dtype) % 8;
    for (int64_t i = 0; is_partial && i < count; i++)
        if (!ree_dtype_byte_is_valid(t->dtype, bytes[i]))
            return ree_fail(err, REE_INVALID,
                            "input '%s': element %lld is the byte 0x%02x, which is no %s",
                            port->name, (long long)i, bytes[i], ree_dtype_name(t->dtype));
    bool fits = !port->has_shape || t->rank == port->rank;
    for (uint32_t i = 0; fits && port->has_shape && i < t->rank; i++)
        fits = port->dims[i] < 0 || port->dims[i] == t->dims[i];
    if (fits) return REE_OK;
    snprintf(message, sizeof message, "input '%s' is %s, which its declared shape excludes",
             port->name, text);
    return refuse_inputs(s, err, message);
}

static enum ree_status check_input(const struct ree_session *s, const struct ree_port *port,
                                   const struct ree_tensor *t, struct ree_error *err) {
    static const char *const names[] = {"a tensor", "a sequence", "absent"};
    if (t->kind == REE_ABSENT && port->nullable) return REE_OK;
    if (t->kind != port->kind) {
        char message[512];
        snprintf(message, sizeof message, "input '%s' is %s, expected %s", port->name,
                 names[t->kind <= REE_ABSENT ? t->kind : REE_ABSENT], names[port->kind]);
        return refuse_inputs(s, err, message);
    }
    if (t->kind == REE_TENSOR) return check_tensor(s, port, t, err);
    for (size_t i = 0; i < t->n_items; i++) {
        if (t->items[i].kind != REE_TENSOR)
            return ree_fail(err, REE_INVALID, "input '%s': item %zu is no tensor", port->name, i);
        REE_TRY(check_tensor(s, port, &t->items[i], err));
    }
    return REE_OK;
}

static bool is_shaped(const struct ree_model *model, const struct ree_tensor *inputs, size_t i) {
    return model->inputs[i].has_shape && inputs[i].kind == REE_TENSOR;
}

// One symbol, one size, over all inputs that are tensors.
static enum ree_status check_symbols(const struct ree_session *s, const struct ree_tensor *inputs,
                                     struct ree_error *err) {
    const struct ree_model *m = s->model;
    for (size_t i = 0; i < m->n_inputs; i++)
        for (uint32_t d = 0; is_shaped(m, inputs, i) && d < m->inputs[i].rank; d++) {
            const char *symbol = m->inputs[i].symbols[d];
            // Some exporters write "None" or "?" for every unknown size.
            if (m->inputs[i].dims[d] >= 0 || !symbol || !symbol[0] || !strcmp(symbol, "None") ||
                !strcmp(symbol, "?"))
                continue;
            for (size_t j = 0; j <= i; j++)
                for (uint32_t e = 0; is_shaped(m, inputs, j) && e < m->inputs[j].rank; e++) {
                    const char *other = m->inputs[j].symbols[e];
                    if (m->inputs[j].dims[e] >= 0 || !other || strcmp(other, symbol)) continue;
                    if (inputs[j].dims[e] == inputs[i].dims[d]) continue;
                    char message[512];
                    snprintf(message, sizeof message,
                             "'%s' is %lld in input '%s' but %lld in input '%s'", symbol,
                             (long long)inputs[j].dims[e], m->inputs[j].name,
                             (long long)inputs[i].dims[d], m->inputs[i].name);
                    return refuse_inputs(s, err, message);
                }
        }
    return REE_OK;
}

// Brings the caller's inputs into the model's order.
static enum ree_status match_inputs(const struct ree_session *s, const struct ree_tensor *inputs,
                                    size_t n_inputs, struct ree_tensor *ordered,
                                    struct ree_error *err) {
    const struct ree_model *m = s->model;
    char message[512];
    for (size_t k = 0; k < n_inputs; k++) {
        size_t i = 0;
        while (i < m->n_inputs && (!inputs[k].name || strcmp(inputs[k].name, m->inputs[i].name)))
            i++;
        if (i == m->n_inputs) {
            snprintf(message, sizeof message, "there is no input '%s'",
                     inputs[k].name ? inputs[k].name : "");
            return refuse_inputs(s, err, message);
        }
        if (ordered[i].name) {
            snprintf(message, sizeof message, "input '%s' is given twice", inputs[k].name);
            return refuse_inputs(s, err, message);
        }
        ordered[i] = inputs[k];
    }
    for (size_t i = 0; i < m->n_inputs; i++) {
        ptrdiff_t state = ree_session_state_of_input(s, i);
        if (state >= 0) {
            if (ordered[i].name)
                return ree_fail(err, REE_INVALID, "input '%s' is kept by the session and not given",
                                m->inputs[i].name);
            // Its shape alone: the contents are on the device.
            ordered[i].name = (char *)(uintptr_t)m->inputs[i].name; // only read
            ordered[i].dtype = m->inputs[i].dtype;
            ordered[i].rank = m->inputs[i].rank;
            memcpy(ordered[i].dims, s->states[state].dims, sizeof ordered[i].dims);
            continue;
        }
        if (!ordered[i].name && m->inputs[i].optional) {
            const struct ree_value *value = m->input_values[i];
            ordered[i].name = (char *)(uintptr_t)value->name; // only read
            ordered[i].dtype = value->dtype;
            ordered[i].rank = value->rank;
            memcpy(ordered[i].dims, value->dims, sizeof ordered[i].dims);
            ordered[i].data = (void *)(uintptr_t)value->data;
            ordered[i].nbytes = value->nbytes;
        }
        if (!ordered[i].name && m->inputs[i].nullable) {
            ordered[i].name = (char *)(uintptr_t)m->inputs[i].name; // only read
            ordered[i].kind = REE_ABSENT;
        }
        if (!ordered[i].name) {
            snprintf(message, sizeof message, "input '%s' is missing", m->inputs[i].name);
            return refuse_inputs(s, err, message);
        }
        REE_TRY(check_input(s, &m->inputs[i], &ordered[i], err));
        // What an empty sequence or an absent value would hold, only the model says.
        if (ordered[i].kind != REE_TENSOR) ordered[i].dtype = m->inputs[i].dtype;
    }
    return check_symbols(s, ordered, err);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// The bind for these inputs, moved to the front; the least recently used goes when there are too
// many.
static enum ree_status find_bind(struct ree_session *s, const struct ree_given *given,
                                 struct ree_error *err) {
    struct ree_bind **at = &s->binds;
    bool damaged = s->has_fault && s->fault.run == 0;
    while (*at) {
        struct ree_bind *b = *at;
        bool once = b->n_segments > 1;
        if (once) { // ran on data that will not come again
            *at = b->next;
            ree_bind_destroy(b);
            s->n_binds--;
            continue;
        }
        if (!damaged && ree_bind_matches(b, given)) {
            *at = b->next;
            b->next = s->binds;
            s->binds = b;
            s->stats.n_bind_hits++;
            return REE_OK;
        }
        at = &b->next;
    }
    struct ree_bind *fresh;
    REE_TRY(ree_bind_create(s, given, &fresh, err));
    fresh->next = s->binds;
    s->binds = fresh;
    s->stats.n_binds++;
    if (++s->n_binds > MAX_BINDS) {
        at = &s->binds;
        while ((*at)->next)
            at = &(*at)->next;
        ree_bind_destroy(*at);
        *at = NULL;
        s->n_binds--;
    }
    return REE_OK;
}

// The tensors among the inputs and within them, as shallow copies, and room for them on the device.
static size_t n_tensors_in(const struct ree_tensor *t) {
    return t->kind == REE_TENSOR ? 1 : t->kind == REE_SEQUENCE ? t->n_items : 0;
}

static enum ree_status collect_tensors(struct ree_session *s, const struct ree_tensor *ordered,
                                       struct ree_given *given, struct ree_error *err) {
    size_t n = 0, n_inputs = s->model->n_inputs;
    for (size_t i = 0; i < n_inputs; i++)
        n += n_tensors_in(&ordered[i]);
    struct ree_tensor *tensors = calloc(n + 1, sizeof *tensors);
    if (!tensors) return ree_fail(err, REE_NO_MEMORY, "out of memory");
    *given = (struct ree_given){ordered, n, tensors};
    for (size_t i = 0; i < n_inputs; i++) {
        const struct ree_tensor *from =
            ordered[i].kind == REE_TENSOR ? &ordered[i] : ordered[i].items;
        for (size_t k = 0; k < n_tensors_in(&ordered[i]); k++)
            *tensors++ = from[k];
    }
    if (n <= s->inputs_capacity) return REE_OK;
    struct ree_device_buffer **inputs = realloc(s->inputs, n * sizeof(struct ree_device_buffer *));
    if (inputs) s->inputs = inputs;
    uint64_t *sizes = realloc(s->input_sizes, n * sizeof *sizes);
    if (sizes) s->input_sizes = sizes;
    if (!inputs || !sizes) return ree_fail(err, REE_NO_MEMORY, "out of memory");
    for (size_t i = s->inputs_capacity; i < n; i++) {
        inputs[i] = NULL;
        sizes[i] = 0;
    }
    s->inputs_capacity = n;
    return REE_OK;
}

enum ree_status ree_session_run(struct ree_session *s, const struct ree_tensor *inputs,
                                size_t n_inputs, struct ree_tensor *outputs,
                                struct ree_error *err) {
    struct ree_error local;
    if (!err) err = &local; // prefixes need the message that they prefix
    memset(outputs, 0, s->model->n_outputs * sizeof *outputs);
    struct ree_tensor *ordered = calloc(s->model->n_inputs + 1, sizeof *ordered);
    if (!ordered) return ree_fail(err, REE_NO_MEMORY, "out of memory");
    struct ree_given given = {0};
    enum ree_status status = match_inputs(s, inputs, n_inputs, ordered, err);
    if (status == REE_OK) status = collect_tensors(s, ordered, &given, err);
    double start = now(), bound = start;
    if (status == REE_OK && s->observer && s->observer->on_inputs)
        status = s->observer->on_inputs(s->observer->user, ordered, s->model->n_inputs, err);
    if (status == REE_OK) status = find_bind(s, &given, err);
    bound = now();
    if (status == REE_OK) {
        struct ree_bind *b = s->binds;
        status = ree_bind_run(b, &given, outputs, err);
        if (status != REE_OK && s->model->graph->file[0])
            ree_fail_prefix(err, "%s", s->model->graph->file);
        for (size_t i = 0; status == REE_OK && i < s->n_states; i++)
            s->states[i].dims[s->states[i].spec.axis] = b->state_rows[i];
        s->stats.arena_bytes = b->arena_size;
        s->stats.n_dispatches = b->n_dispatches;
        s->stats.n_segments = b->n_segments;
        s->stats.bind_seconds = bound - start;
        s->stats.run_seconds = now() - bound;
        s->stats.weight_bytes = s->weight_bytes;
    }
    free((struct ree_tensor *)(uintptr_t)given.tensors);
    free(ordered);
    if (s->has_fault && s->fault.run-- == 0) s->has_fault = false;
    return status;
}

void ree_session_stats(const struct ree_session *s, struct ree_session_stats *out_stats) {
    *out_stats = s->stats;
}
