// Shared by the files with rules (rules.c, rules_movement.c, rules_sums.c).
#ifndef REE_GRAPH_SHARE_RULE_H
#define REE_GRAPH_SHARE_RULE_H

#include "graph/share/divide.h"

#include <string.h>

// Why a rule does not apply
#define REE_NOT_ALIGNED "its inputs do not have their samples at the same place"
#define REE_NO_SHAPES "the shapes of its values are not known"
#define REE_MIXES "it mixes the samples"

static inline struct ree_samples ree_divided_along(uint32_t axis, int64_t per) {
    return (struct ree_samples){true, axis, per, 1};
}

// The node's input or output i; NULL if it is absent.
static inline const struct ree_value *ree_rule_input(const struct ree_division *x, size_t i) {
    return i < x->node->n_inputs ? x->node->inputs[i] : NULL;
}

static inline const struct ree_value *ree_rule_output(const struct ree_division *x, size_t i) {
    return i < x->node->n_outputs ? x->node->outputs[i] : NULL;
}

// Returns how the node's input i is divided.
static inline struct ree_samples ree_rule_samples(const struct ree_division *x, size_t i) {
    const struct ree_value *value = ree_rule_input(x, i);
    return value ? x->d->samples[value->id] : (struct ree_samples){0};
}

static inline bool ree_rule_is(const struct ree_node *node, const char *op_type) {
    return strcmp(node->op_type, op_type) == 0;
}

// Returns whether the axis has `per` elements for each sample of the batch.
static inline bool ree_axis_fits(const struct ree_divide *d, const struct ree_value *value,
                                 uint32_t axis, int64_t per) {
    return ree_samples_fit(d, value, ree_divided_along(axis, per));
}

// Reads an axis attribute or number in [-rank, rank). Returns false if it is outside.
static inline bool ree_rule_axis(int64_t axis, uint32_t rank, uint32_t *out) {
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return false;
    *out = (uint32_t)axis;
    return true;
}

// Makes input `at` of the node the list. Returns false if memory is exhausted.
bool ree_rule_set_list(struct ree_divide *d, struct ree_own_node *own, size_t at,
                       const int64_t *list, size_t n);
// Writes the shape of a value that consists of one rank's samples.
void ree_rule_own_shape(const struct ree_divide *d, const struct ree_value *value,
                        struct ree_samples s, int64_t out[REE_MAX_RANK]);
// Sets how the inputs are read if the output has the form `out`. Each input is broadcast to the
// output's shape; axes are aligned at the end.
bool ree_rule_broadcast(const struct ree_divide *d, const struct ree_node *node,
                        struct ree_samples out, struct ree_own_node *own);
// Finds how `to`, a reshaped form of `from`, is divided. Samples must be contiguous in both, after
// the same number of elements that enclose them.
bool ree_rule_reshape(const struct ree_divide *d, const struct ree_value *from,
                      struct ree_samples s, const struct ree_value *to, struct ree_samples *out);
// Returns why the operands of a sum of products do not have their samples where x->own->needs says.
const char *ree_rule_check_operands(const struct ree_division *x);
// Reads the permutation of a Transpose.
bool ree_rule_order(const struct ree_node *node, uint32_t rank, uint32_t out[REE_MAX_RANK]);

// The rules (divide.h)
typedef const char *ree_share_rule_of(struct ree_division *x);
ree_share_rule_of ree_share_elementwise;
ree_share_rule_of ree_share_reshape, ree_share_transpose, ree_share_concat,
    ree_share_along_attribute, ree_share_along_first, ree_share_cumsum, ree_share_arg,
    ree_share_trilu, ree_share_slice, ree_share_pad, ree_share_gather, ree_share_elements,
    ree_share_scatter_nd;
ree_share_rule_of ree_share_reduce, ree_share_matmul, ree_share_per_sample, ree_share_conv,
    ree_share_max_pool, ree_share_layer_norm, ree_share_batch_norm, ree_share_einsum;

#endif
