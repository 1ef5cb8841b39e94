// What a training does if several ranks share its steps (shared_step.h).
#ifndef REE_TRAIN_SHARED_H
#define REE_TRAIN_SHARED_H

#include "ree/train.h"

struct ree_shared_step;

// For rank 0: lets the other ranks begin a step. Does nothing on other ranks (shared_join.c).
enum ree_status ree_shared_step_begin(struct ree_training *training, struct ree_error *err);
// Runs the step with training->inputs on all ranks, and fills `outputs` as ree_session_run does.
enum ree_status ree_shared_step_run(struct ree_shared_step *shared, struct ree_tensor *outputs,
                                    struct ree_error *err);
void ree_shared_step_destroy(struct ree_shared_step *shared); // accepts NULL

#endif
