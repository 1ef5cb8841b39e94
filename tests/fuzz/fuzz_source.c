// Reads a file in the folder of a language model from arbitrary bytes: genai_config.json,
// config.json or generation_config.json, chosen by the first byte. It must return a description, or
// an error with a message; sanitizers find other faults.
//
//     cmake --preset fuzz && cmake --build build-fuzz --target fuzz_source
//     build-fuzz/tests/fuzz/fuzz_source FOLDER tests/data/folders
#include "base/file.h"
#include "generate/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static char folder[] = "/tmp/fuzz_source.XXXXXX";
static const char *const names[] = {"genai_config.json", "config.json", "generation_config.json"};

static void path_of(char *out, size_t size, const char *name) {
    snprintf(out, size, "%s/%s", folder, name);
}

static void remove_folder(void) {
    char path[64];
    path_of(path, sizeof path, "model.onnx");
    unlink(path);
    rmdir(folder);
}

static void make_folder(void) {
    char path[64];
    if (!mkdtemp(folder)) abort();
    atexit(remove_folder);
    path_of(path, sizeof path, "model.onnx");
    if (ree_file_write(path, "", 0, NULL) != REE_OK) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static bool made;
    if (!made) make_folder();
    made = true;
    if (size == 0) return 0;
    char path[64];
    path_of(path, sizeof path, names[bytes[0] % 3]);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes + 1, 1, size - 1, file) != size - 1 || fclose(file) != 0) abort();
    struct ree_model_source source;
    struct ree_error err = {.message = ""};
    enum ree_status status = ree_model_source_find(folder, &source, &err);
    unlink(path);
    if (status != REE_OK) {
        if (err.status != status || !err.message[0] || status == REE_INTERNAL) abort();
        return 0;
    }
    if (!source.model_path || !source.model_type || source.context_length < 0 || source.bos < -1)
        abort();
    for (size_t i = 0; i < source.n_eos; i++)
        if (source.eos[i] < 0) abort();
    ree_model_source_finish(&source);
    return 0;
}
