// What a training step's metadata say: which inputs are the batch, which inputs and outputs are the
// states. docs/TRAINING.md describes the metadata entry.
#ifndef REE_TRAIN_STEP_ROLES_H
#define REE_TRAIN_STEP_ROLES_H

#include "base/merkle.h"
#include "base/status.h"

// Key of the metadata entry.
#define REE_STEP_METADATA "ree.training"

struct ree_step_state {
    size_t input, output; // index among the model's inputs, among its outputs
};

struct ree_step_roles {
    size_t n_data, *data; // (n_data) indices of the batch's inputs, ascending
    int64_t batch_size;   // samples per step: the first dimension of each of these inputs
    size_t loss;          // index among the outputs
    size_t n_states;
    struct ree_step_state *states; // (n_states), in the order of their inputs
    bool is_random;
    size_t seed, counter; // if is_random: indices of the inputs random.seed and random.step
};

// Reads and checks the metadata of a model that has been loaded. All inputs of a batch and all
// states have fixed shapes. Release with ree_step_roles_finish, also after a failure. Fails with
// REE_INVALID if the model is not a training step, or if its metadata contradict its inputs and
// outputs.
enum ree_status ree_step_roles_read(const struct ree_model *model, struct ree_step_roles *out,
                                    struct ree_error *err);
void ree_step_roles_finish(struct ree_step_roles *step);
// Computes the tensor digest of an input's default value, NaNs canonical: of a state, this is its
// initial value. The input must have a default value.
void ree_state_initial_digest(const struct ree_model *model, size_t input, ree_digest out);
// Hashes which inputs and outputs have which role (NUMERICS.md, "Trainings"): the hash of a model's
// graph does not cover its metadata.
void ree_step_roles_digest(const struct ree_step_roles *step, const struct ree_model *model,
                           ree_digest out);

#endif
