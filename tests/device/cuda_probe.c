// The probe of a CUDA device's arithmetic: a correct device reports each primitive as correct; a
// device that computes a primitive wrongly is refused with a message that names the primitive.
// Without a GPU it runs on the emulator, like cuda_matches_cpu.
#include "device/cuda/cuda.h"
#include "test.h"

#include <string.h>

static const char *const primitives[] = {
    "add",         "mul",          "div",          "sqrt",
    "fma",         "int to float", "float to int", "min, max",
    "compare",     "round",        "float64 add",  "float64 mul",
    "float64 div", "float64 sqrt", "float64 fma",  "float64 and float",
};
#define N_PRIMITIVES (sizeof primitives / sizeof *primitives)

static enum ree_status open_broken(const char *primitive, struct ree_device **device,
                                   struct ree_error *err) {
    struct ree_device_testing testing = {.size = sizeof testing, .break_primitive = primitive};
    const struct ree_device_options options = {.size = sizeof options, .testing = &testing};
    return ree_cuda_device_open("", &options, device, err);
}

int main(void) {
    struct ree_device *device;
    struct ree_error err;
    enum ree_status status = open_broken(NULL, &device, &err);
    if (status == REE_UNAVAILABLE) return test_skip(err.message);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    if (status != REE_OK) return test_finish();

    // Every primitive has a verdict, in this order, based on hundreds of vectors.
    const struct ree_device_fact *facts;
    size_t n = ree_device_facts(device, &facts), n_found = 0;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(facts[i].kind, "primitive")) continue;
        unsigned n_vectors = 0;
        REQUIRE(n_found < N_PRIMITIVES);
        CHECK_MSG(strcmp(facts[i].name, primitives[n_found]) == 0, "%s", facts[i].name);
        CHECK_MSG(sscanf(facts[i].value, "native (right in %u vectors)", &n_vectors) == 1 &&
                      n_vectors >= 700,
                  "%s: %s", facts[i].name, facts[i].value);
        n_found++;
    }
    CHECK_MSG(n_found == N_PRIMITIVES, "%zu verdicts", n_found);
    ree_device_destroy(device);

    for (size_t p = 0; p < N_PRIMITIVES; p++) {
        char expected[64];
        snprintf(expected, sizeof expected, "computes %s wrongly", primitives[p]);
        status = open_broken(primitives[p], &device, &err);
        CHECK_MSG(status == REE_UNSUPPORTED && !device && strstr(err.message, expected), "%s: %s",
                  primitives[p], status ? err.message : "opened");
    }
    status = open_broken("no such primitive", &device, &err);
    CHECK_MSG(status == REE_INVALID && strstr(err.message, "'no such primitive'"), "%s",
              status ? err.message : "opened");
    return test_finish();
}
