// The loader on arbitrary bytes, and what follows loading: printing, the check, the passes. It must
// end with a graph or with an error and a message; sanitizers see the rest.
//
//     cmake --preset fuzz && cmake --build build-fuzz --target fuzz_onnx fuzz_seeds
//     build-fuzz/tests/fuzz/fuzz_onnx -max_total_time=600 FOLDER build-fuzz/tests/fuzz/seeds
//
// New inputs go to FOLDER. To see an input again: fuzz_onnx FILE, or fuzz_onnx_replay FILE with any
// compiler.
#include "graph/ir.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    struct ree_graph *graph;
    struct ree_error err = {.message = ""};
    enum ree_status status = ree_onnx_load_memory(bytes, size, &graph, &err);
    if ((status == REE_OK) != (graph != NULL)) abort();
    if (status != REE_OK) {
        if (err.status != status || !err.message[0] || status == REE_INTERNAL) abort();
        return 0;
    }
    ree_graph_check_supported(graph, &err);
    size_t n_outputs = graph->n_outputs;
    // Twice: what one pass leaves must be fit for the others.
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
