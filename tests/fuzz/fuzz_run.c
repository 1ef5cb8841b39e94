// Complete runs of small models: arbitrary bytes are loaded, lowered and executed on the CPU with
// inputs made from the declared shapes. The same model must give the same outputs, or the same
// error
//
//     in a second run with the bind of the first run
//     with 2 threads and portable kernels as with 1 thread and the machine's best kernels
//     with folding and fusion as without; here only outputs are compared, because errors name the
//     nodes that run
//
// The model is also divided among ranks, which must work or be refused (graph/share).
//
// The metadata "seed" of a model decides the values of its inputs. If the environment variable
// REE_FUZZ_VERBOSE is set, outputs and errors are printed. A budget bounds the work of a run
// (budget_device.h); constants are folded only if the run without folding stayed within the budget.
//
//     cmake --preset fuzz && cmake --build build-fuzz --target fuzz_run fuzz_seeds
//     build-fuzz/tests/fuzz/fuzz_run -max_len=8192 FOLDER build-fuzz/tests/fuzz/runs
#include "budget_device.h"
#include "replay.h"
#include "run_inputs.h"

#include "graph/share/share.h"
#include "session/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORK ((uint64_t)1 << 21)
#define BYTES ((uint64_t)8 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

// A huge size from a hostile model must be refused, or the allocation must fail quickly: tables
// that are made while a model is bound are in no device's budget.
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void) {
    return "allocator_may_return_null=1:max_allocation_size_mb=32";
}

bool fuzz_accepted; // the model ran within the budget

static struct budget_device one, two;

struct result {
    enum ree_status status;
    char message[REE_ERROR_MAX];
    char sha256[65];
};

static void must(bool ok, const char *what) {
    if (ok) return;
    fprintf(stderr, "fuzz_run: %s\n", what);
    abort();
}

static void must_say(enum ree_status status, const struct ree_error *err) {
    if (status == REE_INTERNAL) fprintf(stderr, "%s\n", err->message);
    must(err->status == status && err->message[0] && status != REE_INTERNAL,
         "an error of ree itself, or one without a message");
}

static void open_devices(void) {
    static bool opened;
    if (opened) return;
    opened = true;
    budget_device_open(&one, &(struct ree_device_options){.size = sizeof(struct ree_device_options),
                                                          .n_threads = 1,
                                                          .cache_dir = ""});
    budget_device_open(&two, &(struct ree_device_options){.size = sizeof(struct ree_device_options),
                                                          .n_threads = 2,
                                                          .cpu_isa = "portable",
                                                          .cache_dir = ""});
}

static void run(struct ree_session *session, const struct ree_model *model,
                const struct run_inputs *inputs, struct result *out) {
    struct ree_error err = {.message = ""};
    size_t n = ree_model_n_outputs(model);
    struct ree_tensor *outputs = calloc(n + 1, sizeof *outputs);
    must(outputs != NULL, "out of memory");
    *out = (struct result){0};
    out->status = ree_session_run(session, inputs->tensors, inputs->n, outputs, &err);
    if (out->status == REE_OK) {
        ree_tensors_sha256(outputs, n, out->sha256);
        for (size_t i = 0; i < n; i++)
            ree_tensor_finish(&outputs[i]);
    } else {
        must_say(out->status, &err);
        snprintf(out->message, sizeof out->message, "%s", err.message);
    }
    free(outputs);
}

static void compare(const char *what, const struct result *a, const struct result *b) {
    if (a->status == b->status && strcmp(a->message, b->message) == 0 &&
        strcmp(a->sha256, b->sha256) == 0)
        return;
    fprintf(stderr, "%s:\n  %s%s\n  %s%s\n", what, a->sha256, a->message, b->sha256, b->message);
    abort();
}

// Runs the model on a device, with `twice` two times in one session. Returns false if it exceeds
// the budget or memory ran out.
static bool run_on(struct budget_device *device, struct ree_model *model, bool no_fuse, bool twice,
                   const struct run_inputs *inputs, struct result *out) {
    struct ree_session_options options = {.size = sizeof options, .no_fuse = no_fuse};
    struct ree_session *session;
    struct ree_error err = {.message = ""};
    budget_device_refill(device, WORK, BYTES);
    enum ree_status status = ree_session_create(model, &device->base, &options, &session, &err);
    if (status != REE_OK) must_say(status, &err);
    must(status == REE_OK, "a model that was loaded gets no session");
    run(session, model, inputs, out);
    if (getenv("REE_FUZZ_VERBOSE")) printf("%s%s\n", out->sha256, out->message);
    bool small = !device->exceeded && out->status != REE_NO_MEMORY;
    if (twice && small) {
        struct result again;
        budget_device_refill(device, WORK, BYTES);
        run(session, model, inputs, &again);
        small = !device->exceeded && again.status != REE_NO_MEMORY;
        if (small) compare("the second run differs from the first", out, &again);
    }
    ree_session_destroy(session);
    return small;
}

// Returns the model; NULL if it is refused or memory ran out.
static struct ree_model *load(const uint8_t *bytes, size_t size, bool no_fold) {
    struct ree_model *model;
    struct ree_error err = {.message = ""};
    struct ree_model_options options = {.size = sizeof options, .no_fold = no_fold};
    enum ree_status status = ree_model_load_memory(bytes, size, &options, &model, &err);
    must((status == REE_OK) == (model != NULL), "a status that does not fit");
    if (status != REE_OK) must_say(status, &err);
    // A model that loads without folding must also load with folding.
    must(no_fold || status == REE_OK || status == REE_NO_MEMORY, "it loads only unfolded");
    if (status != REE_OK && getenv("REE_FUZZ_VERBOSE")) printf("not loaded: %s\n", err.message);
    return model;
}

static uint32_t seed_of(const struct ree_model *model) {
    const char *text = ree_model_metadata(model, "seed");
    uint32_t hash = 1;
    for (; text && *text; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash;
}

// Runs before the first input, because the time of an input is limited.
int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    open_devices();
    return 0;
}

// Divides the model among ranks, as if its inputs with the first size of the first input were
// samples. Most models are refused.
static void divide(struct ree_model *model) {
    const struct ree_value *data[4];
    struct ree_error err = {.message = ""};
    struct ree_share_options options = {.data = data};
    for (size_t i = 0; i < model->n_inputs && options.n_data < 4; i++) {
        const struct ree_port *port = &model->inputs[i];
        if (!port->has_shape || !port->rank || port->kind != REE_TENSOR) continue;
        if (!options.n_data) options.batch = port->dims[0];
        if (port->dims[0] == options.batch) data[options.n_data++] = model->input_values[i];
    }
    if (options.batch < 2 || ree_model_infer_always(model->graph, &err) != REE_OK) return;
    for (int rank = 0; rank < 2; rank++) {
        struct ree_share share;
        options.begin = rank ? options.batch / 2 : 0;
        options.end = rank ? options.batch : options.batch / 2;
        enum ree_status status = ree_share_make(model->graph, &options, &share, &err);
        must(status == REE_OK || (err.message[0] && status != REE_INTERNAL), err.message);
        ree_share_finish(&share);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    open_devices();
    struct ree_model *plain = load(bytes, size, true);
    struct run_inputs inputs;
    if (!plain) return 0;
    if (run_inputs_make(plain, seed_of(plain), &inputs)) {
        struct result first, second, folded;
        bool small = run_on(&one, plain, true, true, &inputs, &first) &&
                     run_on(&two, plain, true, false, &inputs, &second);
        if (small) compare("2 threads differ from 1", &first, &second);
        fuzz_accepted = small && first.status == REE_OK;
        struct ree_model *model = small ? load(bytes, size, false) : NULL;
        if (model && run_on(&one, model, false, false, &inputs, &folded) &&
            run_on(&two, model, false, true, &inputs, &second)) {
            compare("folded and fused, 2 threads differ from 1", &folded, &second);
            if (first.status == REE_OK && folded.status == REE_OK)
                compare("folded and fused differs", &first, &folded);
            must((first.status == REE_OK) == (folded.status == REE_OK),
                 "only folded and fused, or only otherwise, it runs");
        }
        ree_model_destroy(model);
        run_inputs_finish(&inputs);
    }
    divide(plain);
    ree_model_destroy(plain);
    return 0;
}
