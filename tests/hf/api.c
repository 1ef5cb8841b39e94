// ree_export as a library call: invalid options are refused; `options` and `err` may be NULL.
#include "ree.h"
#include "test.h"

#include <string.h>

static void check_refused(const struct ree_export_options *options, const char *out,
                          enum ree_status status, const char *part) {
    struct ree_error err = {.message = ""};
    CHECK(ree_export("/nonexistent", out, options, &err) == status);
    CHECK_MSG(err.status == status && strstr(err.message, part), "%s", err.message);
}

int main(void) {
    check_refused(
        &(struct ree_export_options){.size = sizeof(struct ree_export_options), .opset = 18}, NULL,
        REE_INVALID, "17 or 23");
    check_refused(
        &(struct ree_export_options){.size = sizeof(struct ree_export_options), .quantize_bits = 5},
        NULL, REE_INVALID, "5 bits");
    check_refused(&(struct ree_export_options){.size = sizeof(struct ree_export_options),
                                               .quantize_bits = 4,
                                               .quantize_block = 8},
                  NULL, REE_INVALID, "the block size 8");
    check_refused(&(struct ree_export_options){.size = sizeof(struct ree_export_options),
                                               .quantize_bits = 4,
                                               .quantize_block = 512},
                  NULL, REE_INVALID, "the block size 512");
    check_refused(&(struct ree_export_options){.size = sizeof(struct ree_export_options),
                                               .quantize_bits = 4,
                                               .quantize_block = 48},
                  NULL, REE_INVALID, "the block size 48");
    check_refused(&(struct ree_export_options){.size = sizeof(struct ree_export_options),
                                               .quantize_bits = 4,
                                               .quantize_table = 5},
                  NULL, REE_INVALID, "the embedding table cannot be quantised to 5 bits");
    check_refused(&(struct ree_export_options){.size = sizeof(struct ree_export_options),
                                               .quantize_table = 8},
                  NULL, REE_INVALID, "only together with the layers");
    check_refused(&(struct ree_export_options){.size = sizeof(struct ree_export_options),
                                               .activations = REE_I8},
                  NULL, REE_INVALID,
                  "activations can be int8 only together with quantised weights");
    check_refused(&(struct ree_export_options){.size = sizeof(struct ree_export_options),
                                               .activations = REE_I16},
                  NULL, REE_INVALID, "activations cannot be int16");
    check_refused(&(struct ree_export_options){.size = sizeof(struct ree_export_options),
                                               .opset = 17,
                                               .activations = REE_BF16},
                  NULL, REE_UNSUPPORTED, "bfloat16 requires opset 23");
    check_refused(NULL, "/tmp/model.bin", REE_INVALID, "does not end in .onnx");
    check_refused(NULL, "/tmp/.onnx", REE_INVALID, "does not end in .onnx");
    check_refused(NULL, "/nonexistent/model.onnx", REE_NOT_FOUND, "/nonexistent");
    check_refused(NULL, "/tmp/model.onnx", REE_NOT_FOUND, "/nonexistent");
    CHECK(ree_export("/nonexistent", NULL, NULL, NULL) == REE_NOT_FOUND);
    struct ree_model *model;
    struct ree_error err;
    const struct ree_model_options narrow = {.size = sizeof narrow, .activations = REE_BF16};
    CHECK(ree_model_load("/dev/null", &narrow, &model, &err) == REE_INVALID &&
          strstr(err.message, "only for these can the type of activations be chosen"));
    CHECK(ree_model_load("/nonexistent", NULL, &model, NULL) == REE_NOT_FOUND && !model);
    return test_finish();
}
