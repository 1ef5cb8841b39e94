#include "run_model.h"

#include "graph/model_text.h"
#include "test.h"

#include <string.h>

#define MAX_OUTPUTS 8

static struct ree_device *devices[2];
static unsigned n_models, every = 1;

bool run_start(int argc, char **argv) {
    struct ree_error err;
    const char *specs[2] = {"cpu", argc > 1 ? argv[1] : NULL};
    if (argc > 2) every = (unsigned)atoi(argv[2]);
    REQUIRE(every > 0);
    for (int i = 0; i < 2 && specs[i]; i++) {
        if (ree_device_open(specs[i], NULL, &devices[i], &err) == REE_OK) continue;
        run_finish();
        if (err.status != REE_UNAVAILABLE) {
            fprintf(stderr, "%s\n", err.message);
            exit(1);
        }
        printf("skipped: %s\n", err.message);
        return false;
    }
    return true;
}

bool run_finish(void) {
    for (int i = 2; i-- > 0;) {
        ree_device_destroy(devices[i]);
        devices[i] = NULL;
    }
    return test_n_failed_ == 0;
}

static void require(enum ree_status status, const char *text, const struct ree_error *err) {
    if (status == REE_OK) return;
    fprintf(stderr, "%s\n%s\n", text, err->message);
    exit(1);
}

void run_model(const char *text, const struct ree_tensor *inputs, size_t n_inputs,
               struct ree_tensor *out) {
    struct pb bytes = model_text(text);
    struct ree_model *model;
    struct ree_error err;
    require(ree_model_load_memory(bytes.data, bytes.size, NULL, &model, &err), text, &err);
    pb_free(&bytes);
    size_t n_out = ree_model_n_outputs(model);
    REQUIRE(n_out <= MAX_OUTPUTS && n_inputs == ree_model_n_inputs(model));
    struct ree_tensor named[16];
    REQUIRE(n_inputs <= 16);
    for (size_t i = 0; i < n_inputs; i++) {
        named[i] = inputs[i];
        named[i].name = (char *)(uintptr_t)ree_model_input(model, i)->name;
    }
    bool is_for_device = n_models++ % every == 0;
    // Step by step only on the CPU: other devices take long to compile.
    for (int run = 0; run < 3; run++) {
        if (!devices[run / 2] || (run == 2 && !is_for_device)) continue;
        struct ree_session_options options = {.size = sizeof options, .no_fuse = run % 2};
        struct ree_session *session;
        struct ree_tensor again[MAX_OUTPUTS], *to = run ? again : out;
        require(ree_session_create(model, devices[run / 2], &options, &session, &err), text, &err);
        require(ree_session_run(session, named, n_inputs, to, &err), text, &err);
        ree_session_destroy(session);
        if (!run) continue;
        for (size_t i = 0; i < n_out; i++)
            CHECK_MSG(tensor_equal(&out[i], &again[i], ree_model_output(model, i)->name),
                      "on %s, %s:\n%s", ree_device_name(devices[run / 2]),
                      run % 2 ? "step by step" : "fused", text);
        tensors_finish(again, n_out);
    }
    ree_model_destroy(model);
}

struct ree_tensor tensor_new(enum ree_dtype dtype, uint32_t rank, const int64_t *dims) {
    struct ree_tensor t;
    REQUIRE(ree_tensor_init(&t, NULL, dtype, rank, dims, NULL) == REE_OK);
    return t;
}

struct ree_tensor tensor_random(uint64_t *seed, uint32_t rank, const int64_t *dims) {
    struct ree_tensor t = tensor_new(REE_F32, rank, dims);
    for (size_t i = 0; i < t.nbytes / sizeof(float); i++) {
        *seed = *seed * 6364136223846793005u + 1442695040888963407u;
        ((float *)t.data)[i] = (float)(int32_t)(*seed >> 32) / 1073741824.0f;
    }
    return t;
}

struct ree_tensor tensor_ints(size_t n, const int64_t *values) {
    int64_t dim = (int64_t)n;
    struct ree_tensor t = tensor_new(REE_I64, 1, &dim);
    memcpy(t.data, values, n * sizeof *values);
    return t;
}

struct ree_tensor tensor_slice(const struct ree_tensor *t, uint32_t axis, int64_t from,
                               int64_t to) {
    int64_t dims[REE_MAX_RANK];
    memcpy(dims, t->dims, sizeof dims);
    dims[axis] = to - from;
    struct ree_tensor out = tensor_new(t->dtype, t->rank, dims);
    size_t inner = ree_dtype_size(t->dtype), outer = 1;
    for (uint32_t i = 0; i < axis; i++)
        outer *= (size_t)t->dims[i];
    for (uint32_t i = axis + 1; i < t->rank; i++)
        inner *= (size_t)t->dims[i];
    size_t n = (size_t)(to - from) * inner;
    for (size_t o = 0; o < outer && n; o++)
        memcpy((char *)out.data + o * n,
               (char *)t->data + (o * (size_t)t->dims[axis] + (size_t)from) * inner, n);
    return out;
}

void tensors_finish(struct ree_tensor *tensors, size_t n) {
    for (size_t i = 0; i < n; i++)
        ree_tensor_finish(&tensors[i]);
}

bool tensor_equal(const struct ree_tensor *a, const struct ree_tensor *b, const char *what) {
    bool same = a->dtype == b->dtype && a->rank == b->rank;
    for (uint32_t i = 0; same && i < a->rank; i++)
        same = a->dims[i] == b->dims[i];
    if (!same) {
        fprintf(stderr, "%s: types or shapes differ\n", what);
        return false;
    }
    if (!a->nbytes || !memcmp(a->data, b->data, a->nbytes)) return true;
    size_t size = ree_dtype_size(a->dtype), i = 0;
    while (!memcmp((char *)a->data + i * size, (char *)b->data + i * size, size))
        i++;
    if (a->dtype == REE_F32)
        fprintf(stderr, "%s: element %zu is %a and %a\n", what, i, (double)((float *)a->data)[i],
                (double)((float *)b->data)[i]);
    else
        fprintf(stderr, "%s: element %zu differs\n", what, i);
    return false;
}

bool slice_equal(const struct ree_tensor *t, uint32_t axis, int64_t from, int64_t to,
                 const struct ree_tensor *b, const char *what) {
    struct ree_tensor part = tensor_slice(t, axis, from, to);
    bool same = tensor_equal(&part, b, what);
    ree_tensor_finish(&part);
    return same;
}
