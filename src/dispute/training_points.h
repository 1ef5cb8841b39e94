// The points of a training's receipt, computed from its trace.
#ifndef REE_DISPUTE_TRAINING_POINTS_H
#define REE_DISPUTE_TRAINING_POINTS_H

#include "trace/open_model.h"
#include "train/step_roles.h"
#include "train/training_receipt.h"

#define REE_TRAINING_LIE 400 // size of the text that says how a receipt contradicts something

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
