// Real models load: those of the shared folder (REE_SHARED_DIR, or shared/ beside the source tree)
// and ONNX's test data as Debian packages them. What is refused stands in a list with its reason,
// and an entry that loads after all fails the test.
#include "graph/ir.h"
#include "test.h"

#include <fnmatch.h>
#include <fts.h>
#include <string.h>

#define TESTDATA "/usr/share/libonnx-testdata/data"

static const struct {
    const char *pattern; // of the path's end
    enum ree_status status;
    const char *reason; // a part of the message
} refused[] = {
    // Inputs or outputs that are sequences or optional values.
    {"*/node/test_sequence_*/model.onnx", REE_UNSUPPORTED, "only tensors are supported"},
    {"*/node/test_optional_get_element/model.onnx", REE_UNSUPPORTED, "an optional value"},
    {"*/node/test_optional_get_element_sequence/model.onnx", REE_UNSUPPORTED, "only tensors"},
    {"*/node/test_optional_get_element_optional_*/model.onnx", REE_UNSUPPORTED, "an optional"},
    {"*/node/test_optional_has_element/model.onnx", REE_UNSUPPORTED, "is an optional value"},
    {"*/node/test_optional_has_element_empty/model.onnx", REE_UNSUPPORTED, "an optional value"},
    {"*/node/test_optional_has_element_*optional_input/model.onnx", REE_UNSUPPORTED, "optional"},
    {"*/node/test_split_to_sequence_*/model.onnx", REE_UNSUPPORTED, "output 'seq': is a sequence"},
    {"*/node/test_identity_sequence/model.onnx", REE_UNSUPPORTED, "input 'x': is a sequence"},
    {"*/node/test_identity_opt/model.onnx", REE_UNSUPPORTED, "'opt_in': is an optional value"},
    {"*/node/test_if_seq/model.onnx", REE_UNSUPPORTED, "is a sequence"},
    {"*/node/test_if_opt/model.onnx", REE_UNSUPPORTED, "is an optional value"},
    {"*/node/test_loop13_seq/model.onnx", REE_UNSUPPORTED, "'seq_empty': is a sequence"},
    {"*/node/test_loop16_seq_none/model.onnx", REE_UNSUPPORTED, "is an optional value"},
};
enum { N_REFUSED = sizeof refused / sizeof *refused };

struct counts {
    long loaded, refused, unsupported;
};

static void check_model(const char *path, struct counts *counts) {
    struct ree_graph *graph;
    struct ree_error err = {.message = ""};
    enum ree_status status = ree_onnx_load(path, NULL, NULL, &graph, &err);
    int entry = -1;
    for (int i = 0; i < N_REFUSED && entry < 0; i++)
        if (fnmatch(refused[i].pattern, path, 0) == 0) entry = i;
    if (entry >= 0) {
        counts->refused++;
        CHECK_MSG(status == refused[entry].status && strstr(err.message, refused[entry].reason),
                  "%s: %s: %s", path, ree_status_name(status), err.message);
        ree_graph_destroy(graph);
        return;
    }
    counts->loaded++;
    CHECK_MSG(status == REE_OK, "%s", err.message);
    if (!graph) return;
    if (ree_graph_check_supported(graph, &err) != REE_OK) counts->unsupported++;
    // Producers come first, and every value is where its id says.
    for (size_t i = 0; i < graph->n_values; i++)
        CHECK(graph->values[i]->id == i);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        CHECK(graph->nodes[i]->id == i);
        for (size_t j = 0; j < graph->nodes[i]->n_inputs; j++) {
            const struct ree_value *input = graph->nodes[i]->inputs[j];
            CHECK(!input || !input->producer || input->producer->id < i);
        }
    }
    // The passes keep the interface and leave nothing that is not needed.
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
    if (counts.loaded + counts.refused == 0) {
        printf("%s: no models here; not tested\n", folder);
        return false;
    }
    printf("%s: %ld models loaded (%ld of them use types or functions that are not supported), "
           "%ld refused as listed\n",
           folder, counts.loaded, counts.unsupported, counts.refused);
    return true;
}

int main(int argc, char **argv) {
    // Folders can be given by hand.
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
