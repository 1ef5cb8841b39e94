// Loads arbitrary bytes as a model; then prints, checks and transforms the graph. It must return a
// graph, or an error with a message; sanitizers find other faults.
//
//     cmake --preset fuzz && cmake --build build-fuzz --target fuzz_onnx fuzz_seeds
//     build-fuzz/tests/fuzz/fuzz_onnx -max_total_time=600 FOLDER build-fuzz/tests/fuzz/seeds
//
// New inputs are written to FOLDER. To run one input again: fuzz_onnx FILE, or fuzz_onnx_replay
// FILE with any compiler.
#include "graph/ir/ir.h"
#include "graph/onnx/onnx.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    struct ree_graph *graph;
    struct ree_error err = {.message = ""};
    enum ree_status status = ree_onnx_load_memory(bytes, size, NULL, &graph, &err);
    if ((status == REE_OK) != (graph != NULL)) abort();
    if (status != REE_OK) {
        if (err.status != status || !err.message[0] || status == REE_INTERNAL) abort();
        return 0;
    }
    ree_graph_check_supported(graph, &err);
    size_t n_outputs = graph->n_outputs;
    // Twice: each pass must accept the graphs that the other passes leave.
    for (int i = 0; i < 2; i++) {
        ree_pass_identity(graph);
        ree_pass_common_subexpressions(graph);
        ree_pass_dead_code(graph);
    }
    if (graph->n_outputs != n_outputs) abort();
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    ree_graph_print(graph, &text);
    ree_strbuf_finish(&text);
    ree_graph_destroy(graph);
    return 0;
}
