// Time that each RepOp took in a session's latest run.
//
// Devices that replay a whole program (CUDA graphs) run its dispatches one by one while measuring,
// so their sum exceeds the time of a run that is not measured.
#ifndef REE_SESSION_PROFILE_H
#define REE_SESSION_PROFILE_H

#include "ree.h"
#include "repops/cost.h"

struct ree_profile_entry {
    enum ree_repop op;
    const char *node; // label of the node, for example "node 'conv1' (Conv)"
    struct ree_cost cost;
    double seconds; // device time of the dispatch
};

// Turns the measuring of dispatch times on or off, for all later runs.
void ree_session_measure(struct ree_session *session, bool on);

// Calls `each` for every dispatch of the latest run, in order. Returns false if that run was not
// measured or the device cannot measure.
bool ree_session_profile(const struct ree_session *session,
                         void (*each)(void *user, const struct ree_profile_entry *entry),
                         void *user);

#endif
