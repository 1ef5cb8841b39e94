// Merges nodes that compute the same result: same operator, attributes and inputs. Nodes are
// visited in topological order, with earlier replacements applied, so that whole equal subtrees
// merge.
#include "graph/passes/rewrite.h"

#include <stdlib.h>
#include <string.h>
#include "base/memory.h"

// Limits on the candidates compared for one node, and on the bytes of a tensor attribute compared.
// They only bound the time for unusual models; what exceeds them is not merged.
#define MAX_CANDIDATES 16
#define MAX_TENSOR_BYTES 65536

// Nodes with random results and nodes with subgraphs are not merged; nor are nodes of other
// domains, which may have any semantics.
static bool is_mergeable(const struct ree_node *node) {
    if (node->domain[0] || ree_node_is_random(node)) return false;
    for (size_t i = 0; i < node->n_attrs; i++)
        if (node->attrs[i].kind == REE_ATTR_GRAPH) return false;
    return true;
}

// A node with such an output is not removed: an output of the graph must keep its own name.
static bool makes_graph_output(const struct ree_node *node) {
    for (size_t i = 0; i < node->n_outputs; i++)
        if (node->outputs[i] && node->outputs[i]->is_output) return true;
    return false;
}

static bool equal_tensors(const struct ree_value *a, const struct ree_value *b) {
    if (a->dtype != b->dtype || a->rank != b->rank || a->nbytes != b->nbytes) return false;
    if (!a->data || !b->data || a->nbytes > MAX_TENSOR_BYTES) return false;
    if (a->dtype == REE_STRING) return false; // the data is pointers, whose bytes do not compare
    return memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0 &&
           memcmp(a->data, b->data, a->nbytes) == 0;
}

// Compares numbers by their bits: -0 differs from 0, and a NaN equals itself.
static bool equal_attrs(const struct ree_attr *a, const struct ree_attr *b) {
    if (a->kind != b->kind || a->n != b->n) return false;
    switch (a->kind) {
    case REE_ATTR_INT: return a->i == b->i;
    case REE_ATTR_FLOAT: return memcmp(&a->f, &b->f, sizeof a->f) == 0;
    case REE_ATTR_STRING: return a->s_size == b->s_size && memcmp(a->s, b->s, a->s_size) == 0;
    case REE_ATTR_TENSOR: return equal_tensors(a->tensor, b->tensor);
    case REE_ATTR_TYPE:
    case REE_ATTR_GRAPH: return false;
    case REE_ATTR_INTS: return a->n == 0 || memcmp(a->ints, b->ints, a->n * sizeof *a->ints) == 0;
    case REE_ATTR_FLOATS:
        return a->n == 0 || memcmp(a->floats, b->floats, a->n * sizeof *a->floats) == 0;
    case REE_ATTR_STRINGS:
        for (size_t i = 0; i < a->n; i++)
            if (strcmp(a->strings[i], b->strings[i]) != 0) return false;
        return true;
    }
    return false;
}

static bool equal_nodes(const struct ree_node *a, const struct ree_node *b) {
    if (strcmp(a->op_type, b->op_type) != 0 || a->opset != b->opset) return false;
    if (a->n_inputs != b->n_inputs || a->n_outputs != b->n_outputs || a->n_attrs != b->n_attrs)
        return false;
    for (size_t i = 0; i < a->n_inputs; i++)
        if (a->inputs[i] != b->inputs[i]) return false;
    // The set of used outputs can change what an operator does.
    for (size_t i = 0; i < a->n_outputs; i++)
        if (!a->outputs[i] != !b->outputs[i]) return false;
    for (size_t i = 0; i < a->n_attrs; i++) {
        // The attributes are nearly always in the same order.
        const struct ree_attr *other = &b->attrs[i];
        if (strcmp(other->name, a->attrs[i].name) != 0) other = ree_node_attr(b, a->attrs[i].name);
        if (!other || !equal_attrs(&a->attrs[i], other)) return false;
    }
    return true;
}

static uint64_t mix(uint64_t hash, const void *data, size_t n) {
    const unsigned char *bytes = data;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

// FNV-1a over the parts that differ most between nodes. Equal nodes have equal hashes, because the
// order of attributes does not matter.
static uint64_t hash_node(const struct ree_node *node) {
    uint64_t hash = mix(UINT64_C(0xcbf29ce484222325), node->op_type, strlen(node->op_type));
    for (size_t i = 0; i < node->n_inputs; i++) {
        // Not the id, which follows the order of initializers in the file: what collides decides
        // what is merged (MAX_CANDIDATES), and that must be the same for all files of the model.
        uint32_t number = node->inputs[i] ? node->inputs[i]->number : UINT32_MAX;
        hash = mix(hash, &number, sizeof number);
    }
    uint64_t attrs = 0;
    for (size_t i = 0; i < node->n_attrs; i++) {
        const struct ree_attr *attr = &node->attrs[i];
        uint64_t one = mix(hash, attr->name, strlen(attr->name));
        if (attr->kind == REE_ATTR_INT) one = mix(one, &attr->i, sizeof attr->i);
        if (attr->kind == REE_ATTR_FLOAT) one = mix(one, &attr->f, sizeof attr->f);
        if (attr->kind == REE_ATTR_INTS) one = mix(one, attr->ints, attr->n * sizeof *attr->ints);
        if (attr->kind == REE_ATTR_TENSOR && attr->tensor->data &&
            attr->tensor->dtype != REE_STRING)
            one = mix(one, attr->tensor->data,
                      attr->tensor->nbytes < 256 ? attr->tensor->nbytes : 256);
        attrs += one;
    }
    return mix(hash, &attrs, sizeof attrs);
}

struct table {
    size_t mask;
    uint32_t *heads, *nexts; // by bucket, by node: node id + 1; 0: none
};

// Returns the first node that is equal to `node`; if there is none, adds `node` to the table and
// returns NULL.
static struct ree_node *find_or_add(struct table *table, const struct ree_graph *graph,
                                    struct ree_node *node) {
    size_t bucket = hash_node(node) & table->mask;
    uint32_t at = table->heads[bucket];
    for (int i = 0; at && i < MAX_CANDIDATES; i++, at = table->nexts[at - 1])
        if (equal_nodes(graph->nodes[at - 1], node)) return graph->nodes[at - 1];
    table->nexts[node->id] = table->heads[bucket];
    table->heads[bucket] = node->id + 1;
    return NULL;
}

// Keeps the declared type of a removed output, so that lowering still checks it. It is in no hash,
// so it must not decide whether nodes are merged.
static void keep_type(const struct ree_value *removed, struct ree_value *kept) {
    if (removed->dtype == REE_DTYPE_NONE || removed->kind != kept->kind) return;
    if (kept->dtype == REE_DTYPE_NONE)
        kept->dtype = removed->dtype;
    else if (kept->dtype != removed->dtype)
        kept->has_two_types = true;
}

static bool merge_all(struct ree_rewrite *rewrite, struct table *table) {
    const struct ree_graph *graph = rewrite->graph;
    bool changed = false;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct ree_node *node = graph->nodes[i];
        ree_rewrite_node(rewrite, node);
        if (!is_mergeable(node)) continue;
        struct ree_node *first = find_or_add(table, graph, node);
        if (!first || makes_graph_output(node)) continue;
        for (size_t j = 0; j < node->n_outputs; j++) {
            if (!node->outputs[j]) continue;
            rewrite->replacement[node->outputs[j]->id] = first->outputs[j];
            keep_type(node->outputs[j], first->outputs[j]);
        }
        rewrite->removed[i] = true;
        changed = true;
    }
    return changed;
}

bool ree_pass_common_subexpressions(struct ree_graph *graph) {
    bool changed = ree_pass_subgraphs(graph, ree_pass_common_subexpressions);
    struct ree_rewrite rewrite;
    if (!ree_rewrite_init(&rewrite, graph)) return changed;
    size_t n_buckets = 64;
    while (n_buckets < graph->n_nodes)
        n_buckets *= 2;
    struct table table = {
        .mask = n_buckets - 1,
        .heads = ree_alloc_zeroed(n_buckets, sizeof *table.heads),
        .nexts = ree_alloc_zeroed(graph->n_nodes + 1, sizeof *table.nexts),
    };
    if (!table.heads || !table.nexts) graph->lacked_memory = true;
    bool merged = table.heads && table.nexts && merge_all(&rewrite, &table);
    if (merged) ree_rewrite_apply(&rewrite);
    ree_free(table.heads);
    ree_free(table.nexts);
    ree_rewrite_finish(&rewrite);
    return changed || merged;
}
