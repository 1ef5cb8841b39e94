// Reads the values of a run from the files that --dump-tensors wrote (dump.h):
//
//     FOLDER/step-STEP/input-INDEX-NAME.npy         an input of the model that is not a kv cache
//     FOLDER/step-STEP/NODE-NAME-OUTPUT.npy         an output of a node; if it is kept as a kv
//                                                   cache: the positions that this step added, or
//                                                   the whole cache if the step wrote it again
//
// STEP, INDEX and NODE are numbers of five digits; OUTPUT is a number. NAME is ignored. The files
// are untrusted: their contents must have the digest or hash that the caller passes.
#ifndef REE_TRACE_RECORDED_H
#define REE_TRACE_RECORDED_H

#include "trace/open_model.h"
#include "trace/recorded_files.h"

// Loads the value with number `value` (trace/trace.h) of a step; the caller releases *out. A kv
// cache is the file of the last step that wrote it, or is assembled from the positions that all
// steps up to that one added; the digest decides. Fails with
// REE_NOT_FOUND if a file is missing, and with REE_INVALID if the value does not have this digest.
enum ree_status ree_recorded_load(struct ree_recorded_folder *folder,
                                  const struct ree_opened *model, uint64_t step, uint32_t value,
                                  const ree_digest digest, struct ree_tensor *out,
                                  struct ree_error *err);

// For a model that runs in one step: computes the digest that input `input` of the recorded run has
// in a trace. Fails with REE_INVALID if the hash of its tensor is not `sha256`, the one in a
// receipt.
enum ree_status ree_recorded_run_input(struct ree_recorded_folder *folder,
                                       const struct ree_opened *model, uint32_t input,
                                       const char *sha256, ree_digest out, struct ree_error *err);

// Returns the number of the value that output `output` of the model's graph has in a trace, or
// UINT32_MAX if no node computes that output.
uint32_t ree_recorded_value_of_output(const struct ree_opened *model, size_t output);
// Where an output of the model comes from.
struct ree_recorded_source {
    bool is_input, is_constant; // not computed by a node: an input, a constant
    uint32_t value;    // number of the value (trace/trace.h); if is_input, index of the input
    ree_digest digest; // if is_constant: its digest
};
void ree_recorded_source_of_output(const struct ree_opened *model, size_t output,
                                   struct ree_recorded_source *out);
// Returns the index of the kv cache whose input or output is the value with number `value`, or -1
// if there is none. *out_new is true if the value is the cache's output.
ptrdiff_t ree_recorded_kv_cache(const struct ree_opened *model, uint32_t value, bool *out_new);
// Computes the digest of a whole kv cache: a chain over the tensor's positions along `axis`
// (trace.h).
void ree_recorded_positions_digest(const struct ree_tensor *tensor, uint32_t axis, ree_digest out);

#endif
