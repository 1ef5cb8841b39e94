// Reads values that --dump-tensors wrote:
//
//     FOLDER/step-STEP/input-INDEX-NAME.npy         an input of the model that is not a cache
//     FOLDER/step-STEP/NODE-NAME-OUTPUT.npy         an output of a node; if it is kept as a cache,
//     only
//                                                   the rows that this step added
//
// STEP, INDEX and NODE are numbers of five digits. NAME is ignored. The files are untrusted: their
// contents must have the digest that the caller passes.
#ifndef REE_TRACE_RECORDED_H
#define REE_TRACE_RECORDED_H

#include "trace/open_model.h"

// Loads a value (trace/trace.h) of a step. A cache is assembled from the rows of all steps up to
// this one. Fails with REE_NOT_FOUND if a file is missing and with REE_INVALID if the digest
// differs.
enum ree_status ree_recorded_load(const char *folder, const struct ree_opened *model, uint64_t step,
                                  uint32_t value, const ree_digest digest, struct ree_tensor *out,
                                  struct ree_error *err);

// For a model that runs in one step: computes the digest that a recorded input has in a trace.
// Fails with REE_INVALID if the tensor does not have the hash that a receipt states for it.
enum ree_status ree_recorded_given(const char *folder, const struct ree_opened *model,
                                   uint32_t input, const char *sha256, ree_digest out,
                                   struct ree_error *err);

// Returns the value that is an output of the model's graph, or UINT32_MAX if no node makes it.
uint32_t ree_recorded_value_of_output(const struct ree_opened *model, size_t output);
// Returns the cache that a value belongs to, as its input or its output, or -1. *out_new: the value
// is the cache's output.
ptrdiff_t ree_recorded_kv_cache(const struct ree_opened *model, uint32_t value, bool *out_new);
// Digest of a tensor that holds a whole cache.
void ree_recorded_positions_digest(const struct ree_tensor *tensor, uint32_t axis, ree_digest out);

#endif
