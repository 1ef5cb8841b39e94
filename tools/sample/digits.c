// A program of your own: reads a model and its input, runs it, prints the SHA-256 of the outputs,
// which is the one that ree-run prints. README.md, "In your own program", says how it is built.
#include <ree.h>

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    struct ree_error err;
    struct ree_model *model = NULL;
    struct ree_device *device = NULL;
    struct ree_session *session = NULL;
    struct ree_tensor input = {0}, *outputs = NULL;
    char hex[65] = "";
    if (argc != 3) return fprintf(stderr, "usage: %s MODEL.onnx INPUT.npy\n", argv[0]), 2;

    if (ree_model_load(argv[1], NULL, &model, &err)) goto failed;
    if (ree_device_open("cpu", NULL, &device, &err)) goto failed;
    if (ree_session_create(model, device, NULL, &session, &err)) goto failed;

    // ree_tensor_load gives no name; inputs are matched by theirs.
    if (ree_tensor_load(&input, argv[2], &err)) goto failed;
    struct ree_tensor named = input;
    named.name = (char *)(uintptr_t)ree_model_input(model, 0)->name;
    size_t n = ree_model_n_outputs(model);
    outputs = calloc(n, sizeof *outputs);
    if (!outputs || ree_session_run(session, &named, 1, outputs, &err)) goto failed;
    ree_tensors_sha256(outputs, n, hex);
    puts(hex);
    for (size_t i = 0; i < n; i++)
        ree_tensor_finish(&outputs[i]);

failed:
    if (!hex[0]) fprintf(stderr, "%s\n", outputs || !model || !session ? err.message : "failed");
    free(outputs);
    ree_tensor_finish(&input);
    ree_session_destroy(session);
    ree_device_destroy(device);
    ree_model_destroy(model);
    return hex[0] ? 0 : 1;
}
