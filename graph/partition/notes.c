#include "graph/partition/notes.h"

#include <stdio.h>

#include "base/name_index.h"
#include "graph/partition/hints.h"

#define NONE UINT32_MAX

// Keys of the metadata, in the order of the notes.
enum { ROLE, LAYER, PHASE, VALUES, STAGE, N_KEYS };

struct noting {
    const struct ree_graph *graph;
    const struct ree_partition *partition;
    const struct ree_annotations *annotations;
    const struct ree_file_nodes *file;
    struct ree_arena *arena;
    struct ree_arena scratch;
    struct ree_name_index values;          // indices are value ids of the graph
    struct ree_name_index readers, makers; // indices are nodes of the file
    uint32_t *node_of;                     // by node of the file: its node in the graph, or NONE
};

// Returns the lowest index that was added with that name; NONE if there is none.
static uint32_t find(const struct ree_name_index *names, const char *name) {
    size_t place = ree_name_index_find(names, name);
    return place == REE_NO_NAME ? NONE : (uint32_t)place;
}

static bool find_names(struct noting *n) {
    size_t n_inputs = 0, n_outputs = 0;
    for (size_t i = 0; i < n->file->n; i++) {
        n_inputs += n->file->nodes[i].n_inputs;
        n_outputs += n->file->nodes[i].n_outputs;
    }
    if (!ree_name_index_reserve(&n->values, n->graph->n_values) ||
        !ree_name_index_reserve(&n->readers, n_inputs) ||
        !ree_name_index_reserve(&n->makers, n_outputs))
        return false;
    for (size_t i = 0; i < n->graph->n_values; i++)
        ree_name_index_add(&n->values, n->graph->values[i]->name, i);
    for (size_t i = 0; i < n->file->n; i++) {
        const struct ree_file_node *node = &n->file->nodes[i];
        for (size_t j = 0; j < node->n_inputs; j++)
            ree_name_index_add(&n->readers, node->inputs[j], i);
        for (size_t j = 0; j < node->n_outputs; j++)
            ree_name_index_add(&n->makers, node->outputs[j], i);
    }
    ree_name_index_sort(&n->values);
    ree_name_index_sort(&n->readers);
    ree_name_index_sort(&n->makers);
    return true;
}

// Returns the node of the graph that computes one of the node's output values; NONE if there is
// none.
static uint32_t maker_in_graph(const struct noting *n, const struct ree_file_node *node) {
    for (size_t i = 0; i < node->n_outputs; i++) {
        uint32_t value = node->outputs[i][0] ? find(&n->values, node->outputs[i]) : NONE;
        const struct ree_node *maker = value == NONE ? NULL : n->graph->values[value]->producer;
        if (maker) return maker->id;
    }
    return NONE;
}

static uint32_t first_reader(const struct noting *n, const struct ree_file_node *node) {
    uint32_t first = NONE;
    for (size_t i = 0; i < node->n_outputs; i++) {
        uint32_t reader = node->outputs[i][0] ? find(&n->readers, node->outputs[i]) : NONE;
        if (reader < first) first = reader;
    }
    return first;
}

enum { OPEN = 1, DONE = 2 };

// Finds the graph's node for each node of the file. If passes removed a node, follows first readers
// until a node that the graph still has. Each step is taken once.
static bool find_nodes(struct noting *n) {
    size_t count = n->file->n;
    n->node_of = ree_arena_alloc_array(&n->scratch, count + 1, sizeof *n->node_of);
    unsigned char *states = ree_arena_alloc(&n->scratch, count + 1);
    uint32_t *path = ree_arena_alloc_array(&n->scratch, count + 1, sizeof *path);
    if (!n->node_of || !states || !path) return false;
    for (size_t i = 0; i < count; i++) {
        size_t length = 0;
        uint32_t at = (uint32_t)i, found = NONE;
        while (at != NONE && states[at] != OPEN) {
            if (states[at] == DONE) {
                found = n->node_of[at];
                break;
            }
            states[at] = OPEN;
            path[length++] = at;
            found = maker_in_graph(n, &n->file->nodes[at]);
            if (found != NONE) break;
            at = first_reader(n, &n->file->nodes[at]);
        }
        while (length) {
            n->node_of[path[--length]] = found;
            states[path[length]] = DONE;
        }
    }
    return true;
}

// Returns the value if the graph still has it; else NULL.
static const struct ree_value *value_in_graph(const struct noting *n, const char *name) {
    uint32_t found = find(&n->values, name);
    const struct ree_value *value = found == NONE ? NULL : n->graph->values[found];
    bool is_there = value && (value->producer || value->data || value->is_input);
    return is_there ? value : NULL;
}

#define MOST_STEPS 16

// Returns the role of a constant that passes replaced by another one. The first readers lead to a
// value that the graph still has: if that is a CONSTANT, so is this one; else it is a WEIGHT.
static enum ree_value_role kind_of_lost_constant(const struct noting *n, const char *name) {
    for (int step = 0; step < MOST_STEPS; step++) {
        uint32_t reader = find(&n->readers, name);
        if (reader == NONE || n->file->nodes[reader].n_outputs == 0) break;
        name = n->file->nodes[reader].outputs[0];
        const struct ree_value *value = value_in_graph(n, name);
        if (!value) continue;
        if (n->annotations->values[value->id] == REE_VALUE_CONSTANT) return REE_VALUE_CONSTANT;
        break;
    }
    return REE_VALUE_WEIGHT;
}

// A value that passes removed has the role of the value that it was made from.
static enum ree_value_role kind_of(const struct noting *n, const char *name) {
    const char *first = name;
    for (int step = 0; step < MOST_STEPS; step++) {
        const struct ree_value *value = value_in_graph(n, name);
        if (value) return n->annotations->values[value->id];
        uint32_t maker = find(&n->makers, name);
        if (maker == NONE || n->file->nodes[maker].n_inputs == 0)
            return kind_of_lost_constant(n, first);
        name = n->file->nodes[maker].inputs[0];
    }
    return REE_VALUE_ACTIVATION;
}

static const char *kinds_of(const struct noting *n, const struct ree_file_node *node) {
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    for (size_t i = 0; i < node->n_inputs; i++)
        ree_strbuf_printf(&text, "%s%s", i ? "," : "",
                          node->inputs[i][0] ? ree_value_role_name(kind_of(n, node->inputs[i]))
                                             : "");
    const char *copy = text.failed ? NULL : ree_arena_strdup(n->arena, text.data ? text.data : "");
    ree_strbuf_finish(&text);
    return copy;
}

static const char *number(const struct noting *n, uint32_t value) {
    char text[16];
    snprintf(text, sizeof text, "%u", value);
    return ree_arena_strdup(n->arena, text);
}

static bool note(const struct noting *n, size_t i, struct ree_node_notes *out) {
    static const char *const keys[N_KEYS] = {"ree.role", "ree.layer", "ree.phase", "ree.values",
                                             REE_STAGE_PROPERTY};
    *out = (struct ree_node_notes){.n_metadata = N_KEYS};
    out->metadata = ree_arena_alloc_array(n->arena, N_KEYS, sizeof *out->metadata);
    if (!out->metadata) return false;
    for (size_t k = 0; k < N_KEYS; k++)
        out->metadata[k].key = keys[k];
    uint32_t node = n->node_of[i];
    if (node == NONE) return true;
    const struct ree_annotation *a = &n->annotations->nodes[node];
    uint32_t stage = n->partition->stage_of[node];
    struct ree_metadata *m = out->metadata;
    m[ROLE].value = ree_node_role_name(a->role);
    m[PHASE].value = ree_phases_name(a->phases);
    m[VALUES].value = kinds_of(n, &n->file->nodes[i]);
    bool ok = m[VALUES].value != NULL;
    if (a->layer != REE_NO_LAYER) {
        m[LAYER].value = number(n, (uint32_t)a->layer);
        ok = ok && m[LAYER].value;
    }
    if (stage == REE_STAGE_CONTROL) return ok;
    out->has_stage = true;
    out->stage = (int32_t)stage;
    m[STAGE].value = number(n, stage);
    return ok && m[STAGE].value;
}

enum ree_status ree_partition_notes(const struct ree_graph *graph,
                                    const struct ree_partition *partition,
                                    const struct ree_annotations *annotations,
                                    const struct ree_file_nodes *file, struct ree_arena *arena,
                                    struct ree_node_notes *notes, struct ree_error *err) {
    struct noting n = {.graph = graph,
                       .partition = partition,
                       .annotations = annotations,
                       .file = file,
                       .arena = arena};
    ree_arena_init(&n.scratch);
    bool ok = find_names(&n) && find_nodes(&n);
    for (size_t i = 0; ok && i < file->n; i++)
        ok = note(&n, i, &notes[i]);
    ree_name_index_finish(&n.values);
    ree_name_index_finish(&n.readers);
    ree_name_index_finish(&n.makers);
    ree_arena_finish(&n.scratch);
    return ok ? REE_OK : ree_no_memory(err);
}
