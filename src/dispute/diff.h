// Compares two traces and finds the first node, in the order in which nodes run, whose outputs
// differ.
#ifndef REE_DISPUTE_DIFF_H
#define REE_DISPUTE_DIFF_H

#include "base/strbuf.h"
#include "trace/trace.h"

enum ree_diff_kind {
    REE_DIFF_SAME,      // equal roots
    REE_DIFF_OTHER_RUN, // the headers differ, so the steps cannot be compared
    REE_DIFF_INPUT,     // the first difference is an input of the model
    REE_DIFF_NODE,      // the first difference is an output of a node
    REE_DIFF_LENGTH,    // equal up to the end of the shorter trace
};

// Bits of ree_diff.header: the parts in which the headers differ.
#define REE_DIFF_GRAPH 1u
#define REE_DIFF_WEIGHTS 2u
#define REE_DIFF_NUMERICS 4u
#define REE_DIFF_OPERATION_SET 8u
#define REE_DIFF_CHUNK 16u
#define REE_DIFF_PORTS 32u // the inputs of the graph
// The constants differ although the weights are equal: the passes made other constants.
#define REE_DIFF_CONSTANTS 64u
#define REE_DIFF_NODES 128u

struct ree_diff {
    enum ree_diff_kind kind;
    uint32_t header;   // OTHER_RUN: a combination of the bits above
    uint64_t n_steps;  // steps that both traces have
    uint64_t step;     // first step that differs; LENGTH: n_steps
    uint32_t input;    // INPUT: its number
    uint32_t node;     // NODE: its number
    uint64_t n_before; // node runs before the difference; all agree
    uint64_t n_after;  // node runs after the difference that differ
    uint64_t n_new;    // among n_after, those whose inputs all agree: further faults
};

void ree_trace_diff(const struct ree_trace *a, const struct ree_trace *b, struct ree_diff *out);

// For one node or value in one step. The headers of both traces must be equal.
bool ree_trace_node_differs(const struct ree_trace *a, const struct ree_trace *b, uint64_t step,
                            uint32_t node);
bool ree_trace_value_agrees(const struct ree_trace *a, const struct ree_trace *b, uint64_t step,
                            int32_t value);
bool ree_trace_inputs_agree(const struct ree_trace *a, const struct ree_trace *b, uint64_t step,
                            uint32_t node);
// Appends where a value comes from: "input 'x'", "constant 'w'", "output 1 of node 12 'split'
// (Split)".
void ree_trace_value_text(const struct ree_trace_header *header, int32_t value,
                          struct ree_strbuf *out);
// Appends "node 12 'split' (Split)". Names are those of the model, so the text must be escaped
// before it is printed to a terminal.
void ree_trace_node_text(const struct ree_trace_header *header, uint32_t node,
                         struct ree_strbuf *out);

#endif
