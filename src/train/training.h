// A training: the states, and the steps that change them. ree/train.h has the public functions.
#ifndef REE_TRAIN_TRAINING_H
#define REE_TRAIN_TRAINING_H

#include "base/merkle.h"
#include "ree/train.h"
#include "session/identity.h"
#include "train/batches.h"
#include "train/device_states.h"
#include "train/roots.h"

// The limit of the number of steps: the input random.step is a uint32, and so is 1 + the number of
// an epoch in the counter of the order of samples.
#define REE_TRAINING_MAX_STEPS ((uint64_t)UINT32_MAX)

// What a receipt is made from.
struct ree_training_log {
    uint64_t interval; // steps between two points; 0: nothing is recorded
    size_t n_points, capacity;
    struct ree_training_point *points; // (n_points) those after whole intervals
    struct ree_training_point last;    // after the last step
    ree_digest chain;                  // of `last`
};

struct ree_training {
    struct ree_model *model;
    struct ree_device *device;
    const struct ree_dataset *dataset;
    struct ree_training_options options;
    struct ree_step_roles step;
    struct ree_batches batches;
    uint64_t n_steps;
    bool is_traced; // ree_training_trace was called
    struct ree_session *session;
    // (step.n_states) values of the states, owned; the present ones, unless those of on_device are
    // newer.
    struct ree_tensor *states;
    struct ree_device_states on_device;
    // (n_inputs) inputs of a run: n_own_inputs of its own (the batch, random.seed, random.step),
    // then the states, which are borrowed.
    struct ree_tensor *inputs;
    size_t n_inputs, n_own_inputs;
    struct ree_tensor *outputs; // (number of the model's outputs)
    bool has_hashes;
    struct ree_model_hashes hashes; // of the model, if has_hashes
    char roles_sha256[65], data_sha256[65];
    struct ree_training_log log;
    struct ree_shared_step *shared; // several ranks make the steps (shared.h); NULL: one
};

// Hashes the model, the roles and the samples, unless this was done before.
enum ree_status ree_training_hash(struct ree_training *training, struct ree_error *err);
// Fails if the receipt cannot have another point (log.c). Called before a step is made.
enum ree_status ree_training_log_check(const struct ree_training *training, struct ree_error *err);
// Adds a step that was made to the log (log.c).
enum ree_status ree_training_log_step(struct ree_training *training, const struct ree_tensor *loss,
                                      struct ree_error *err);
// Reads a checkpoint and compares it with the training, which does not change (checkpoint.c).
// *out_file has the states, *out_step is the number of steps before them. Release *out_file with
// ree_dataset_destroy.
enum ree_status ree_training_read_checkpoint(struct ree_training *training, const char *path,
                                             struct ree_dataset **out_file, uint64_t *out_step,
                                             struct ree_error *err);
// Copies the states of a checkpoint that was read into the training.
void ree_training_set_states(struct ree_training *training, const struct ree_dataset *file,
                             uint64_t step);

#endif
