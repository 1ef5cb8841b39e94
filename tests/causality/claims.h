// Compares the facts that the proof of causality derives for each value of a graph with the values
// that runs compute. A wrong fact fails even if it does not lead to a wrong answer.
//
//     claims_ask(&claims, &question);             // runs the proof
//     session = ... , claims_watch(&claims, session)
//     claims_next(&claims, past, fresh, ids);     // describes the next run
//     ree_session_run(session, ...)
//     claims_check(&claims, label);               // compares its values with the facts
//     struct record first = claims_take(&claims);
//     ... another run ...
//     claims_compare(&claims, &first, label);     // compares the rows of equal tokens
#ifndef REE_TESTS_CAUSALITY_CLAIMS_H
#define REE_TESTS_CAUSALITY_CLAIMS_H

#include "graph/causality/facts.h"
#include "ree.h"

#define CLAIMS_MAX_TOKENS 32

// A run and a copy of each of its values. Release it with record_finish.
struct record {
    int64_t past, fresh;
    int32_t ids[CLAIMS_MAX_TOKENS]; // (past + fresh): the tokens
    size_t n_values;
    struct ree_tensor *values; // (n_values), by value id; nbytes is 0 if a value was not observed
    bool *is_seen;             // (n_values), by value id: the value was observed
};
void record_finish(struct record *record);

struct claims {
    const struct ree_graph *graph;
    size_t n_facts;
    struct ree_fact *facts; // (n_facts), by value id; why_not is set if the proof states nothing
    struct record run;      // the latest run
    long n_checked;         // facts compared with a tensor
};

// Runs the proof and keeps its facts. Returns the proof's result. Sets the callback in `question`.
// The graph must not change until claims_finish.
bool claims_ask(struct claims *claims, struct ree_causality_question *question, char *out_reason,
                size_t size);
bool claims_watch(struct claims *claims, struct ree_session *session);
void claims_next(struct claims *claims, int64_t past, int64_t fresh, const int32_t *ids);
// Both return false and count a failed check at the first value that contradicts its fact.
bool claims_check(struct claims *claims, const char *label);
bool claims_compare(struct claims *claims, const struct record *other, const char *label);
struct record claims_take(struct claims *claims); // the latest run; the caller must finish it
void claims_finish(struct claims *claims);

#endif
