// What each RepOp of a session's latest run took.
//
// Devices that replay a program as one piece (CUDA graphs) run its dispatches one by one while
// measuring, so that all of them together take longer than a run that is not measured.
#ifndef REE_SESSION_PROFILE_H
#define REE_SESSION_PROFILE_H

#include "repops/cost.h"

struct ree_profile_entry {
    enum ree_repop op;
    const char *node; // "node 'conv1' (Conv)"
    struct ree_cost cost;
    double seconds; // of the device
};

// Whether runs from now on are measured.
void ree_session_measure(struct ree_session *session, bool on);

// Calls `each` for every dispatch of the latest run, in order; false where that run was not
// measured, or the device cannot.
bool ree_session_profile(const struct ree_session *session,
                         void (*each)(void *user, const struct ree_profile_entry *entry),
                         void *user);

#endif
