// Finds norms: norm operators, and norms that consist of several nodes: squares or differences,
// their mean or sum, its root, the quotient, scale and bias.
#include <string.h>

#include "graph/partition/annotate_internal.h"

static bool is_norm_op(const struct ree_node *node) {
    return strstr(node->op_type, "Normalization") != NULL;
}

static bool is_statistic(const struct ree_node *node) {
    static const char *const ops[] = {"ReduceMean", "ReduceSumSquare", "ReduceL2", NULL};
    return !node->domain[0] && ree_op_among(node, ops);
}

// More readers than any value inside a norm has.
#define MANY_READERS 8

static bool is_read_only_by_norms(const struct ree_annotator *a, const struct ree_value *value) {
    if (a->reader_starts[value->id + 1] - a->reader_starts[value->id] > MANY_READERS) return false;
    for (size_t i = a->reader_starts[value->id]; i < a->reader_starts[value->id + 1]; i++)
        if (!a->is_norm[a->readers[i]]) return false;
    return true;
}

// Marks the nodes that prepare a statistic: a square, a difference, a widening.
static void mark_back(struct ree_annotator *a, const struct ree_node *node) {
    static const char *const ops[] = {"Pow", "Sub", "Mul", "Cast", NULL};
    for (int step = 0; step < 3; step++) {
        const struct ree_value *input = node->n_inputs ? node->inputs[0] : NULL;
        if (!input || input->graph != a->graph || !input->producer) return;
        node = input->producer;
        uint32_t position = a->position_of[node->id];
        if (position == REE_NO_POSITION || node->domain[0] || !ree_op_among(node, ops)) return;
        bool square = node->n_inputs == 2 && node->inputs[0] == node->inputs[1];
        if (strcmp(node->op_type, "Mul") == 0 && !square) return;
        if (!is_read_only_by_norms(a, input)) return;
        a->is_norm[position] = true;
    }
}

enum step { STATISTIC, DONE, NOTHING };

// Classifies a node that reads a value of a norm. STATISTIC: it computes a part of the statistic.
// DONE: it computes the quotient, or scales or shifts it. NOTHING: it is not part of the norm.
static enum step next_step(const struct ree_annotator *a, const struct ree_node *node,
                           enum step so_far) {
    static const char *const unary[] = {"Sqrt", "Reciprocal", "Cast", "Pow", "Max", "Clip", NULL};
    static const char *const binary[] = {"Add", "Sub", "Mul", "Div", NULL};
    if (node->domain[0]) return NOTHING;
    bool scaled = ree_op_among(node, binary) && node->n_inputs == 2;
    bool constant = false;
    for (size_t i = 0; scaled && i < 2; i++)
        constant = constant || (node->inputs[i] && ree_annotator_constant(a, node->inputs[i]));
    if (so_far == DONE) {
        bool is_cast = strcmp(node->op_type, "Cast") == 0;
        return is_cast || (scaled && constant) ? DONE : NOTHING;
    }
    if (ree_op_among(node, unary) || (scaled && constant)) return STATISTIC;
    if (!scaled) return is_statistic(node) ? STATISTIC : NOTHING;
    if (strcmp(node->op_type, "Sub") == 0 || node->inputs[0] == node->inputs[1]) return STATISTIC;
    return strcmp(node->op_type, "Add") == 0 ? NOTHING : DONE;
}

// Follows the results of a statistic. The visited nodes are part of a norm if the path ends in a
// quotient; then returns true. Each position is visited at most once as STATISTIC and once as DONE.
static bool follow_statistic(struct ree_annotator *a, uint32_t position, unsigned char *seen,
                             uint32_t *visited) {
    size_t n = 0;
    bool is_norm = false;
    visited[n++] = position << 1 | STATISTIC;
    for (size_t at = 0; at < n; at++) {
        enum step so_far = (enum step)(visited[at] & 1);
        is_norm = is_norm || so_far == DONE;
        const struct ree_node *node = ree_annotator_node(a, visited[at] >> 1);
        const struct ree_value *output = node->n_outputs ? node->outputs[0] : NULL;
        if (!output || output->graph != a->graph) continue;
        for (size_t i = a->reader_starts[output->id]; i < a->reader_starts[output->id + 1]; i++) {
            uint32_t reader = a->readers[i];
            enum step step = next_step(a, ree_annotator_node(a, reader), so_far);
            if (step == NOTHING || seen[reader] & 1u << step) continue;
            seen[reader] |= (unsigned char)(1u << step);
            visited[n++] = reader << 1 | step;
        }
    }
    for (size_t i = 0; is_norm && i < n; i++)
        a->is_norm[visited[i] >> 1] = true;
    return is_norm;
}

void ree_annotate_norms(struct ree_annotator *a) {
    uint32_t n = (uint32_t)a->partition->n_order;
    // At most two entries per position.
    uint32_t *visited = ree_arena_alloc_array(&a->scratch, 2 * (size_t)n + 2, sizeof *visited);
    unsigned char *seen = ree_arena_alloc(&a->scratch, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        const struct ree_node *node = ree_annotator_node(a, i);
        if (is_norm_op(node)) a->is_norm[i] = true;
        if (!visited || !seen || !is_statistic(node) || seen[i] & 1u << STATISTIC) continue;
        seen[i] |= 1u << STATISTIC;
        if (follow_statistic(a, i, seen, visited)) mark_back(a, node);
    }
}
