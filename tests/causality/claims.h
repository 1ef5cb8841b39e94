// What the proof of causality derives of each value of a graph, compared with what runs compute:
// a wrong fact of any rule fails, whether or not it leads to a wrong answer.
//
//     claims_ask(&claims, &question);             // runs the proof
//     session = ... , claims_watch(&claims, session)
//     claims_next(&claims, past, fresh, ids);     // what the next run is
//     ree_session_run(session, ...)
//     claims_check(&claims, label);               // its values against the facts
//     struct record first = claims_take(&claims);
//     ... another run ...
//     claims_compare(&claims, &first, label);     // the rows of equal tokens
#ifndef REE_TESTS_CAUSALITY_CLAIMS_H
#define REE_TESTS_CAUSALITY_CLAIMS_H

#include "graph/causality/facts.h"
#include "ree.h"

#define CLAIMS_MAX_TOKENS 32

// A run, and a copy of each of its values.
struct record {
    int64_t past, fresh;
    int32_t ids[CLAIMS_MAX_TOKENS]; // past + fresh tokens
    size_t n_values;
    struct ree_tensor *values; // by value id; of those that were not observed, nbytes is 0
    bool *is_seen;
};
void record_finish(struct record *record);

struct claims {
    const struct ree_graph *graph;
    size_t n_facts;
    struct ree_fact *facts; // by value id; why_not is set where nothing is claimed
    struct record run;      // the last one
    long n_checked;         // facts that were compared with a tensor
};

// Proves, and keeps the facts. Returns the answer; `question` gets the callback. The graph must not
// change until claims_finish.
bool claims_ask(struct claims *claims, struct ree_causality_question *question, char *out_reason,
                size_t size);
bool claims_watch(struct claims *claims, struct ree_session *session);
void claims_next(struct claims *claims, int64_t past, int64_t fresh, const int32_t *ids);
// Both return false, and count a failed check, for the first value that contradicts its fact.
bool claims_check(struct claims *claims, const char *label);
bool claims_compare(struct claims *claims, const struct record *other, const char *label);
struct record claims_take(struct claims *claims); // the caller's to finish
void claims_finish(struct claims *claims);

#endif
