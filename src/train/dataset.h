// The samples of a training, in memory. ree/train.h has the public functions.
#ifndef REE_TRAIN_DATASET_H
#define REE_TRAIN_DATASET_H

#include "base/arena.h"
#include "base/name_index.h"
#include "base/status.h"

struct ree_dataset {
    struct ree_tensor *tensors; // (n) named, owned
    size_t n, capacity;
    struct ree_name_index names;
    char *file; // path in messages, owned; NULL: made from tensors in memory
};

// Moves *tensor, which has a name, to the dataset. On failure its contents are released.
enum ree_status ree_dataset_add(struct ree_dataset *dataset, struct ree_tensor *tensor,
                                struct ree_error *err);
// Returns the tensor `name`; NULL if there is none.
const struct ree_tensor *ree_dataset_find(const struct ree_dataset *dataset, const char *name);

// Adds the tensors of a .npz file of `size` bytes (npz.c).
enum ree_status ree_npz_read(struct ree_dataset *dataset, const unsigned char *bytes, size_t size,
                             struct ree_error *err);
// Adds the tensors of a safetensors file of `size` bytes. *out_metadata, unless it is NULL,
// receives its entry `key` of "__metadata__", allocated in `arena`; NULL if there is none
// (stored.c).
enum ree_status ree_stored_read(struct ree_dataset *dataset, const unsigned char *bytes,
                                size_t size, const char *key, struct ree_arena *arena,
                                const char **out_metadata, struct ree_error *err);
// Maps the file `path`, reads it with one of the two functions, and fails if the file was changed
// meanwhile. Messages begin with the path.
enum ree_status ree_dataset_read(struct ree_dataset *dataset, const char *path, bool is_npz,
                                 const char *key, struct ree_arena *arena,
                                 const char **out_metadata, struct ree_error *err);

#endif
