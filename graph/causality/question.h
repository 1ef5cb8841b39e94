// The question that the proof of causality answers: a graph, and what a run passes for each of its
// inputs.
#ifndef REE_GRAPH_CAUSALITY_QUESTION_H
#define REE_GRAPH_CAUSALITY_QUESTION_H

#include "graph/ir/ir.h"

// What a run passes for an input of the graph. A run computes S new tokens, after P past tokens.
// The batch size is 1.
enum ree_causality_input_kind {
    REE_CAUSALITY_TOKENS,       // [1, S]: the new tokens
    REE_CAUSALITY_POSITIONS,    // [1, S] or [S]: the positions of the new tokens
    REE_CAUSALITY_ONES,         // [1, P + S]: ones
    REE_CAUSALITY_ZEROS,        // [1, S]: zeros
    REE_CAUSALITY_PAST_LENGTH,  // the number P
    REE_CAUSALITY_TOTAL_LENGTH, // the number P + S
    REE_CAUSALITY_ROWS,         // [1, R, 1]: indices of the new tokens whose logits are requested
    REE_CAUSALITY_KV_CACHE,     // a cache, with P positions along `axis`
    REE_CAUSALITY_OTHER,        // any other value
};

struct ree_causality_input {
    enum ree_causality_input_kind kind;
    const struct ree_value *value;
    uint32_t rank; // rank of the input, 0 to 2; only for positions and lengths
    // KV_CACHE: the graph output that becomes this input in the next run; NULL: none.
    const struct ree_value *next;
    uint32_t axis, batch_axis; // KV_CACHE: axis of positions, and axis of the batch
};

struct ree_fact;

struct ree_causality_question {
    const struct ree_graph *graph; // the model's graph after all passes, as it is lowered
    size_t n_inputs;
    const struct ree_causality_input *inputs;
    // [1, n, vocabulary]: n is the number of new tokens, or of those whose logits are requested
    const struct ree_value *logits;
    // Caches may contain unused positions after the last token. Then P, as the shapes of the caches
    // and the length inputs give it, is not the position of the first new token. Only the positions
    // input gives that position.
    bool has_slack;
    // Called with the fact (facts.h) that was derived for each value, whether or not the proof
    // succeeds. For tests that compare facts with runs. NULL: off.
    void (*on_fact)(void *user, const struct ree_value *value, const struct ree_fact *fact);
    void *user;
};

#endif
