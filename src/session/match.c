// Checks run inputs against the model's inputs.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "session/device_tensor.h"
#include "session/session_internal.h"

// Appends, for example, "'x' float32[batch,3,224,224]".
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

// Fails with "<message>; the model's inputs are 'x' float32[1,3,224,224], ...".
static enum ree_status refuse_inputs(const struct ree_model *m, struct ree_error *err,
                                     const char *message) {
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    for (size_t i = 0; i < m->n_inputs; i++) {
        if (i) ree_strbuf_printf(&text, ", ");
        print_port(&text, &m->inputs[i]);
    }
    if (!m->n_inputs) ree_strbuf_printf(&text, "no inputs");
    ree_fail(err, REE_INVALID, "%s; the model's inputs are %s", message,
             text.data ? text.data : "?");
    ree_strbuf_finish(&text);
    return REE_INVALID;
}

static void tensor_text(const struct ree_tensor *t, char *out, size_t size) {
    struct ree_view v = {.dtype = t->dtype, .rank = t->rank};
    memcpy(v.dims, t->dims, sizeof v.dims);
    ree_view_text(&v, out, size);
}

// Fails unless the size of the data matches shape and type.
static enum ree_status check_bytes(const char *name, const struct ree_tensor *t,
                                   struct ree_error *err) {
    int64_t count;
    if (t->rank > REE_MAX_RANK || !ree_count_elements(t->rank, t->dims, &count) ||
        (ree_dtype_size(t->dtype) && t->nbytes / ree_dtype_size(t->dtype) != (uint64_t)count) ||
        (count && !t->data))
        return ree_fail(err, REE_INVALID,
                        "input '%s': the size of its data does not match its shape", name);
    return REE_OK;
}

// Fails if a byte is not a valid element. Only types with fewer than 256 values, which use one byte
// per element, have invalid bytes.
static enum ree_status check_elements(const char *name, const struct ree_tensor *t,
                                      struct ree_error *err) {
    const uint8_t *bytes = t->data;
    bool is_partial = t->dtype == REE_BOOL || ree_dtype_bits(t->dtype) % 8;
    for (size_t i = 0; is_partial && i < t->nbytes; i++)
        if (!ree_dtype_byte_is_valid(t->dtype, bytes[i]))
            return ree_fail(err, REE_INVALID,
                            "input '%s': element %zu is the byte 0x%02x, which is not a valid %s",
                            name, i, bytes[i], ree_dtype_name(t->dtype));
    return REE_OK;
}

enum ree_status ree_input_check_any(const char *name, const struct ree_tensor *t,
                                    struct ree_error *err) {
    if (t->kind == REE_ABSENT) return REE_OK;
    for (size_t i = 0; t->kind == REE_SEQUENCE && i < t->n_items; i++) {
        if (t->items[i].kind != REE_TENSOR)
            return ree_fail(err, REE_INVALID, "input '%s': item %zu is not a tensor", name, i);
        REE_TRY(ree_input_check_any(name, &t->items[i], err));
    }
    if (t->kind == REE_SEQUENCE) return REE_OK;
    if (!ree_dtype_size(t->dtype))
        return ree_fail(err, REE_INVALID, "input '%s': ree does not support its type", name);
    REE_TRY(check_bytes(name, t, err));
    return check_elements(name, t, err);
}

static enum ree_status check_type(const struct ree_model *m, const struct ree_port *port,
                                  const struct ree_tensor *t, struct ree_error *err) {
    char text[160], message[512];
    tensor_text(t, text, sizeof text);
    if (t->dtype != port->dtype) {
        snprintf(message, sizeof message, "input '%s' is %s, expected %s", port->name, text,
                 ree_dtype_name(port->dtype));
        return refuse_inputs(m, err, message);
    }
    bool fits = !port->has_shape || t->rank == port->rank;
    for (uint32_t i = 0; fits && port->has_shape && i < t->rank; i++)
        fits = port->dims[i] < 0 || port->dims[i] == t->dims[i];
    if (fits) return REE_OK;
    snprintf(message, sizeof message, "input '%s' is %s, which does not match its declared shape",
             port->name, text);
    return refuse_inputs(m, err, message);
}

static enum ree_status check_tensor(const struct ree_model *m, const struct ree_port *port,
                                    const struct ree_tensor *t, struct ree_error *err) {
    REE_TRY(check_bytes(port->name, t, err));
    REE_TRY(check_type(m, port, t, err));
    return check_elements(port->name, t, err);
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
            return ree_fail(err, REE_INVALID, "input '%s': item %zu is not a tensor", port->name,
                            i);
        REE_TRY(check_tensor(m, port, &t->items[i], err));
    }
    return REE_OK;
}

static bool is_shaped(const struct ree_model *model, const struct ree_tensor *inputs, size_t i) {
    return model->inputs[i].has_shape && inputs[i].kind == REE_TENSOR;
}

// A symbolic dimension of an input.
struct symbol {
    const char *name;
    size_t input;
    uint32_t dim;
};

static int compare_symbols(const void *a, const void *b) {
    const struct symbol *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    if (!order) order = (x->input > y->input) - (x->input < y->input);
    return order ? order : (x->dim > y->dim) - (x->dim < y->dim);
}

static struct symbol *list_symbols(const struct ree_model *m, const struct ree_tensor *inputs,
                                   size_t *out_n) {
    size_t n = 0;
    for (size_t i = 0; i < m->n_inputs; i++)
        n += is_shaped(m, inputs, i) ? m->inputs[i].rank : 0;
    struct symbol *symbols = ree_alloc_zeroed(n + 1, sizeof *symbols);
    *out_n = 0;
    for (size_t i = 0; symbols && i < m->n_inputs; i++)
        for (uint32_t d = 0; is_shaped(m, inputs, i) && d < m->inputs[i].rank; d++) {
            const char *name = m->inputs[i].symbols[d];
            // Some exporters write "None" or "?" for every unknown size.
            if (m->inputs[i].dims[d] >= 0 || !name || !name[0] || !strcmp(name, "None") ||
                !strcmp(name, "?"))
                continue;
            symbols[(*out_n)++] = (struct symbol){name, i, d};
        }
    if (symbols) qsort(symbols, *out_n, sizeof *symbols, compare_symbols);
    return symbols;
}

// A symbol must have the same size in all inputs that are tensors; its first occurrence defines it.
// If the size differs in several inputs, the message names the first of them.
static enum ree_status check_symbols(const struct ree_model *m, const struct ree_tensor *inputs,
                                     struct ree_error *err) {
    size_t n;
    struct symbol *symbols = list_symbols(m, inputs, &n);
    if (!symbols) return ree_no_memory(err);
    const struct symbol *first = symbols, *wrong = NULL, *against = NULL;
    for (size_t k = 0; k < n; k++) {
        const struct symbol *s = &symbols[k];
        if (strcmp(s->name, first->name)) first = s;
        if (inputs[s->input].dims[s->dim] == inputs[first->input].dims[first->dim]) continue;
        if (wrong && (wrong->input < s->input || (wrong->input == s->input && wrong->dim < s->dim)))
            continue;
        wrong = s;
        against = first;
    }
    enum ree_status status = REE_OK;
    if (wrong) {
        char message[512];
        snprintf(message, sizeof message,
                 "dimension '%s' is %lld in input '%s', but %lld in input '%s'", wrong->name,
                 (long long)inputs[against->input].dims[against->dim],
                 m->inputs[against->input].name, (long long)inputs[wrong->input].dims[wrong->dim],
                 m->inputs[wrong->input].name);
        status = refuse_inputs(m, err, message);
    }
    ree_free(symbols);
    return status;
}

// Returns for each input the index of its kv cache, or -1. The caller releases the array. NULL:
// memory is exhausted.
static ptrdiff_t *map_kv_caches(const struct ree_kv_cache *kv_caches, size_t n_kv_caches,
                                size_t n_inputs) {
    ptrdiff_t *map = ree_alloc((n_inputs + 1) * sizeof *map);
    for (size_t i = 0; map && i < n_inputs; i++)
        map[i] = -1;
    for (size_t i = n_kv_caches; map && i-- > 0;)
        if (kv_caches[i].spec.input < n_inputs) map[kv_caches[i].spec.input] = (ptrdiff_t)i;
    return map;
}

// Enters type and shape of a device tensor, whose contents were checked when they were written.
static enum ree_status enter_device_tensor(const struct ree_model *m, size_t i,
                                           const struct ree_device_tensor *tensor,
                                           struct ree_tensor *ordered, struct ree_error *err) {
    char message[512];
    const struct ree_port *port = &m->inputs[i];
    if (ordered[i].name) {
        snprintf(message, sizeof message, "input '%s' is given more than once", port->name);
        return refuse_inputs(m, err, message);
    }
    if (port->kind != REE_TENSOR) {
        snprintf(message, sizeof message, "input '%s' cannot be a device tensor", port->name);
        return refuse_inputs(m, err, message);
    }
    ordered[i] = tensor->type;
    ordered[i].name = (char *)(uintptr_t)port->name; // only read
    return check_type(m, port, &tensor->type, err);
}

static enum ree_status order_inputs(const struct ree_model *m, const ptrdiff_t *kv_cache_of,
                                    const struct ree_kv_cache *kv_caches,
                                    struct ree_device_tensor *const *on_device,
                                    const struct ree_tensor *inputs, size_t n_inputs,
                                    struct ree_tensor *ordered, struct ree_error *err) {
    char message[512];
    for (size_t k = 0; k < n_inputs; k++) {
        size_t i =
            inputs[k].name ? ree_name_index_find(&m->input_names, inputs[k].name) : REE_NO_NAME;
        if (i == REE_NO_NAME) {
            snprintf(message, sizeof message, "the model has no input '%s'",
                     inputs[k].name ? inputs[k].name : "");
            return refuse_inputs(m, err, message);
        }
        if (ordered[i].name) {
            snprintf(message, sizeof message, "input '%s' is given more than once", inputs[k].name);
            return refuse_inputs(m, err, message);
        }
        ordered[i] = inputs[k];
    }
    for (size_t i = 0; i < m->n_inputs; i++) {
        ptrdiff_t cache = kv_cache_of[i];
        if (cache >= 0) {
            if (ordered[i].name)
                return ree_fail(err, REE_INVALID,
                                "input '%s' is a cache of the session and must not be given",
                                m->inputs[i].name);
            // Enter only the cache's shape: its contents are on the device.
            ordered[i].name = (char *)(uintptr_t)m->inputs[i].name; // only read
            ordered[i].dtype = m->inputs[i].dtype;
            ordered[i].rank = m->inputs[i].rank;
            memcpy(ordered[i].dims, kv_caches[cache].dims, sizeof ordered[i].dims);
            continue;
        }
        if (on_device && on_device[i]) {
            REE_TRY(enter_device_tensor(m, i, on_device[i], ordered, err));
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
        // Only the model knows the element type of an empty sequence or an absent value.
        if (ordered[i].kind != REE_TENSOR) ordered[i].dtype = m->inputs[i].dtype;
    }
    return check_symbols(m, ordered, err);
}

enum ree_status ree_inputs_match(const struct ree_model *m, const struct ree_kv_cache *kv_caches,
                                 size_t n_kv_caches, struct ree_device_tensor *const *on_device,
                                 const struct ree_tensor *inputs, size_t n_inputs,
                                 struct ree_tensor *ordered, struct ree_error *err) {
    ptrdiff_t *kv_cache_of = map_kv_caches(kv_caches, n_kv_caches, m->n_inputs);
    if (!kv_cache_of) return ree_no_memory(err);
    enum ree_status status =
        order_inputs(m, kv_cache_of, kv_caches, on_device, inputs, n_inputs, ordered, err);
    ree_free(kv_cache_of);
    return status;
}
