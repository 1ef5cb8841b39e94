// A sample program: runs a model with one input, as ree-run does, and prints the SHA-256 of its
// outputs. README.md, "In your own program", explains how to build it.
#include <ree.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    struct ree_error err = {0};
    struct ree_model *model = NULL;
    struct ree_device *device = NULL;
    struct ree_session *session = NULL;
    struct ree_tensor input = {0}, outputs[4];
    if (argc != 3) return fprintf(stderr, "usage: %s MODEL.onnx INPUT.npy\n", argv[0]), 2;

    if (ree_model_load(argv[1], NULL, &model, &err)) goto end;
    if (ree_model_n_inputs(model) != 1 || ree_model_n_outputs(model) > 4) {
        err = (struct ree_error){REE_UNSUPPORTED, "expected one input and at most four outputs"};
        goto end;
    }
    if (ree_device_open("cpu", NULL, &device, &err)) goto end;
    if (ree_session_create(model, device, NULL, &session, &err)) goto end;
    if (ree_tensor_load(&input, argv[2], &err)) goto end;
    input.name = strdup(ree_model_input(model, 0)->name); // inputs are matched by name
    if (ree_session_run(session, &input, 1, outputs, &err)) goto end;

    size_t n = ree_model_n_outputs(model);
    char hex[65];
    ree_tensors_sha256(outputs, n, hex);
    printf("%s\n", hex);
    while (n > 0)
        ree_tensor_finish(&outputs[--n]);
end:
    if (err.status) fprintf(stderr, "%s\n", err.message);
    ree_tensor_finish(&input);
    ree_session_destroy(session);
    ree_device_destroy(device);
    ree_model_destroy(model);
    return err.status ? 1 : 0;
}
