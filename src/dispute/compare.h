// Compares two sessions of one model while they run, step by step: every output of every node.
//
//     ree_compare_create(model, specs, n_specs, &compare, err);
//     observers of both sessions: ree_compare_observer(compare, 0) and (compare, 1)
//     for each step: run the first session; run the second
//     ree_compare_result(compare)
//
// The values of the first session are kept on the host until the second session has run the step.
// Both sessions must have the same inputs.
#ifndef REE_DISPUTE_COMPARE_H
#define REE_DISPUTE_COMPARE_H

#include "dispute/ulp.h"
#include "session/model.h"
#include "session/observe.h"
#include "session/kv_cache.h"

struct ree_compare;

// Starts a comparison. `model` must be the model of both sessions, or an identical copy, and must
// outlive the comparison. specs: the kv caches of the sessions.
enum ree_status ree_compare_create(const struct ree_model *model,
                                   const struct ree_kv_cache_spec *specs, size_t n_specs,
                                   struct ree_compare **out, struct ree_error *err);
struct ree_observer ree_compare_observer(struct ree_compare *compare, unsigned side);
// The result borrows from `compare` and is valid until the next run. It has neither suspects nor
// tokens.
struct ree_compare_result ree_compare_result(const struct ree_compare *compare);
void ree_compare_destroy(struct ree_compare *compare); // accepts NULL

#endif
