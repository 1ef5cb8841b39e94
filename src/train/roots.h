// Hashes of states and of steps: NUMERICS.md, "Trainings".
#ifndef REE_TRAIN_ROOTS_H
#define REE_TRAIN_ROOTS_H

#include "base/merkle.h"
#include "base/status.h"

// Computes the root over n states, which have names; NaNs count as canonical.
enum ree_status ree_states_root(const struct ree_tensor *states, size_t n, ree_digest out,
                                struct ree_error *err);
// The same from the states' names and tensor digests.
enum ree_status ree_digests_root(const char *const *names, const ree_digest *digests, size_t n,
                                 ree_digest out, struct ree_error *err);
// Computes the first value of a chain, before step number `step`. `states`: root of the states.
void ree_chain_begin(uint64_t step, const ree_digest states, ree_digest out);
// Replaces a value of a chain by the next one. `loss`: tensor digest of the step's loss; `states`:
// root of the states after the step.
void ree_chain_next(ree_digest inout, const ree_digest loss, const ree_digest states);

#endif
