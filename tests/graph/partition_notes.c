// Stage hints on nodes, and ONNX files with notes on their nodes: what is read and written.
// Corruption does no harm.
#include "base/file.h"
#include "graph/ir/identity.h"
#include "graph/onnx/onnx.h"
#include "graph/model_writer.h"
#include "graph/onnx/nodes_file.h"
#include "graph/partition/hints.h"
#include "graph/partition/plan_file.h"
#include "session/model.h"
#include "test.h"

#include <string.h>
#include <unistd.h>

static uint32_t random_state = 2463534242;
static uint32_t next_random(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state;
}

// Hints. The model is a chain of products: x -> v0 -> v1 ...

struct asked {
    int64_t stage;        // stage in device_configurations; NONE
    const char *property; // value of the property pipeline_stage; NULL: none
};

#define NONE INT64_MIN
#define N_CHAIN 6

static struct pb node_with(const char *op, const char *name, const char *inputs,
                           const char *outputs, const struct asked *asked) {
    struct pb node = pb_node(op, name, inputs, outputs);
    if (asked->property) {
        pb_sub(&node, 9, pb_entry("other", "1"));
        pb_sub(&node, 9, pb_entry("pipeline_stage", asked->property));
    }
    if (asked->stage != NONE) {
        struct pb first = {0}, second = {0};
        pb_text(&first, 1, "without a stage");
        pb_sub(&node, 10, first);
        pb_text(&second, 1, "c");
        pb_int(&second, 3, asked->stage);
        pb_sub(&node, 10, second);
    }
    return node;
}

static struct pb chain(const struct asked asked[N_CHAIN]) {
    static const int64_t dims[] = {-1, 2}, square[] = {2, 2};
    static const float factor[] = {1, 2, 3, 4};
    struct pb graph = {0};
    pb_sub(&graph, GRAPH_INPUT, pb_value("x", 1, 2, dims));
    for (int i = 0; i < N_CHAIN; i++) {
        char inputs[32], output[16], name[16];
        snprintf(inputs, sizeof inputs, i ? "v%d,w" : "x,w", i - 1);
        snprintf(output, sizeof output, "v%d", i);
        snprintf(name, sizeof name, "n%d", i);
        pb_sub(&graph, GRAPH_NODE, node_with("MatMul", name, inputs, output, &asked[i]));
    }
    pb_sub(&graph, GRAPH_INITIALIZER, pb_tensor("w", 1, 2, square, factor, sizeof factor));
    pb_sub(&graph, GRAPH_OUTPUT, pb_value("v5", 1, 2, dims));
    return pb_model(graph);
}

static struct ree_model *load(const struct pb *bytes) {
    struct ree_model *model;
    struct ree_error err = {.message = ""};
    CHECK_MSG(ree_model_load_memory(bytes->data, bytes->size, NULL, &model, &err) == REE_OK, "%s",
              err.message);
    REQUIRE(model);
    return model;
}

// `expected`: the ends of the stages, or text that the error message contains. NULL: no hints
// found.
static void check_hints(const struct asked asked[N_CHAIN], bool ok, const char *expected,
                        int line) {
    struct pb bytes = chain(asked);
    struct ree_model *model = load(&bytes);
    struct ree_partition_options options = {.n_stages = 1};
    struct ree_error err = {.message = ""};
    char **ends, got[64] = "";
    size_t n;
    bool found;
    enum ree_status status = ree_partition_hints(model->graph, &options, &found, &ends, &n, &err);
    CHECK_MSG((status == REE_OK) == ok, "line %d: %s", line, err.message);
    if (status != REE_OK) {
        CHECK(!ends);
        CHECK_MSG(strstr(err.message, expected), "line %d: %s", line, err.message);
    } else {
        CHECK_MSG(found == (expected != NULL), "line %d", line);
        for (size_t i = 0; i < n; i++) {
            strcat(got, ends[i]);
            strcat(got, ";");
        }
        CHECK_MSG(!expected || strcmp(got, expected) == 0, "line %d: %s", line, got);
        struct ree_partition plan;
        options.n_stages = n + 1;
        CHECK(ree_partition_from_cuts(model->graph, &options, (const char *const *)ends, &plan,
                                      &err) == REE_OK);
        ree_partition_finish(&plan);
        ree_plan_ends_free(ends, n);
    }
    ree_model_destroy(model);
    pb_free(&bytes);
}

#define HINTS(ok, expected, ...)                                                                   \
    check_hints((struct asked[N_CHAIN]){__VA_ARGS__}, ok, expected, __LINE__)
#define D(stage)                                                                                   \
    { stage, NULL }
#define P(text)                                                                                    \
    { NONE, text }
#define U                                                                                          \
    { NONE, NULL }

static void test_hints(void) {
    HINTS(true, NULL, U, U, U, U, U, U);
    HINTS(true, "", D(0), D(0), D(0), D(0), D(0), D(0));
    HINTS(true, "v1;v3;", D(0), D(0), D(1), D(1), D(2), D(2));
    HINTS(true, "v1;v3;", P("0"), P("0"), P("1"), P("1"), P("2"), P("2"));
    // A node without a hint is in the stage of the node before it. Stage numbers may have gaps.
    HINTS(true, "v1;v4;", U, D(3), D(4), U, U, P("9"));
    // device_configurations take precedence over the property.
    HINTS(true, "v2;", {0, "5"}, {0, "x"}, {0, "7"}, {1, "0"}, {1, "0"}, {1, "0"});
    HINTS(false, "node 'n2' (MatMul) names stage 1, node 'n3' (MatMul) names stage 0", D(0), D(0),
          D(1), D(0), D(1), D(1));
    HINTS(false, "node 'n1' (MatMul): names stage -1", D(0), D(-1), U, U, U, U);
    HINTS(false, "names stage 1024, expected 0 to 1023", U, U, D(1024), U, U, U);
    HINTS(false, "the pipeline_stage 'soon', expected a number", U, P("soon"), U, U, U, U);
    HINTS(false, "the pipeline_stage '', expected a number", P(""), U, U, U, U, U);
    HINTS(false, "the pipeline_stage '99999999999', expected a number", U, P("99999999999"), U, U,
          U, U);
}

static void graph_bytes(const struct pb *bytes, struct ree_strbuf *out) {
    struct ree_graph *graph;
    struct ree_identity identity;
    struct ree_error err = {.message = ""};
    REQUIRE(ree_onnx_load_memory(bytes->data, bytes->size, NULL, &graph, &err) == REE_OK);
    REQUIRE(ree_identity_init(&identity, graph, &err) == REE_OK);
    ree_strbuf_append(out, (const char *)identity.bytes, identity.n_bytes);
    ree_identity_finish(&identity);
    ree_graph_destroy(graph);
}

static void test_identity(void) {
    struct pb plain = chain((struct asked[N_CHAIN]){U, U, U, U, U, U});
    struct pb noted = chain((struct asked[N_CHAIN]){D(0), P("0"), D(1), {1, "1"}, U, U});
    struct ree_strbuf a, b;
    ree_strbuf_init(&a);
    ree_strbuf_init(&b);
    graph_bytes(&plain, &a);
    graph_bytes(&noted, &b);
    CHECK(plain.size != noted.size && a.size == b.size && memcmp(a.data, b.data, a.size) == 0);
    ree_strbuf_finish(&a);
    ree_strbuf_finish(&b);
    pb_free(&plain);
    pb_free(&noted);
}

// The nodes of a function take over the call's notes if they have none of their own.
static void test_function(void) {
    struct pb graph = {0}, function = {0}, call = pb_node("Twice", "call", "x", "y"), inner = {0};
    pb_text(&call, NODE_DOMAIN, "local");
    pb_sub(&call, 9, pb_entry("pipeline_stage", "4"));
    pb_sub(&graph, GRAPH_INPUT, pb_value("x", 1, 0, NULL));
    pb_sub(&graph, GRAPH_OUTPUT, pb_value("y", 1, 0, NULL));
    pb_sub(&graph, GRAPH_NODE, call);
    pb_text(&function, 1, "Twice");
    pb_text(&function, 4, "a");
    pb_text(&function, 5, "c");
    pb_sub(&function, 7, pb_node("Neg", "", "a", "b"));
    inner = pb_node("Abs", "", "b", "c");
    pb_sub(&inner, 9, pb_entry("pipeline_stage", "5"));
    pb_sub(&function, 7, inner);
    pb_sub(&function, 9, pb_opset("", 13));
    pb_text(&function, 10, "local");
    struct pb model = pb_model(graph);
    pb_sub(&model, MODEL_OPSET, pb_opset("local", 1));
    pb_sub(&model, MODEL_FUNCTION, function);
    struct ree_graph *read;
    struct ree_error err = {.message = ""};
    REQUIRE(ree_onnx_load_memory(model.data, model.size, NULL, &read, &err) == REE_OK);
    CHECK(read->n_nodes == 2);
    for (size_t i = 0; i < read->n_nodes; i++) {
        const struct ree_node_notes *notes = read->nodes[i]->notes;
        CHECK(notes && notes->n_metadata == 1 && !notes->has_stage);
        CHECK(notes && strcmp(notes->metadata[0].value, i ? "5" : "4") == 0);
    }
    ree_graph_destroy(read);
    pb_free(&model);
}

// Files with notes

static char path[] = "/tmp/ree_notes_XXXXXX";

// Fields that no schema declares, in the model, the graph and a node; notes of other programs.
static struct pb model_with_everything(void) {
    struct pb graph = {0}, node = pb_node("Abs", "", "x", "y");
    pb_text(&node, 4001, "in a node");
    pb_sub(&node, 9, pb_entry("kept", "yes"));
    pb_sub(&node, 9, pb_entry("ree.role", "wrong"));
    struct pb device = {0};
    pb_text(&device, 1, "another");
    pb_int(&device, 3, 3);
    pb_sub(&node, 10, device);
    pb_sub(&graph, GRAPH_INPUT, pb_value("x", 1, 0, NULL));
    pb_sub(&graph, GRAPH_NODE, node);
    pb_text(&graph, 4002, "in the graph");
    pb_sub(&graph, GRAPH_OUTPUT, pb_value("y", 1, 0, NULL));
    struct pb model = pb_model(graph);
    pb_text(&model, 4003, "behind it");
    return model;
}

static struct ree_metadata role[] = {{"ree.role", "other"}}, no_role[] = {{"ree.role", NULL}};

static bool write_notes(const void *bytes, size_t size, bool with, struct ree_error *err) {
    struct ree_file_nodes file;
    if (ree_file_nodes_find(bytes, size, &file, err) != REE_OK) return false;
    struct ree_node_notes *notes = calloc(file.n + 1, sizeof *notes);
    REQUIRE(notes);
    for (size_t i = 0; i < file.n; i++)
        notes[i] = (struct ree_node_notes){with, (int32_t)i, 1, with ? role : no_role};
    bool ok = ree_file_nodes_write(path, &file, notes, "pipe", 2, err) == REE_OK;
    free(notes);
    ree_file_nodes_finish(&file);
    return ok;
}

static void read_back(struct pb *out) {
    void *bytes;
    size_t size;
    REQUIRE(ree_file_read(path, &bytes, &size, NULL) == REE_OK);
    *out = (struct pb){bytes, size, size};
}

static bool holds(const struct pb *bytes, const char *text) {
    for (size_t i = 0; i + strlen(text) <= bytes->size; i++)
        if (memcmp(bytes->data + i, text, strlen(text)) == 0) return true;
    return false;
}

static void test_notes(void) {
    struct pb model = model_with_everything(), once, twice;
    struct ree_error err = {.message = ""};
    CHECK_MSG(write_notes(model.data, model.size, true, &err), "%s", err.message);
    read_back(&once);
    static const char *const kept[] = {"in a node", "in the graph", "behind it", "kept", "another"};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        CHECK_MSG(holds(&once, kept[i]), "%s", kept[i]);
    CHECK(holds(&once, "pipe") && !holds(&once, "wrong"));
    struct ree_graph *graph;
    REQUIRE(ree_onnx_load_memory(once.data, once.size, NULL, &graph, &err) == REE_OK);
    const struct ree_node_notes *notes = graph->nodes[0]->notes;
    // The stage that was written comes before the stage of the other configuration.
    CHECK(notes && notes->has_stage && notes->stage == 0);
    // Notes of other programs are not kept in memory.
    CHECK(notes && notes->n_metadata == 1 && strcmp(notes->metadata[0].value, "other") == 0);
    ree_graph_destroy(graph);
    // Writing the same notes again changes nothing.
    CHECK(write_notes(once.data, once.size, true, &err));
    read_back(&twice);
    CHECK(twice.size == once.size && memcmp(twice.data, once.data, once.size) == 0);
    pb_free(&twice);
    pb_free(&once);
    pb_free(&model);
}

// Removing the notes restores the file, except for the model's configuration.
static void test_away(void) {
    struct pb model = pb_sample_model(), with, without;
    struct ree_error err = {.message = ""};
    CHECK_MSG(write_notes(model.data, model.size, true, &err), "%s", err.message);
    read_back(&with);
    CHECK(with.size > model.size);
    CHECK(write_notes(with.data, with.size, false, &err));
    read_back(&without);
    struct pb configuration = {0};
    struct pb expected = {0};
    pb_text(&configuration, 1, "pipe");
    pb_int(&configuration, 2, 2);
    pb_raw(&expected, model.data, model.size);
    pb_sub(&expected, 26, configuration);
    CHECK(without.size == expected.size && memcmp(without.data, expected.data, expected.size) == 0);
    pb_free(&expected);
    pb_free(&without);
    pb_free(&with);
    pb_free(&model);
}

static void test_damaged_files(void) {
    struct pb model = model_with_everything();
    long n_written = 0, n_refused = 0;
    for (int i = 0; i < 1000; i++) {
        size_t size = i % 5 ? model.size : next_random() % model.size;
        unsigned char *copy = malloc(size ? size : 1);
        REQUIRE(copy);
        memcpy(copy, model.data, size);
        for (uint32_t k = 1 + next_random() % 3; k > 0 && size; k--)
            copy[next_random() % size] = (unsigned char)next_random();
        struct ree_error err = {.message = ""};
        bool ok = write_notes(copy, size, true, &err);
        CHECK(ok || err.message[0]);
        *(ok ? &n_written : &n_refused) += 1;
        free(copy);
    }
    CHECK_MSG(n_written > 100 && n_refused > 100, "%ld written, %ld refused", n_written, n_refused);
    printf("%ld damaged files written again, %ld refused\n", n_written, n_refused);
    pb_free(&model);
}

int main(void) {
    int fd = mkstemp(path);
    REQUIRE(fd >= 0);
    close(fd);
    test_hints();
    test_identity();
    test_function();
    test_notes();
    test_away();
    test_damaged_files();
    unlink(path);
    return test_finish();
}
