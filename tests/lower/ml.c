// ai.onnx.ml and TfIdfVectorizer: random trees compared with a walk from node to node, n-grams with
// weights, and error messages for invalid nodes.
#include "node.h"
#include "test.h"

#include <math.h>
#include <string.h>

// A full tree: node i has the children 2i + 1 and 2i + 2; leaves follow the nodes.
#define N_NODES 31
#define N_LEAVES 32
#define N_TREES 3
#define N_FEATURES 4
#define N_TARGETS 2
#define N_ROWS 50

static struct ree_value tensors[16];
static uint32_t n_tensors;

static void start(struct test_node *n, const char *op, int64_t opset) {
    test_node_start(n, op, opset);
    n->node.domain = "ai.onnx.ml";
    n_tensors = 0;
}

static void tensor(struct test_node *n, const char *name, enum ree_dtype dtype, int64_t count,
                   const void *data) {
    struct ree_value *value = &tensors[n_tensors++];
    *value = (struct ree_value){.dtype = dtype, .rank = 1, .dims = {count}, .data = data};
    value->nbytes = (size_t)count * ree_dtype_size(dtype);
    n->attrs[n->node.n_attrs++] =
        (struct ree_attr){.name = name, .kind = REE_ATTR_TENSOR, .tensor = value};
}

struct forest {
    int64_t features[N_TREES * N_NODES], if_true[N_TREES * N_NODES], if_false[N_TREES * N_NODES];
    int64_t true_leaf[N_TREES * N_NODES], false_leaf[N_TREES * N_NODES];
    int64_t missing[N_TREES * N_NODES], targets[N_TREES * N_LEAVES], roots[N_TREES];
    float splits[N_TREES * N_NODES], weights[N_TREES * N_LEAVES];
    uint8_t modes[N_TREES * N_NODES];
};

static void plant(struct forest *f) {
    uint64_t seed = 3;
    for (int64_t t = 0; t < N_TREES; t++) {
        f->roots[t] = t * N_NODES;
        for (int64_t k = 0; k < N_NODES; k++) {
            int64_t i = t * N_NODES + k, child = 2 * k + 1;
            bool leaf = child >= N_NODES;
            f->if_true[i] = leaf ? t * N_LEAVES + child - N_NODES : t * N_NODES + child;
            f->if_false[i] = f->if_true[i] + 1;
            f->true_leaf[i] = f->false_leaf[i] = leaf;
            f->features[i] = (k * 7 + t) % N_FEATURES;
            f->splits[i] = roundf(test_random(&seed) * 2) / 2; // often equal to an input value
            f->modes[i] = (uint8_t)((k + t) % 6);
            f->missing[i] = k % 3 == 0;
        }
        for (int64_t k = 0; k < N_LEAVES; k++) {
            f->targets[t * N_LEAVES + k] = k % N_TARGETS;
            f->weights[t * N_LEAVES + k] = test_random(&seed);
        }
    }
}

static bool goes_true(uint8_t mode, float x, float split) {
    switch (mode) {
    case 0: return x <= split;
    case 1: return x < split;
    case 2: return x >= split;
    case 3: return x > split;
    case 4: return x == split;
    default: return x != split;
    }
}

static void trees(void) {
    static struct forest f;
    static float x[N_ROWS * N_FEATURES];
    uint64_t seed = 8;
    plant(&f);
    for (int i = 0; i < N_ROWS * N_FEATURES; i++)
        x[i] = i % 11 == 0 ? NAN : roundf(test_random(&seed) * 4) / 4;
    struct test_node n;
    start(&n, "TreeEnsemble", 5);
    test_node_f32(&n, 2, (int64_t[]){N_ROWS, N_FEATURES}, x);
    size_t nodes = N_TREES * N_NODES, leaves = N_TREES * N_LEAVES;
    test_node_int(&n, "n_targets", N_TARGETS);
    test_node_ints(&n, "tree_roots", N_TREES, f.roots);
    test_node_ints(&n, "nodes_featureids", nodes, f.features);
    test_node_ints(&n, "nodes_truenodeids", nodes, f.if_true);
    test_node_ints(&n, "nodes_falsenodeids", nodes, f.if_false);
    test_node_ints(&n, "nodes_trueleafs", nodes, f.true_leaf);
    test_node_ints(&n, "nodes_falseleafs", nodes, f.false_leaf);
    test_node_ints(&n, "nodes_missing_value_tracks_true", nodes, f.missing);
    test_node_ints(&n, "leaf_targetids", leaves, f.targets);
    tensor(&n, "nodes_splits", REE_F32, (int64_t)nodes, f.splits);
    tensor(&n, "nodes_modes", REE_U8, (int64_t)nodes, f.modes);
    tensor(&n, "leaf_weights", REE_F32, (int64_t)leaves, f.weights);
    CHECK_MSG(test_node_run(&n, 1) == REE_OK, "%s", n.err.message);
    const float *got = test_node_output(&n, 0);
    for (int row = 0; row < N_ROWS; row++) {
        float want[N_TARGETS] = {0};
        for (int64_t t = 0; t < N_TREES; t++) {
            int64_t at = f.roots[t];
            for (bool leaf = false; !leaf;) {
                float value = x[row * N_FEATURES + f.features[at]];
                bool yes =
                    goes_true(f.modes[at], value, f.splits[at]) || (isnan(value) && f.missing[at]);
                leaf = f.true_leaf[at];
                at = yes ? f.if_true[at] : f.if_false[at];
            }
            want[f.targets[at]] += f.weights[at];
        }
        for (int i = 0; i < N_TARGETS; i++)
            CHECK_MSG(got[row * N_TARGETS + i] == want[i], "row %d: %g, expected %g", row,
                      (double)got[row * N_TARGETS + i], (double)want[i]);
    }
    test_node_finish(&n);
}

static void expect(struct test_node *n, enum ree_status status, const char *message) {
    enum ree_status got = test_node_run(n, 1);
    CHECK_MSG(got == status && strstr(n->err.message, message), "got %s: '%s', expected '%s'",
              ree_status_name(got), n->err.message, message);
    test_node_finish(n);
}

// One node, valid except for the arguments.
static void one_node(int64_t feature, uint8_t mode, int64_t next, const char *message) {
    static const float numbers[2] = {1, 2};
    struct test_node n;
    start(&n, "TreeEnsemble", 5);
    test_node_f32(&n, 2, (int64_t[]){1, 2}, numbers);
    test_node_ints(&n, "tree_roots", 1, (int64_t[]){0});
    test_node_ints(&n, "nodes_featureids", 1, &feature);
    test_node_ints(&n, "nodes_truenodeids", 1, &next);
    test_node_ints(&n, "nodes_falsenodeids", 1, (int64_t[]){1});
    test_node_ints(&n, "nodes_trueleafs", 1, (int64_t[]){0});
    test_node_ints(&n, "nodes_falseleafs", 1, (int64_t[]){1});
    test_node_ints(&n, "leaf_targetids", 2, (int64_t[]){0, 0});
    tensor(&n, "nodes_splits", REE_F32, 1, numbers);
    tensor(&n, "nodes_modes", REE_U8, 1, &mode);
    tensor(&n, "leaf_weights", REE_F32, 2, numbers);
    expect(&n, REE_INVALID, message);
}

// Both branches lead back to the node; it must not be treated as a leaf.
static void own_successor(void) {
    static const float numbers[2] = {1, 2};
    static const uint8_t mode = 0;
    static const char *const zeros[] = {
        "tree_roots",      "nodes_featureids", "nodes_truenodeids", "nodes_falsenodeids",
        "nodes_trueleafs", "nodes_falseleafs", "leaf_targetids"};
    struct test_node n;
    start(&n, "TreeEnsemble", 5);
    test_node_f32(&n, 2, (int64_t[]){1, 2}, numbers);
    for (size_t i = 0; i < sizeof zeros / sizeof zeros[0]; i++)
        test_node_ints(&n, zeros[i], 1, (int64_t[]){0});
    tensor(&n, "nodes_splits", REE_F32, 1, numbers);
    tensor(&n, "nodes_modes", REE_U8, 1, &mode);
    tensor(&n, "leaf_weights", REE_F32, 1, numbers);
    expect(&n, REE_INVALID, "the nodes of tree 0 form a cycle");
}

static void start_grams(struct test_node *n, const char *mode, size_t n_columns) {
    static const int32_t row[6] = {1, 2, 1, 2, 3, 1};
    test_node_start(n, "TfIdfVectorizer", 9);
    test_node_input(n, REE_I32, 1, (int64_t[]){6}, row);
    test_node_int(n, "min_gram_length", 1);
    test_node_int(n, "max_gram_length", 2);
    test_node_int(n, "max_skip_count", 1);
    test_node_string(n, "mode", mode);
    // Pool of 1-grams: 1, 9; of 2-grams: (1, 2), (1, 1).
    test_node_ints(n, "pool_int64s", 6, (int64_t[]){1, 9, 1, 2, 1, 1});
    test_node_ints(n, "ngram_counts", 2, (int64_t[]){0, 2});
    test_node_ints(n, "ngram_indexes", n_columns, (int64_t[]){4, 0, 1, 2});
}

static void grams(void) {
    // 1 occurs three times, (1, 2) twice as neighbours, (1, 1) once with one item between.
    static const float want[3][5] = {{0, 2, 1, 0, 3}, {0, 0.5f, 0.25f, 0, 2}, {0, 1, 0.25f, 0, 6}};
    static const char *const modes[3] = {"TF", "IDF", "TFIDF"};
    for (int i = 0; i < 3; i++) {
        struct test_node n;
        start_grams(&n, modes[i], 4);
        float weights[4] = {2, 7, 0.5f, 0.25f};
        n.attrs[n.node.n_attrs++] = (struct ree_attr){
            .name = "weights", .kind = REE_ATTR_FLOATS, .n = 4, .floats = weights};
        CHECK_MSG(test_node_run(&n, 1) == REE_OK, "%s", n.err.message);
        CHECK(n.out[0]->rank == 1 && n.out[0]->dims[0] == 5);
        CHECK_MSG(!memcmp(test_node_output(&n, 0), want[i], sizeof want[i]), "%s", modes[i]);
        test_node_finish(&n);
    }
    struct test_node n;
    start_grams(&n, "DF", 4);
    expect(&n, REE_INVALID, "mode is 'DF', expected TF, IDF or TFIDF");
    static const int64_t columns[4] = {4, 0, 1, 4};
    start_grams(&n, "TF", 4);
    for (uint32_t i = 0; i < n.node.n_attrs; i++)
        if (!strcmp(n.attrs[i].name, "ngram_indexes")) n.attrs[i].ints = columns;
    expect(&n, REE_UNSUPPORTED, "ngram_indexes names column 4 twice");
    start_grams(&n, "TF", 3);
    expect(&n, REE_INVALID, "ngram_indexes has 3 entries, expected 4");
}

static void start_pairs(struct test_node *n, int64_t max_skip, int64_t columns) {
    static const int64_t zero;
    test_node_start(n, "TfIdfVectorizer", 9);
    test_node_input(n, REE_I64, 0, NULL, &zero);
    REQUIRE(ree_lower_broadcast(&n->lower, n->views[0], 1, &columns, &n->views[0]) == REE_OK);
    test_node_int(n, "min_gram_length", 2);
    test_node_int(n, "max_gram_length", 2);
    test_node_int(n, "max_skip_count", max_skip);
    test_node_string(n, "mode", "TF");
    test_node_ints(n, "pool_int64s", 2, (int64_t[]){0, 0});
    test_node_ints(n, "ngram_counts", 2, (int64_t[]){0, 0});
    test_node_ints(n, "ngram_indexes", 1, (int64_t[]){0});
}

// If the skip count exceeds the number of items in the row, it is limited to that number. The size
// of tables is checked before they are allocated.
static void huge_skips(void) {
    struct test_node n;
    start_pairs(&n, INT64_MAX, 4);
    CHECK_MSG(test_node_run(&n, 1) == REE_OK, "%s", n.err.message);
    const float *pairs = test_node_output(&n, 0);
    CHECK(pairs && pairs[0] == 6);
    test_node_finish(&n);
    start_pairs(&n, INT64_MAX, 1 << 20);
    expect(&n, REE_UNSUPPORTED, "the 2-grams of rows of 1048576 items with up to");
}

static void columns(void) {
    static const float x[6] = {3, -4, 0, 0, 1, 2};
    struct test_node n;
    start(&n, "Normalizer", 1);
    test_node_f32(&n, 2, (int64_t[]){3, 2}, x);
    test_node_string(&n, "norm", "L2");
    CHECK(test_node_run(&n, 1) == REE_OK);
    const float *y = test_node_output(&n, 0);
    CHECK(y[0] == 0.6f && y[1] == -0.8f && y[2] == 0 && y[3] == 0);
    test_node_finish(&n);
    start(&n, "Scaler", 1);
    test_node_f32(&n, 2, (int64_t[]){3, 2}, x);
    float offset[2] = {1, 2}, scale = 3;
    n.attrs[n.node.n_attrs++] =
        (struct ree_attr){.name = "offset", .kind = REE_ATTR_FLOATS, .n = 2, .floats = offset};
    n.attrs[n.node.n_attrs++] =
        (struct ree_attr){.name = "scale", .kind = REE_ATTR_FLOATS, .n = 1, .floats = &scale};
    CHECK(test_node_run(&n, 1) == REE_OK);
    y = test_node_output(&n, 0);
    CHECK(y[0] == 6 && y[1] == -18 && y[2] == -3 && y[3] == -6 && y[4] == 0 && y[5] == 0);
    test_node_finish(&n);
    start(&n, "Normalizer", 1);
    test_node_f32(&n, 2, (int64_t[]){3, 2}, x);
    test_node_string(&n, "norm", "L3");
    expect(&n, REE_INVALID, "norm is 'L3', expected MAX, L1 or L2");
    start(&n, "ArrayFeatureExtractor", 1);
    test_node_f32(&n, 2, (int64_t[]){3, 2}, x);
    test_node_input(&n, REE_I64, 1, (int64_t[]){0}, x);
    expect(&n, REE_INVALID, "input Y is int64[0], expected int64 indices");
}

int main(void) {
    trees();
    one_node(2, 0, 0, "nodes_featureids[0] is 2, but X has 2 features");
    one_node(0, 7, 0, "nodes_modes[0] is 7, expected 0 to 6");
    one_node(0, 6, 0, "membership_values has no NaN that ends the set of node 0");
    one_node(0, 0, 1, "nodes_truenodeids contains 1, expected less than 1");
    one_node(0, 0, 0, "the nodes of tree 0 form a cycle");
    own_successor();
    grams();
    huge_skips();
    columns();
    return test_finish();
}
