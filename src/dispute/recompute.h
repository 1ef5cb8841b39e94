// Computes a single node of a model on the CPU.
#ifndef REE_DISPUTE_RECOMPUTE_H
#define REE_DISPUTE_RECOMPUTE_H

#include "session/model.h"

// Runs node `node` of the model's graph. inputs[n] corresponds to the list from ree_audit_inputs
// (trace/model_header.h): the tensor of each value for which ree_recompute_is_given holds. Entries of
// omitted values and of constants are not read. The call creates outputs[n_outputs of the node],
// with zeroed tensors for omitted outputs; release each with ree_tensor_finish.
//
// The call reduces the model's graph to this node. Afterwards the model may only be destroyed.
enum ree_status ree_recompute(struct ree_model *model, size_t node, const struct ree_tensor *inputs,
                              uint32_t n, struct ree_tensor *outputs, struct ree_error *err);
// True if the value must be supplied as a tensor, false if it is a constant of the model. An input
// with a default value must be supplied.
bool ree_recompute_is_given(const struct ree_value *value);

#endif
