// The core of lowering: tensors, host values, and the path from a node to its rule.
#include "base/dtype.h"
#include "graph/lower/lower.h"

#include <stdio.h>
#include <string.h>

static enum ree_status no_memory(struct ree_lower *lower) {
    return ree_lower_fail(lower, REE_NO_MEMORY, "out of memory");
}

// Storages and tensors

static struct ree_storage *add_storage(struct ree_lower *lower, enum ree_storage_kind kind,
                                       uint64_t nbytes) {
    if (lower->n_storages == lower->storages_capacity) {
        size_t capacity = lower->storages_capacity ? lower->storages_capacity * 2 : 64;
        struct ree_storage **grown =
            ree_arena_alloc_array(lower->arena, capacity, sizeof(struct ree_storage *));
        if (!grown) return NULL;
        if (lower->n_storages)
            memcpy(grown, lower->storages, lower->n_storages * sizeof(struct ree_storage *));
        lower->storages = grown;
        lower->storages_capacity = capacity;
    }
    struct ree_storage *storage = ree_arena_alloc(lower->arena, sizeof *storage);
    if (!storage) return NULL;
    storage->kind = kind;
    storage->id = (uint32_t)lower->n_storages;
    storage->nbytes = nbytes;
    lower->storages[lower->n_storages++] = storage;
    return storage;
}

static void set_dense_strides(struct ree_view *t) {
    int64_t stride = 1;
    for (uint32_t i = t->rank; i-- > 0;) {
        t->strides[i] = stride;
        stride *= t->dims[i] ? t->dims[i] : 1;
    }
}

// Makes a dense tensor view that has no storage yet. Checks the limits for all tensors.
static enum ree_status make_view(struct ree_lower *lower, enum ree_dtype dtype, uint32_t rank,
                                 const int64_t *dims, struct ree_view **out, uint64_t *out_bytes) {
    if (rank > REE_MAX_RANK)
        return ree_lower_fail(lower, REE_UNSUPPORTED,
                              "a tensor of rank %u; at most %d is supported", rank, REE_MAX_RANK);
    size_t size = ree_dtype_size(dtype);
    if (!size)
        return ree_lower_fail(lower, REE_UNSUPPORTED, "tensors of type %s are not supported",
                              ree_dtype_name(dtype));
    struct ree_view *t = ree_arena_alloc(lower->arena, sizeof *t);
    if (!t) return no_memory(lower);
    t->dtype = dtype;
    t->rank = rank;
    for (uint32_t i = 0; i < rank; i++)
        t->dims[i] = dims[i];
    int64_t count;
    if (!ree_count_elements(rank, dims, &count) || count >= INT64_C(1) << 31) {
        char text[128];
        return ree_lower_fail(
            lower, REE_UNSUPPORTED,
            "a tensor %s: sizes must not be negative and their product below 2^31",
            ree_view_text(t, text, sizeof text));
    }
    set_dense_strides(t);
    *out_bytes = (uint64_t)count * size;
    *out = t;
    return REE_OK;
}

enum ree_status ree_lower_new(struct ree_lower *lower, enum ree_dtype dtype, uint32_t rank,
                              const int64_t *dims, struct ree_view **out) {
    uint64_t nbytes;
    struct ree_view *t;
    REE_TRY(make_view(lower, dtype, rank, dims, &t, &nbytes));
    t->storage = add_storage(lower, REE_STORAGE_TEMP, nbytes);
    if (!t->storage) return no_memory(lower);
    *out = t;
    return REE_OK;
}

// Allocates host memory that a dispatch may write: zeroed, and padded so that whole words can be
// accessed.
static void *host_memory(struct ree_lower *lower, uint64_t nbytes) {
    if (nbytes > SIZE_MAX - 64) return NULL;
    return ree_arena_alloc(lower->arena, (size_t)nbytes + 64);
}

enum ree_status ree_lower_literal(struct ree_lower *lower, enum ree_dtype dtype, uint32_t rank,
                                  const int64_t *dims, const void *bytes, struct ree_view **out) {
    struct ree_view *t;
    REE_TRY(ree_lower_new(lower, dtype, rank, dims, &t));
    void *copy = host_memory(lower, t->storage->nbytes);
    if (!copy) return no_memory(lower);
    if (t->storage->nbytes) memcpy(copy, bytes, t->storage->nbytes);
    t->storage->kind = REE_STORAGE_LITERAL;
    t->storage->host = copy;
    *out = t;
    return REE_OK;
}

enum ree_status ree_lower_ints(struct ree_lower *lower, size_t n, const int64_t *values,
                               struct ree_view **out) {
    int64_t dim = (int64_t)n;
    return ree_lower_literal(lower, REE_I64, 1, &dim, values, out);
}

enum ree_status ree_lower_value(struct ree_lower *lower, const struct ree_value *value,
                                enum ree_storage_kind kind, const int64_t *dims,
                                struct ree_view **out) {
    struct ree_view *t;
    if (kind == REE_STORAGE_CONST && value->dtype == REE_STRING)
        return ree_lower_strings(lower, value->rank, dims, value->data, out);
    REE_TRY(ree_lower_new(lower, value->dtype, value->rank, dims, &t));
    t->storage->kind = kind;
    t->storage->value = value;
    if (kind == REE_STORAGE_CONST) {
        if (t->storage->nbytes != value->nbytes)
            return ree_lower_fail(lower, REE_INTERNAL,
                                  "initializer '%s' has %zu bytes, expected %llu", value->name,
                                  value->nbytes, (unsigned long long)t->storage->nbytes);
        t->storage->host = value->data;
    }
    *out = t;
    return REE_OK;
}

bool ree_view_is_dense(const struct ree_view *t) {
    int64_t stride = 1;
    for (uint32_t i = t->rank; i-- > 0;) {
        if (t->dims[i] == 0) return true;
        if (t->dims[i] != 1 && t->strides[i] != stride) return false;
        stride *= t->dims[i];
    }
    return true;
}

int64_t ree_view_count(const struct ree_view *t) {
    int64_t n = 1;
    for (uint32_t i = 0; i < t->rank; i++)
        n *= t->dims[i];
    return n;
}

const char *ree_view_text(const struct ree_view *t, char *out, size_t size) {
    if (t->kind == REE_SEQUENCE) {
        snprintf(out, size, "a sequence of %zu %s", t->n_items, ree_dtype_name(t->dtype));
        return out;
    }
    if (t->kind == REE_ABSENT) {
        snprintf(out, size, "an absent value");
        return out;
    }
    int n = snprintf(out, size, "%s[", ree_dtype_name(t->dtype));
    for (uint32_t i = 0; i < t->rank && n >= 0 && (size_t)n < size; i++)
        n += snprintf(out + n, size - (size_t)n, "%s%lld", i ? "," : "", (long long)t->dims[i]);
    if (n >= 0 && (size_t)n < size) snprintf(out + n, size - (size_t)n, "]");
    return out;
}

// Host values

bool ree_lower_is_host(const struct ree_view *t) {
    return t->storage->host != NULL || t->storage->nbytes == 0;
}

enum ree_status ree_lower_host(struct ree_lower *lower, struct ree_view *t,
                               const void **out_bytes) {
    char text[128];
    if (t->kind != REE_TENSOR)
        return ree_lower_fail(lower, REE_INVALID, "%s where a tensor is expected",
                              ree_view_text(t, text, sizeof text));
    if (ree_view_count(t) == 0) {
        *out_bytes = "";
        return REE_OK;
    }
    if (!t->storage->host) {
        REE_TRY(lower->read_storage(lower, t->storage));
        if (!t->storage->host)
            return ree_lower_fail(lower, REE_INTERNAL,
                                  "a tensor's value was not brought to the host");
    }
    const char *base = t->storage->host;
    size_t size = ree_dtype_size(t->dtype);
    if (ree_view_is_dense(t)) {
        *out_bytes = base + (size_t)t->offset * size;
        return REE_OK;
    }
    // Gather the elements here: ree_lower_dense might leave the copy to the device (fold is false).
    int64_t n = ree_view_count(t);
    char *dense = host_memory(lower, (uint64_t)n * size);
    if (!dense) return no_memory(lower);
    int64_t index[REE_MAX_RANK] = {0};
    for (int64_t i = 0; i < n; i++) {
        int64_t at = t->offset;
        for (uint32_t d = 0; d < t->rank; d++)
            at += index[d] * t->strides[d];
        memcpy(dense + (size_t)i * size, base + (size_t)at * size, size);
        for (uint32_t d = t->rank; d-- > 0;) {
            if (++index[d] < t->dims[d]) break;
            index[d] = 0;
        }
    }
    *out_bytes = dense;
    return REE_OK;
}

enum ree_status ree_lower_host_ints(struct ree_lower *lower, struct ree_view *t, const char *what,
                                    const int64_t **out_values, size_t *out_n) {
    char text[128];
    if (t->dtype != REE_I64 && t->dtype != REE_I32)
        return ree_lower_fail(lower, REE_INVALID, "%s is %s, expected int64 or int32", what,
                              ree_view_text(t, text, sizeof text));
    size_t n = (size_t)ree_view_count(t);
    const void *bytes;
    REE_TRY(ree_lower_host(lower, t, &bytes));
    int64_t *values = ree_arena_alloc_array(lower->arena, n, sizeof *values);
    if (!values) return no_memory(lower);
    if (t->dtype == REE_I64) {
        if (n) memcpy(values, bytes, n * sizeof *values);
    } else {
        for (size_t i = 0; i < n; i++) {
            int32_t v;
            memcpy(&v, (const char *)bytes + 4 * i, 4);
            values[i] = v;
        }
    }
    *out_values = values;
    *out_n = n;
    return REE_OK;
}

enum ree_status ree_lower_host_float(struct ree_lower *lower, struct ree_view *t, const char *what,
                                     float *out) {
    char text[128];
    if (t->dtype != REE_F32 || ree_view_count(t) != 1)
        return ree_lower_fail(lower, REE_INVALID, "%s is %s, expected one float32", what,
                              ree_view_text(t, text, sizeof text));
    const void *bytes;
    REE_TRY(ree_lower_host(lower, t, &bytes));
    memcpy(out, bytes, sizeof *out);
    return REE_OK;
}

// Dispatches

// Returns whether operand i's parameters have an offset field for the view. The operand is then
// passed from the start of its storage.
static bool params_carry_offset(enum ree_repop op, uint32_t i, uint32_t n_operands) {
    switch (op) {
    case REE_REPOP_COPY: return true;
    case REE_REPOP_MAP:
    case REE_REPOP_ATTENTION: return i + 1 < n_operands; // all but the result
    case REE_REPOP_MATMUL: return i < 2;
    case REE_REPOP_REDUCE:
    case REE_REPOP_GATHER: return i == 0;
    default: return false;
    }
}

// Returns whether operand i is both read and written.
static bool is_in_out(enum ree_repop op, uint32_t i) {
    return (op == REE_REPOP_COPY && i == 1) || (op == REE_REPOP_SCATTER && i == 0);
}

// Returns whether the dispatch may run on the host now. An output must be new, without contents. An
// in-out operand must be new, or have writable contents on the host.
static bool can_run_on_host(const struct ree_lower *lower, enum ree_repop op,
                            struct ree_view *const *operands, uint32_t n_operands,
                            uint32_t n_outputs) {
    uint64_t out_bytes = 0;
    for (uint32_t i = 0; i < n_operands; i++) {
        const struct ree_storage *s = operands[i]->storage;
        bool output = i + n_outputs >= n_operands || is_in_out(op, i);
        if (output) {
            out_bytes += s->nbytes;
            if (s->device_written || (s->host && !s->host_writable)) return false;
            if (!lower->fold && ree_dtype_is_float(operands[i]->dtype)) return false;
        } else if (!s->host && s->nbytes) {
            return false;
        }
    }
    return out_bytes <= lower->fold_limit;
}

static uint32_t answering_node(const struct ree_lower *lower) {
    const struct ree_node *node = lower->outer_node ? lower->outer_node : lower->node;
    return node ? node->id : 0;
}

static enum ree_status append_dispatch(struct ree_lower *lower,
                                       const struct ree_dispatch *dispatch) {
    if (lower->n_dispatches == lower->dispatches_capacity) {
        size_t capacity = lower->dispatches_capacity ? lower->dispatches_capacity * 2 : 32;
        struct ree_dispatch *grown = ree_arena_alloc_array(lower->arena, capacity, sizeof *grown);
        if (!grown) return no_memory(lower);
        if (lower->n_dispatches)
            memcpy(grown, lower->dispatches, lower->n_dispatches * sizeof *grown);
        lower->dispatches = grown;
        lower->dispatches_capacity = capacity;
    }
    lower->dispatches[lower->n_dispatches++] = *dispatch;
    return REE_OK;
}

// Moves a storage that the host has begun to fill to the device, which must write it now. The host
// contents become a literal, and a copy from the literal is emitted first. Earlier dispatches that
// read the storage read the literal instead.
static enum ree_status move_to_device(struct ree_lower *lower, struct ree_storage *storage) {
    struct ree_storage *literal = add_storage(lower, REE_STORAGE_LITERAL, storage->nbytes);
    if (!literal) return no_memory(lower);
    literal->host = storage->host;
    storage->kind = REE_STORAGE_TEMP;
    storage->host = storage->host_writable = NULL;
    storage->device_written = true;
    for (size_t i = 0; i < lower->n_dispatches; i++)
        for (uint32_t k = 0; k < lower->dispatches[i].n_operands; k++)
            if (lower->dispatches[i].operands[k].slot == storage->id)
                lower->dispatches[i].operands[k].slot = literal->id;
    // Copy whole words; the padding up to the last word belongs to the storage.
    struct ree_dispatch d = {.op = REE_REPOP_COPY, .n_operands = 2, .n_outputs = 1};
    d.node = answering_node(lower);
    uint32_t words = (uint32_t)((storage->nbytes + 3) / 4);
    d.params.copy = (struct ree_copy_params){.elem_size = 4, .rank = 1, .n_elements = words};
    d.params.copy.dims[0] = words;
    d.params.copy.src_strides[0] = d.params.copy.dst_strides[0] = 1;
    d.operands[0] = (struct ree_operand){literal->id, 0, (uint64_t)words * 4};
    d.operands[1] = (struct ree_operand){storage->id, 0, (uint64_t)words * 4};
    return append_dispatch(lower, &d);
}

enum ree_status ree_lower_emit(struct ree_lower *lower, enum ree_repop op,
                               const union ree_params *params, struct ree_view *const *operands,
                               uint32_t n_operands, uint32_t n_outputs) {
    if (n_operands > REE_MAX_OPERANDS)
        return ree_lower_fail(lower, REE_INTERNAL, "%s with %u operands", ree_repop_name(op),
                              n_operands);
    bool writes_nothing = true;
    for (uint32_t i = n_operands - n_outputs; i < n_operands; i++)
        if (operands[i]->storage->nbytes) writes_nothing = false;
    if (writes_nothing && n_outputs) return REE_OK;
    // In a bind, strings are numbers. Only RepOps that move data may process them.
    bool moves = op == REE_REPOP_COPY || op == REE_REPOP_GATHER || op == REE_REPOP_MAP ||
                 op == REE_REPOP_SCATTER;
    for (uint32_t i = 0; i < n_operands && !moves; i++)
        if (operands[i]->dtype == REE_STRING)
            return ree_lower_fail(lower, REE_UNSUPPORTED, "%s of strings is not supported",
                                  lower->node ? lower->node->op_type : ree_repop_name(op));
    if (op == REE_REPOP_SCATTER && operands[0]->storage->nbytes == 0) return REE_OK;

    struct ree_dispatch d = {.op = op, .n_operands = n_operands, .n_outputs = n_outputs};
    d.node = answering_node(lower);
    memcpy(&d.params, params, ree_repop_params_size(op));
    for (uint32_t i = 0; i < n_operands; i++) {
        const struct ree_view *t = operands[i];
        uint64_t skip = params_carry_offset(op, i, n_operands)
                            ? 0
                            : (uint64_t)t->offset * ree_dtype_size(t->dtype);
        d.operands[i] = (struct ree_operand){t->storage->id, skip, t->storage->nbytes - skip};
    }

    if (can_run_on_host(lower, op, operands, n_operands, n_outputs)) {
        void *pointers[REE_MAX_OPERANDS];
        for (uint32_t i = 0; i < n_operands; i++) {
            struct ree_storage *s = operands[i]->storage;
            bool output = i + n_outputs >= n_operands || is_in_out(op, i);
            if (output && !s->host_writable) {
                s->host_writable = host_memory(lower, s->nbytes);
                if (!s->host_writable) return no_memory(lower);
                s->host = s->host_writable;
                s->kind = REE_STORAGE_LITERAL;
            }
            // Kernels receive their inputs in the same array, but do not write to them.
            pointers[i] = (char *)(uintptr_t)s->host + d.operands[i].offset;
        }
#ifdef REE_CHECK_DISPATCHES
        REE_TRY(ree_dispatch_check(&d, lower->err));
#endif
        return lower->host_execute(&d, pointers, lower->err);
    }
    for (uint32_t i = 0; i < n_operands; i++) {
        struct ree_storage *s = operands[i]->storage;
        if (i + n_outputs < n_operands && !is_in_out(op, i)) continue;
        if (s->host) REE_TRY(move_to_device(lower, s));
        s->device_written = true;
    }
    return append_dispatch(lower, &d);
}

// Nodes

// Finds where the current activation, or an enclosing one, keeps the tensor of a value. NULL for a
// value of a graph that is not being lowered: a constant, when a subgraph is folded separately.
static struct ree_view **slot_of(const struct ree_lower *lower, const struct ree_value *value) {
    const struct ree_frame *frame = lower->frame;
    while (frame && value->graph && frame->graph != value->graph)
        frame = frame->parent;
    return frame ? &frame->values[value->id] : NULL;
}

// Finds the tensor of a value: one that was made or passed in before, or a constant.
static enum ree_status find_value(struct ree_lower *lower, const struct ree_value *value,
                                  const char *what, size_t index, struct ree_view **out) {
    struct ree_view *constant, **slot = slot_of(lower, value);
    if (!slot) slot = &constant, constant = NULL;
    if (!*slot) {
        if (!value->data && !(value->dtype != REE_DTYPE_NONE && value->has_shape &&
                              value->nbytes == 0 && !value->producer && !value->is_input))
            return ree_lower_fail(lower, REE_INVALID, "%s %zu ('%s') has no value", what, index,
                                  value->name);
        REE_TRY(ree_lower_value(lower, value, REE_STORAGE_CONST, value->dims, slot));
    }
    *out = *slot;
    return REE_OK;
}

// If an attribute has another kind than the rule reads, the rule gets the default. Its result would
// answer another question, so this is reported as an error of the node, whatever the rule returned.
static enum ree_status call_rule(struct ree_lower *lower, const struct ree_op *op,
                                 struct ree_view *const *in, struct ree_view **out) {
    enum ree_attr_kind wanted;
    const struct ree_node *node = lower->node;
    ree_node_misread(node, &wanted); // clear a record from an earlier reader
    enum ree_status status = op->rule(lower, in, out);
    const struct ree_attr *attr = ree_node_misread(node, &wanted);
    if (!attr) return status;
    return ree_lower_fail(lower, REE_INVALID, "attribute '%s' is %s, expected %s", attr->name,
                          ree_attr_kind_name(attr->kind), ree_attr_kind_name(wanted));
}

static const char *kind_text(enum ree_kind kind) {
    return kind == REE_SEQUENCE ? "a sequence of " : "";
}

// The declared type of a value is part of the model: if a rule derives another type, one of them is
// wrong, and so are the numbers. Declared shapes are only hints, because exporters leave outdated
// ones.
static enum ree_status check_declared(struct ree_lower *lower, const struct ree_value *value,
                                      const struct ree_view *made) {
    bool differs = value->dtype != made->dtype || value->kind != made->kind;
    if (value->dtype == REE_DTYPE_NONE || made->dtype == REE_DTYPE_NONE || !differs) return REE_OK;
    if (made->kind == REE_ABSENT || value->kind == REE_ABSENT) return REE_OK;
    lower->contradicts = true;
    return ree_lower_fail(lower, REE_INVALID, "'%s' is declared as %s%s, but it is %s%s",
                          value->name, kind_text(value->kind), ree_onnx_type_name(value->dtype),
                          kind_text(made->kind), ree_onnx_type_name(made->dtype));
}

static enum ree_status lower_node(struct ree_lower *lower, const struct ree_node *node) {
    const char *reason;
    const struct ree_op *op = ree_op_find(node->domain, node->op_type, node->opset, &reason);
    if (!op) return ree_lower_fail(lower, REE_UNSUPPORTED, "%s", reason);
    size_t n_in = node->n_inputs, n_out = node->n_outputs;
    if (n_in < op->min_inputs || n_in > op->max_inputs)
        return ree_lower_fail(lower, REE_INVALID, "has %zu inputs, expected %u to %u", n_in,
                              op->min_inputs, op->max_inputs);
    if (n_out > op->max_outputs)
        return ree_lower_fail(lower, REE_INVALID, "has %zu outputs, expected at most %u", n_out,
                              op->max_outputs);
    struct ree_view **in = ree_arena_alloc_array(lower->arena, n_in + 1, sizeof *in);
    // A rule fills as many outputs as its row allows; if the row has no limit, as many as the node
    // has.
    size_t capacity = op->max_outputs == UINT32_MAX ? n_out : op->max_outputs;
    struct ree_view **out = ree_arena_alloc_array(lower->arena, capacity + 1, sizeof *out);
    if (!in || !out) return no_memory(lower);
    for (size_t i = 0; i < n_in; i++) {
        if (node->inputs[i])
            REE_TRY(find_value(lower, node->inputs[i], "input", i, &in[i]));
        else if (i < op->min_inputs)
            return ree_lower_fail(lower, REE_INVALID, "input %zu is required but omitted", i);
    }
    for (size_t i = 0; op->narrow != REE_NARROW_ANY && i < n_in; i++) {
        char text[128];
        if (in[i] && in[i]->kind != REE_TENSOR)
            return ree_lower_fail(lower, REE_INVALID, "input %zu is %s, expected a tensor", i,
                                  ree_view_text(in[i], text, sizeof text));
    }
    enum ree_dtype narrow = REE_DTYPE_NONE;
    for (size_t i = 0; op->narrow == REE_NARROW_WIDEN && i < n_in; i++) {
        if (!in[i] || (in[i]->dtype != REE_F16 && in[i]->dtype != REE_BF16)) continue;
        if (narrow == REE_DTYPE_NONE) narrow = in[i]->dtype;
        REE_TRY(ree_lower_cast(lower, in[i], REE_F32, &in[i]));
    }
    lower->stays_wide = 0;
    REE_TRY(call_rule(lower, op, in, out));
    for (size_t i = 0; narrow != REE_DTYPE_NONE && i < n_out; i++)
        if (out[i] && out[i]->dtype == REE_F32 && !(i < 32 && lower->stays_wide >> i & 1))
            REE_TRY(ree_lower_cast(lower, out[i], narrow, &out[i]));
    for (size_t i = 0; i < n_out; i++) {
        if (!node->outputs[i]) continue;
        if (!out[i])
            return ree_lower_fail(lower, REE_UNSUPPORTED, "output %zu ('%s') is not provided", i,
                                  node->outputs[i]->name);
        REE_TRY(check_declared(lower, node->outputs[i], out[i]));
        if (!lower->fuse && out[i]->kind == REE_TENSOR && !ree_lower_is_host(out[i]) &&
            out[i]->storage->kind != REE_STORAGE_KV_CACHE)
            REE_TRY(ree_lower_dense(lower, out[i], &out[i]));
        *slot_of(lower, node->outputs[i]) = out[i];
    }
    return REE_OK;
}

static enum ree_status lower_labelled(struct ree_lower *lower, const struct ree_node *node) {
    lower->node = node;
    enum ree_status status = lower_node(lower, node);
    if (status != REE_OK) {
        char label[256];
        ree_fail_prefix(lower->err, "%s", ree_node_label(node, label, sizeof label));
    }
    return status;
}

enum ree_status ree_lower_node(struct ree_lower *lower, const struct ree_node *node,
                               struct ree_view **values) {
    struct ree_frame frame = {lower->graph, NULL, values};
    lower->frame = &frame;
    enum ree_status status = lower_labelled(lower, node);
    lower->frame = NULL;
    return status;
}

// Subgraphs

static enum ree_status count_step(struct ree_lower *lower) {
    uint32_t limit = lower->step_limit ? lower->step_limit : REE_LOWER_MAX_STEPS;
    if (lower->n_steps++ < limit) return REE_OK;
    return ree_lower_fail(
        lower, REE_UNSUPPORTED,
        "control flow takes more than %u steps (a step is an iteration, or a node "
        "in one)",
        limit);
}

// A body may declare the types of its inputs, which are checked. Shapes that it declares are hints:
// a body is lowered for the shapes that it receives.
static enum ree_status bind_inputs(struct ree_lower *lower, const struct ree_graph *graph,
                                   struct ree_view *const *in) {
    for (size_t i = 0; i < graph->n_inputs; i++) {
        const struct ree_value *value = graph->inputs[i];
        char text[128];
        bool fits = value->dtype == REE_DTYPE_NONE || in[i]->kind == REE_ABSENT ||
                    (value->dtype == in[i]->dtype && value->kind == in[i]->kind);
        if (!fits)
            return ree_lower_fail(
                lower, REE_INVALID, "the graph's input '%s' is %s, but it declares %s", value->name,
                ree_view_text(in[i], text, sizeof text), ree_onnx_type_name(value->dtype));
        lower->frame->values[value->id] = in[i];
    }
    return REE_OK;
}

static enum ree_status lower_body(struct ree_lower *lower, const struct ree_graph *graph,
                                  struct ree_view *const *in, struct ree_view **out) {
    REE_TRY(count_step(lower));
    REE_TRY(bind_inputs(lower, graph, in));
    const struct ree_node *node = lower->node;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        REE_TRY(count_step(lower));
        REE_TRY(lower_labelled(lower, graph->nodes[i]));
    }
    lower->node = node;
    for (size_t i = 0; i < graph->n_outputs; i++)
        REE_TRY(find_value(lower, graph->outputs[i], "the graph's output", i, &out[i]));
    return REE_OK;
}

enum ree_status ree_lower_graph(struct ree_lower *lower, const struct ree_graph *graph,
                                struct ree_view *const *in, struct ree_view **out) {
    const struct ree_node *node = lower->node, *outer_node = lower->outer_node;
    struct ree_frame frame = {.graph = graph, .parent = lower->frame};
    frame.values = ree_arena_alloc_array(lower->arena, graph->n_values + 1, sizeof *frame.values);
    if (!frame.values) return no_memory(lower);
    lower->frame = &frame;
    if (!outer_node) lower->outer_node = node;
    enum ree_status status = lower_body(lower, graph, in, out);
    lower->frame = frame.parent;
    lower->node = node;
    lower->outer_node = outer_node;
    return status;
}

static enum ree_status read_nothing(struct ree_lower *lower, struct ree_storage *storage) {
    (void)storage;
    lower->wants_data = true;
    return ree_lower_fail(lower, REE_UNSUPPORTED, "a shape that depends on data");
}

enum ree_status ree_lower_trial(struct ree_lower *lower, const struct ree_graph *graph,
                                struct ree_view *const *in, struct ree_view **out) {
    size_t n_dispatches = lower->n_dispatches;
    enum ree_status (*read_storage)(struct ree_lower *, struct ree_storage *) = lower->read_storage;
    lower->read_storage = read_nothing;
    enum ree_status status = ree_lower_graph(lower, graph, in, out);
    lower->read_storage = read_storage;
    lower->n_dispatches = n_dispatches;
    return status;
}
