// Sessions: a session runs one model on one device.
#ifndef REE_SESSION_H
#define REE_SESSION_H

#include "device_tensor.h"
#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ree_session;

struct ree_session_options {
    size_t size; // sizeof(struct ree_session_options)
    // true: every arithmetic step is a dispatch of its own. Shows that fusion changes no bit.
    bool no_fuse;
    // Receives the progress of loading weights, in bytes, and of runs ("running"), in dispatches.
    struct ree_progress progress;
    // Called twice each time the model is bound to shapes; NULL: off. First `what` is "lowered" and
    // `text` lists the dispatches in order. Then `what` is "memory plan" and `text` lists the
    // offsets of the intermediate tensors. If shapes depend on computed data, the model is bound in
    // several segments; both calls are repeated for each, as "lowered, segment 2" and so on.
    void (*on_program)(void *user, const char *what, const char *text);
    void *user; // first argument of on_program and on_kernel
    // Called after "memory plan" for each kernel of the dispatches, in the order of their first
    // use, with code that is valid during the call; NULL: off.
    void (*on_kernel)(void *user, const struct ree_kernel *kernel);
};

// Creates a session of a loaded model on a device. The model and the device must outlive it. The
// first run loads the weights onto the device. `options` may be NULL. Fails with REE_INVALID if the
// model is from ree_model_inspect.
REE_API enum ree_status ree_session_create(struct ree_model *model, struct ree_device *device,
                                           const struct ree_session_options *options,
                                           struct ree_session **out_session, struct ree_error *err);
REE_API void ree_session_destroy(struct ree_session *session);

// Runs the model once. `inputs` are matched by name, in any order; they are only read. Optional and
// nullable inputs (struct ree_port) may be omitted. Fails with REE_INVALID if a name is missing or
// unknown, a type is wrong, or the model does not allow a shape; the message lists the model's
// inputs. `outputs` must have space for ree_model_n_outputs tensors; this call initialises them in
// the model's order. Release each with ree_tensor_finish; after a failure they are zeroed. NaNs in
// outputs are those of NUMERICS.md, section 1 (float32: 0x7FC00000).
REE_API enum ree_status ree_session_run(struct ree_session *session,
                                        const struct ree_tensor *inputs, size_t n_inputs,
                                        struct ree_tensor *outputs, struct ree_error *err);

// A device tensor for an input or an output of a model.
struct ree_named_device_tensor {
    const char *name;
    struct ree_device_tensor *tensor; // of the session's device
};
// Like ree_session_run, but some inputs are device tensors, which the run only reads, and device
// tensors receive some outputs; the entries of `outputs` for these are zeroed. All other inputs are
// in `inputs`. A device tensor that receives an output must have its type and shape, and must not
// be another tensor of the same run; after a failure its contents are undefined. Also fails with
// REE_INVALID for a tensor of another device, and with REE_UNSUPPORTED while the session is
// recorded. A run whose shapes depend on the contents of a device tensor binds the model each time.
REE_API enum ree_status ree_session_run_on_device(
    struct ree_session *session, const struct ree_tensor *inputs, size_t n_inputs,
    const struct ree_named_device_tensor *device_inputs, size_t n_device_inputs,
    const struct ree_named_device_tensor *device_outputs, size_t n_device_outputs,
    struct ree_tensor *outputs, struct ree_error *err);

// Binds the model to the inputs' shapes, so that the next run with these shapes does not bind it
// again. Runs only the dispatches that shapes depend on.
REE_API enum ree_status ree_session_bind(struct ree_session *session,
                                         const struct ree_tensor *inputs, size_t n_inputs,
                                         struct ree_error *err);

struct ree_session_stats {
    size_t size;           // sizeof(struct ree_session_stats)
    uint64_t weight_bytes; // weight bytes resident on the device
    uint64_t arena_bytes;  // memory for the intermediate tensors of the last run, in bytes
    uint64_t n_dispatches; // number of dispatches of the last run
    // Number of segments (programs run one after another) of the last run: 1 unless a shape or a
    // condition depended on computed data.
    uint64_t n_segments;
    uint64_t n_binds, n_bind_hits; // number of binds made; how often an earlier bind was reused
    double bind_seconds;           // time that binding took for the last run
    double run_seconds;            // duration of the last run, with upload and download
    // Pipelines with max_device_memory: the most bytes that one device held at a time. Otherwise 0.
    uint64_t peak_bytes;
};
// Fills *out_stats. The caller sets out_stats->size. Fails with REE_INVALID if it is 0.
REE_API enum ree_status ree_session_stats(const struct ree_session *session,
                                          struct ree_session_stats *out_stats,
                                          struct ree_error *err);

#ifdef __cplusplus
}
#endif
#endif
