// Loads Hugging Face checkpoints from arbitrary bytes: config.json, the header of a safetensors
// file, and the model made of them. It must return a model, or an error with a message.
//
// Format of an input: a byte of options; u16 length of config.json; u16 bytes of tensor data;
// config.json; the rest. The rest is the header's JSON, or with OPTION_FILE the whole safetensors
// file.
//
//     cmake --preset fuzz && cmake --build build-fuzz --target fuzz_checkpoint fuzz_seeds
//     build-fuzz/tests/fuzz/fuzz_checkpoint -max_total_time=600 FOLDER
//     build-fuzz/tests/fuzz/checkpoints
#include "graph/hf/causal.h"
#include "graph/onnx/onnx.h"
#include "graph/ir/ir.h"
#include "replay.h"

#include <stdlib.h>
#include <string.h>

#define OPTION_FILE 1  // the rest is a whole safetensors file
#define OPTION_STEPS 2 // convert to opset 17

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

bool fuzz_accepted;

static void require(enum ree_status status, const struct ree_error *err) {
    if (status == REE_OK) return;
    if (err->status != status || !err->message[0] || status == REE_INTERNAL) abort();
}

static struct ree_mapping *make_file(const uint8_t *rest, size_t n, size_t n_data, bool is_file) {
    struct ree_mapping *file = ree_mapping_of_size(is_file ? n : 8 + n + n_data);
    if (!file) abort();
    if (is_file) {
        memcpy(file->data, rest, n);
        return file;
    }
    for (int i = 0; i < 8; i++)
        file->data[i] = (uint8_t)((uint64_t)n >> 8 * i);
    memcpy(file->data + 8, rest, n);
    memset(file->data + 8 + n, 0, n_data);
    return file;
}

static void write_model(struct ree_checkpoint *checkpoint, bool steps) {
    struct ree_causal_options options = {.steps = steps};
    struct ree_error err = {.message = ""};
    unsigned char *model;
    size_t size;
    enum ree_status status = ree_causal_write(checkpoint, &options, &model, &size, &err);
    require(status, &err);
    if ((status == REE_OK) != (model != NULL)) abort();
    if (status != REE_OK) return;
    fuzz_accepted = true;
    // The model is well formed except for its weights, which are in files that memory does not
    // have.
    struct ree_graph *graph;
    status = ree_onnx_load_memory(model, size, NULL, &graph, &err);
    if (status != REE_UNSUPPORTED) abort();
    free(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    if (size < 5) return 0;
    size_t n_config = bytes[1] | (size_t)bytes[2] << 8, n_data = bytes[3] | (size_t)bytes[4] << 8;
    bool is_file = bytes[0] & OPTION_FILE, steps = bytes[0] & OPTION_STEPS;
    bytes += 5;
    size -= 5;
    if (n_config > size) return 0;
    struct ree_checkpoint checkpoint = {.folder = "."};
    struct ree_error err = {.message = ""};
    ree_arena_init(&checkpoint.arena);
    enum ree_status status = ree_json_parse(bytes, n_config, &checkpoint.config, &err);
    if (status == REE_OK)
        status =
            ree_checkpoint_add(&checkpoint, "model.safetensors",
                               make_file(bytes + n_config, size - n_config, n_data, is_file), &err);
    if (status == REE_OK) status = ree_checkpoint_sort(&checkpoint, &err);
    require(status, &err);
    if (status == REE_OK) write_model(&checkpoint, steps);
    ree_checkpoint_finish(&checkpoint);
    return 0;
}
