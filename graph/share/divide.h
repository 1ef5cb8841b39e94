// Shared by the files of this folder: which values of a step are divided among the ranks, and how a
// node works on the samples of one rank.
#ifndef REE_GRAPH_SHARE_DIVIDE_H
#define REE_GRAPH_SHARE_DIVIDE_H

#include "graph/share/share.h"

#include <stdint.h>

// How a value is divided: dims[axis] is groups * batch size * per, and element i along the axis
// belongs to sample i / per of its group. `groups` is 1 but for the image of a convolution over
// samples with several groups: its channels are the samples, once for each group.
struct ree_samples {
    bool is_divided; // false: common to all ranks
    uint32_t axis;
    int64_t per, groups;
};

// What a node does with the samples.
enum ree_node_role {
    REE_NODE_COMMON, // reads no divided value
    REE_NODE_OWN,    // each sample of its outputs depends on the same sample of its inputs
    REE_NODE_SUM,    // sums over all samples
};

// How a node works on one rank's samples.
struct ree_own_node {
    struct ree_samples *needs; // [inputs] how it reads each input; not divided: all of it
    // Its int64 input `list_input` becomes this list; 0: no input does.
    size_t list_input, n_list;
    int64_t *list;
    bool is_reshape;         // it becomes a Reshape of its first input to the shape `list`
    int64_t added_to_second; // added to its second output: indices that count all samples
};

struct ree_sum_node {
    enum ree_sum_kind kind;
    uint64_t n_per_sample;
    int64_t groups, m, n;
    bool is_mean;
    float divisor; // of a mean
    bool is_conv;
    int64_t n_positions; // of the kernel of a convolution
    // Other sums: the order of each operand's axes. Axes of the terms come first, axes of the
    // groups second, the rest (m on the left, n on the right) last.
    int64_t order[2][REE_MAX_RANK];
    // The result [groups, m, n] is reshaped, its axes are put into another order, and it is
    // reshaped to the output. result_rank 0: only the last.
    uint32_t result_rank;
    int64_t result_dims[REE_MAX_RANK], result_order[REE_MAX_RANK];
};

struct ree_divide {
    const struct ree_graph *graph;
    const struct ree_share_options *options;
    struct ree_arena arena;
    // By value id.
    struct ree_samples *samples; // is_divided: the value consists of samples
    struct ree_samples *wanted;  // of a common value: the form in which its samples are read
    bool *reads_all, *reads_own; // whether something reads all of it; only one rank's samples
    uint32_t *value_part;        // part that computes it
    // By node id.
    enum ree_node_role *roles;
    struct ree_own_node **own; // how it works on own samples; NULL: it does not
    struct ree_sum_node **sums;
    uint32_t *node_part;
    uint32_t n_parts;
    struct ree_error *err;
};

// Decides for each value and node of the graph. The arrays are allocated in d->arena.
enum ree_status ree_divide_graph(struct ree_divide *d);

// Rules (rules.c). A rule reads d->samples of the node's inputs, of which at least one is divided.
// The node has a first input and a first output, and the shapes of all its values are known.
// It sets the role, samples of the outputs, and `own` or `sum`. It returns NULL, or why it does not
// apply.
struct ree_division {
    struct ree_divide *d;
    const struct ree_node *node;
    enum ree_node_role role; // REE_NODE_OWN unless the rule changes it
    struct ree_own_node *own;
    struct ree_sum_node *sum;    // zeroed
    struct ree_samples *outputs; // [outputs], zeroed
};
typedef const char *(*ree_share_rule)(struct ree_division *x);
struct ree_share_row {
    const char *op_type;
    ree_share_rule rule;
};
ree_share_rule ree_share_find(const struct ree_node *node); // NULL: no rule
// Whether the rule reads ree_samples.groups. Others are for samples in one group.
bool ree_share_takes_groups(ree_share_rule rule);

// Makes a common node, whose output is read in the form `out`, work on one rank's samples: fills
// `own`. Returns false if the node can only be computed whole.
bool ree_share_push(struct ree_divide *d, const struct ree_node *node, struct ree_samples out,
                    struct ree_own_node *own);

// rules.c, for rules and for the builder
int64_t ree_share_own(const struct ree_divide *d); // number of this rank's samples
bool ree_share_has_shape(const struct ree_value *value);
// Elements of value->dims[begin] * ... * dims[end - 1].
int64_t ree_share_product(const struct ree_value *value, uint32_t begin, uint32_t end);
// Returns whether the value can be divided like this. True if `s` is not divided.
bool ree_samples_fit(const struct ree_divide *d, const struct ree_value *value,
                     struct ree_samples s);
bool ree_samples_same(struct ree_samples a, struct ree_samples b);
// Reads the constant list of integers that is input i, or the attribute. *out_n is 0 if there is
// neither. Returns false if it is not constant.
bool ree_share_list(const struct ree_node *node, size_t i, const char *attribute, size_t *out_n,
                    int64_t out[REE_MAX_RANK * 2]);

#endif
