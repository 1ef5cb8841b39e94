// Loads test cases in ONNX's two layouts: a model, inputs and expected outputs. `base` in the
// functions below is ROOT/NAME.
//
//     ROOT/NAME/model.onnx, ROOT/NAME/test_data_set_N/{input,output}_M.pb
//     ROOT/NAME.onnx, ROOT/NAME_output_M.pb            one data set; its inputs have no files
//
// The second layout is that of ONNX's "light" models. ONNX defines their inputs by a formula:
// element i of the n elements of an input is i / n, rounded to float32.
#ifndef REE_TESTS_MODELS_CASE_H
#define REE_TESTS_MODELS_CASE_H

#include "ree.h"

#define CASE_MAX_TENSORS 64

struct case_data {
    // True if a tensor of the files is uint16 where the model has bfloat16. ONNX before 1.15 wrote
    // such files, and truncated low bits although Cast must round. Such a case cannot test ree.
    bool contradicts_model;
    size_t n_inputs, n_outputs;
    struct ree_tensor inputs[CASE_MAX_TENSORS], outputs[CASE_MAX_TENSORS];
};

// Lists the names of the cases in the folder `root`, sorted. Returns false if the folder cannot be
// opened. Release the list with cases_free.
bool cases_list(const char *root, char ***out_names, size_t *out_n);
void cases_free(char **names, size_t n);

void case_model_path(const char *base, char *path, size_t size);
size_t case_n_sets(const char *base); // returns the number of the case's data sets
// Loads data set number `set`, counted from 0. The loaded inputs get the names of the model's
// inputs in order: of those without a default value, or of all if there are more files than such
// inputs. Release *out_data with case_finish; after a failure it is already released.
enum ree_status case_load(const char *base, size_t set, const struct ree_model *model,
                          struct case_data *out_data, struct ree_error *err);
void case_finish(struct case_data *data);

// Computes a digest that identifies the contents of the case's files: the first 16 hexadecimal
// digits of the SHA-256 over the model and the files of all data sets, in the order of the layout.
// Each file is hashed as its length (uint64, little-endian) and its bytes.
#define CASE_DIGEST_LENGTH 16
void case_digest(const char *base, char digest[CASE_DIGEST_LENGTH + 1]);

#endif
