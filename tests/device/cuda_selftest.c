// Self-tests of CUDA kernels. Kernels with planted faults are detected before any result depends on
// them, and their replacements give the CPU's bytes. What passed is recorded and not tested again
// at the next start.
//
// Usage: cuda_selftest [OP N...]: the driver's kernels of these RepOps have a fault, which N cases
// of each must reveal. Without arguments the kernels have no fault, and the test simulates a faulty
// compiler of expressions.
#include "device/cuda/cuda.h"
#include "device_cases.h"

#include <unistd.h>

static struct ree_error err;

static struct ree_device *open_device(const char *cache_dir) {
    struct ree_device_options options = {.size = sizeof options, .cache_dir = cache_dir};
    struct ree_device *device = NULL;
    CHECK_MSG(ree_cuda_device_open("", &options, &device, &err) == REE_OK, "%s", err.message);
    return device;
}

static size_t n_failed_facts(struct ree_device *device) {
    const struct ree_device_fact *facts;
    size_t n = device->vtable->facts(device, &facts), n_failed = 0;
    for (size_t i = 0; i < n; i++)
        n_failed += strcmp(facts[i].kind, "self-test") == 0 && strcmp(facts[i].name, "failed") == 0;
    return n_failed;
}

static void run_cases(struct ree_device *device, const char *what, enum ree_repop op, uint32_t n) {
    uint32_t n_printed = 0, n_done = 0;
    for (uint64_t seed = 1; n_done < n; seed++) {
        struct rng rng = {.state = seed * 1000003 + (uint64_t)op};
        struct test_case c;
        if (case_generators[op](&rng, &c)) {
            compare_case(device, what, op, seed, &c, &n_printed);
            n_done++;
        }
        test_case_finish(&c);
    }
}

static void finds_fault(enum ree_repop op, uint32_t n) {
    struct ree_device *device = open_device("");
    if (!device) return;
    run_cases(device, "planted", op, n);
    CHECK_MSG(n_failed_facts(device) > 0, "no self-test of %s noticed", ree_repop_name(op));
    device->vtable->destroy(device);
}

// Softmax by columns, by rows, by columns. If only the kernel for rows is wrong, the program's
// second dispatch runs on the host, between two dispatches on the device.
#define SIDE 24
static void mixes_places(void) {
    struct ree_device *device = open_device("");
    REQUIRE(device);
    const struct ree_device_vtable *vt = device->vtable;
    const size_t size = SIDE * SIDE * sizeof(float);
    float values[SIDE * SIDE], expected[4][SIDE * SIDE], results[SIDE * SIDE];
    struct ree_dispatch dispatches[3];
    struct ree_device_buffer *buffers[4];
    for (int i = 0; i < SIDE * SIDE; i++)
        values[i] = (float)(i * 7919 % 1009) / 100.0f;
    memcpy(expected[0], values, size);
    for (uint32_t i = 0; i < 4; i++)
        REQUIRE(vt->buffer_create(device, size, &buffers[i], &err) == REE_OK);
    for (uint32_t d = 0; d < 3; d++) {
        const bool rows = d == 1;
        memset(&dispatches[d], 0, sizeof dispatches[d]);
        dispatches[d].op = REE_REPOP_SOFTMAX;
        dispatches[d].n_operands = 2;
        dispatches[d].n_outputs = 1;
        for (uint32_t o = 0; o < 2; o++)
            dispatches[d].operands[o] = (struct ree_operand){.slot = d + o, .size = size};
        dispatches[d].params.softmax.outer = rows ? SIDE : 1;
        dispatches[d].params.softmax.k = SIDE;
        dispatches[d].params.softmax.inner = rows ? 1 : SIDE;
        REQUIRE(ree_cpu_execute(&dispatches[d], (void *[]){expected[d], expected[d + 1]}, &err) ==
                REE_OK);
    }
    const struct ree_program source = {.dispatches = dispatches, .n_dispatches = 3, .n_slots = 4};
    struct ree_device_program *program;
    REQUIRE(vt->buffer_write(device, buffers[0], 0, values, size, &err) == REE_OK);
    REQUIRE(vt->program_create(device, &source, NULL, NULL, &program, &err) == REE_OK);
    for (int run = 0; run < 2; run++) {
        const struct ree_program_run options = {.measures = run == 1};
        CHECK_MSG(vt->program_run(device, program, buffers, &options, &err) == REE_OK, "%s",
                  err.message);
        CHECK(vt->buffer_read(device, buffers[3], 0, results, size, &err) == REE_OK);
        CHECK(memcmp(results, expected[3], size) == 0);
    }
    double seconds[3];
    CHECK(vt->program_times(device, program, seconds) && seconds[1] >= 0);
    CHECK_MSG(n_failed_facts(device) == 1, "%zu self-tests failed", n_failed_facts(device));
    vt->program_destroy(device, program);
    for (uint32_t i = 0; i < 4; i++)
        vt->buffer_destroy(device, buffers[i]);
    vt->destroy(device);
}

// Faults of a compiler of expressions: it replaces the text `right` in the PTX by `wrong`, which
// has the same length. The PTX of an expression that consists of `op` contains `right`.
static const struct fault {
    const char *right, *wrong;
    enum ree_map_op op;
    enum ree_dtype dtype, out_dtype;
} faults[] = {
    {"add.rn.f32", "sub.rn.f32", REE_MAP_add_f32, REE_F32, REE_F32},
    {"mul.rn.f32", "add.rn.f32", REE_MAP_mul_f32, REE_F32, REE_F32},
    {"div.rn.f32", "mul.rn.f32", REE_MAP_div_f32, REE_F32, REE_F32},
    {"min.f32", "max.f32", REE_MAP_min_f32, REE_F32, REE_F32},
    {"0x7FC00000", "0x7FC00001", REE_MAP_max_f32, REE_F32, REE_F32}, // a NaN
    {"cvt.rmi.f32.f32", "cvt.rpi.f32.f32", REE_MAP_floor_f32, REE_F32, REE_F32},
    {"cvt.rni.f32.f32", "cvt.rzi.f32.f32", REE_MAP_round_f32, REE_F32, REE_F32},
    {"cvt.rzi.s32.f32", "cvt.rzi.u32.f32", REE_MAP_f32_to_i32, REE_F32, REE_I32}, // negative
    {"cvt.rn.f32.s32", "cvt.rn.f32.u32", REE_MAP_i32_to_f32, REE_I32, REE_F32},   // negative
    {"setp.lt.f32", "setp.le.f32", REE_MAP_lt_f32, REE_F32, REE_I32},             // equal numbers
    {"setp.le.s32", "setp.lt.s32", REE_MAP_le_i32, REE_I32, REE_I32},             // equal numbers
    {"bfe.s32", "bfe.u32", REE_MAP_wrap_i8, REE_I32, REE_I32},
    {"add.rn.f64", "sub.rn.f64", REE_MAP_add_f64, REE_F64, REE_F64},
    {"min.s64", "max.s64", REE_MAP_min_i64, REE_I64, REE_I64},
};
static const struct fault *fault;
static uint32_t n_replaced;
static CUresult (*real_load)(CUmodule *, const void *, unsigned, int *, void **);
static CUresult wrong_load(CUmodule *module, const void *image, unsigned n, int *options,
                           void **values) {
    char *text = strdup(image);
    for (char *at = text; at && (at = strstr(at, fault->right)); at++, n_replaced++)
        memcpy(at, fault->wrong, strlen(fault->wrong));
    CUresult result = real_load(module, text ? text : image, n, options, values);
    free(text);
    return result;
}

// x op y, over 500 elements.
#define N_ELEMENTS 500u
static void make_map(struct test_case *c, const struct fault *f) {
    struct rng rng = {.state = 1};
    const uint32_t n_args = ree_map_op_infos[f->op].n_args;
    memset(c, 0, sizeof *c);
    case_begin(c, REE_REPOP_MAP);
    c->dispatch.params.map.expr = (struct ree_expr){
        .rank = 1,
        .dims = {N_ELEMENTS},
        .n_elements = N_ELEMENTS,
        .out_dtype = f->out_dtype,
        .n_operands = n_args,
        .n_instrs = 1,
        .operands = {{REE_EXPR_TENSOR, f->dtype, 0, {1}}, {REE_EXPR_TENSOR, f->dtype, 0, {1}}},
        .instrs = {{(uint16_t)f->op, {0, 1}, {0}}},
    };
    for (uint32_t i = 0; i < n_args; i++)
        case_input(c, &rng, f->dtype, N_ELEMENTS);
    case_output(c, &rng, f->out_dtype, N_ELEMENTS);
}

// The self-test notices each fault, and the map is interpreted: its results are right.
static void interprets(void) {
    for (size_t f = 0; f < sizeof faults / sizeof *faults; f++) {
        struct ree_device *device = open_device("");
        struct test_case c;
        uint32_t n_printed = 0;
        REQUIRE(device);
        struct ree_cuda *cuda = ree_cuda_of(device);
        CHECK_MSG(!cuda->no_jit, "%s", cuda->no_jit_why);
        fault = &faults[f];
        n_replaced = 0;
        real_load = cuda->driver.module_load_ex;
        cuda->driver.module_load_ex = wrong_load;
        make_map(&c, fault);
        compare_case(device, fault->wrong, REE_REPOP_MAP, f, &c, &n_printed);
        test_case_finish(&c);
        CHECK_MSG(n_replaced > 0 && n_failed_facts(device) == 1,
                  "%s for %s, %u times: %zu self-tests noticed", fault->wrong, fault->right,
                  n_replaced, n_failed_facts(device));
        CHECK(!cuda->no_jit && cuda->n_jit_failed == 0);
        device->vtable->destroy(device);
    }
}

// The second start tests nothing again; a start with another environment variable of the driver
// tests everything again.
static void keeps_results(void) {
    char folder[] = "cuda-selftest-XXXXXX", path[64];
    REQUIRE(mkdtemp(folder) != NULL);
    uint32_t n_run[3];
    for (int start = 0; start < 3; start++) {
        if (start == 2) setenv("CUDA_REE_TEST", "another driver", 1);
        struct ree_device *device = open_device(folder);
        REQUIRE(device);
        run_cases(device, "record", REE_REPOP_SOFTMAX, 8);
        run_cases(device, "record", REE_REPOP_MAP, 8);
        n_run[start] = ree_cuda_of(device)->n_tests_run;
        CHECK(n_failed_facts(device) == 0);
        device->vtable->destroy(device);
    }
    unsetenv("CUDA_REE_TEST");
    CHECK_MSG(n_run[0] > 0 && n_run[1] == 0 && n_run[2] == n_run[0], "%u, %u, %u tests were run",
              n_run[0], n_run[1], n_run[2]);
    snprintf(path, sizeof path, "%s/cuda.tests", folder);
    CHECK(unlink(path) == 0 && rmdir(folder) == 0);
}

int main(int argc, char **argv) {
    struct ree_device_options options = {.size = sizeof options, .cache_dir = ""};
    struct ree_device *device;
    if (ree_cuda_device_open("", &options, &device, &err) == REE_UNAVAILABLE)
        return test_skip(err.message);
    device->vtable->destroy(device);
    for (int a = 1; a + 1 < argc; a += 2)
        for (int op = 0; op < REE_N_REPOPS; op++)
            if (strcmp(argv[a], ree_repop_name(op)) == 0)
                finds_fault((enum ree_repop)op, (uint32_t)atoi(argv[a + 1]));
    if (argc > 1 && strcmp(argv[1], "softmax") == 0) mixes_places();
    if (argc == 1) {
        interprets();
        keeps_results();
    }
    return test_finish();
}
