// Reads a file of arbitrary bytes that contains one value: as a tensor, as a sequence, and as an
// optional of either. It must return a value, or an error with a message; sanitizers find other
// faults.
//
//     build-fuzz/tests/fuzz/fuzz_value -max_total_time=300 FOLDER build-fuzz/tests/fuzz/values
#include "graph/ir/ir.h"
#include "graph/onnx/onnx.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

// A folder of this process, because external data may be next to the file.
static char folder[PATH_MAX], path[PATH_MAX + 8];

static void remove_folder(void) {
    unlink(path);
    rmdir(folder);
}

static void write_file(const uint8_t *bytes, size_t size) {
    if (!path[0]) {
        const char *parent = getenv("TMPDIR");
        snprintf(folder, sizeof folder, "%s/ree_fuzz_value.XXXXXX", parent ? parent : "/tmp");
        if (!mkdtemp(folder)) {
            perror(folder);
            exit(1);
        }
        snprintf(path, sizeof path, "%s/value", folder);
        atexit(remove_folder);
    }
    FILE *file = fopen(path, "wb");
    if (!file || (size && fwrite(bytes, 1, size, file) != size) || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static const struct ree_port ports[] = {
        {.name = "tensor", .dtype = REE_F32},
        {.name = "sequence", .dtype = REE_F32, .kind = REE_SEQUENCE},
        {.name = "optional", .dtype = REE_F32, .nullable = true},
        {.name = "optional sequence", .dtype = REE_F32, .kind = REE_SEQUENCE, .nullable = true},
    };
    write_file(bytes, size);
    for (size_t i = 0; i < sizeof ports / sizeof *ports; i++) {
        struct ree_tensor tensor;
        struct ree_error err = {.message = ""};
        enum ree_status status = ree_onnx_tensor_load(path, &ports[i], &tensor, &err);
        if (status == REE_OK) {
            // The tensor's memory must be valid up to the last byte.
            if (tensor.kind == REE_TENSOR && tensor.nbytes) {
                volatile const uint8_t *data = tensor.data;
                (void)data[tensor.nbytes - 1];
            }
            ree_tensor_finish(&tensor);
        } else if (err.status != status || !err.message[0] || status == REE_INTERNAL) {
            abort();
        }
    }
    return 0;
}
