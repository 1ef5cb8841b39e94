// The proof: facts about the inputs, a rule for each node, and the conditions on the outputs.
#include "graph/causality/prove.h"

#include <stdio.h>
#include <string.h>

#include "base/name_index.h"
#include "graph/causality/facts.h"
#include "graph/lower/core/lower.h"

// Facts about the inputs

static void set_count(struct ree_fact *f, enum ree_dtype dtype, uint32_t rank,
                      struct ree_count count) {
    f->dtype = dtype;
    f->rank = rank;
    for (uint32_t i = 0; i < rank; i++)
        f->axes[i] = (struct ree_axis){REE_AXIS_FIXED, 1};
    f->n_counts = 1;
    f->counts[0] = count;
    if (dtype != REE_I64 && dtype != REE_I32) f->why_not = "a length that is not an integer";
}

static void set_row(struct ree_fact *f, enum ree_dtype dtype, uint32_t rank,
                    enum ree_axis_kind kind) {
    f->dtype = dtype;
    f->rank = rank;
    f->axes[0] = (struct ree_axis){REE_AXIS_FIXED, 1};
    f->axes[rank - 1] = (struct ree_axis){kind, 0};
}

// A run over other numbers of tokens than the model declares is no run that generation can make.
static void refuse_fixed_length(struct ree_fact *f, const struct ree_value *value, uint32_t axis) {
    if (value->has_shape && axis < value->rank && value->dims[axis] >= 0)
        f->why_not = "an input of a fixed length";
}

static void set_kv_cache(struct ree_fact *f, const struct ree_prover *p, size_t i) {
    const struct ree_causality_input *in = &p->question->inputs[i];
    const struct ree_value *value = in->value;
    f->dtype = value->dtype;
    f->rank = value->rank;
    for (uint32_t k = 0; k < value->rank; k++)
        f->axes[k] = (struct ree_axis){REE_AXIS_FIXED, value->dims[k]};
    f->axes[in->batch_axis] = (struct ree_axis){REE_AXIS_FIXED, 1};
    f->axes[in->axis] = (struct ree_axis){REE_AXIS_PAST, 0};
    f->follows = 1u << in->axis;
    f->may_be_nan = true;
    f->past = (ptrdiff_t)i + 1;
    refuse_fixed_length(f, value, in->axis);
    if (!value->has_shape || !in->next) f->why_not = "a cache without a shape or an output";
}

static void set_input(struct ree_fact *f, const struct ree_prover *p, size_t i) {
    const struct ree_causality_input *in = &p->question->inputs[i];
    enum ree_dtype dtype = in->value->dtype;
    const int64_t past = p->has_cache ? 1 : 0;
    switch (in->kind) {
    case REE_CAUSALITY_TOKENS:
        set_row(f, dtype, 2, REE_AXIS_NEW);
        f->follows = 1u << 1;
        refuse_fixed_length(f, in->value, f->rank - 1);
        break;
    case REE_CAUSALITY_POSITIONS:
        set_row(f, dtype, in->rank == 1 ? 1 : 2, REE_AXIS_NEW);
        f->is_ramp = dtype == REE_I64 || dtype == REE_I32;
        f->ramp = f->rank - 1;
        refuse_fixed_length(f, in->value, f->rank - 1);
        break;
    case REE_CAUSALITY_ONES:
        set_row(f, dtype, 2, p->has_cache ? REE_AXIS_ALL : REE_AXIS_NEW);
        f->has_fill = true;
        f->fill = 1;
        refuse_fixed_length(f, in->value, f->rank - 1);
        break;
    case REE_CAUSALITY_ZEROS:
        set_row(f, dtype, 2, REE_AXIS_NEW);
        f->has_fill = true;
        refuse_fixed_length(f, in->value, f->rank - 1);
        break;
    case REE_CAUSALITY_PAST_LENGTH:
        set_count(f, dtype, in->rank, (struct ree_count){.past = past});
        if (p->question->has_slack)
            f->why_not = "a length of the past that differs from the length of the caches";
        break;
    case REE_CAUSALITY_TOTAL_LENGTH:
        set_count(f, dtype, in->rank, (struct ree_count){.fresh = 1, .past = past});
        break;
    case REE_CAUSALITY_ROWS:
        set_row(f, dtype, 3, REE_AXIS_FIXED);
        f->axes[1] = (struct ree_axis){REE_AXIS_ROWS, 0};
        f->axes[2] = (struct ree_axis){REE_AXIS_FIXED, 1};
        f->is_rows = f->counts_only = true;
        refuse_fixed_length(f, in->value, 1);
        break;
    case REE_CAUSALITY_KV_CACHE: set_kv_cache(f, p, i); break;
    case REE_CAUSALITY_OTHER: f->why_not = "an input that differs between runs"; break;
    }
}

// Returns the text "what: why", which the arena of the proof owns.
static const char *explain(struct ree_prover *p, const char *what, const char *why) {
    char text[512];
    snprintf(text, sizeof text, "%s: %s", what, why);
    const char *copy = ree_arena_strdup(&p->arena, text);
    return copy ? copy : "out of memory";
}

static const char *explain_node(struct ree_prover *p, const struct ree_node *node,
                                const char *why) {
    char label[256];
    return explain(p, ree_node_label(node, label, sizeof label), why);
}

static const char *explain_value(struct ree_prover *p, const char *what,
                                 const struct ree_value *value, const char *why) {
    char label[256];
    snprintf(label, sizeof label, "%s '%s'", what, value->name);
    return explain(p, label, why);
}

static struct ree_fact *add_fact(struct ree_prover *p, const struct ree_value *value) {
    struct ree_fact *f = ree_arena_alloc(&p->arena, sizeof *f);
    p->facts[value->id] = f;
    return f;
}

// Returns the axis of an input's fact: place is the input's index times REE_MAX_RANK, plus the
// axis.
static const struct ree_axis *axis_at(const struct ree_prover *p, size_t place) {
    const struct ree_value *value = p->question->inputs[place / REE_MAX_RANK].value;
    return &p->facts[value->id]->axes[place % REE_MAX_RANK];
}

static bool is_same_size(const struct ree_axis *a, const struct ree_axis *b) {
    return a->kind == b->kind && (a->kind != REE_AXIS_FIXED || a->size == b->size);
}

// Runs reject inputs in which one symbolic dimension has two sizes. If a symbol names two kinds of
// dimensions, there are runs that one pass can make and generation cannot.
static const char *check_symbols(struct ree_prover *p) {
    const struct ree_causality_question *q = p->question;
    struct ree_name_index index;
    const char *why = NULL;
    p->lacks_memory = !ree_name_index_reserve(&index, q->n_inputs * REE_MAX_RANK);
    if (p->lacks_memory) return "out of memory";
    for (size_t i = 0; i < q->n_inputs; i++) {
        const struct ree_value *value = q->inputs[i].value;
        for (uint32_t k = 0; value->has_shape && k < value->rank; k++)
            if (value->dims[k] < 0 && value->symbols[k])
                ree_name_index_add(&index, value->symbols[k], i * REE_MAX_RANK + k);
    }
    ree_name_index_sort(&index);
    const struct ree_name_entry *last = NULL;
    for (const struct ree_name_entry *e = index.entries; e < index.entries + index.n && !why; e++) {
        const struct ree_value *value = q->inputs[e->place / REE_MAX_RANK].value;
        if (last && strcmp(last->name, e->name) == 0 &&
            !is_same_size(axis_at(p, last->place), axis_at(p, e->place)))
            why = explain_value(p, "input", value,
                                "a symbolic dimension has the name of one of another size");
        last = e;
    }
    ree_name_index_finish(&index);
    return why;
}

static bool begin(struct ree_prover *p) {
    const struct ree_graph *graph = p->question->graph;
    for (size_t i = 0; i < graph->n_values; i++) {
        const struct ree_value *value = graph->values[i];
        if (value->producer || !value->data) continue;
        struct ree_fact *f = add_fact(p, value);
        if (!f) return false;
        ree_fact_constant(f, value);
        ree_fact_settle(f);
        if (f->why_not) f->why_not = explain_value(p, "constant", value, f->why_not);
    }
    // An input may have a default value, a constant. A run replaces it, so the input's fact
    // replaces the constant's.
    for (size_t i = 0; i < p->question->n_inputs; i++) {
        const struct ree_value *value = p->question->inputs[i].value;
        struct ree_fact *f = add_fact(p, value);
        if (!f) return false;
        set_input(f, p, i);
        ree_fact_settle(f);
        if (f->why_not) f->why_not = explain_value(p, "input", value, f->why_not);
    }
    return true;
}

// Nodes

// Checks the number of inputs and outputs against the operator table that lowering uses.
static const char *check_arity(struct ree_prover *p, const struct ree_node *node) {
    const struct ree_op *op = ree_op_find(node->domain, node->op_type, node->opset, NULL);
    if (!op) return explain_node(p, node, "ree has no rule for this operator");
    bool fits = node->n_inputs >= op->min_inputs && node->n_inputs <= op->max_inputs &&
                node->n_outputs <= op->max_outputs;
    for (uint32_t i = 0; fits && i < op->min_inputs; i++)
        fits = node->inputs[i] != NULL;
    return fits ? NULL : explain_node(p, node, "an input is missing, or there are too many");
}

static bool is_listed(const char *list, const char *name) {
    for (size_t n = strlen(name); *list; list += strcspn(list, " "), list += *list == ' ')
        if (n && strcspn(list, " ") == n && memcmp(list, name, n) == 0) return true;
    return false;
}

static const char *check_attributes(struct ree_prover *p, const struct ree_node *node,
                                    const struct ree_causality_row *row) {
    for (size_t i = 0; i < node->n_attrs; i++) {
        char why[160];
        if (is_listed(row->attributes, node->attrs[i].name)) continue;
        snprintf(why, sizeof why, "ree has no rule for its attribute '%.100s'",
                 node->attrs[i].name);
        return explain_node(p, node, why);
    }
    return NULL;
}

// Checks made before every rule. The node's inputs must be proved. Only some rules may read a
// number that depends on the number of tokens, or a cache that does not contain the new rows yet.
static const char *check_inputs(struct ree_prover *p, const struct ree_node *node,
                                const struct ree_causality_row *row, const struct ree_fact **in) {
    for (size_t i = 0; i < node->n_inputs; i++) {
        const struct ree_value *value = node->inputs[i];
        if (!value) continue;
        // Only subgraphs read values of another graph. Nothing is known about such values.
        in[i] = value->graph == p->question->graph ? p->facts[value->id] : NULL;
        if (!in[i]) return explain_value(p, "value", value, "nothing is known about it");
        if (in[i]->why_not) return in[i]->why_not;
        if (!row) return explain_node(p, node, "ree has no rule for this operator");
        if (in[i]->counts_only &&
            (i >= 32 || !((row->counts_as_data | row->counts_as_sizes) >> i & 1)))
            return explain_node(p, node, "it converts the number of tokens of a run into data");
        if (in[i]->past && row->rule != ree_causality_concat && row->rule != ree_causality_shape &&
            row->rule != ree_causality_attention && row->rule != ree_causality_group_query)
            return explain_node(p, node, "it reads a cache without the new tokens");
    }
    return row ? NULL : explain_node(p, node, "ree has no rule for this operator");
}

// Checks made after every rule.
static void settle_output(struct ree_derivation *d, const struct ree_causality_row *row, size_t i) {
    struct ree_fact *out = &d->out[i];
    ree_fact_settle(out);
    if (out->why_not) return;
    for (size_t k = 0; k < d->n_in && k < 32; k++)
        if (d->in[k] && d->in[k]->counts_only && row->counts_as_data >> k & 1 && !out->n_counts &&
            !out->is_rows)
            out->why_not = "it converts the number of tokens of a run into data";
    // Only graph inputs are caches, and only one value becomes a cache's next contents.
    out->past = 0;
    if (out->present && d->node->outputs[i] != d->prover->question->inputs[out->present - 1].next)
        out->present = 0;
}

static const char *apply(struct ree_prover *p, const struct ree_node *node, struct ree_fact *out) {
    const struct ree_causality_row *row = ree_causality_find(node);
    const struct ree_fact **in = ree_arena_alloc_array(&p->arena, node->n_inputs + 1, sizeof *in);
    if (!in) return "out of memory";
    const char *why = check_inputs(p, node, row, in);
    if (!why) why = check_arity(p, node);
    if (!why) why = check_attributes(p, node, row);
    if (why) return why;
    struct ree_derivation d = {.prover = p,
                               .node = node,
                               .n_in = node->n_inputs,
                               .n_out = node->n_outputs,
                               .in = in,
                               .out = out};
    why = row->rule(&d);
    for (size_t i = 0; !why && i < node->n_outputs; i++)
        settle_output(&d, row, i);
    return why ? explain_node(p, node, why) : NULL;
}

static bool derive(struct ree_prover *p, const struct ree_node *node) {
    struct ree_fact *out = ree_arena_alloc_array(&p->arena, node->n_outputs + 4, sizeof *out);
    if (!out) return false;
    const char *why = apply(p, node, out);
    for (size_t i = 0; i < node->n_outputs; i++) {
        if (why)
            out[i] = (struct ree_fact){.why_not = why};
        else if (out[i].why_not)
            out[i].why_not = explain_node(p, node, out[i].why_not);
        if (node->outputs[i]) p->facts[node->outputs[i]->id] = &out[i];
        if (!p->why_not && node->outputs[i]) p->why_not = out[i].why_not;
    }
    return true;
}

// Each run checks the type and the shape of every input, whether or not a node reads it. An input
// whose declared shape fits only some numbers of tokens makes some runs fail.
static const char *check_model_inputs(struct ree_prover *p) {
    for (size_t i = 0; i < p->question->n_inputs; i++) {
        const struct ree_fact *f = p->facts[p->question->inputs[i].value->id];
        if (f && f->why_not) return f->why_not;
    }
    return NULL;
}

// Outputs

static const char *check_logits(struct ree_prover *p) {
    const struct ree_value *value = p->question->logits;
    const struct ree_fact *f = p->facts[value->id];
    if (!f) return explain_value(p, "output", value, "nothing is known about it");
    if (f->why_not) return f->why_not;
    bool is_row_each = f->rank == 3 && ree_axis_is_fixed(&f->axes[0], 1) &&
                       (f->axes[1].kind == REE_AXIS_NEW || f->axes[1].kind == REE_AXIS_ROWS) &&
                       !ree_axis_is_position(&f->axes[2]) && ree_fact_is_float(f);
    if (!is_row_each || f->follows & ~(1u << 1) || f->counts_only)
        return explain_value(p, "output", value,
                             "it does not have one row of logits for each token");
    return NULL;
}

static const char *check_kv_cache(struct ree_prover *p, size_t i) {
    const struct ree_value *next = p->question->inputs[i].next;
    const struct ree_fact *f = next ? p->facts[next->id] : NULL;
    if (!f) return "a cache without an output";
    if (f->why_not) return f->why_not;
    if (f->present == (ptrdiff_t)i + 1) return NULL;
    return explain_value(p, "output", next, "it is not the cache followed by the new tokens");
}

static const char *prove(struct ree_prover *p) {
    const struct ree_graph *graph = p->question->graph;
    p->facts = ree_arena_alloc_array(&p->arena, graph->n_values + 1, sizeof(struct ree_fact *));
    for (size_t i = 0; i < p->question->n_inputs; i++)
        p->has_cache = p->has_cache || p->question->inputs[i].kind == REE_CAUSALITY_KV_CACHE;
    if (!p->facts || !begin(p)) return "out of memory";
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (graph->nodes[i]->n_outputs && !derive(p, graph->nodes[i])) return "out of memory";
    const char *why = check_model_inputs(p);
    if (!why) why = check_logits(p);
    for (size_t i = 0; !why && i < p->question->n_inputs; i++)
        if (p->question->inputs[i].kind == REE_CAUSALITY_KV_CACHE) why = check_kv_cache(p, i);
    // A node whose results neither the logits nor the caches need runs as well: it could fail, or
    // write to a cache, in only one of the two kinds of runs.
    if (!why) why = p->why_not;
    return why ? why : check_symbols(p);
}

enum ree_status ree_causality_prove(const struct ree_causality_question *question, char *out,
                                    size_t size, struct ree_error *err) {
    struct ree_prover p = {.question = question};
    ree_arena_init(&p.arena);
    const char *why = prove(&p);
    snprintf(out, size, "%s", why ? why : "");
    for (size_t i = 0; question->on_fact && p.facts && i < question->graph->n_values; i++)
        if (p.facts[i]) question->on_fact(question->user, question->graph->values[i], p.facts[i]);
    bool has_memory = !p.arena.is_exhausted && !p.lacks_memory;
    ree_arena_finish(&p.arena);
    return has_memory ? REE_OK : ree_no_memory(err);
}
