// The batches of a training: which samples each step takes (NUMERICS.md, "Order of samples").
#ifndef REE_TRAIN_BATCHES_H
#define REE_TRAIN_BATCHES_H

#include "train/dataset.h"
#include "train/step_roles.h"

struct ree_batches {
    size_t n_data;
    const struct ree_tensor **data; // (n_data) the dataset's tensor for each input of the batch
    uint64_t n_samples, batch_size;
    uint64_t seed;
    bool in_order;
    uint32_t *order; // (n_samples) the order of epoch `epoch`; NULL if in_order
    uint64_t epoch;  // UINT64_MAX: `order` is not filled
};

// Finds the dataset's tensors for the inputs of the batch. The dataset must outlive the batches.
// Release with ree_batches_finish, also after a failure. Fails with REE_INVALID if the dataset
// lacks a tensor, or if one has another type or shape than the input, and with fewer samples than a
// batch.
enum ree_status ree_batches_init(struct ree_batches *batches, const struct ree_model *model,
                                 const struct ree_step_roles *roles,
                                 const struct ree_dataset *dataset, uint64_t seed, bool in_order,
                                 struct ree_error *err);
void ree_batches_finish(struct ree_batches *batches);
// Copies the samples of step number `step`, counted from 0, for the batch's input i (an index below
// n_data) to `out`, which has the type and shape of this input.
void ree_batches_fill(struct ree_batches *batches, uint64_t step, size_t i, struct ree_tensor *out);
// Hashes all samples (NUMERICS.md, "Trainings").
void ree_batches_sha256(const struct ree_batches *batches, char hex[65]);

#endif
