// Sessions: checking inputs against what the model wants, and finding or making the bind that runs
// them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
    s->constants = calloc(model->graph->n_values + 1, sizeof(struct ree_device_buffer *));
    s->inputs = calloc(model->n_inputs + 1, sizeof(struct ree_device_buffer *));
    s->input_sizes = calloc(model->n_inputs + 1, sizeof *s->input_sizes);
    if (!s->constants || !s->inputs || !s->input_sizes) {
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
    for (size_t i = 0; s->constants && i < s->model->graph->n_values; i++)
        if (s->constants[i]) v->buffer_destroy(s->device, s->constants[i]);
    for (size_t i = 0; s->inputs && i < s->model->n_inputs; i++)
        if (s->inputs[i]) v->buffer_destroy(s->device, s->inputs[i]);
    if (s->arena) v->buffer_destroy(s->device, s->arena);
    free(s->constants);
    free(s->inputs);
    free(s->input_sizes);
    free(s);
}

// "float32[batch,3,224,224]"
static void print_port(struct ree_strbuf *out, const struct ree_port *port) {
    ree_strbuf_printf(out, "'%s' %s", port->name, ree_dtype_name(port->dtype));
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

static enum ree_status check_input(const struct ree_session *s, const struct ree_port *port,
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
    bool fits = !port->has_shape || t->rank == port->rank;
    for (uint32_t i = 0; fits && port->has_shape && i < t->rank; i++)
        fits = port->dims[i] < 0 || port->dims[i] == t->dims[i];
    if (fits) return REE_OK;
    snprintf(message, sizeof message, "input '%s' is %s, which its declared shape excludes",
             port->name, text);
    return refuse_inputs(s, err, message);
}

// One symbol, one size, over all inputs.
static enum ree_status check_symbols(const struct ree_session *s, const struct ree_tensor *inputs,
                                     struct ree_error *err) {
    const struct ree_model *m = s->model;
    for (size_t i = 0; i < m->n_inputs; i++)
        for (uint32_t d = 0; m->inputs[i].has_shape && d < m->inputs[i].rank; d++) {
            const char *symbol = m->inputs[i].symbols[d];
            // Some exporters write "None" or "?" for every unknown size.
            if (m->inputs[i].dims[d] >= 0 || !symbol || !symbol[0] || !strcmp(symbol, "None") ||
                !strcmp(symbol, "?"))
                continue;
            for (size_t j = 0; j <= i; j++)
                for (uint32_t e = 0; m->inputs[j].has_shape && e < m->inputs[j].rank; e++) {
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
        if (!ordered[i].name && m->inputs[i].optional) {
            const struct ree_value *value = m->input_values[i];
            ordered[i].name = (char *)(uintptr_t)value->name; // only read
            ordered[i].dtype = value->dtype;
            ordered[i].rank = value->rank;
            memcpy(ordered[i].dims, value->dims, sizeof ordered[i].dims);
            ordered[i].data = (void *)(uintptr_t)value->data;
            ordered[i].nbytes = value->nbytes;
        }
        if (!ordered[i].name) {
            snprintf(message, sizeof message, "input '%s' is missing", m->inputs[i].name);
            return refuse_inputs(s, err, message);
        }
        REE_TRY(check_input(s, &m->inputs[i], &ordered[i], err));
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
static enum ree_status find_bind(struct ree_session *s, const struct ree_tensor *inputs,
                                 struct ree_error *err) {
    struct ree_bind **at = &s->binds;
    while (*at) {
        struct ree_bind *b = *at;
        bool once = b->n_segments > 1;
        if (once) { // ran on data that will not come again
            *at = b->next;
            ree_bind_destroy(b);
            s->n_binds--;
            continue;
        }
        if (ree_bind_matches(b, inputs)) {
            *at = b->next;
            b->next = s->binds;
            s->binds = b;
            s->stats.n_bind_hits++;
            return REE_OK;
        }
        at = &b->next;
    }
    struct ree_bind *fresh;
    REE_TRY(ree_bind_create(s, inputs, &fresh, err));
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

enum ree_status ree_session_run(struct ree_session *s, const struct ree_tensor *inputs,
                                size_t n_inputs, struct ree_tensor *outputs,
                                struct ree_error *err) {
    struct ree_error local;
    if (!err) err = &local; // prefixes need the message that they prefix
    memset(outputs, 0, s->model->n_outputs * sizeof *outputs);
    struct ree_tensor *ordered = calloc(s->model->n_inputs + 1, sizeof *ordered);
    if (!ordered) return ree_fail(err, REE_NO_MEMORY, "out of memory");
    enum ree_status status = match_inputs(s, inputs, n_inputs, ordered, err);
    double start = now(), bound = start;
    if (status == REE_OK) status = find_bind(s, ordered, err);
    bound = now();
    if (status == REE_OK) {
        struct ree_bind *b = s->binds;
        status = ree_bind_run(b, ordered, outputs, err);
        if (status != REE_OK && s->model->graph->file[0])
            ree_fail_prefix(err, "%s", s->model->graph->file);
        s->stats.arena_bytes = b->arena_size;
        s->stats.n_dispatches = b->n_dispatches;
        s->stats.n_segments = b->n_segments;
        s->stats.bind_seconds = bound - start;
        s->stats.run_seconds = now() - bound;
        s->stats.weight_bytes = s->weight_bytes;
    }
    free(ordered);
    return status;
}

void ree_session_stats(const struct ree_session *s, struct ree_session_stats *out_stats) {
    *out_stats = s->stats;
}
