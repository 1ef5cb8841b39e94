// Two CUDA devices in one process whose threads have other contexts, or none: each device works on
// its own memory, and after every call the calling thread has its own context again. A program that
// loads libree may use CUDA itself. On the emulator this test has two devices, on a machine with
// one GPU it opens that GPU twice.
#include "device/cuda/cuda.h"
#include "cuda_symbol.h"
#include "device_cases.h"

#include <pthread.h>

static CUresult (*get_current)(CUcontext *);
static CUresult (*set_current)(CUcontext);

static CUcontext current(void) {
    CUcontext context = NULL;
    CHECK(get_current(&context) == 0);
    return context;
}

static struct ree_device *open_device(const char *which) {
    struct ree_device_options options = {.size = sizeof options};
    struct ree_device *device = NULL;
    struct ree_error err;
    CHECK_MSG(ree_cuda_device_open(which, &options, &device, &err) == REE_OK, "%s", err.message);
    return device;
}

// Calls the vtable's functions, except `facts` and `destroy`; some calls must fail.
static void use(struct ree_device *device, const char *who) {
    const struct ree_device_vtable *vt = device->vtable;
    const CUcontext own = current();
    struct ree_error err;
    struct ree_device_buffer *large = NULL, *too_large = NULL;
    struct ree_device_program *program = NULL;
    uint32_t word = 7;
    double seconds;
    CHECK_MSG(vt->buffer_create(device, 3 << 20, &large, &err) == REE_OK, "%s: %s", who,
              err.message);
    CHECK(current() == own);
    CHECK(vt->buffer_create(device, UINT64_MAX / 2, &too_large, &err) == REE_NO_MEMORY);
    CHECK(current() == own);
    CHECK_MSG(large && vt->buffer_write(device, large, 8, &word, 4, &err) == REE_OK, "%s: %s", who,
              err.message);
    CHECK(current() == own);
    CHECK(large && vt->buffer_read(device, large, 3 << 20, &word, 4, &err) == REE_INTERNAL);
    CHECK(current() == own);
    for (enum ree_repop op = 0; op < REE_N_REPOPS; op++) {
        struct test_case c = {0};
        uint64_t seed = 1;
        struct rng rng = {.state = seed};
        while (!case_generators[op](&rng, &c)) {
            test_case_finish(&c);
            rng.state = ++seed;
        }
        const char *what = run_device_case(device, GUARD_32, &c);
        CHECK_MSG(!what, "%s, %s: %s", who, ree_repop_name(op), what);
        CHECK_MSG(current() == own, "%s: %s leaves another context", who, ree_repop_name(op));
        test_case_finish(&c);
    }
    const struct ree_dispatch wrong = {.op = REE_N_REPOPS};
    const struct ree_program source = {.dispatches = &wrong, .n_dispatches = 1};
    CHECK(vt->program_create(device, &source, NULL, NULL, &program, &err) != REE_OK);
    CHECK(current() == own);
    const struct ree_program empty = {.n_dispatches = 0};
    CHECK(vt->program_create(device, &empty, NULL, NULL, &program, &err) == REE_OK);
    CHECK_MSG(program && vt->program_run(device, program, NULL, NULL, &err) == REE_OK, "%s: %s",
              who, err.message);
    CHECK(current() == own);
    if (program) vt->program_times(device, program, &seconds);
    CHECK(current() == own);
    vt->program_destroy(device, program);
    vt->buffer_destroy(device, large);
    CHECK(current() == own);
}

static struct ree_device *devices[2];

static void *without_context(void *unused) {
    (void)unused;
    CHECK(current() == NULL);
    use(devices[0], "first device, a thread without a context");
    use(devices[1], "second device, a thread without a context");
    use(devices[0], "first device again");
    return NULL;
}

int main(void) {
    struct ree_device_listing list[2];
    const char *note;
    const char *orders = getenv("REE_EMULATOR");
    char options[128];
    snprintf(options, sizeof options, "%s%sdevices=2", orders ? orders : "", orders ? "," : "");
    setenv("REE_EMULATOR", options, 1); // only the emulator reads it
    const size_t n_devices = ree_cuda_device_list(list, 2, &note);
    if (n_devices == 0) return test_skip(note ? note : "no CUDA device");
    devices[0] = open_device("0");
    devices[1] = open_device(n_devices > 1 ? "1" : "0");
    REQUIRE(devices[0] && devices[1]);
    struct ree_cuda *second = ree_cuda_of(devices[1]);
    REQUIRE(cuda_symbol(second, "cuCtxGetCurrent", &get_current) &&
            cuda_symbol(second, "cuCtxSetCurrent", &set_current));
    CHECK_MSG(current() == NULL, "opening a device leaves its context");

    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, without_context, NULL) == 0);
    pthread_join(thread, NULL);
    REQUIRE(set_current(second->context) == 0);
    use(devices[0], "first device, the second's context");
    use(devices[1], "second device, the second's context");
    CHECK(current() == second->context);
    ree_device_destroy(devices[0]);
    CHECK(current() == second->context);
    REQUIRE(set_current(NULL) == 0);
    ree_device_destroy(devices[1]);
    CHECK(current() == NULL);
    return test_finish();
}
