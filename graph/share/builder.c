// Builds graphs: values, nodes, and what passes from one part to the next.
#include "graph/share/builder.h"

#include <stdio.h>
#include <string.h>

enum ree_status ree_builder_begin(struct ree_share_builder *b, struct ree_share_part *part) {
    const struct ree_graph *step = b->d->graph;
    part->graph = ree_graph_create();
    if (!part->graph) return ree_no_memory(b->err);
    struct ree_graph *graph = part->graph;
    graph->name = ree_arena_strdup(graph->arena, "part");
    graph->file = ree_arena_strdup(graph->arena, step->file);
    graph->ir_version = step->ir_version < 4 ? 4 : step->ir_version;
    graph->n_opsets = step->n_opsets;
    graph->opsets = ree_arena_alloc_array(graph->arena, step->n_opsets + 1, sizeof *graph->opsets);
    if (!graph->name || !graph->file || !graph->opsets) return ree_no_memory(b->err);
    for (size_t i = 0; i < step->n_opsets; i++) {
        graph->opsets[i] = step->opsets[i];
        graph->opsets[i].domain = ree_arena_strdup(graph->arena, step->opsets[i].domain);
        if (!graph->opsets[i].domain) return ree_no_memory(b->err);
    }
    b->part = part;
    return REE_OK;
}

// Returns `array` with room for one more element after `n`. Arrays grow in the arena, by doubling.
static void *grow(struct ree_arena *arena, void *array, size_t n, size_t size) {
    if (n & (n - 1)) return array; // powers of two, and 0 and 1, are full
    void *grown = ree_arena_alloc_array(arena, n ? 2 * n : 1, size);
    if (grown && n) memcpy(grown, array, n * size);
    return grown;
}

struct ree_value *ree_builder_value(struct ree_share_builder *b, const char *name) {
    char number[32];
    if (!name) snprintf(number, sizeof number, REE_BUILDER_PREFIX "%u", b->n_names++);
    return ree_graph_add_value(b->part->graph, name ? name : number);
}

static struct ree_node *add_node(struct ree_share_builder *b) {
    struct ree_graph *graph = b->part->graph;
    struct ree_node *node = ree_arena_alloc(graph->arena, sizeof *node);
    struct ree_node **nodes = grow(graph->arena, graph->nodes, graph->n_nodes, sizeof *nodes);
    if (!node || !nodes) return NULL;
    graph->nodes = nodes;
    node->id = (uint32_t)graph->n_nodes;
    graph->nodes[graph->n_nodes++] = node;
    return node;
}

static bool set_ports(struct ree_share_builder *b, struct ree_node *node,
                      struct ree_value *const *inputs, size_t n_inputs,
                      struct ree_value *const *outputs, size_t n_outputs) {
    struct ree_arena *arena = b->part->graph->arena;
    node->n_inputs = n_inputs;
    node->n_outputs = n_outputs;
    node->inputs = ree_arena_alloc_array(arena, n_inputs + 1, sizeof(struct ree_value *));
    node->outputs = ree_arena_alloc_array(arena, n_outputs + 1, sizeof(struct ree_value *));
    if (!node->inputs || !node->outputs) return false;
    for (size_t i = 0; i < n_inputs; i++)
        node->inputs[i] = inputs[i];
    for (size_t i = 0; i < n_outputs; i++) {
        node->outputs[i] = outputs[i];
        if (outputs[i]) outputs[i]->producer = node;
    }
    return true;
}

struct ree_value *ree_builder_add(struct ree_share_builder *b, const char *op_type,
                                  struct ree_value *const *inputs, size_t n_inputs) {
    for (size_t i = 0; i < n_inputs; i++)
        if (!inputs[i]) return NULL;
    struct ree_node *node = add_node(b);
    struct ree_value *made = ree_builder_value(b, NULL);
    if (!node || !made) return NULL;
    node->name = made->name;
    node->op_type = op_type;
    node->domain = "";
    node->opset = ree_graph_opset(b->d->graph, "");
    return set_ports(b, node, inputs, n_inputs, &made, 1) ? made : NULL;
}

static struct ree_attr *add_attr(struct ree_share_builder *b, struct ree_value *value,
                                 const char *name, enum ree_attr_kind kind) {
    struct ree_node *node = value->producer;
    struct ree_attr *attrs =
        grow(b->part->graph->arena, node->attrs, node->n_attrs, sizeof *node->attrs);
    if (!attrs) return NULL;
    node->attrs = attrs;
    attrs[node->n_attrs] = (struct ree_attr){.name = name, .kind = kind};
    return &attrs[node->n_attrs++];
}

bool ree_builder_int(struct ree_share_builder *b, struct ree_value *value, const char *name,
                     int64_t i) {
    struct ree_attr *attr = value ? add_attr(b, value, name, REE_ATTR_INT) : NULL;
    if (attr) attr->i = i;
    return attr != NULL;
}

bool ree_builder_ints(struct ree_share_builder *b, struct ree_value *value, const char *name,
                      const int64_t *ints, size_t n) {
    struct ree_attr *attr = value ? add_attr(b, value, name, REE_ATTR_INTS) : NULL;
    int64_t *copy = ree_arena_alloc_array(b->part->graph->arena, n + 1, sizeof *copy);
    if (!attr || !copy) return false;
    memcpy(copy, ints, n * sizeof *ints);
    attr->n = n;
    attr->ints = copy;
    return true;
}

struct ree_value *ree_builder_constant(struct ree_share_builder *b, enum ree_dtype dtype,
                                       uint32_t rank, const int64_t *dims, const void *data,
                                       size_t nbytes) {
    struct ree_value *value = ree_builder_value(b, NULL);
    // Contents can be read up to a multiple of 4 bytes (graph/ir/ir.h).
    void *copy = ree_arena_alloc(b->part->graph->arena, nbytes + 4);
    if (!value || !copy) return NULL;
    memcpy(copy, data, nbytes);
    value->dtype = dtype;
    value->has_shape = true;
    value->rank = rank;
    if (rank) memcpy(value->dims, dims, rank * sizeof *dims);
    value->data = copy;
    value->nbytes = nbytes;
    return value;
}

struct ree_value *ree_builder_list(struct ree_share_builder *b, const int64_t *list, size_t n) {
    const int64_t dims[1] = {(int64_t)n};
    return ree_builder_constant(b, REE_I64, 1, dims, list, n * sizeof *list);
}

enum ree_status ree_builder_copy(struct ree_share_builder *b, const struct ree_node *node,
                                 struct ree_value *const *inputs,
                                 struct ree_value *const *outputs) {
    struct ree_node *copy = add_node(b);
    if (!copy) return ree_no_memory(b->err);
    uint32_t id = copy->id;
    *copy = *node; // names and attributes stay in the step's arena
    copy->id = id;
    copy->notes = NULL;
    if (!set_ports(b, copy, inputs, node->n_inputs, outputs, node->n_outputs))
        return ree_no_memory(b->err);
    return REE_OK;
}

// Ports

static void describe(struct ree_value *value, enum ree_dtype dtype, uint32_t rank,
                     const int64_t *dims) {
    value->dtype = dtype;
    value->has_shape = true;
    value->rank = rank;
    if (rank) memcpy(value->dims, dims, rank * sizeof *dims);
}

static enum ree_status add_graph_input(struct ree_share_builder *b, struct ree_value *value) {
    struct ree_graph *graph = b->part->graph;
    struct ree_value **inputs =
        grow(graph->arena, graph->inputs, graph->n_inputs, sizeof *graph->inputs);
    if (!inputs) return ree_no_memory(b->err);
    value->is_input = true;
    graph->inputs = inputs;
    graph->inputs[graph->n_inputs++] = value;
    return REE_OK;
}

enum ree_status ree_builder_input(struct ree_share_builder *b, const char *name,
                                  enum ree_dtype dtype, uint32_t rank, const int64_t *dims,
                                  struct ree_value **out) {
    *out = ree_builder_value(b, name);
    if (!*out) return ree_no_memory(b->err);
    describe(*out, dtype, rank, dims);
    return add_graph_input(b, *out);
}

static enum ree_status add_input(struct ree_share_builder *b, struct ree_share_port port,
                                 struct ree_value *value) {
    struct ree_share_part *part = b->part;
    struct ree_share_port *ports =
        grow(&b->share->arena, part->inputs, part->n_inputs, sizeof *ports);
    if (!ports) return ree_no_memory(b->err);
    port.name = value->name;
    part->inputs = ports;
    part->inputs[part->n_inputs++] = port;
    return add_graph_input(b, value);
}

enum ree_status ree_builder_read_slot(struct ree_share_builder *b, size_t slot,
                                      enum ree_dtype dtype, uint32_t rank, const int64_t *dims,
                                      struct ree_value **out) {
    struct ree_value *value = ree_builder_value(b, NULL);
    if (!value) return ree_no_memory(b->err);
    describe(value, dtype, rank, dims);
    if (b->share->last_use[slot] < b->part_index) b->share->last_use[slot] = b->part_index;
    *out = value;
    return add_input(b, (struct ree_share_port){.index = slot}, value);
}

static enum ree_status new_slot(struct ree_share_builder *b, size_t *out) {
    struct ree_share *share = b->share;
    size_t *uses = grow(&share->arena, share->last_use, share->n_slots, sizeof *uses);
    if (!uses) return ree_no_memory(b->err);
    share->last_use = uses;
    share->last_use[share->n_slots] = b->part_index;
    *out = share->n_slots++;
    return REE_OK;
}

enum ree_status ree_builder_write_slot(struct ree_share_builder *b, struct ree_share_part *part,
                                       struct ree_value *value, size_t *slot) {
    struct ree_graph *graph = part ? part->graph : NULL;
    size_t index;
    if (*slot) return REE_OK;
    REE_TRY(new_slot(b, &index));
    if (graph) {
        struct ree_value **outputs =
            grow(graph->arena, graph->outputs, graph->n_outputs, sizeof *graph->outputs);
        struct ree_share_port *ports =
            grow(&b->share->arena, part->outputs, part->n_outputs, sizeof *ports);
        if (!outputs || !ports) return ree_no_memory(b->err);
        value->is_output = true;
        graph->outputs = outputs;
        graph->outputs[graph->n_outputs++] = value;
        part->outputs = ports;
        part->outputs[part->n_outputs++] =
            (struct ree_share_port){.name = value->name, .index = index};
    }
    *slot = index + 1;
    return REE_OK;
}

// Values of the step

void ree_builder_place(struct ree_share_builder *b, const struct ree_value *of, enum ree_form form,
                       struct ree_value *value) {
    struct ree_placed *p = &b->placed[form][of->id];
    p->here = p->made = value;
    p->here_part = b->part_index + 1;
    p->made_part = b->part_index;
}

static enum ree_status copy_constant(struct ree_share_builder *b, const struct ree_value *value,
                                     struct ree_value **out) {
    struct ree_value *copy = ree_builder_value(b, value->name);
    if (!copy) return ree_no_memory(b->err);
    describe(copy, value->dtype, value->rank, value->dims);
    copy->data = value->data;
    copy->nbytes = value->nbytes;
    *out = copy;
    return REE_OK;
}

// `form` has one group: the rules want no other form of a common value.
static enum ree_status select_own(struct ree_share_builder *b, struct ree_value *all,
                                  struct ree_samples form, struct ree_value **out) {
    const struct ree_share_options *o = b->d->options;
    const int64_t start = o->begin * form.per, end = o->end * form.per, axis = form.axis;
    struct ree_value *inputs[] = {all, ree_builder_list(b, &start, 1), ree_builder_list(b, &end, 1),
                                  ree_builder_list(b, &axis, 1)};
    *out = ree_builder_add(b, "Slice", inputs, 4);
    return *out ? REE_OK : ree_no_memory(b->err);
}

static size_t input_index(const struct ree_graph *graph, const struct ree_value *value) {
    for (size_t i = 0; i < graph->n_inputs; i++)
        if (graph->inputs[i] == value) return i;
    return SIZE_MAX;
}

// Adds a value that no node computes: an input or a constant of the step.
static enum ree_status add_source(struct ree_share_builder *b, const struct ree_value *value,
                                  bool own, struct ree_value **out) {
    if (!value->is_input) return copy_constant(b, value, out);
    struct ree_value *copy = ree_builder_value(b, value->name);
    if (!copy) return ree_no_memory(b->err);
    describe(copy, value->dtype, value->rank, value->dims);
    if (own) copy->dims[0] = ree_share_own(b->d);
    *out = copy;
    return add_input(
        b, (struct ree_share_port){.is_input = true, .index = input_index(b->d->graph, value)},
        copy);
}

// Adds a value that an earlier part computed.
static enum ree_status add_passed(struct ree_share_builder *b, const struct ree_value *value,
                                  struct ree_samples form, struct ree_placed *p,
                                  struct ree_value **out) {
    int64_t dims[REE_MAX_RANK];
    if (!p->made || !ree_share_has_shape(value))
        return ree_fail(b->err, p->made ? REE_UNSUPPORTED : REE_INTERNAL,
                        "'%s' is read before it is known, or its shape is not known", value->name);
    memcpy(dims, value->dims, sizeof dims);
    if (form.is_divided) dims[form.axis] = form.groups * ree_share_own(b->d) * form.per;
    REE_TRY(ree_builder_write_slot(b, &b->share->parts[p->made_part], p->made, &p->slot));
    return ree_builder_read_slot(b, p->slot - 1, value->dtype, value->rank, dims, out);
}

enum ree_status ree_builder_find(struct ree_share_builder *b, const struct ree_value *value,
                                 struct ree_samples form, struct ree_value **out) {
    bool is_divided = b->d->samples[value->id].is_divided;
    struct ree_value *all;
    // A common value of which another form is placed.
    if (!is_divided && form.is_divided && !ree_samples_same(form, b->d->wanted[value->id])) {
        REE_TRY(ree_builder_find(b, value, (struct ree_samples){0}, &all));
        return select_own(b, all, form, out);
    }
    struct ree_placed *p = &b->placed[form.is_divided ? REE_FORM_OWN : REE_FORM_ALL][value->id];
    if (p->here_part != b->part_index + 1) {
        if (value->producer) {
            REE_TRY(add_passed(b, value, form, p, &p->here));
        } else if (form.is_divided && !is_divided) {
            REE_TRY(ree_builder_find(b, value, (struct ree_samples){0}, &all));
            REE_TRY(select_own(b, all, form, &p->here));
        } else {
            REE_TRY(add_source(b, value, is_divided, &p->here));
        }
        p->here_part = b->part_index + 1;
    }
    *out = p->here;
    return REE_OK;
}

enum ree_status ree_builder_select(struct ree_share_builder *b, const struct ree_node *node) {
    for (size_t i = 0; i < node->n_outputs; i++) {
        const struct ree_value *value = node->outputs[i];
        struct ree_value *all, *own;
        if (!value || !b->d->reads_own[value->id]) continue;
        REE_TRY(ree_builder_find(b, value, (struct ree_samples){0}, &all));
        REE_TRY(select_own(b, all, b->d->wanted[value->id], &own));
        ree_builder_place(b, value, REE_FORM_OWN, own);
    }
    return REE_OK;
}
