// Runs models written as text (graph/model_text.h) on tensors and compares the results.
//
// Every model runs fused and step by step on the CPU, and fused on the device that the program's
// first argument names. All runs must give the same bytes. A second argument N uses the device only
// for every Nth model, because drivers take seconds to compile one.
#ifndef REE_TESTS_ATTENTION_RUN_MODEL_H
#define REE_TESTS_ATTENTION_RUN_MODEL_H

#include "ree.h"

// Opens the devices. Returns false after printing why the test is skipped.
bool run_start(int argc, char **argv);
bool run_finish(void); // returns whether all runs so far gave the same bytes
// Fills out[], one tensor for each output of the model; the caller releases them. A failure ends
// the program.
void run_model(const char *text, const struct ree_tensor *inputs, size_t n_inputs,
               struct ree_tensor *out);

// Tensors. Each function creates a new tensor, which the caller releases with ree_tensor_finish. If
// memory is short, they end the program.
struct ree_tensor tensor_new(enum ree_dtype dtype, uint32_t rank, const int64_t *dims);
struct ree_tensor tensor_random(uint64_t *seed, uint32_t rank, const int64_t *dims); // [-2, 2)
struct ree_tensor tensor_ints(size_t n, const int64_t *values);                      // int64[n]
struct ree_tensor tensor_slice(const struct ree_tensor *t, uint32_t axis, int64_t from, int64_t to);
void tensors_finish(struct ree_tensor *tensors, size_t n);

// Compares type, shape and bytes; prints the first difference to stderr.
bool tensor_equal(const struct ree_tensor *a, const struct ree_tensor *b, const char *what);
// Compares t[from ... to] along the axis with b.
bool slice_equal(const struct ree_tensor *t, uint32_t axis, int64_t from, int64_t to,
                 const struct ree_tensor *b, const char *what);

#endif
