// Values that --dump-tensors wrote, read back:
//
//     FOLDER/step-STEP/input-INDEX-NAME.npy         an input of the model, but a cache
//     FOLDER/step-STEP/NODE-NAME-OUTPUT.npy         an output of a node; of one that is kept as a
//                                                   cache the rows that are new in this step
//
// with numbers of five digits for STEP, INDEX and NODE. NAME is not looked at. The files are
// untrusted; what they hold has to have the digest that is asked for.
#ifndef REE_AUDIT_RECORDED_H
#define REE_AUDIT_RECORDED_H

#include "audit/open_model.h"

// The value (receipt/trace.h) of a step. A cache is put together from the steps up to this one, of
// which all rows have to be there. REE_NOT_FOUND: a file is missing; REE_INVALID: the digest is
// another.
enum ree_status ree_recorded_load(const char *folder, const struct ree_opened *model, uint64_t step,
                                  uint32_t value, const ree_digest digest, struct ree_tensor *out,
                                  struct ree_error *err);

// The digest that a recorded input of the only step has in a trace, if the tensor has the hash that
// a receipt has of it.
enum ree_status ree_recorded_given(const char *folder, const struct ree_opened *model,
                                   uint32_t input, const char *sha256, ree_digest out,
                                   struct ree_error *err);

// The value that is an output of the model's graph; UINT32_MAX if no node makes it.
uint32_t ree_recorded_value_of_output(const struct ree_opened *model, size_t output);
// The number of the state that a value is kept as, or was; -1: none. *out_new: it is an output.
ptrdiff_t ree_recorded_state(const struct ree_opened *model, uint32_t value, bool *out_new);
// The digest of a value that is all of a state.
void ree_recorded_rows_digest(const struct ree_tensor *tensor, uint32_t axis, ree_digest out);

#endif
