// Divides a step into parts: copies each node to the part that runs it.
#include "graph/share/share.h"

#include <string.h>

#include "graph/share/builder.h"

static const struct ree_samples all = {0};

// The form of a node's output with samples.
static struct ree_samples own_form(const struct ree_divide *d, const struct ree_value *value) {
    return d->samples[value->id].is_divided ? d->samples[value->id] : d->wanted[value->id];
}

static enum ree_status add_outputs(struct ree_share_builder *b, const struct ree_node *node,
                                   enum ree_form form, struct ree_value **outputs) {
    for (size_t i = 0; i < node->n_outputs; i++) {
        outputs[i] = NULL;
        if (!node->outputs[i]) continue;
        // Random numbers depend on the name, so what is common keeps it.
        outputs[i] = ree_builder_value(b, form == REE_FORM_ALL ? node->outputs[i]->name : NULL);
        if (!outputs[i]) return ree_no_memory(b->err);
        ree_builder_place(b, node->outputs[i], form, outputs[i]);
    }
    return REE_OK;
}

static enum ree_status refuse_subgraphs(struct ree_share_builder *b, const struct ree_node *node) {
    char label[256];
    for (size_t i = 0; i < node->n_attrs; i++)
        if (node->attrs[i].graph)
            return ree_fail(b->err, REE_UNSUPPORTED,
                            "a step with subgraphs cannot be divided among ranks: %s",
                            ree_node_label(node, label, sizeof label));
    return REE_OK;
}

static enum ree_status copy_all(struct ree_share_builder *b, const struct ree_node *node) {
    struct ree_arena *arena = &b->d->arena;
    struct ree_value **in = ree_arena_alloc_array(arena, node->n_inputs + 1, sizeof *in);
    struct ree_value **out = ree_arena_alloc_array(arena, node->n_outputs + 1, sizeof *out);
    if (!in || !out) return ree_no_memory(b->err);
    REE_TRY(refuse_subgraphs(b, node));
    for (size_t i = 0; i < node->n_inputs; i++)
        if (node->inputs[i]) REE_TRY(ree_builder_find(b, node->inputs[i], all, &in[i]));
    REE_TRY(add_outputs(b, node, REE_FORM_ALL, out));
    return ree_builder_copy(b, node, in, out);
}

// Adds a Range that has only the numbers of this rank's samples.
static enum ree_status copy_range(struct ree_share_builder *b, const struct ree_node *node,
                                  struct ree_samples form) {
    const struct ree_share_options *o = b->d->options;
    int64_t start[REE_MAX_RANK * 2], delta[REE_MAX_RANK * 2];
    struct ree_value *in[3], *out;
    size_t n;
    enum ree_dtype dtype = node->outputs[0]->dtype;
    ree_share_list(node, 0, NULL, &n, start);
    ree_share_list(node, 2, NULL, &n, delta);
    int64_t numbers[3] = {start[0] + delta[0] * (o->begin * form.per),
                          start[0] + delta[0] * (o->end * form.per), delta[0]};
    for (size_t i = 0; i < 3; i++) {
        int32_t narrow = (int32_t)numbers[i];
        in[i] = dtype == REE_I64
                    ? ree_builder_constant(b, dtype, 0, NULL, &numbers[i], sizeof numbers[i])
                    : ree_builder_constant(b, dtype, 0, NULL, &narrow, sizeof narrow);
    }
    out = ree_builder_add(b, "Range", in, 3);
    if (!out) return ree_no_memory(b->err);
    ree_builder_place(b, node->outputs[0], REE_FORM_OWN, out);
    return REE_OK;
}

// Adds a number to the second output.
static enum ree_status shift_second(struct ree_share_builder *b, const struct ree_node *node,
                                    int64_t number) {
    struct ree_value *second = b->placed[REE_FORM_OWN][node->outputs[1]->id].here;
    struct ree_value *in[2] = {second,
                               ree_builder_constant(b, REE_I64, 0, NULL, &number, sizeof number)};
    struct ree_value *out = ree_builder_add(b, "Add", in, 2);
    if (!out) return ree_no_memory(b->err);
    ree_builder_place(b, node->outputs[1], REE_FORM_OWN, out);
    return REE_OK;
}

static enum ree_status copy_own(struct ree_share_builder *b, const struct ree_node *node) {
    const struct ree_own_node *own = b->d->own[node->id];
    struct ree_arena *arena = &b->d->arena;
    if (strcmp(node->op_type, "Range") == 0)
        return copy_range(b, node, own_form(b->d, node->outputs[0]));
    struct ree_value **in = ree_arena_alloc_array(arena, node->n_inputs + 1, sizeof *in);
    struct ree_value **out = ree_arena_alloc_array(arena, node->n_outputs + 1, sizeof *out);
    if (!in || !out) return ree_no_memory(b->err);
    if (own->is_reshape) {
        struct ree_value *both[2];
        REE_TRY(ree_builder_find(b, node->inputs[0], own->needs[0], &both[0]));
        both[1] = ree_builder_list(b, own->list, own->n_list);
        struct ree_value *made = ree_builder_add(b, "Reshape", both, 2);
        if (!ree_builder_int(b, made, "allowzero", 1)) return ree_no_memory(b->err);
        ree_builder_place(b, node->outputs[0], REE_FORM_OWN, made);
        return REE_OK;
    }
    for (size_t i = 0; i < node->n_inputs; i++) {
        if (!node->inputs[i]) continue;
        if (own->list_input && own->list_input == i) {
            in[i] = ree_builder_list(b, own->list, own->n_list);
            if (!in[i]) return ree_no_memory(b->err);
        } else {
            REE_TRY(ree_builder_find(b, node->inputs[i], own->needs[i], &in[i]));
        }
    }
    REE_TRY(add_outputs(b, node, REE_FORM_OWN, out));
    REE_TRY(ree_builder_copy(b, node, in, out));
    return own->added_to_second ? shift_second(b, node, own->added_to_second) : REE_OK;
}

// Counts the products of a node for `n` of the batch's samples, if it is divided.
static uint64_t n_products(const struct ree_divide *d, const struct ree_node *node, int64_t n) {
    const struct ree_value *made = node->outputs[0];
    bool is_conv = strcmp(node->op_type, "Conv") == 0;
    bool is_transposed = strcmp(node->op_type, "ConvTranspose") == 0;
    bool is_product = strcmp(node->op_type, "MatMul") == 0;
    if (!is_conv && !is_transposed && !is_product) return 0;
    if (node->n_inputs < 2 || !made) return 0;
    const struct ree_value *a = node->inputs[0], *b = node->inputs[1];
    if (!ree_share_has_shape(a) || !ree_share_has_shape(b) || !ree_share_has_shape(made) ||
        !a->rank || !b->rank)
        return 0;
    double each =
        is_product ? (double)a->dims[a->rank - 1] : (double)ree_share_product(b, 1, b->rank);
    const struct ree_value *rows = is_transposed ? a : made;
    double total = each * (double)ree_share_product(rows, 0, rows->rank);
    if (d->roles[node->id] == REE_NODE_OWN) total = total / (double)d->options->batch * (double)n;
    return (uint64_t)total;
}

static enum ree_status copy_node(struct ree_share_builder *b, const struct ree_node *node) {
    const struct ree_divide *d = b->d;
    if (d->roles[node->id] == REE_NODE_SUM)
        return d->own[node->id] ? ree_builder_terms(b, node) : REE_OK;
    bool reads_all = false;
    for (size_t i = 0; i < node->n_outputs; i++)
        reads_all |= node->outputs[i] && d->reads_all[node->outputs[i]->id];
    if (d->own[node->id] || reads_all) {
        b->share->n_products += n_products(d, node, ree_share_own(d));
        b->share->n_products_of_all += n_products(d, node, d->options->batch);
    }
    if (reads_all) REE_TRY(copy_all(b, node));
    if (d->own[node->id]) return copy_own(b, node);
    return reads_all ? ree_builder_select(b, node) : REE_OK;
}

// Gives each output of the step a slot.
static enum ree_status place_outputs(struct ree_share_builder *b) {
    const struct ree_graph *graph = b->d->graph;
    struct ree_share *share = b->share;
    share->outputs =
        ree_arena_alloc_array(&share->arena, graph->n_outputs + 1, sizeof *share->outputs);
    if (!share->outputs) return ree_no_memory(b->err);
    for (size_t i = 0; i < graph->n_outputs; i++) {
        const struct ree_value *value = graph->outputs[i];
        struct ree_placed *p = &b->placed[REE_FORM_ALL][value->id], copied = {0};
        struct ree_value *made = p->made;
        uint32_t part = p->made_part;
        if (!value->producer) { // an input or a constant
            REE_TRY(ree_builder_find(b, value, all, &made));
            made = ree_builder_add(b, "Identity", &made, 1);
            if (!made) return ree_no_memory(b->err);
            part = b->part_index;
            p = &copied;
        }
        REE_TRY(ree_builder_write_slot(b, &share->parts[part], made, &p->slot));
        share->outputs[i] = p->slot - 1;
        share->last_use[p->slot - 1] = share->n_parts;
    }
    return REE_OK;
}

static enum ree_status build(struct ree_share_builder *b) {
    const struct ree_graph *graph = b->d->graph;
    struct ree_share *share = b->share;
    for (int i = 0; i < REE_N_FORMS; i++) {
        b->placed[i] =
            ree_arena_alloc_array(&b->d->arena, graph->n_values + 1, sizeof *b->placed[i]);
        if (!b->placed[i]) return ree_no_memory(b->err);
    }
    share->n_parts = b->d->n_parts;
    share->parts = ree_arena_alloc_array(&share->arena, share->n_parts, sizeof *share->parts);
    if (!share->parts) return ree_no_memory(b->err);
    for (uint32_t i = 0; i < share->n_parts; i++) {
        b->part_index = i;
        REE_TRY(ree_builder_begin(b, &share->parts[i]));
        for (size_t k = 0, n = 0; i > 0 && k < graph->n_nodes; k++) {
            const struct ree_node *node = graph->nodes[k];
            if (b->d->node_part[k] != i - 1 || b->d->roles[k] != REE_NODE_SUM || !b->d->own[k])
                continue;
            REE_TRY(ree_builder_result(b, node, &share->parts[i - 1].sums[n++]));
        }
        for (size_t k = 0; k < graph->n_nodes; k++)
            if (b->d->node_part[k] == i) {
                b->part = &share->parts[i];
                REE_TRY(copy_node(b, graph->nodes[k]));
            }
    }
    REE_TRY(place_outputs(b));
    return ree_builder_chunks(b);
}

// New values have names of their own (ree_builder_value).
static enum ree_status check_names(const struct ree_graph *step, struct ree_error *err) {
    const char *prefix = REE_BUILDER_PREFIX;
    for (size_t i = 0; i < step->n_values; i++)
        if (strncmp(step->values[i]->name, prefix, strlen(prefix)) == 0)
            return ree_fail(err, REE_UNSUPPORTED,
                            "a step with a value named '%s' cannot be divided among ranks",
                            step->values[i]->name);
    return REE_OK;
}

enum ree_status ree_share_make(const struct ree_graph *step,
                               const struct ree_share_options *options, struct ree_share *out,
                               struct ree_error *err) {
    struct ree_divide d = {.graph = step, .options = options, .err = err};
    struct ree_share_builder b = {.d = &d, .share = out, .err = err};
    *out = (struct ree_share){0};
    REE_TRY(check_names(step, err));
    ree_arena_init(&out->arena);
    ree_arena_init(&d.arena);
    enum ree_status status = ree_divide_graph(&d);
    if (status == REE_OK) status = build(&b);
    ree_arena_finish(&d.arena);
    return status;
}

void ree_share_finish(struct ree_share *share) {
    for (size_t i = 0; i < share->n_parts && share->parts; i++) {
        struct ree_share_part *part = &share->parts[i];
        ree_graph_destroy(part->graph);
        for (size_t k = 0; k < part->n_sums; k++)
            if (part->sums[k].steps) ree_graph_destroy(part->sums[k].steps->graph);
    }
    ree_graph_destroy(share->products.graph);
    ree_graph_destroy(share->rows.graph);
    ree_arena_finish(&share->arena);
    *share = (struct ree_share){0};
}
