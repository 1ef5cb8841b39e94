// Observation of a run: the value of every output of every node. An observed session keeps these
// values in memory until the end of the run and does not fuse across them. This changes no bit; it
// costs memory and time.
#ifndef REE_SESSION_OBSERVE_H
#define REE_SESSION_OBSERVE_H

#include "session/types.h"

// Call it before the first run and after ree_session_declare_kv_caches. Copies the observer. A
// failure of a callback fails the run. Fails with REE_UNSUPPORTED if the session mixes sequences of
// different lengths.
enum ree_status ree_session_observe(struct ree_session *session,
                                    const struct ree_observer *observer, struct ree_error *err);
// Ends the observation: later runs call none of the callbacks. They still fuse nothing across
// nodes. No effect on a session that is not observed.
void ree_session_end_observation(struct ree_session *session);

// The model and the operation set that a session runs.
const struct ree_model *ree_session_model(const struct ree_session *session);
enum ree_operation_set ree_session_operation_set(const struct ree_session *session);
const struct ree_device *ree_session_device(const struct ree_session *session);

#endif
