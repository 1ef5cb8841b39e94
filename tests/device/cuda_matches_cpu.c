// Every RepOp on the first CUDA device gives the CPU's bytes for random cases, and writes nothing
// outside its outputs. Without a GPU the kernels run on the emulator (tests/cuda) that
// $REE_CUDA_DRIVER names. The device properties that encoders use are varied, because their choices
// must not change bits.
//
// Usage: cuda_matches_cpu [N [OP]]: N cases of each RepOp, or only of OP.
#include "device/cuda/cuda.h"
#include "device_cases.h"

// Device properties as encoders see them.
static const struct variant {
    const char *name;
    uint32_t n_multiprocessors, max_shared; // 0: the device's own
    bool interprets; // interprets expressions instead of compiling kernels for them
} variants[] = {
    {"cuda", 0, 0, false},
    {"cuda with expressions interpreted", 0, 0, true},
    {"cuda with one multiprocessor", 1, 0, false},
    {"cuda with many multiprocessors", 200, 0, false},
    {"cuda with little shared memory", 1, 20u << 10, true},
};

int main(int argc, char **argv) {
    // The sanitizers check the encoders; the kernels run without them.
    uint32_t n = argc > 1 ? (uint32_t)atoi(argv[1]) : TEST_SANITIZED ? 12 : 60;
    struct ree_device_options options = {.size = sizeof options};
    struct ree_device *device;
    struct ree_error err;
    enum ree_status status = ree_cuda_device_open("", &options, &device, &err);
    if (status == REE_UNAVAILABLE) return test_skip(err.message);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    if (status != REE_OK) return test_finish();
    struct ree_cuda *cuda = ree_cuda_of(device);
    const uint32_t n_multiprocessors = cuda->limits.n_multiprocessors,
                   max_shared = cuda->limits.max_shared;
    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
        const struct variant *variant = &variants[v];
        cuda->limits.n_multiprocessors =
            variant->n_multiprocessors ? variant->n_multiprocessors : n_multiprocessors;
        cuda->limits.max_shared = variant->max_shared ? variant->max_shared : max_shared;
        cuda->no_jit = variant->interprets;
        compare_cases(device, variant->name, v == 0 ? n : (n + 2) / 3, argc > 2 ? argv[2] : NULL);
        CHECK_MSG(cuda->no_jit == variant->interprets, "%s: %s", variant->name, cuda->no_jit_why);
    }
    CHECK_MSG(cuda->n_jit_failed == 0, "%u expressions were not compiled", cuda->n_jit_failed);
    // No kernel ran without a self-test, and no self-test failed.
    CHECK_MSG(cuda->n_untested == 0, "%u launches were not tested", cuda->n_untested);
    const struct ree_device_fact *facts;
    size_t n_facts = device->vtable->facts(device, &facts);
    for (size_t i = 0; i < n_facts; i++)
        CHECK_MSG(strcmp(facts[i].kind, "self-test") != 0, "self-test: %s: %s", facts[i].name,
                  facts[i].value);
    printf("%u self-tests\n", cuda->n_tests_run);
    ree_device_destroy(device);
    return test_finish();
}
