// Checking what a run is given against what the model wants.
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/strbuf.h"
#include "session/session_internal.h"

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
static enum ree_status refuse_inputs(const struct ree_model *m, struct ree_error *err,
                                     const char *message) {
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    for (size_t i = 0; i < m->n_inputs; i++) {
        if (i) ree_strbuf_printf(&text, ", ");
        print_port(&text, &m->inputs[i]);
    }
    if (!m->n_inputs) ree_strbuf_printf(&text, "no inputs");
    ree_fail(err, REE_INVALID, "%s; the model wants %s", message, text.data ? text.data : "?");
    ree_strbuf_finish(&text);
    return REE_INVALID;
}

static void tensor_text(const struct ree_tensor *t, char *out, size_t size) {
    struct ree_tval v = {.dtype = t->dtype, .rank = t->rank};
    memcpy(v.dims, t->dims, sizeof v.dims);
    ree_tval_text(&v, out, size);
}

// Whether the bytes are those of a tensor of its shape and type.
static enum ree_status check_bytes(const char *name, const struct ree_tensor *t,
                                   struct ree_error *err) {
    int64_t count;
    if (t->rank > REE_MAX_RANK || !ree_count_elements(t->rank, t->dims, &count) ||
        (ree_dtype_size(t->dtype) && t->nbytes / ree_dtype_size(t->dtype) != (uint64_t)count) ||
        (count && !t->data))
        return ree_fail(err, REE_INVALID, "input '%s': its data does not fill its shape", name);
    return REE_OK;
}

// Of types that have fewer values than a byte has.
static enum ree_status check_elements(const char *name, const struct ree_tensor *t,
                                      struct ree_error *err) {
    const uint8_t *bytes = t->data;
    bool is_partial = t->dtype == REE_BOOL || ree_dtype_bits(t->dtype) % 8;
    for (size_t i = 0; is_partial && i < t->nbytes; i++)
        if (!ree_dtype_byte_is_valid(t->dtype, bytes[i]))
            return ree_fail(err, REE_INVALID,
                            "input '%s': element %zu is the byte 0x%02x, which is no %s", name, i,
                            bytes[i], ree_dtype_name(t->dtype));
    return REE_OK;
}

enum ree_status ree_input_check_any(const char *name, const struct ree_tensor *t,
                                    struct ree_error *err) {
    if (t->kind == REE_ABSENT) return REE_OK;
    for (size_t i = 0; t->kind == REE_SEQUENCE && i < t->n_items; i++) {
        if (t->items[i].kind != REE_TENSOR)
            return ree_fail(err, REE_INVALID, "input '%s': item %zu is no tensor", name, i);
        REE_TRY(ree_input_check_any(name, &t->items[i], err));
    }
    if (t->kind == REE_SEQUENCE) return REE_OK;
    if (!ree_dtype_size(t->dtype))
        return ree_fail(err, REE_INVALID, "input '%s': it is of no type that ree has", name);
    REE_TRY(check_bytes(name, t, err));
    return check_elements(name, t, err);
}

static enum ree_status check_tensor(const struct ree_model *m, const struct ree_port *port,
                                    const struct ree_tensor *t, struct ree_error *err) {
    char text[160], message[512];
    REE_TRY(check_bytes(port->name, t, err));
    tensor_text(t, text, sizeof text);
    if (t->dtype != port->dtype) {
        snprintf(message, sizeof message, "input '%s' is %s, expected %s", port->name, text,
                 ree_dtype_name(port->dtype));
        return refuse_inputs(m, err, message);
    }
    REE_TRY(check_elements(port->name, t, err));
    bool fits = !port->has_shape || t->rank == port->rank;
    for (uint32_t i = 0; fits && port->has_shape && i < t->rank; i++)
        fits = port->dims[i] < 0 || port->dims[i] == t->dims[i];
    if (fits) return REE_OK;
    snprintf(message, sizeof message, "input '%s' is %s, which its declared shape excludes",
             port->name, text);
    return refuse_inputs(m, err, message);
}

static enum ree_status check_input(const struct ree_model *m, const struct ree_port *port,
                                   const struct ree_tensor *t, struct ree_error *err) {
    static const char *const names[] = {"a tensor", "a sequence", "absent"};
    if (t->kind == REE_ABSENT && port->nullable) return REE_OK;
    if (t->kind != port->kind) {
        char message[512];
        snprintf(message, sizeof message, "input '%s' is %s, expected %s", port->name,
                 names[t->kind <= REE_ABSENT ? t->kind : REE_ABSENT], names[port->kind]);
        return refuse_inputs(m, err, message);
    }
    if (t->kind == REE_TENSOR) return check_tensor(m, port, t, err);
    for (size_t i = 0; i < t->n_items; i++) {
        if (t->items[i].kind != REE_TENSOR)
            return ree_fail(err, REE_INVALID, "input '%s': item %zu is no tensor", port->name, i);
        REE_TRY(check_tensor(m, port, &t->items[i], err));
    }
    return REE_OK;
}

static bool is_shaped(const struct ree_model *model, const struct ree_tensor *inputs, size_t i) {
    return model->inputs[i].has_shape && inputs[i].kind == REE_TENSOR;
}

// One symbol, one size, over all inputs that are tensors.
static enum ree_status check_symbols(const struct ree_model *m, const struct ree_tensor *inputs,
                                     struct ree_error *err) {
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
                    return refuse_inputs(m, err, message);
                }
        }
    return REE_OK;
}

static ptrdiff_t state_of(const struct ree_session_state *states, size_t n_states, size_t input) {
    for (size_t i = 0; i < n_states; i++)
        if (states[i].spec.input == input) return (ptrdiff_t)i;
    return -1;
}

enum ree_status ree_inputs_match(const struct ree_model *m, const struct ree_session_state *states,
                                 size_t n_states, const struct ree_tensor *inputs, size_t n_inputs,
                                 struct ree_tensor *ordered, struct ree_error *err) {
    char message[512];
    for (size_t k = 0; k < n_inputs; k++) {
        size_t i = 0;
        while (i < m->n_inputs && (!inputs[k].name || strcmp(inputs[k].name, m->inputs[i].name)))
            i++;
        if (i == m->n_inputs) {
            snprintf(message, sizeof message, "there is no input '%s'",
                     inputs[k].name ? inputs[k].name : "");
            return refuse_inputs(m, err, message);
        }
        if (ordered[i].name) {
            snprintf(message, sizeof message, "input '%s' is given twice", inputs[k].name);
            return refuse_inputs(m, err, message);
        }
        ordered[i] = inputs[k];
    }
    for (size_t i = 0; i < m->n_inputs; i++) {
        ptrdiff_t state = state_of(states, n_states, i);
        if (state >= 0) {
            if (ordered[i].name)
                return ree_fail(err, REE_INVALID, "input '%s' is kept by the session and not given",
                                m->inputs[i].name);
            // Its shape alone: the contents are on the device.
            ordered[i].name = (char *)(uintptr_t)m->inputs[i].name; // only read
            ordered[i].dtype = m->inputs[i].dtype;
            ordered[i].rank = m->inputs[i].rank;
            memcpy(ordered[i].dims, states[state].dims, sizeof ordered[i].dims);
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
            return refuse_inputs(m, err, message);
        }
        REE_TRY(check_input(m, &m->inputs[i], &ordered[i], err));
        // What an empty sequence or an absent value would hold, only the model says.
        if (ordered[i].kind != REE_TENSOR) ordered[i].dtype = m->inputs[i].dtype;
    }
    return check_symbols(m, ordered, err);
}
