// Runs models written as text (graph/model_text.h), in several ways that must give the same bytes.
//
// Every model runs on the CPU, once with fused operators and once without fusion. If the program's
// first argument names a device, the model also runs there, fused. With a second argument N, only
// every Nth model runs on that device, because drivers take seconds to compile one.
#ifndef REE_TESTS_ATTENTION_RUN_MODEL_H
#define REE_TESTS_ATTENTION_RUN_MODEL_H

#include "ree.h"

// Opens the CPU and the device that argv[1] names, if any. If a device is not available, prints why
// the test is skipped and returns false.
bool run_start(int argc, char **argv);
// Closes the devices. Returns whether all checks of the program so far have passed.
bool run_finish(void);
// Runs a model on inputs[], in the model's order, in all ways. Fills out[], one tensor for each
// output of the model; the caller releases them. If a run fails, the program ends.
void run_model(const char *text, const struct ree_tensor *inputs, size_t n_inputs,
               struct ree_tensor *out);

// Tensors. Each function creates a new tensor, which the caller releases with ree_tensor_finish. If
// memory is short, they end the program.
struct ree_tensor tensor_new(enum ree_dtype dtype, uint32_t rank, const int64_t *dims);
// Makes a float32 tensor of random elements in [-2, 2); advances *seed.
struct ree_tensor tensor_random(uint64_t *seed, uint32_t rank, const int64_t *dims);
// Makes an int64 tensor of shape [n] from values[n].
struct ree_tensor tensor_ints(size_t n, const int64_t *values);
struct ree_tensor tensor_slice(const struct ree_tensor *t, uint32_t axis, int64_t from, int64_t to);
void tensors_finish(struct ree_tensor *tensors, size_t n);

// Returns whether type, shape and bytes of two tensors are equal. If not, prints the first
// difference to stderr, after the text `what`.
bool tensor_equal(const struct ree_tensor *a, const struct ree_tensor *b, const char *what);
// Like tensor_equal, but compares b with a slice of t: indices `from` to `to` - 1 along `axis`.
bool slice_equal(const struct ree_tensor *t, uint32_t axis, int64_t from, int64_t to,
                 const struct ree_tensor *b, const char *what);

#endif
