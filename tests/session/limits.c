// Device memory of pipelines: all stages on a device count together; a request that does not fit is
// refused before anything grows; copies of weights, which only make runs faster, are released
// first.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/ir/mapping.h"
#include "graph/model_text.h"
#include "graph/partition/partition.h"
#include "pipeline/pipeline_internal.h"
#include "test.h"

static struct ree_device *device;

// Two layers with one cache each.
static const char caches[] =
    "(past_a:float32[1,2,p,2], past_b:float32[1,2,p,2], x:float32[1,2,s,2]) ->"
    " (y, present_a:float32[1,2,t,2], present_b:float32[1,2,t,2]) {"
    "  w = Constant() {value=<float32[2,2] 1 2 3 4>}"
    "  axis = Constant() {value=<int64[1] 2>}"
    "  present_a = Concat(past_a, x) {axis=2}"
    "  sum_a = ReduceSum(present_a, axis) {keepdims=1}"
    "  a = MatMul(sum_a, w) m = Sin(a) n = Add(x, m)"
    "  present_b = Concat(past_b, n) {axis=2}"
    "  sum_b = ReduceSum(present_b, axis) {keepdims=1}"
    "  b = MatMul(sum_b, w) y = Cos(b) }";

static struct ree_model *load(const char *text) {
    struct ree_error err = {0};
    struct pb bytes = model_text(text);
    struct ree_model *model;
    enum ree_status status = ree_model_load_memory(bytes.data, bytes.size, NULL, &model, &err);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    REQUIRE(status == REE_OK);
    pb_free(&bytes);
    return model;
}

static struct ree_pipeline *make(struct ree_model *model, size_t n_stages, size_t n_cache_slots) {
    struct ree_error err = {0};
    struct ree_pipeline *p;
    struct ree_pipeline_options options = {.n_stages = n_stages, .n_cache_slots = n_cache_slots};
    const struct ree_kv_cache_spec specs[2] = {{0, 1, 2, 0, false}, {1, 2, 2, 0, false}};
    enum ree_status status =
        ree_pipeline_create(model, &device, 1, &options, specs, 2, REE_NO_INPUT, &p, &err);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    REQUIRE(status == REE_OK);
    for (size_t k = 0; k < n_cache_slots; k++)
        REQUIRE(ree_pipeline_reset_kv_caches(p, k, 1, &err) == REE_OK);
    return p;
}

static float data[4] = {1, 2, 3, 4};

static struct ree_tensor one_row(void) {
    return (struct ree_tensor){.name = (char *)(uintptr_t) "x",
                               .dtype = REE_F32,
                               .rank = 4,
                               .dims = {1, 2, 1, 2},
                               .data = data,
                               .nbytes = sizeof data};
}

static void run(struct ree_pipeline *p) {
    struct ree_error err = {0};
    struct ree_tensor x = one_row(), out[3];
    enum ree_status status = ree_pipeline_run(p, &x, 1, out, &err);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    if (status == REE_OK) ree_tensor_finish(&out[0]);
}

// The bytes of a cache's buffer: a position has 2 * 2 floats, and a buffer is 4 bytes longer.
#define CACHE(rows) ((uint64_t)(rows)*16 + 4)

static void check_capacities(const struct ree_pipeline *p, int64_t rows) {
    CHECK(ree_pipeline_kv_cache_capacity(p, 0) == rows);
    for (size_t i = 0; i < p->n_stages; i++)
        for (size_t k = 0; k < p->stages[i].session->n_kv_caches; k++) {
            const struct ree_kv_cache *cache = &p->stages[i].session->cache_slots[0][k];
            CHECK(cache->spec.output == REE_NO_OUTPUT || cache->capacity == rows);
        }
}

// Too little memory: the device itself has too little, or (is_limit) the memory budget has.
static void test_reservations(size_t n_stages, bool is_limit) {
    struct ree_error err = {0};
    struct ree_model *model = load(caches);
    struct ree_pipeline *p = make(model, n_stages, 2);
    struct ree_memory_budget *count = &p->workers[0].memory;
    const uint64_t all = device->memory_size;
    uint64_t *most = is_limit ? &count->limit : &device->memory_size;
    CHECK(ree_pipeline_reserve_kv_caches(p, 0, 16, &err) == REE_OK);
    CHECK(count->used == 2 * CACHE(16));
    run(p);
    check_capacities(p, 16);
    run(p);
    const uint64_t used = count->used;
    // One cache could grow, two cannot: while the second grows, its old and new buffers both exist.
    const uint64_t need = used + CACHE(64) - CACHE(16) + CACHE(64);
    *most = need - 1;
    CHECK(ree_pipeline_reserve_kv_caches(p, 0, 64, &err) == REE_NO_MEMORY);
    CHECK_MSG(strstr(err.message, "64 tokens") && strstr(err.message, device->name), "%s",
              err.message);
    CHECK(count->used == used);
    check_capacities(p, 16);
    // The caches of the other slot are on the same device.
    *most = used + 2 * CACHE(16) - 1;
    CHECK(ree_pipeline_reserve_kv_caches(p, 1, 16, &err) == REE_NO_MEMORY);
    CHECK(ree_pipeline_kv_cache_capacity(p, 1) == 0 && count->used == used);
    *most = need;
    CHECK(ree_pipeline_reserve_kv_caches(p, 0, 64, &err) == REE_OK);
    check_capacities(p, 64);
    CHECK(count->used == used + 2 * (CACHE(64) - CACHE(16)) && count->peak <= need);
    run(p);
    device->memory_size = all;
    ree_pipeline_destroy(p);
    ree_model_destroy(model);
}

// A device that fails to allocate what the memory budget permits.
static enum ree_status (*create)(struct ree_device *, uint64_t, struct ree_device_buffer **,
                                 struct ree_error *);
static int n_until_failure;

static enum ree_status create_some(struct ree_device *d, uint64_t size,
                                   struct ree_device_buffer **out, struct ree_error *err) {
    if (size == CACHE(64) && n_until_failure-- == 0) return ree_fail(err, REE_NO_MEMORY, "no more");
    return create(d, size, out, err);
}

static void test_half_grown(size_t n_stages) {
    struct ree_error err = {0};
    struct ree_model *model = load(caches);
    struct ree_pipeline *p = make(model, n_stages, 1);
    CHECK(ree_pipeline_reserve_kv_caches(p, 0, 16, &err) == REE_OK);
    const struct ree_device_vtable *real = device->vtable;
    struct ree_device_vtable failing = *real;
    create = real->buffer_create;
    failing.buffer_create = create_some;
    device->vtable = &failing;
    n_until_failure = 1; // the first cache grows, the second fails
    CHECK(ree_pipeline_reserve_kv_caches(p, 0, 64, &err) == REE_NO_MEMORY);
    CHECK(ree_pipeline_kv_cache_capacity(p, 0) == 16);
    device->vtable = real;
    run(p);
    CHECK(ree_pipeline_reserve_kv_caches(p, 0, 64, &err) == REE_OK);
    check_capacities(p, 64);
    ree_pipeline_destroy(p);
    ree_model_destroy(model);
}

// Copies of weights

#define K 64
#define N 256

// y = x * w; w is of 16 bits, in the order that is repacked.
static struct ree_model *make_narrow(const char *more_inputs, const char *more_outputs,
                                     const char *more_nodes) {
    static char text[64 * K * N];
    const int bits[] = {0x3C00, 0xBC00, 0x4000, 0x3800, 0x4200}; // 1, -1, 2, 0.5, 3
    size_t at = (size_t)snprintf(text, sizeof text,
                                 "(x:float32[m,%d]%s) -> (y%s) { %s w = Constant() "
                                 "{value=<float16[%d,%d]",
                                 K, more_inputs, more_outputs, more_nodes, K, N);
    for (int i = 0; i < K * N; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, " %d", bits[i % 5]);
    snprintf(text + at, sizeof text - at,
             ">} h = Cast(x) {to=10} p = MatMul(h, w) y = Cast(p) {to=1} }");
    return load(text);
}

static void run_rows(struct ree_pipeline *p, int64_t rows, char hash[65]) {
    struct ree_error err = {0};
    struct ree_tensor x, out[1];
    REQUIRE(ree_tensor_init(&x, "x", REE_F32, 2, (int64_t[]){rows, K}, &err) == REE_OK);
    for (int64_t i = 0; i < rows * K; i++)
        ((float *)x.data)[i] = (float)(i % 7) - 3;
    enum ree_status status = ree_pipeline_run(p, &x, 1, out, &err);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    if (status == REE_OK) {
        ree_tensors_sha256(out, 1, hash);
        ree_tensor_finish(&out[0]);
    }
    ree_tensor_finish(&x);
}

static void test_copies(void) {
    struct ree_error err = {0};
    struct ree_model *model = make_narrow("", "", "");
    struct ree_pipeline *p;
    char free_hash[65] = "", hash[65] = "", many_free[65] = "", many[65] = "";
    REQUIRE(ree_pipeline_create(model, &device, 1, NULL, NULL, 0, REE_NO_INPUT, &p, &err) ==
            REE_OK);
    run_rows(p, 1, free_hash);
    run_rows(p, 200, many_free);
    ree_pipeline_destroy(p);
    const uint64_t weights = (uint64_t)K * N * 2;
    for (int fits = 0; fits < 2; fits++) {
        struct ree_pipeline_options options = {.max_memory = 1 << 20};
        REQUIRE(ree_pipeline_create(model, &device, 1, &options, NULL, 0, REE_NO_INPUT, &p, &err) ==
                REE_OK);
        struct ree_session *s = p->stages[0].session;
        struct ree_memory_budget *count = &p->workers[0].memory;
        if (!fits) count->limit = weights + weights / 2;
        run_rows(p, 1, hash);
        CHECK(!strcmp(hash, free_hash));
        CHECK_MSG(fits ? s->packed_bytes >= weights : s->packed_bytes == 0, "%llu bytes of copies",
                  (unsigned long long)s->packed_bytes);
        CHECK(count->used >= s->weight_bytes + s->packed_bytes && count->used <= count->limit);
        if (fits) {
            // Results of many rows need the memory of the copies.
            count->limit = count->used + 1000;
            run_rows(p, 16, many);
            CHECK(s->packed_bytes == 0 && count->used <= count->limit);
            count->limit = 1 << 20;
            run_rows(p, 200, many);
            CHECK(!strcmp(many, many_free) && s->packed_bytes == 0);
            run_rows(p, 1, hash);
            CHECK(!strcmp(hash, free_hash));
        }
        ree_pipeline_destroy(p);
    }
    ree_model_destroy(model);
}

// A cache that grows takes over the memory of the copies.
static void test_copies_and_caches(void) {
    struct ree_error err = {0};
    struct ree_model *model = make_narrow(", past:float32[1,p,2], q:float32[1,s,2]", ", present",
                                          "present = Concat(past, q) {axis=1}");
    struct ree_pipeline_options options = {.max_memory = 1 << 20};
    const struct ree_kv_cache_spec spec = {1, 1, 1, 0, false};
    struct ree_pipeline *p;
    enum ree_status status =
        ree_pipeline_create(model, &device, 1, &options, &spec, 1, REE_NO_INPUT, &p, &err);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    if (status == REE_OK) {
        struct ree_session *s = p->stages[0].session;
        struct ree_memory_budget *count = &p->workers[0].memory;
        struct ree_tensor x[2], out[2];
        CHECK(ree_pipeline_reset_kv_caches(p, 0, 1, &err) == REE_OK);
        CHECK(ree_pipeline_reserve_kv_caches(p, 0, 16, &err) == REE_OK);
        REQUIRE(ree_tensor_init(&x[0], "x", REE_F32, 2, (int64_t[]){1, K}, &err) == REE_OK);
        REQUIRE(ree_tensor_init(&x[1], "q", REE_F32, 3, (int64_t[]){1, 1, 2}, &err) == REE_OK);
        for (int again = 0; again < 2; again++) {
            status = ree_pipeline_run(p, x, 2, out, &err);
            CHECK_MSG(status == REE_OK, "%s", err.message);
            if (status == REE_OK) ree_tensor_finish(&out[0]);
            CHECK((s->packed_bytes > 0) == !again);
            if (again) break;
            count->limit = count->used + 100;
            CHECK(ree_pipeline_reserve_kv_caches(p, 0, 1024, &err) == REE_OK);
            CHECK(ree_pipeline_check_positions(p, 0, 1, &err) == REE_OK &&
                  count->used <= count->limit);
            CHECK(ree_pipeline_reserve_kv_caches(p, 0, 16384, &err) == REE_NO_MEMORY);
        }
        CHECK(ree_pipeline_check_positions(p, 0, 2, &err) == REE_OK);
        for (int i = 0; i < 2; i++)
            ree_tensor_finish(&x[i]);
        ree_pipeline_destroy(p);
    }
    ree_model_destroy(model);
}

// Runs with an observer

static enum ree_status ignore(void *user, struct ree_error *err) {
    (void)user;
    (void)err;
    return REE_OK;
}

static void test_observed(size_t n_stages) {
    struct ree_error err = {0};
    struct ree_model *model = load(caches);
    struct ree_pipeline *p = make(model, n_stages, 2);
    struct ree_observer observer = {.on_end = ignore};
    struct ree_tensor x = one_row(), out[3];
    for (size_t k = 0; k < 2; k++)
        CHECK(ree_pipeline_reserve_kv_caches(p, k, 16, &err) == REE_OK);
    CHECK(ree_pipeline_submit(p, 1, &x, 1, &err) == REE_OK);
    CHECK(ree_pipeline_observe(p, &observer, &err) == REE_INVALID);
    ree_pipeline_destroy(p);
    p = make(model, n_stages, 2);
    for (size_t k = 0; k < 2; k++)
        CHECK(ree_pipeline_reserve_kv_caches(p, k, 16, &err) == REE_OK);
    CHECK(ree_pipeline_observe(p, &observer, &err) == REE_OK);
    CHECK(ree_pipeline_submit(p, 0, &x, 1, &err) == REE_OK);
    CHECK(ree_pipeline_submit(p, 1, &x, 1, &err) == REE_INVALID);
    CHECK_MSG(strstr(err.message, "one cache slot at a time"), "%s", err.message);
    for (size_t k = 0; k < 2; k++) {
        if (k) CHECK(ree_pipeline_submit(p, k, &x, 1, &err) == REE_OK);
        enum ree_status status = ree_pipeline_collect(p, k, out, &err);
        CHECK_MSG(status == REE_OK, "%s", err.message);
        if (status == REE_OK) ree_tensor_finish(&out[0]);
    }
    ree_pipeline_destroy(p);
    ree_model_destroy(model);
}

// Subgraphs

// A cache that only a branch reads, and that the model returns unchanged.
static void test_read_in_branch(void) {
    struct ree_error err = {0};
    struct ree_model *model =
        load("(past:float32[1,2,p,2], go:bool[], x:float32[1,2,s,2]) ->"
             " (y, past) {"
             "  w = Constant() {value=<float32[2,2] 1 2 3 4>}"
             "  a = MatMul(x, w)"
             "  b = If(go) {then_branch=() -> (t) { r = ReduceSum(past) {keepdims=0} t = Add(a, r) "
             "}, else_branch=() -> (e) { e = Neg(a) }}"
             "  c = MatMul(b, w) d = Sin(c) f = MatMul(d, w) y = Cos(f) }");
    ree_model_infer(model->graph, NULL);
    const struct ree_partition_kv_cache cache = {0, 1};
    struct ree_partition_options options = {.n_stages = 2, .n_kv_caches = 1, .kv_caches = &cache};
    struct ree_partition plan;
    enum ree_status status = ree_partition_plan(model->graph, &options, &plan, &err);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    if (status == REE_OK) {
        size_t reader = 0;
        while (strcmp(model->graph->nodes[reader]->op_type, "If") != 0)
            reader++;
        CHECK_MSG(plan.stage_of[reader] == 0, "the test wants the branch in the first stage");
        size_t stage;
        status = ree_partition_stages_of_kv_caches(model->graph, &plan, &cache, 1, &stage, &err);
        CHECK_MSG(status == REE_OK && stage == plan.stage_of[reader], "%s", err.message);
        ree_partition_finish(&plan);
    }
    ree_model_destroy(model);
}

static bool has_range(const struct ree_pipeline *p, const void *at) {
    for (size_t i = 0; i < p->n_stages; i++)
        for (size_t k = 0; k < p->stages[i].n_ranges; k++) {
            const struct ree_page_range *r = &p->stages[i].ranges[k];
            if ((uintptr_t)at - (uintptr_t)r->data < r->size) return true;
        }
    return false;
}

// Collects every large constant of the graph and its branches as a file mapping.
static size_t find_large(const struct ree_graph *graph, struct ree_mapping *out, size_t n) {
    for (size_t i = 0; i < graph->n_values; i++) {
        const struct ree_value *v = graph->values[i];
        if (v->data && v->nbytes >= 16384)
            out[n++] = (struct ree_mapping){
                .data = (unsigned char *)(uintptr_t)v->data, .size = v->nbytes, .is_file = true};
    }
    for (size_t i = 0; i < graph->n_nodes; i++)
        for (size_t k = 0; k < graph->nodes[i]->n_attrs; k++)
            if (graph->nodes[i]->attrs[k].graph)
                n = find_large(graph->nodes[i]->attrs[k].graph, out, n);
    return n;
}

static void test_pages(void) {
    struct ree_error err = {0};
    static char text[1 << 17], one[1 << 15], other[1 << 15];
    size_t at = 0, end = 0;
    for (int i = 0; i < 4096; i++) {
        at += (size_t)snprintf(one + at, sizeof one - at, " %d", i % 9 - 4);
        end += (size_t)snprintf(other + end, sizeof other - end, " %d", i % 7 - 3);
    }
    snprintf(text, sizeof text,
             "(go:bool[], x:float32[1,64]) -> (y) {"
             "  w = Constant() {value=<float32[64,64]%s>}"
             "  a = MatMul(x, w)"
             "  b = If(go) {then_branch=() -> (t) { v = Constant() {value=<float32[64,64]%s>} t = "
             "MatMul(a, v) }, else_branch=() -> (e) { e = MatMul(a, w) }}"
             "  c = Sin(b) y = MatMul(c, w) }",
             one, other);
    struct ree_model *model = load(text);
    // Treats the constants as file mappings, whose pages the stages record. The pipeline must not
    // run: a stage would release these pages, and they would not be read again from a file.
    struct ree_mapping files[8], *own = model->graph->mappings;
    size_t n = find_large(model->graph, files, 0);
    CHECK_MSG(n == 2, "%zu large constants", n);
    for (size_t i = 0; i + 1 < n; i++)
        files[i].next = &files[i + 1];
    model->graph->mappings = files;
    struct ree_pipeline *p;
    struct ree_pipeline_options options = {.n_stages = 2, .max_memory = 1 << 20};
    enum ree_status status =
        ree_pipeline_create(model, &device, 1, &options, NULL, 0, REE_NO_INPUT, &p, &err);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    for (size_t i = 0; status == REE_OK && i < n; i++)
        CHECK_MSG(has_range(p, files[i].data), "the pages of constant %zu are not known", i);
    if (status == REE_OK) ree_pipeline_destroy(p);
    model->graph->mappings = own;
    ree_model_destroy(model);
}

int main(void) {
    struct ree_device_options options = {.size = sizeof options, .n_threads = 1};
    REQUIRE(ree_device_open("cpu", &options, &device, NULL) == REE_OK);
    for (size_t n_stages = 1; n_stages <= 3; n_stages++)
        for (int is_limit = 0; is_limit < 2; is_limit++)
            test_reservations(n_stages, is_limit != 0);
    for (size_t n_stages = 1; n_stages <= 3; n_stages++)
        test_half_grown(n_stages);
    test_copies();
    test_copies_and_caches();
    test_observed(1);
    test_observed(2);
    test_read_in_branch();
    test_pages();
    ree_device_destroy(device);
    return test_finish();
}
