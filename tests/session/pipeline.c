// A model in several stages gives the results of one stage, byte by byte: outputs and observed
// values, for every possible number of stages. Cache slots keep groups of sequences apart, however
// their runs interleave.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/model_text.h"
#include "graphs/all_values.h"
#include "graphs/random_graph.h"
#include "pipeline/pipeline.h"
#include "test.h"

#define MAX_STAGES 8

static struct ree_device *devices[2];
static size_t n_divided, n_refused;

static int compare_values(const void *a, const void *b) {
    const struct all_value *x = a, *y = b;
    if (x->node != y->node) return x->node < y->node ? -1 : 1;
    return x->output < y->output ? -1 : x->output > y->output;
}

// Runs the model in n stages. `all` may be NULL. Returns false if the model cannot be divided into
// n.
static bool run_stages(struct ree_model *model, size_t n, size_t n_devices,
                       const struct ree_tensor *inputs, size_t n_inputs, struct all_values *all,
                       char hash[65]) {
    struct ree_error err = {0};
    struct ree_pipeline *pipeline;
    struct ree_pipeline_options options = {.n_stages = n};
    enum ree_status status = ree_pipeline_create(model, devices, n_devices, &options, NULL, 0,
                                                 REE_NO_INPUT, &pipeline, &err);
    if (status != REE_OK) {
        CHECK_MSG(status == REE_INVALID && n > 1, "%zu parts: %s", n, err.message);
        return false;
    }
    CHECK(ree_pipeline_n_stages(pipeline) == n);
    if (all) {
        struct ree_observer observer = all_values_observer(all);
        CHECK(ree_pipeline_observe(pipeline, &observer, &err) == REE_OK);
    }
    size_t n_outputs = ree_model_n_outputs(model);
    struct ree_tensor *outputs = calloc(n_outputs + 1, sizeof *outputs);
    REQUIRE(outputs);
    char first[65] = "";
    struct all_value *first_values = NULL;
    size_t n_first = 0;
    for (int again = 0; again < 2; again++) { // the second run uses the binds of the first
        status = ree_pipeline_run(pipeline, inputs, n_inputs, outputs, &err);
        CHECK_MSG(status == REE_OK, "%zu parts: %s", n, err.message);
        if (status != REE_OK) break;
        ree_tensors_sha256(outputs, n_outputs, hash);
        for (size_t i = 0; i < n_outputs; i++)
            ree_tensor_finish(&outputs[i]);
        if (all) qsort(all->values, all->n, sizeof *all->values, compare_values);
        if (again) {
            CHECK_MSG(!strcmp(first, hash), "%zu parts: other outputs in the second run", n);
            CHECK_MSG(!all || (all->n == n_first &&
                               !memcmp(all->values, first_values, n_first * sizeof *first_values)),
                      "%zu parts: other values in the second run", n);
            continue;
        }
        memcpy(first, hash, sizeof first);
        if (!all) continue;
        n_first = all->n;
        first_values = malloc((n_first + 1) * sizeof *first_values);
        REQUIRE(first_values);
        memcpy(first_values, all->values, n_first * sizeof *first_values);
    }
    free(first_values);
    free(outputs);
    ree_pipeline_destroy(pipeline);
    return true;
}

static void test_random(uint64_t seed) {
    struct ree_error err;
    struct ree_model *model;
    struct ree_tensor inputs[2];
    char whole[65] = "", hash[65] = "";
    REQUIRE(ree_model_from_graph(random_graph(seed), NULL, &model, &err) == REE_OK);
    size_t n_inputs = ree_model_n_inputs(model);
    random_inputs(model, seed, inputs);
    struct all_values in_one, in_stages;
    all_values_init(&in_one, model);
    all_values_init(&in_stages, model);
    REQUIRE(run_stages(model, 1, 1, inputs, n_inputs, &in_one, whole));
    for (size_t n = 2; n <= MAX_STAGES; n++) {
        if (!run_stages(model, n, 1 + n % 2, inputs, n_inputs, NULL, hash)) {
            n_refused++;
            break;
        }
        n_divided++;
        CHECK_MSG(!strcmp(whole, hash), "graph %d in %zu parts differs", (int)seed, n);
        CHECK(run_stages(model, n, 1, inputs, n_inputs, &in_stages, hash));
        CHECK(!strcmp(whole, hash) && in_stages.n_ends == in_stages.n_runs);
        CHECK_MSG(in_one.n == in_stages.n, "graph %d in %zu parts: %zu values instead of %zu",
                  (int)seed, n, in_stages.n, in_one.n);
        CHECK_MSG(in_one.n == in_stages.n &&
                      !memcmp(in_one.values, in_stages.values, in_one.n * sizeof *in_one.values),
                  "graph %d in %zu parts: other values", (int)seed, n);
    }
    all_values_finish(&in_one);
    all_values_finish(&in_stages);
    for (size_t i = 0; i < n_inputs; i++)
        ree_tensor_finish(&inputs[i]);
    ree_model_destroy(model);
}

// Caches: two layers with one cache each. Each layer reads the number of positions in the other
// layer's cache.
static const char caches[] =
    "(past_a:float32[1,2,p,2], past_b:float32[1,2,p,2], x:float32[1,2,s,2]) ->"
    " (y, present_a:float32[1,2,t,2], present_b:float32[1,2,t,2]) {"
    "  w = Constant() {value=<float32[2,2] 1 2 3 4>}"
    "  axis = Constant() {value=<int64[1] 2>}"
    "  rows_b = Shape(past_b) fb = Cast(rows_b) {to=1} kb = ReduceSum(fb) {keepdims=0}"
    "  rows_a = Shape(past_a) fa = Cast(rows_a) {to=1} ka = ReduceSum(fa) {keepdims=0}"
    "  present_a = Concat(past_a, x) {axis=2}"
    "  sum_a = ReduceSum(present_a, axis) {keepdims=1}"
    "  a = MatMul(sum_a, w) h = Add(x, a) g = Mul(h, kb) m = Sin(g)"
    "  present_b = Concat(past_b, m) {axis=2}"
    "  sum_b = ReduceSum(present_b, axis) {keepdims=1}"
    "  b = MatMul(sum_b, w) z = Mul(m, b) u = Add(z, ka) y = Cos(u) }";

#define STEPS 5
#define SLOTS 3

// Hashes all outputs y of each cache slot. Step `i` of slot k has 1 + (i + k) % 3 positions.
static bool run_caches(struct ree_model *model, size_t n, size_t n_devices, bool interleave,
                       char hashes[SLOTS][65]) {
    struct ree_error err = {0};
    struct ree_pipeline *p;
    struct ree_pipeline_options options = {.n_stages = n, .n_cache_slots = SLOTS};
    const struct ree_kv_cache_spec specs[2] = {{0, 1, 2, 0, false}, {1, 2, 2, 0, false}};
    enum ree_status status =
        ree_pipeline_create(model, devices, n_devices, &options, specs, 2, REE_NO_INPUT, &p, &err);
    if (status != REE_OK) {
        CHECK_MSG(status == REE_INVALID, "%s", err.message);
        return false;
    }
    float data[SLOTS][STEPS][12];
    struct ree_tensor inputs[SLOTS][STEPS], outputs[SLOTS][STEPS];
    memset(inputs, 0, sizeof inputs);
    for (size_t k = 0; k < SLOTS; k++) {
        CHECK(ree_pipeline_reset_kv_caches(p, k, 1, &err) == REE_OK);
        CHECK(ree_pipeline_reserve_kv_caches(p, k, 16, &err) == REE_OK);
        for (size_t i = 0; i < STEPS; i++) {
            int64_t rows = 1 + (int64_t)(i + k) % 3;
            inputs[k][i] = (struct ree_tensor){.name = (char *)(uintptr_t) "x",
                                               .dtype = REE_F32,
                                               .rank = 4,
                                               .dims = {1, 2, rows, 2},
                                               .data = data[k][i],
                                               .nbytes = (size_t)rows * 4 * sizeof(float)};
            for (int64_t e = 0; e < rows * 4; e++)
                data[k][i][e] = (float)k + 0.1f * (float)i + 0.01f * (float)e;
        }
    }
    for (size_t turn = 0; turn < SLOTS * STEPS; turn++) {
        size_t k = interleave ? turn % SLOTS : turn / STEPS;
        size_t i = interleave ? turn / SLOTS : turn % STEPS;
        struct ree_tensor out[3];
        status = ree_pipeline_submit(p, k, &inputs[k][i], 1, &err);
        CHECK_MSG(status == REE_OK, "%s", err.message);
        CHECK(ree_pipeline_submit(p, k, &inputs[k][i], 1, &err) == REE_INVALID);
        if (interleave && k < SLOTS - 1) continue; // all are in flight before the first collect
        for (size_t c = interleave ? 0 : k; c <= k; c++) {
            status = ree_pipeline_collect(p, c, out, &err);
            CHECK_MSG(status == REE_OK, "%s", err.message);
            outputs[c][i] = out[0];
        }
    }
    for (size_t k = 0; k < SLOTS; k++) {
        int64_t rows = 0;
        for (size_t i = 0; i < STEPS; i++)
            rows += inputs[k][i].dims[2];
        CHECK(ree_pipeline_check_positions(p, k, rows, &err) == REE_OK);
        ree_tensors_sha256(outputs[k], STEPS, hashes[k]);
        for (size_t i = 0; i < STEPS; i++)
            ree_tensor_finish(&outputs[k][i]);
    }
    ree_pipeline_destroy(p);
    return true;
}

// An error leaves the pipeline usable, and a pipeline may be destroyed with runs in flight.
static void test_failures(struct ree_model *model) {
    struct ree_error err;
    struct ree_pipeline *p;
    struct ree_pipeline_options options = {.n_stages = 3, .n_cache_slots = SLOTS};
    const struct ree_kv_cache_spec specs[2] = {{0, 1, 2, 0, false}, {1, 2, 2, 0, false}};
    REQUIRE(ree_pipeline_create(model, devices, 2, &options, specs, 2, REE_NO_INPUT, &p, &err) ==
            REE_OK);
    float data[16] = {0};
    struct ree_tensor out[3], x = {.name = (char *)(uintptr_t) "x",
                                   .dtype = REE_F32,
                                   .rank = 4,
                                   .dims = {1, 2, 4, 2},
                                   .data = data,
                                   .nbytes = sizeof data};
    CHECK(ree_pipeline_submit(p, SLOTS, &x, 1, &err) == REE_INVALID);
    CHECK(ree_pipeline_submit(p, 0, &x, 0, &err) == REE_INVALID);
    CHECK(ree_pipeline_collect(p, 0, out, &err) == REE_INVALID);
    for (size_t k = 0; k < SLOTS; k++) {
        CHECK(ree_pipeline_reset_kv_caches(p, k, 1, &err) == REE_OK);
        if (k != 1) CHECK(ree_pipeline_reserve_kv_caches(p, k, 16, &err) == REE_OK);
    }
    for (size_t k = 0; k < SLOTS; k++)
        CHECK(ree_pipeline_submit(p, k, &x, 1, &err) == REE_OK);
    for (size_t k = 0; k < SLOTS; k++) { // the caches of one slot are full
        enum ree_status status = ree_pipeline_collect(p, k, out, &err);
        CHECK(k == 1 ? status != REE_OK && strstr(err.message, "stage ") : status == REE_OK);
        if (status == REE_OK) ree_tensor_finish(&out[0]);
    }
    CHECK(ree_pipeline_reset_kv_caches(p, 1, 1, &err) == REE_OK);
    CHECK(ree_pipeline_reserve_kv_caches(p, 1, 16, &err) == REE_OK);
    CHECK(ree_pipeline_submit(p, 1, &x, 1, &err) == REE_OK);
    CHECK(ree_pipeline_collect(p, 1, out, &err) == REE_OK);
    ree_tensor_finish(&out[0]);
    for (size_t k = 0; k < SLOTS; k++)
        CHECK(ree_pipeline_submit(p, k, &x, 1, &err) == REE_OK);
    ree_pipeline_destroy(p);
}

static void test_caches(void) {
    struct ree_error err;
    struct pb bytes = model_text(caches);
    struct ree_model *model;
    enum ree_status loaded = ree_model_load_memory(bytes.data, bytes.size, NULL, &model, &err);
    if (loaded != REE_OK) fprintf(stderr, "%s\n", err.message);
    REQUIRE(loaded == REE_OK);
    char whole[SLOTS][65], hashes[SLOTS][65];
    size_t n = 1;
    CHECK(run_caches(model, 1, 1, false, whole));
    for (; n <= MAX_STAGES; n++) {
        bool ran = false;
        for (size_t n_devices = 1; n_devices <= 2; n_devices++)
            for (int interleave = 0; interleave < 2; interleave++) {
                ran = run_caches(model, n, n_devices, interleave != 0, hashes);
                for (size_t k = 0; ran && k < SLOTS; k++)
                    CHECK_MSG(!strcmp(whole[k], hashes[k]),
                              "set %zu in %zu parts on %zu devices differs", k, n, n_devices);
            }
        if (!ran) break;
    }
    test_failures(model);
    CHECK_MSG(n > 4, "there are %zu parts at most", n - 1);
    ree_model_destroy(model);
    pb_free(&bytes);
}

int main(int argc, char **argv) {
    uint64_t n_graphs = argc > 1 ? strtoull(argv[1], NULL, 10) : 150;
    for (int i = 0; i < 2; i++) {
        struct ree_device_options options = {.size = sizeof options, .n_threads = 1};
        REQUIRE(ree_device_open("cpu", &options, &devices[i], NULL) == REE_OK);
    }
    for (uint64_t seed = 0; seed < n_graphs; seed++)
        test_random(seed);
    printf("%zu divisions, %zu graphs with too few places\n", n_divided, n_refused);
    CHECK(n_divided > n_graphs / 3);
    test_caches();
    for (int i = 0; i < 2; i++)
        ree_device_destroy(devices[i]);
    return test_finish();
}
