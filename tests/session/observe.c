// A session reports to its observer the values that the nodes computed, and observing changes no
// result. Fault injection flips one bit of one value in one run.
//
// The argument names a device; default: cpu.
#include <string.h>

#include "graph/model_text.h"
#include "graphs/all_values.h"
#include "graphs/random_graph.h"
#include "session/kv_cache.h"
#include "test.h"

static struct ree_device *device;

// Random graphs

static bool run_plain(uint64_t seed, bool exposed, char hash[65], const struct all_values *all) {
    struct ree_error err;
    struct ree_model *model;
    struct ree_session *session;
    struct ree_tensor inputs[2], *outputs;
    REQUIRE(ree_model_from_graph(random_graph(seed), NULL, &model, &err) == REE_OK);
    if (exposed) expose_all(model);
    REQUIRE(ree_session_create(model, device, NULL, &session, &err) == REE_OK);
    random_inputs(model, seed, inputs);
    size_t n = ree_model_n_outputs(model);
    outputs = calloc(n + 1, sizeof *outputs);
    bool ok = ree_session_run(session, inputs, model->n_inputs, outputs, &err) == REE_OK;
    if (!ok) fprintf(stderr, "graph %d: %s\n", (int)seed, err.message);
    if (ok && hash) ree_tensors_sha256(outputs, n, hash);
    if (ok && all) ok = all_values_match(all, outputs, n);
    for (size_t i = 0; i < n; i++)
        ree_tensor_finish(&outputs[i]);
    for (size_t i = 0; i < model->n_inputs; i++)
        ree_tensor_finish(&inputs[i]);
    free(outputs);
    ree_session_destroy(session);
    ree_model_destroy(model);
    return ok;
}

struct watched {
    struct ree_model *model;
    struct ree_session *session;
    struct all_values all;
    struct ree_tensor inputs[2];
};

static void watched_init(struct watched *w, uint64_t seed, bool no_fuse) {
    struct ree_error err;
    struct ree_session_options options = {.size = sizeof options, .no_fuse = no_fuse};
    REQUIRE(ree_model_from_graph(random_graph(seed), NULL, &w->model, &err) == REE_OK);
    REQUIRE(ree_session_create(w->model, device, &options, &w->session, &err) == REE_OK);
    all_values_init(&w->all, w->model);
    struct ree_observer observer = all_values_observer(&w->all);
    REQUIRE(ree_session_observe(w->session, &observer, &err) == REE_OK);
    random_inputs(w->model, seed, w->inputs);
}

static enum ree_status watched_run(struct watched *w, char hash[65], struct ree_error *err) {
    struct ree_tensor outputs[MAX_VALUES];
    enum ree_status status =
        ree_session_run(w->session, w->inputs, w->model->n_inputs, outputs, err);
    if (status == REE_OK) ree_tensors_sha256(outputs, w->model->n_outputs, hash);
    for (size_t i = 0; status == REE_OK && i < w->model->n_outputs; i++)
        ree_tensor_finish(&outputs[i]);
    return status;
}

static void watched_finish(struct watched *w) {
    for (size_t i = 0; i < w->model->n_inputs; i++)
        ree_tensor_finish(&w->inputs[i]);
    all_values_finish(&w->all);
    ree_session_destroy(w->session);
    ree_model_destroy(w->model);
}

static void test_random_graph(uint64_t seed) {
    char plain[65], watched[65];
    struct ree_error err;
    REQUIRE(run_plain(seed, false, plain, NULL));
    for (int no_fuse = 0; no_fuse < 2; no_fuse++) {
        struct watched w;
        watched_init(&w, seed, no_fuse);
        for (int run = 0; run < 2; run++) { // the second run uses the bind of the first
            CHECK(watched_run(&w, watched, &err) == REE_OK);
            CHECK_MSG(!strcmp(plain, watched), "graph %d: outputs differ", (int)seed);
            CHECK_MSG(run_plain(seed, true, NULL, &w.all), "graph %d", (int)seed);
        }
        CHECK(w.all.n_runs == 2 && w.all.n_ends == 2 && w.all.n_inputs == w.model->n_inputs);
        watched_finish(&w);
    }
}

// Injects a fault into every value that supports it: that value differs, no earlier value does, and
// the next run is correct.
static size_t n_faults, n_refused, n_silent;

static void test_faults(uint64_t seed) {
    struct watched w;
    struct ree_error err;
    char whole[65], hash[65];
    watched_init(&w, seed, false);
    REQUIRE(watched_run(&w, whole, &err) == REE_OK);
    size_t n = w.all.n;
    struct all_value *before = calloc(n + 1, sizeof *before);
    memcpy(before, w.all.values, n * sizeof *before);
    for (size_t i = 0; i < n; i++) {
        struct ree_fault fault = {before[i].node, before[i].output, seed * 7919 + i * 104729, 0};
        CHECK(ree_session_inject(w.session, &fault, &err) == REE_OK);
        enum ree_status status = watched_run(&w, hash, &err);
        if (status == REE_UNSUPPORTED) {
            CHECK_MSG(strstr(err.message, "cannot inject a fault"), "%s", err.message);
            n_refused++;
            continue;
        }
        CHECK_MSG(status == REE_OK, "%s", err.message);
        size_t first = 0;
        while (first < n && !memcmp(&before[first], &w.all.values[first], sizeof *before))
            first++;
        // A NaN with a flipped bit is still the canonical NaN.
        CHECK_MSG(first == i || first == n, "graph %d: damage to value %zu shows in %zu", (int)seed,
                  i, first);
        n_faults++;
        n_silent += first == n;
        CHECK(watched_run(&w, hash, &err) == REE_OK && !strcmp(hash, whole));
        CHECK(!memcmp(before, w.all.values, n * sizeof *before));
    }
    free(before);
    watched_finish(&w);
}

// Caches

#define CACHE "(past:float32[1,2,p,2], x:float32[1,2,s,2]) -> "

struct cache_log {
    struct ree_tensor rows;
    int64_t first_position, n_positions;
    ptrdiff_t kv_cache;
    float last[64];
    size_t n_last;
    ree_digest view; // digest of the output of node 1
    int64_t past_rows;
};

static enum ree_status log_cache_inputs(void *user, const struct ree_tensor *inputs, size_t n,
                                        struct ree_error *err) {
    struct cache_log *log = user;
    (void)err;
    CHECK(n == 2 && !strcmp(inputs[0].name, "past") && !inputs[0].data && inputs[1].data);
    log->past_rows = inputs[0].dims[2];
    return REE_OK;
}

static enum ree_status log_cache(void *user, const struct ree_observed *v, struct ree_error *err) {
    struct cache_log *log = user;
    (void)err;
    if (v->kv_cache < 0) {
        ree_tensor_digest(v->tensor, log->view);
        return REE_OK;
    }
    log->kv_cache = v->kv_cache;
    log->first_position = v->first_position;
    log->n_positions = v->tensor->dims[2];
    log->n_last = v->tensor->nbytes / 4;
    memcpy(log->last, v->tensor->data, v->tensor->nbytes);
    return REE_OK;
}

static void fill(struct ree_tensor *x, float *data, int64_t rows, float from) {
    *x = (struct ree_tensor){.name = (char *)(uintptr_t) "x",
                             .dtype = REE_F32,
                             .rank = 4,
                             .dims = {1, 2, rows, 2},
                             .data = data,
                             .nbytes = (size_t)rows * 4 * sizeof *data};
    for (int64_t i = 0; i < rows * 4; i++)
        data[i] = from + (float)i;
}

// in_place: `present` is `past` with x appended, in the same memory.
static void test_cache(const char *text, bool in_place) {
    struct ree_error err;
    struct pb bytes = model_text(text);
    struct ree_model *model;
    struct ree_session *session;
    REQUIRE(ree_model_load_memory(bytes.data, bytes.size, NULL, &model, &err) == REE_OK);
    REQUIRE(ree_session_create(model, device, NULL, &session, &err) == REE_OK);
    struct ree_kv_cache_spec spec = {0, 0, 2, 0, false};
    enum ree_status kept = ree_session_declare_kv_caches(session, &spec, 1, REE_NO_INPUT, &err);
    if (kept != REE_OK) fprintf(stderr, "%s\n", err.message);
    REQUIRE(kept == REE_OK);
    struct cache_log log = {.kv_cache = -1};
    struct ree_observer observer = {log_cache_inputs, log_cache, NULL, &log, false};
    CHECK(ree_session_observe(session, &observer, &err) == REE_OK);
    REQUIRE(ree_session_reset_kv_caches(session, 1, &err) == REE_OK);
    REQUIRE(ree_session_reserve_kv_caches(session, 16, &err) == REE_OK);
    int64_t total = 0;
    float all[2][16][2]; // (heads, positions, 2): the expected values
    for (int step = 0; step < 4; step++) {
        int64_t rows = step == 0 ? 3 : 1 + step % 2;
        float data[64];
        struct ree_tensor x, outputs[4];
        fill(&x, data, rows, (float)(100 * step));
        for (int h = 0; h < 2; h++)
            for (int64_t r = 0; r < rows; r++)
                memcpy(all[h][total + r], data + (h * rows + r) * 2, 2 * sizeof *data);
        REQUIRE(ree_session_run(session, &x, 1, outputs, &err) == REE_OK);
        CHECK(log.past_rows == total);
        int64_t first = in_place ? total : 0;
        total += rows;
        CHECK(log.kv_cache == 0);
        CHECK_MSG(log.first_position == first && log.n_positions == total - first, "rows %d to %d",
                  (int)log.first_position, (int)(log.first_position + log.n_positions));
        bool same = log.n_last == (size_t)(total - first) * 4;
        for (int h = 0; same && h < 2; h++)
            same = !memcmp(log.last + h * (total - first) * 2, all[h][first],
                           (size_t)(total - first) * 2 * sizeof(float));
        CHECK_MSG(same, "step %d: other rows", step);
        // Another view of the cache is reported as a whole: node 1 transposes it.
        if (model->graph->n_nodes > 1 && in_place) {
            struct ree_tensor t;
            int64_t dims[4] = {1, 2, 2, total};
            REQUIRE(ree_tensor_init(&t, NULL, REE_F32, 4, dims, &err) == REE_OK);
            for (int h = 0; h < 2; h++)
                for (int c = 0; c < 2; c++)
                    for (int64_t r = 0; r < total; r++)
                        ((float *)t.data)[(h * 2 + c) * total + r] = all[h][r][c];
            ree_digest digest;
            ree_tensor_digest(&t, digest);
            CHECK(!memcmp(digest, log.view, sizeof digest));
            ree_tensor_finish(&t);
        }
        for (size_t i = 0; i < model->n_outputs; i++)
            ree_tensor_finish(&outputs[i]);
    }
    struct ree_fault fault = {.node = model->graph->outputs[0]->producer->id};
    struct ree_tensor x, outputs[4];
    float data[64];
    fill(&x, data, 1, 1);
    CHECK(ree_session_inject(session, &fault, &err) == REE_OK);
    CHECK(ree_session_run(session, &x, 1, outputs, &err) == REE_UNSUPPORTED);
    CHECK_MSG(strstr(err.message,
                     "cannot inject a fault into its output 'present': it is kept from run to run"),
              "%s", err.message);
    CHECK(ree_session_filled_positions(session) == total);
    ree_session_destroy(session);
    ree_model_destroy(model);
    pb_free(&bytes);
}

// Errors

static enum ree_status refuse_value(void *user, const struct ree_observed *value,
                                    struct ree_error *err) {
    (void)user, (void)value;
    err->status = REE_IO;
    snprintf(err->message, sizeof err->message, "the disk is full");
    return REE_IO;
}

static void test_refusals(void) {
    struct ree_error err;
    struct pb bytes = model_text("(x:float32[n]) -> (y, s) { y = Relu(x) s = Shape(x) }");
    struct ree_model *model;
    struct ree_session *session;
    float data[16] = {1, -2, 3};
    int64_t dim = 3;
    struct ree_tensor x = {.name = (char *)(uintptr_t) "x",
                           .dtype = REE_F32,
                           .rank = 1,
                           .dims = {dim},
                           .data = data,
                           .nbytes = 12},
                      outputs[2];
    REQUIRE(ree_model_load_memory(bytes.data, bytes.size, NULL, &model, &err) == REE_OK);
    REQUIRE(ree_session_create(model, device, NULL, &session, &err) == REE_OK);
    struct ree_fault fault = {.node = 2};
    CHECK(ree_session_inject(session, &fault, &err) == REE_INVALID);
    CHECK_MSG(strstr(err.message, "cannot inject a fault into node 2; the graph has 2 nodes"), "%s",
              err.message);
    fault = (struct ree_fault){.node = 0, .output = 1};
    CHECK(ree_session_inject(session, &fault, &err) == REE_INVALID);
    CHECK_MSG(strstr(err.message, "(Relu) has no output 1"), "%s", err.message);
    // Only in the named run.
    fault = (struct ree_fault){.node = 0, .bit = 8, .run = 1};
    CHECK(ree_session_inject(session, &fault, &err) == REE_OK);
    for (int run = 0; run < 3; run++) {
        REQUIRE(ree_session_run(session, &x, 1, outputs, &err) == REE_OK);
        const unsigned char *y = outputs[0].data;
        CHECK_MSG(y[1] == (run == 1), "run %d: byte 1 is %d", run, y[1]);
        ree_tensor_finish(&outputs[0]);
        ree_tensor_finish(&outputs[1]);
    }
    struct ree_observer observer = {NULL, refuse_value, NULL, NULL, false};
    CHECK(ree_session_observe(session, &observer, &err) == REE_INVALID);
    CHECK_MSG(strstr(err.message, "before its first run"), "%s", err.message);
    ree_session_destroy(session);

    REQUIRE(ree_session_create(model, device, NULL, &session, &err) == REE_OK);
    CHECK(ree_session_observe(session, &observer, &err) == REE_OK);
    CHECK(ree_session_run(session, &x, 1, outputs, &err) == REE_IO);
    CHECK_MSG(strstr(err.message, "the disk is full"), "%s", err.message);
    // A value that is computed while binding.
    fault = (struct ree_fault){.node = 1};
    CHECK(ree_session_inject(session, &fault, &err) == REE_OK);
    CHECK(ree_session_run(session, &x, 1, outputs, &err) == REE_UNSUPPORTED);
    CHECK_MSG(strstr(err.message,
                     "cannot inject a fault into its output 's': it is computed while binding"),
              "%s", err.message);
    // An empty value has no bit to flip.
    x.dims[0] = 0;
    x.nbytes = 0;
    fault = (struct ree_fault){.node = 0};
    CHECK(ree_session_inject(session, &fault, &err) == REE_OK);
    CHECK(ree_session_run(session, &x, 1, outputs, &err) == REE_UNSUPPORTED);
    CHECK_MSG(strstr(err.message, "it is empty"), "%s", err.message);
    ree_session_destroy(session);
    ree_model_destroy(model);
    pb_free(&bytes);
}

static void test_mixing(void) {
    struct ree_error err;
    struct pb bytes = model_text("(past:float32[1,2,p,2], x:float32[1,2,s,2], at:int64[1,s]) -> "
                                 "(present:float32) { present = Concat(past, x) {axis=2} }");
    struct ree_model *model;
    struct ree_session *session;
    REQUIRE(ree_model_load_memory(bytes.data, bytes.size, NULL, &model, &err) == REE_OK);
    REQUIRE(ree_session_create(model, device, NULL, &session, &err) == REE_OK);
    struct ree_kv_cache_spec spec = {0, 0, 2, 0, false};
    REQUIRE(ree_session_declare_kv_caches(session, &spec, 1, 2, &err) == REE_OK);
    struct ree_observer observer = {0};
    CHECK(ree_session_observe(session, &observer, &err) == REE_UNSUPPORTED);
    CHECK_MSG(strstr(err.message, "different lengths cannot be observed"), "%s", err.message);
    ree_session_destroy(session);
    ree_model_destroy(model);
    pb_free(&bytes);
}

int main(int argc, char **argv) {
    struct ree_error err;
    const char *spec = argc > 1 ? argv[1] : "cpu";
    struct ree_device_options options = {.size = sizeof options, .cache_dir = ""};
    if (ree_device_open(spec, &options, &device, &err) != REE_OK) {
        CHECK_MSG(err.status == REE_UNAVAILABLE, "%s", err.message);
        return err.status == REE_UNAVAILABLE ? test_skip(err.message) : 1;
    }
    bool cpu = !strcmp(spec, "cpu");
    for (uint64_t seed = 0; seed < (cpu ? 200 : 6); seed++)
        test_random_graph(seed);
    for (uint64_t seed = 0; seed < (cpu ? 60 : 2); seed++)
        test_faults(seed);
    printf("%zu faults, of which %zu turned one NaN into another; %zu values refused\n", n_faults,
           n_silent, n_refused);
    CHECK(n_faults > 0 && (!cpu || n_faults > n_silent * 20));
    test_cache(CACHE "(present:float32) { present = Concat(past, x) {axis=2} }", true);
    test_cache(CACHE "(present:float32, y) { present = Concat(past, x) {axis=2} "
                     "y = Transpose(present) {perm=[0,1,3,2]} }",
               true);
    // Not in place: copied to other memory, so that all positions count as new.
    test_cache(CACHE
               "(present:float32, y) { t = Concat(past, x) {axis=2} y = Neg(t) present = Neg(y) }",
               false);
    test_refusals();
    test_mixing();
    ree_device_destroy(device);
    return test_finish();
}
