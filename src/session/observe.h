// Observation of runs: an observer receives the value of every output of every node. An observed
// session keeps these values in memory until the end of the run and does not fuse nodes. This
// changes no bit; it costs memory and time.
#ifndef REE_SESSION_OBSERVE_H
#define REE_SESSION_OBSERVE_H

#include "session/types.h"

// Starts the observation: later runs call the observer's callbacks. If a callback fails, the run
// fails. Copies the observer. Call it after ree_session_declare_kv_caches. Fails with
// - REE_INVALID if the session was bound or run before, or is already observed
// - REE_UNSUPPORTED if the kv caches were declared with a positions_input
enum ree_status ree_session_observe(struct ree_session *session,
                                    const struct ree_observer *observer, struct ree_error *err);
// Ends the observation: later runs call no callback, but still fuse no nodes. Has no effect on a
// session that is not observed.
void ree_session_end_observation(struct ree_session *session);

// These functions return the model, the operation set and the device of a session. The pointers are
// borrowed from the session.
const struct ree_model *ree_session_model(const struct ree_session *session);
enum ree_operation_set ree_session_operation_set(const struct ree_session *session);
const struct ree_device *ree_session_device(const struct ree_session *session);

#endif
