// Real models load: those of the shared folder (REE_SHARED_DIR, or shared/ next to the source tree)
// and ONNX's test data as packaged by Debian.
#include "graph/ir/ir.h"
#include "graph/onnx/onnx.h"
#include "test.h"

#include <fnmatch.h>
#include <fts.h>
#include <string.h>

#define TESTDATA "/usr/share/libonnx-testdata/data"

struct counts {
    long loaded, unsupported;
};

static void check_model(const char *path, struct counts *counts) {
    struct ree_graph *graph;
    struct ree_error err = {.message = ""};
    enum ree_status status = ree_onnx_load(path, NULL, &graph, &err);
    counts->loaded++;
    CHECK_MSG(status == REE_OK, "%s", err.message);
    if (!graph) return;
    if (ree_graph_check_supported(graph, &err) != REE_OK) counts->unsupported++;
    // Producers come first, and every value is at the index of its id.
    for (size_t i = 0; i < graph->n_values; i++)
        CHECK(graph->values[i]->id == i);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        CHECK(graph->nodes[i]->id == i);
        for (size_t j = 0; j < graph->nodes[i]->n_inputs; j++) {
            const struct ree_value *input = graph->nodes[i]->inputs[j];
            CHECK(!input || !input->producer || input->producer->id < i);
        }
    }
    // The passes keep the interface and leave no unneeded node.
    size_t n_inputs = graph->n_inputs, n_outputs = graph->n_outputs, n_nodes = graph->n_nodes;
    ree_pass_identity(graph);
    ree_pass_common_subexpressions(graph);
    ree_pass_dead_code(graph);
    CHECK(graph->n_inputs == n_inputs && graph->n_outputs == n_outputs);
    CHECK(graph->n_nodes <= n_nodes && !ree_pass_dead_code(graph));
    for (size_t i = 0; i < graph->n_outputs; i++)
        CHECK(graph->outputs[i]->is_output && graph->outputs[i]->n_uses > 0);
    ree_graph_destroy(graph);
}

static bool check_tree(const char *folder) {
    char *roots[] = {(char *)(uintptr_t)folder, NULL};
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    REQUIRE(walk);
    struct counts counts = {0};
    for (FTSENT *entry; (entry = fts_read(walk));)
        if (entry->fts_info == FTS_F && fnmatch("*.onnx", entry->fts_name, 0) == 0)
            check_model(entry->fts_path, &counts);
    fts_close(walk);
    if (counts.loaded == 0) {
        printf("%s: no models here; not tested\n", folder);
        return false;
    }
    printf("%s: %ld models loaded (%ld of them use types that are not supported)\n", folder,
           counts.loaded, counts.unsupported);
    return true;
}

int main(int argc, char **argv) {
    // Folders can be passed as arguments.
    for (int i = 1; i < argc; i++)
        check_tree(argv[i]);
    if (argc > 1) return test_finish();
    const char *shared = getenv("REE_SHARED_DIR");
    char models[4096];
    snprintf(models, sizeof models, "%s/models", shared ? shared : REE_SOURCE_DIR "/../shared");
    bool any = check_tree(models);
    any |= check_tree(TESTDATA);
    return any ? test_finish() : test_skip("neither shared models nor libonnx-testdata are here");
}
