// Comparing two traces: the first node, in the order in which they run, that gave something else.
#ifndef REE_AUDIT_DIFF_H
#define REE_AUDIT_DIFF_H

#include "base/strbuf.h"
#include "receipt/trace.h"

enum ree_diff_kind {
    REE_DIFF_SAME,      // the same roots
    REE_DIFF_OTHER_RUN, // the headers differ: there is nothing to compare
    REE_DIFF_INPUT,     // the first that differs is an input of the model
    REE_DIFF_NODE,      // ... an output of a node
    REE_DIFF_LENGTH,    // equal as far as both go, but one has more steps
};

// What headers can differ in.
#define REE_DIFF_GRAPH 1u
#define REE_DIFF_WEIGHTS 2u
#define REE_DIFF_NUMERICS 4u
#define REE_DIFF_OPERATION_SET 8u
#define REE_DIFF_CHUNK 16u
#define REE_DIFF_PORTS 32u // the inputs of the graph
#define REE_DIFF_CONSTANTS                                                                         \
    64u // other constants under the same weights: made otherwise by the
        // passes
#define REE_DIFF_NODES 128u

struct ree_diff {
    enum ree_diff_kind kind;
    uint32_t header;   // of OTHER_RUN: a sum of the above
    uint64_t n_steps;  // that both have
    uint64_t step;     // the first that differs; of LENGTH n_steps
    uint32_t input;    // of INPUT
    uint32_t node;     // of NODE
    uint64_t n_before; // runs of nodes that agree before it
    uint64_t n_after;  // runs of nodes that differ after it
    uint64_t n_new;    // among those, whose inputs all agree: further faults
};

void ree_trace_diff(const struct ree_trace *a, const struct ree_trace *b, struct ree_diff *out);

// Of one node in one step of traces with equal headers.
bool ree_trace_node_differs(const struct ree_trace *a, const struct ree_trace *b, uint64_t step,
                            uint32_t node);
bool ree_trace_value_agrees(const struct ree_trace *a, const struct ree_trace *b, uint64_t step,
                            int32_t value);
bool ree_trace_inputs_agree(const struct ree_trace *a, const struct ree_trace *b, uint64_t step,
                            uint32_t node);
// Where a value comes from: "input 'x'", "constant 'w'", "output 1 of node 12 'split' (Split)".
void ree_trace_value_text(const struct ree_trace_header *header, int32_t value,
                          struct ree_strbuf *out);
// "node 12 'split' (Split)"; names as the model has them, so not to be printed to a terminal as
// they are.
void ree_trace_node_text(const struct ree_trace_header *header, uint32_t node,
                         struct ree_strbuf *out);

#endif
