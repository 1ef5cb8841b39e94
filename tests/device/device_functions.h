// Compares every one-argument float32 function on devices with the CPU, by bits: for N arguments
// spread over all 2^32 bit patterns, for special values, and for the recorded hard cases.
//
// Usage of the programs that include this file: [N [FUNCTION]]. N is small by default; 2^32 covers
// all arguments.
#ifndef REE_TESTS_DEVICE_DEVICE_FUNCTIONS_H
#define REE_TESTS_DEVICE_DEVICE_FUNCTIONS_H

#include "device/device.h"
#include "repops/scalar/lang.h"
#include "test.h"
#include "device_map.h"

#include <string.h>

#define BATCH (1u << 22)

static const struct {
    enum ree_map_op op;
    uint32_t argument, result;
} hard_cases[] = {
#define REE_HARD_CASE(function, argument, result) {REE_MAP_##function##_f32, argument, result},
#include "repops/scalar/hard_cases.inc"
};
#define N_HARD (sizeof hard_cases / sizeof *hard_cases)

static const uint32_t special[] = {
    0x00000000, 0x80000000, 0x3F800000, 0xBF800000, 0x00000001, 0x80000001, 0x007FFFFF,
    0x00800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC12345,
};
#define N_SPECIAL (sizeof special / sizeof *special)

struct work {
    uint32_t *arguments, *got, *expected;
};

static void run_batch(struct ree_device *device, struct ree_device *cpu, enum ree_map_op op,
                      uint32_t n, struct work *w) {
    struct ree_error err;
    const uint32_t *args[] = {w->arguments};
    enum ree_status status = run_device_map(cpu, op, n, args, w->expected, &err);
    if (status == REE_OK) status = run_device_map(device, op, n, args, w->got, &err);
    CHECK_MSG(status == REE_OK, "%s: %s: %s", device->name, ree_map_op_infos[op].name, err.message);
    if (status != REE_OK) return;
    uint32_t n_wrong = 0, first = 0;
    for (uint32_t i = 0; i < n; i++)
        if (w->got[i] != w->expected[i] && n_wrong++ == 0) first = i;
    CHECK_MSG(n_wrong == 0, "%s: %s: %u of %u differ, %08x gives %08x, the CPU %08x", device->name,
              ree_map_op_infos[op].name, n_wrong, n, w->arguments[first], w->got[first],
              w->expected[first]);
}

static void run_hard(struct ree_device *device, struct ree_device *cpu, enum ree_map_op op,
                     struct work *w) {
    uint32_t n = 0;
    for (size_t i = 0; i < N_SPECIAL; i++)
        w->arguments[n++] = special[i];
    for (size_t i = 0; i < N_HARD; i++)
        if (hard_cases[i].op == op) w->arguments[n++] = hard_cases[i].argument;
    run_batch(device, cpu, op, n, w);
    n = N_SPECIAL;
    for (size_t i = 0; i < N_HARD; i++)
        if (hard_cases[i].op == op) {
            CHECK_MSG(w->got[n] == hard_cases[i].result, "%s: %s(%08x) is %08x, not %08x",
                      device->name, ree_map_op_infos[op].name, hard_cases[i].argument, w->got[n],
                      hard_cases[i].result);
            n++;
        }
}

// Compares the functions on each of the n_devices listed devices. argv is as in "Usage" above.
// open: the function of device.h that opens a device of this kind; it gets the part of the listed
// spec after the colon. Skips devices that are unavailable. Returns the exit code for main.
static int run_device_functions(
    int argc, char **argv, const struct ree_device_listing *list, size_t n_devices,
    enum ree_status (*open)(const char *which, const struct ree_device_options *options,
                            struct ree_device **out, struct ree_error *err)) {
    uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 0) : 4096;
    struct work w = {malloc(BATCH * 4ull), malloc(BATCH * 4ull), malloc(BATCH * 4ull)};
    REQUIRE(w.arguments && w.got && w.expected);
    struct ree_device_options options = {.size = sizeof options, .cache_dir = ""};
    struct ree_device *cpu, *device;
    struct ree_error err;
    REQUIRE(ree_cpu_device_open(&options, &cpu, &err) == REE_OK);
    if (argc > 2) {
        int op = REE_MAP_neg_f32;
        while (op <= REE_MAP_sign_f32 && strcmp(argv[2], ree_map_op_infos[op].name) != 0)
            op++;
        CHECK_MSG(op <= REE_MAP_sign_f32, "there is no function '%s' (exp_f32, ...)", argv[2]);
    }
    for (size_t d = 0; d < n_devices; d++) {
        enum ree_status status = open(strchr(list[d].spec, ':') + 1, &options, &device, &err);
        if (status == REE_UNAVAILABLE) continue;
        CHECK_MSG(status == REE_OK, "%s: %s", list[d].name, err.message);
        if (status != REE_OK) continue;
        for (int op = REE_MAP_neg_f32; op <= REE_MAP_sign_f32; op++) {
            const char *name = ree_map_op_infos[op].name;
            if (ree_map_op_infos[op].n_args != 1) continue;
            if (argc > 2 && strcmp(argv[2], name) != 0) continue;
            run_hard(device, cpu, (enum ree_map_op)op, &w);
            // The multiples of an odd number visit every bit pattern once in 2^32 steps. This
            // number is near 2^32 / golden ratio, so that a few multiples are already spread
            // evenly.
            for (uint64_t i = 0; i < n; i += BATCH) {
                uint32_t m = n - i < BATCH ? (uint32_t)(n - i) : BATCH;
                for (uint32_t j = 0; j < m; j++)
                    w.arguments[j] = (uint32_t)(i + j) * 0x9E3779B1u + 0x3C6EF372u;
                run_batch(device, cpu, (enum ree_map_op)op, m, &w);
            }
        }
        device->vtable->destroy(device);
    }
    cpu->vtable->destroy(cpu);
    free(w.arguments);
    free(w.got);
    free(w.expected);
    return test_finish();
}

#endif
