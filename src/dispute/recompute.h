// Computes a single node of a model on the CPU.
#ifndef REE_DISPUTE_RECOMPUTE_H
#define REE_DISPUTE_RECOMPUTE_H

#include "session/model.h"

// Runs node `node` of the model's graph. inputs[i] is the tensor of value i in the list from
// ree_trace_node_inputs (trace/model_header.h), which has n values. Entries of omitted values, and
// of values for which ree_recompute_is_given is false, are not read. outputs must have an element
// for each output of the node. The call initialises all, with zeroed tensors for omitted outputs;
// release each with ree_tensor_finish.
//
// The call reduces the model's graph to this node. Afterwards the model may only be destroyed.
enum ree_status ree_recompute(struct ree_model *model, size_t node, const struct ree_tensor *inputs,
                              uint32_t n, struct ree_tensor *outputs, struct ree_error *err);
// Returns true if the value must be supplied as a tensor, false if it is a constant of the model.
// An input with a default value must be supplied, except before ONNX IR version 4, where it is a
// constant.
bool ree_recompute_is_given(const struct ree_value *value);

#endif
