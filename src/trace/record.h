// Records a trace (trace/trace.h) of a session while it runs.
//
//     struct ree_recorder *recorder;
//     ree_recorder_create(model, &options, "run.trace", &recorder, err);
//     struct ree_observer observer = ree_recorder_observer(recorder);
//     ree_session_observe(session, &observer, err);
//     ... ree_session_run or ree_generate ...
//     ree_recorder_finish(recorder, &summary, err);
//
// Each run of the session is one step.
#ifndef REE_TRACE_RECORD_H
#define REE_TRACE_RECORD_H

#include "trace/model_header.h"
#include "session/observe.h"

struct ree_recorder;

struct ree_record_summary {
    ree_digest root;
    uint64_t n_steps;
};

// Creates a recorder of runs of `model`, which must outlive it. If ree_model_select_rows applies to
// the model, call it before. The trace is written to the file `path`; NULL: only its root is
// computed.
enum ree_status ree_recorder_create(const struct ree_model *model,
                                    const struct ree_trace_header_options *options,
                                    const char *path, struct ree_recorder **out,
                                    struct ree_error *err);
const struct ree_trace_header *ree_recorder_header(const struct ree_recorder *recorder);
// Sets a callback that is called after each step with the number of the step, from 0, and its
// digests: header.n_step_digests entries, valid only during the call. If it fails, the run fails.
void ree_recorder_on_step(struct ree_recorder *recorder,
                          enum ree_status (*on_step)(void *user, uint64_t step,
                                                     const ree_digest *digests,
                                                     struct ree_error *err),
                          void *user);
struct ree_observer ree_recorder_observer(struct ree_recorder *recorder);
// Completes the trace. Only then its file appears under its name. *out, if not NULL, receives the
// root and the number of steps. Releases the recorder, also on failure.
enum ree_status ree_recorder_finish(struct ree_recorder *recorder, struct ree_record_summary *out,
                                    struct ree_error *err);
void ree_recorder_destroy(struct ree_recorder *recorder); // discards the trace file; accepts NULL

#endif
