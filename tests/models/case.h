// A test case in ONNX's layout: FOLDER/model.onnx and FOLDER/test_data_set_N/{input,output}_M.pb.
#ifndef REE_TESTS_MODELS_CASE_H
#define REE_TESTS_MODELS_CASE_H

#include "ree.h"

#define CASE_MAX_TENSORS 64

struct case_data {
    // A file's type contradicts the model's: ONNX before 1.15 wrote bfloat16 as uint16, and cut off
    // low bits where Cast has to round. Such a case says nothing about ree.
    bool contradicts_model;
    size_t n_inputs, n_outputs;
    struct ree_tensor inputs[CASE_MAX_TENSORS], outputs[CASE_MAX_TENSORS];
};

// The folders below `root` that hold a model.onnx, sorted by name. Release with cases_free.
bool cases_list(const char *root, char ***out_names, size_t *out_n);
void cases_free(char **names, size_t n);

// Number of data sets, and one of them. Inputs get the names of the model's inputs: those without
// a default value in their order, or all in order when there are more files than those.
size_t case_n_sets(const char *folder);
enum ree_status case_load(const char *folder, size_t set, const struct ree_model *model,
                          struct case_data *out_data, struct ree_error *err);
void case_finish(struct case_data *data);

#endif
