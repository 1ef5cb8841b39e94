// Classifies an image: runs any ONNX model with one input, and prints the most likely classes.
//
//     classify MODEL.onnx INPUT.npy [DEVICE]
#include <ree.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Prints the index of the largest of n scores, with its name from the model's metadata ("labels",
// separated by commas) if the model has it.
static void print_best(const struct ree_model *model, const float *scores, size_t n) {
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (scores[i] > scores[best]) best = i;
    const char *label = ree_model_metadata(model, "labels");
    for (size_t i = 0; label && i < best; i++) {
        label = strchr(label, ',');
        if (label) label++;
    }
    printf("class %zu", best);
    if (label) printf(" (%.*s)", (int)strcspn(label, ","), label);
    printf(": %.6f\n", (double)scores[best]);
}

int main(int argc, char **argv) {
    struct ree_error err = {0};
    struct ree_model *model = NULL;
    struct ree_device *device = NULL;
    struct ree_session *session = NULL;
    struct ree_tensor input = {0}, *outputs = NULL;
    size_t n = 0;
    if (argc < 3 || argc > 4)
        return fprintf(stderr, "usage: %s MODEL.onnx INPUT.npy [DEVICE]\n", argv[0]), 2;

    // Loading checks the whole file and fails with a message that names the node at fault.
    if (ree_model_load(argv[1], NULL, &model, &err)) goto end;
    if (ree_device_open(argc > 3 ? argv[3] : "cpu", NULL, &device, &err)) goto end;
    if (ree_session_create(model, device, NULL, &session, &err)) goto end;

    // Inputs are matched by name, and a .npy file has no name. Without ree_set_allocator, ree
    // releases names with free, so strdup may make them.
    if (ree_tensor_load(&input, argv[2], &err)) goto end;
    input.name = strdup(ree_model_input(model, 0)->name);
    outputs = calloc(ree_model_n_outputs(model), sizeof *outputs);
    if (!input.name || !outputs) {
        err.status = REE_NO_MEMORY;
        goto end;
    }
    if (ree_session_run(session, &input, 1, outputs, &err)) goto end;
    n = ree_model_n_outputs(model);

    // Each row of the first output has the scores of one image.
    const struct ree_tensor *scores = &outputs[0];
    if (scores->dtype == REE_F32 && scores->rank == 2)
        for (int64_t row = 0; row < scores->dims[0]; row++)
            print_best(model, (const float *)scores->data + row * scores->dims[1],
                       (size_t)scores->dims[1]);
    // The same value on every device. ree-run prints it as "sha256".
    char hex[65];
    ree_tensors_sha256(outputs, n, hex);
    printf("sha256  %s\n", hex);
end:
    if (err.status) fprintf(stderr, "%s\n", err.message);
    for (size_t i = 0; i < n; i++)
        ree_tensor_finish(&outputs[i]);
    free(outputs);
    ree_tensor_finish(&input);
    ree_session_destroy(session);
    ree_device_destroy(device);
    ree_model_destroy(model);
    return err.status ? 1 : 0;
}
