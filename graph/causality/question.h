// What the proof of causality is asked: a graph, and what a run passes for each of its inputs.
#ifndef REE_GRAPH_CAUSALITY_QUESTION_H
#define REE_GRAPH_CAUSALITY_QUESTION_H

#include "graph/ir/ir.h"

// What a run passes for an input of the graph. The batch size is 1.
enum ree_causality_input_kind {
    REE_CAUSALITY_TOKENS,       // [1, S]: the new tokens
    REE_CAUSALITY_POSITIONS,    // [1, S] or [S]: their positions
    REE_CAUSALITY_ONES,         // [1, P + S]: ones
    REE_CAUSALITY_ZEROS,        // [1, S]: zeros
    REE_CAUSALITY_PAST_LENGTH,  // P
    REE_CAUSALITY_TOTAL_LENGTH, // P + S
    REE_CAUSALITY_ROWS,         // [1, R, 1]: new tokens whose logits are requested, counted from 0
    REE_CAUSALITY_KV_CACHE,     // a cache: P positions along `axis`
    REE_CAUSALITY_OTHER,        // anything else
};

struct ree_causality_input {
    enum ree_causality_input_kind kind;
    const struct ree_value *value;
    uint32_t rank; // of positions and lengths: 0 to 2
    // KV_CACHE: the output that becomes this input in the next run, and the axes of positions and
    // batch.
    const struct ree_value *next;
    uint32_t axis, batch_axis;
};

struct ree_fact;

struct ree_causality_question {
    const struct ree_graph *graph; // after all passes, as it will be lowered
    size_t n_inputs;
    const struct ree_causality_input *inputs;
    const struct ree_value *logits; // [1, S or R, vocabulary]
    // Caches may contain meaningless positions after the last token. Then P, as the caches' shapes
    // and the length inputs give it, is not the position of the first new token; only the positions
    // input gives that.
    bool has_slack;
    // Called with each value's derived fact (facts.h), whatever the result is: for tests that
    // compare facts with runs. NULL: off.
    void (*on_fact)(void *user, const struct ree_value *value, const struct ree_fact *fact);
    void *user;
};

#endif
