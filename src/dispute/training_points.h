// The points of a training's receipt, computed from its trace.
#ifndef REE_DISPUTE_TRAINING_POINTS_H
#define REE_DISPUTE_TRAINING_POINTS_H

#include "trace/open_model.h"
#include "train/step_roles.h"
#include "train/training_receipt.h"

#define REE_TRAINING_LIE 400 // size of the text that says how a receipt contradicts something

// Where an output of the step comes from.
struct ree_training_source {
    bool is_input, is_constant; // not computed by a node: an input, a constant
    uint32_t value;    // number of the value (trace/trace.h); if is_input, index of the input
    ree_digest digest; // if is_constant: its digest
};
void ree_training_source_find(const struct ree_opened *model, size_t output,
                              struct ree_training_source *out);

// Computes the states' roots and the chain from the digests of a trace, and compares them with the
// receipt's points. Does nothing if the trace does not have the receipt's root, the model's header
// or the receipt's number of steps: that is judged elsewhere. `lie` receives the first difference;
// it is not changed if there is none.
enum ree_status ree_training_points_check(const struct ree_training_receipt *receipt,
                                          const struct ree_opened *model,
                                          const struct ree_step_roles *roles,
                                          const struct ree_trace *trace, char lie[REE_TRAINING_LIE],
                                          struct ree_error *err);

#endif
