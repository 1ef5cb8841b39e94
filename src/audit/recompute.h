// Computing one node of a model alone, on the CPU.
#ifndef REE_AUDIT_RECOMPUTE_H
#define REE_AUDIT_RECOMPUTE_H

#include "session/model.h"

// Runs node `node` of the model's graph on inputs[n]: for each value of ree_audit_inputs
// (audit/header.h) that is neither omitted nor a constant, its tensor; the others are not looked
// at. outputs[n_outputs of the node] are made by this call, omitted ones zeroed; release each with
// ree_tensor_finish.
//
// The node is cut out of the model, whose graph is gone afterwards: the model can only be
// destroyed.
enum ree_status ree_recompute(struct ree_model *model, size_t node, const struct ree_tensor *inputs,
                              uint32_t n, struct ree_tensor *outputs, struct ree_error *err);
// Whether such a value is given, rather than a constant of the model: inputs with a default are.
bool ree_recompute_is_given(const struct ree_value *value);

#endif
