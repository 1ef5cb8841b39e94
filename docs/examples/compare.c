// Compares two devices: runs a model on both with the same input and finds the first node whose
// results are not the same bytes.
//
//     compare MODEL.onnx INPUT.npy DEVICE DEVICE [FAULT]
#include <ree.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Prints where the devices start to differ. The name of a node comes from the model file: a program
// that prints it to a terminal should escape control characters.
static void explain(const struct ree_comparison *comparison) {
    const struct ree_compare_result *result = ree_comparison_result(comparison);
    const struct ree_compare_first *first = &result->first;
    // Every struct that the caller makes and the library fills begins with its size.
    struct ree_node_info node = {.size = sizeof node};
    if (!first->found) {
        printf("the same: %zu nodes\n", result->n_nodes);
        return;
    }
    ree_comparison_node(comparison, first->node, &node, NULL);
    printf("node %zu '%s' (%s) is the first that differs; its inputs %s\n", first->node, node.name,
           node.op_type, first->inputs_agree ? "agree" : "differ");
    printf("%llu of %llu elements differ, by at most %llu ulp\n",
           (unsigned long long)first->ulp.n_differ, (unsigned long long)first->ulp.n,
           (unsigned long long)first->ulp.max_ulp);
    printf("in all, %llu of %zu nodes differ\n", (unsigned long long)result->n_differ,
           result->n_nodes);
}

int main(int argc, char **argv) {
    struct ree_error err = {0};
    struct ree_model *model = NULL;
    struct ree_device *devices[2] = {NULL, NULL};
    struct ree_session *sessions[2] = {NULL, NULL};
    struct ree_comparison *comparison = NULL;
    struct ree_tensor input = {0}, output;
    char hex[65];
    bool differs = false;
    if (argc < 5 || argc > 6) {
        fprintf(stderr, "usage: %s MODEL.onnx INPUT.npy DEVICE DEVICE [FAULT]\n", argv[0]);
        return 2;
    }
    if (ree_model_load(argv[1], NULL, &model, &err)) goto end;
    if (ree_tensor_load(&input, argv[2], &err)) goto end;
    input.name = strdup(ree_model_input(model, 0)->name); // inputs are matched by name

    // Both sessions run the same model, each on its own device.
    for (int i = 0; i < 2; i++) {
        if (ree_device_open(argv[3 + i], NULL, &devices[i], &err)) goto end;
        if (ree_session_create(model, devices[i], NULL, &sessions[i], &err)) goto end;
    }
    // FAULT, "NODE:0:BIT", flips a bit on the second device: shows what a difference looks like.
    struct ree_compare_options options = {.size = sizeof options, .fault = argv[5]};
    if (ree_compare_sessions(sessions[0], sessions[1], &input, 1, &options, &comparison, &err))
        goto end;
    explain(comparison);
    differs = ree_comparison_result(comparison)->first.found;
    // FAULT affected only the comparison: these runs give the same bits again.
    for (int i = 0; i < 2 && ree_model_n_outputs(model) == 1; i++) {
        if (ree_session_run(sessions[i], &input, 1, &output, &err)) goto end;
        ree_tensors_sha256(&output, 1, hex);
        printf("sha256  %s on %s\n", hex, argv[3 + i]);
        ree_tensor_finish(&output);
    }
end:
    if (err.status) fprintf(stderr, "%s\n", err.message);
    ree_comparison_destroy(comparison); // before the sessions that it compared
    for (int i = 0; i < 2; i++) {
        ree_session_destroy(sessions[i]);
        ree_device_destroy(devices[i]);
    }
    ree_tensor_finish(&input);
    ree_model_destroy(model);
    return err.status ? 2 : differs;
}
