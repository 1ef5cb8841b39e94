// Compares the facts that the proof of causality (graph/causality) derives for each value of a
// graph with the values that runs compute. A wrong fact fails the test even if the proof's answer
// is right.
//
//     claims_ask(&claims, &question);             // runs the proof
//     session = ... , claims_watch(&claims, session)
//     claims_next(&claims, past, fresh, ids);     // states the tokens of the next run
//     ree_session_run(session, ...)
//     claims_check(&claims, label);               // compares its values with the facts
//     struct record first = claims_take(&claims);
//     ... another run ...
//     claims_compare(&claims, &first, label);     // compares the two runs where tokens are equal
#ifndef REE_TESTS_CAUSALITY_CLAIMS_H
#define REE_TESTS_CAUSALITY_CLAIMS_H

#include "graph/causality/facts.h"
#include "ree.h"

#define CLAIMS_MAX_TOKENS 32

// A run of a model, and copies of the values that it computed. Release it with record_finish.
struct record {
    int64_t past, fresh; // number of tokens in the kv caches before the run; number of new tokens
    int32_t ids[CLAIMS_MAX_TOKENS]; // (past + fresh): all tokens, from the first on
    size_t n_values;
    struct ree_tensor *values; // (n_values), by value id; nbytes is 0 if a value was not observed
    bool *is_seen;             // (n_values), by value id: the value was observed
};
void record_finish(struct record *record);

struct claims {
    const struct ree_graph *graph;
    size_t n_facts;
    struct ree_fact *facts; // (n_facts): fact about each value, by id; none if its why_not is set
    struct record run;      // the latest run
    long n_checked;         // number of comparisons of a fact with a tensor
};

// Runs the proof for `question`, whose callback it sets, and stores the facts in *claims. Returns
// whether the proof succeeded; if not, out_reason receives the reason, at most `size` bytes. The
// graph must not change until claims_finish.
bool claims_ask(struct claims *claims, struct ree_causality_question *question, char *out_reason,
                size_t size);
// Makes claims->run receive the values of the session's runs. Returns false if that fails.
bool claims_watch(struct claims *claims, struct ree_session *session);
// Prepares for the next run: releases claims->run and stores the run's tokens in it.
void claims_next(struct claims *claims, int64_t past, int64_t fresh, const int32_t *ids);
// claims_check compares claims->run with the facts. claims_compare compares it with `other`, an
// earlier run: values that depend only on equal tokens must be equal. At the first contradiction
// they print a message that begins with `label` to stderr and return false.
bool claims_check(struct claims *claims, const char *label);
bool claims_compare(struct claims *claims, const struct record *other, const char *label);
// Moves the latest run out of *claims. The caller releases it with record_finish.
struct record claims_take(struct claims *claims);
void claims_finish(struct claims *claims);

#endif
