// JIT-generated kernels for expressions: which expressions share a kernel, and what happens if the
// driver cannot compile one. cuda_matches_cpu checks that the kernels compute the CPU's bytes.
// Without a GPU they run on the emulator.
//
// Usage: cuda_jit N DIR writes the modules of N random maps to DIR/0.ptx, ..., for
// tests/cuda/jit_ptx_test.py instead of testing, and prints the number of fma operations in each
// map's expression, one per line.
#include "device/cuda/cuda.h"
#include "device/cuda/encode.h"
#include "device/cuda/ptx.h"
#include "cuda_symbol.h"
#include "device_cases.h"
#include "kernels.h"

static int write_modules(uint32_t n, const char *folder) {
    uint32_t n_kernels = 0;
    for (uint64_t seed = 1; n_kernels < n; seed++) {
        struct rng rng = {.state = seed * 104729};
        struct test_case c = {0};
        struct ree_cuda_expr prepared;
        struct ree_cuda_ptx_key key;
        struct ree_strbuf text;
        char path[512];
        if (case_map(&rng, &c) && c.dispatch.params.map.expr.n_elements > 0) {
            for (uint32_t o = 0; o < c.dispatch.n_operands; o++)
                c.dispatch.operands[o].offset = 8 * rng_below(&rng, 3);
            ree_cuda_expr_prepare(&c.dispatch.params.map.expr, false, &prepared);
            ree_cuda_ptx_key(&c.dispatch, &prepared, &key);
            ree_strbuf_init(&text);
            ree_cuda_ptx_module(&key, ree_cuda_functions_ptx ? ree_cuda_functions_ptx : "", &text);
            snprintf(path, sizeof path, "%s/%u.ptx", folder, n_kernels++);
            FILE *file = fopen(path, "w");
            REQUIRE(file && !text.failed);
            REQUIRE(fwrite(text.data, 1, text.size, file) == text.size && fclose(file) == 0);
            ree_strbuf_finish(&text);
            uint32_t n_fma = 0;
            for (uint32_t i = 0; i < key.n_instrs; i++)
                n_fma += key.instrs[i].op == REE_MAP_fma_f32 || key.instrs[i].op == REE_MAP_fma_f64;
            printf("%u\n", n_fma);
        }
        test_case_finish(&c);
    }
    return 0;
}

static uint32_t n_kernels(const struct ree_cuda *cuda) {
    struct list { // the first member of struct ree_cuda_jit
        const struct list *next;
    };
    uint32_t n = 0;
    for (const struct list *w = (const void *)cuda->jit; w; w = w->next)
        n++;
    return n - cuda->n_jit_failed;
}

// x (rows, columns) * scale (columns) + constant
static void make(struct test_case *c, uint32_t rows, uint32_t columns, float constant) {
    struct rng rng = {.state = 1};
    memset(c, 0, sizeof *c);
    case_begin(c, REE_REPOP_MAP);
    struct ree_expr *expr = &c->dispatch.params.map.expr;
    *expr = (struct ree_expr){
        .rank = 2,
        .dims = {rows, columns},
        .n_elements = rows * columns,
        .out_dtype = REE_F32,
        .n_operands = 2,
        .n_instrs = 3,
        .operands = {{REE_EXPR_TENSOR, REE_F32, 0, {(int32_t)columns, 1}},
                     {REE_EXPR_TENSOR, REE_F32, 0, {0, 1}}},
        .instrs = {{REE_MAP_mul_f32, {0, 1}, {0}},
                   {REE_MAP_CONST32, {0}, {0}},
                   {REE_MAP_add_f32, {2, 3}, {0}}},
    };
    memcpy(&expr->instrs[1].imm[0], &constant, sizeof constant);
    case_input(c, &rng, REE_F32, (uint64_t)rows * columns);
    case_input(c, &rng, REE_F32, columns);
    case_output(c, &rng, REE_F32, (uint64_t)rows * columns);
}

static void run(struct ree_device *device, uint32_t rows, uint32_t columns, float constant) {
    struct test_case c;
    make(&c, rows, columns, constant);
    const char *what = run_device_case(device, columns % 4 ? GUARD_8 : GUARD_32, &c);
    CHECK_MSG(!what, "%u x %u: %s", rows, columns, what);
    test_case_finish(&c);
}

static const char *fact(const struct ree_device *device, const char *name) {
    const struct ree_device_fact *facts;
    size_t n = ree_device_facts(device, &facts);
    for (size_t i = 0; i < n; i++)
        if (strcmp(facts[i].name, name) == 0) return facts[i].value;
    return "";
}

static CUresult cannot_compile(CUmodule *module, const void *image, unsigned n_options,
                               int *options, void **values) {
    (void)module, (void)image;
    for (unsigned i = 0; i < n_options; i++)
        if (options[i] == 5) strcpy(values[i], "version 7.1 is too new\nand more");
    return 222; // CUDA_ERROR_UNSUPPORTED_PTX_VERSION
}

// A driver that fails on one expression: the one with a subtraction.
static CUresult (*real_load)(CUmodule *, const void *, unsigned, int *, void **);
static uint32_t n_refused;
static CUresult compiles_most(CUmodule *module, const void *image, unsigned n_options, int *options,
                              void **values) {
    if (!strstr(image, "sub.rn.f32")) return real_load(module, image, n_options, options, values);
    for (unsigned i = 0; i < n_options; i++)
        if (options[i] == 5) strcpy(values[i], "too many registers");
    n_refused++;
    return 218; // CUDA_ERROR_INVALID_PTX
}

static char logged[256];
static void keep_log(void *user, enum ree_log_level level, const char *text) {
    (void)user, (void)level;
    snprintf(logged, sizeof logged, "%s", text);
}

// x - scale is interpreted, x * scale is compiled, and both are right.
static void one_fails(struct ree_device *device) {
    struct ree_cuda *cuda = ree_cuda_of(device);
    real_load = cuda->driver.module_load_ex;
    cuda->driver.module_load_ex = compiles_most;
    ree_set_log(keep_log, NULL);
    const uint32_t before = n_kernels(cuda);
    const enum ree_map_op operations[] = {REE_MAP_sub_f32, REE_MAP_mul_f32, REE_MAP_sub_f32};
    for (uint32_t i = 0; i < 3; i++) {
        struct test_case c;
        make(&c, 3, 40, 1.0f);
        c.dispatch.params.map.expr.n_instrs = 1;
        c.dispatch.params.map.expr.instrs[0].op = (uint16_t)operations[i];
        const char *what = run_device_case(device, GUARD_32, &c);
        CHECK_MSG(!what, "operation %u: %s", i, what);
        test_case_finish(&c);
    }
    ree_set_log(NULL, NULL);
    CHECK_MSG(n_refused == 1, "the driver was asked %u times", n_refused);
    CHECK(!cuda->no_jit && cuda->n_jit_failed == 1);
    CHECK_MSG(n_kernels(cuda) == before + 1, "%u kernels, then %u", before, n_kernels(cuda));
    CHECK_MSG(strcmp(fact(device, "not compiled"), "sub_f32 (too many registers)") == 0, "%s",
              fact(device, "not compiled"));
    CHECK_MSG(strstr(logged, "sub_f32: too many registers"), "%s", logged);
    cuda->driver.module_load_ex = real_load;
}

// Opens the emulated device with another compiler.
static void opens_with(const char *jit, const char *expressions, const char *expression) {
    struct ree_device_options options = {.size = sizeof options};
    struct ree_device *device;
    struct ree_error err;
    REQUIRE(ree_cuda_device_open("", &options, &device, &err) == REE_OK);
    int (*set)(const char *);
    const bool emulated = cuda_symbol(ree_cuda_of(device), "ree_emulator_options", &set);
    ree_device_destroy(device);
    if (!emulated) return;
    REQUIRE(set(jit) == 0 && ree_cuda_device_open("", &options, &device, &err) == REE_OK);
    CHECK_MSG(strcmp(fact(device, "expressions"), expressions) == 0, "%s: %s", jit,
              fact(device, "expressions"));
    CHECK_MSG(strcmp(fact(device, "not compiled"), expression) == 0, "%s: %s", jit,
              fact(device, "not compiled"));
    run(device, 50, 33, 2.0f);
    CHECK(n_kernels(ree_cuda_of(device)) == (strcmp(jit, "jit=plain") == 0 ? 2 : 0));
    ree_device_destroy(device);
    set("jit=on");
}

int main(int argc, char **argv) {
    if (argc > 2) return write_modules((uint32_t)atoi(argv[1]), argv[2]);
    struct ree_device_options options = {.size = sizeof options};
    struct ree_device *device;
    struct ree_error err;
    enum ree_status status = ree_cuda_device_open("", &options, &device, &err);
    if (status == REE_UNAVAILABLE) return test_skip(err.message);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    if (status != REE_OK) return test_finish();
    struct ree_cuda *cuda = ree_cuda_of(device);
    CHECK_MSG(strcmp(fact(device, "expressions"), "compiled by the driver") == 0, "%s",
              fact(device, "expressions"));

    // Sizes, strides and constants are kernel arguments, so another shape reuses the kernel.
    // Whether four neighbours are adjacent in memory is part of the kernel.
    const uint32_t before = n_kernels(cuda);
    run(device, 7, 64, 1.0f);
    CHECK(n_kernels(cuda) == before + 1);
    run(device, 50, 132, -3.0f);
    CHECK(n_kernels(cuda) == before + 1);
    run(device, 50, 33, -3.0f);
    CHECK(n_kernels(cuda) == before + 2);

    one_fails(device);

    // A driver that cannot compile at all: new expressions are interpreted, and the reason is
    // recorded.
    cuda->driver.module_load_ex = cannot_compile;
    run(device, 50, 132, 2.0f); // its kernel already exists
    CHECK(!cuda->no_jit);
    run(device, 1, 5, 2.0f);
    CHECK(cuda->no_jit && strcmp(cuda->no_jit_why, "version 7.1 is too new") == 0);
    run(device, 50, 132, 2.0f);
    ree_device_destroy(device);

    opens_with("jit=plain", "compiled by the driver", "exp_f32, mul_f32 (CUDA_ERROR_INVALID_PTX)");
    opens_with("jit=broken", "interpreted (the driver compiles no expression)",
               "exp_f32, mul_f32 (CUDA_ERROR_INVALID_PTX)");
    opens_with("jit=off", "interpreted (CUDA_ERROR_JIT_COMPILER_NOT_FOUND)", "");

    setenv("REE_CUDA_EXPRESSIONS", "interpreted", 1);
    REQUIRE(ree_cuda_device_open("", &options, &device, &err) == REE_OK);
    CHECK(strstr(fact(device, "expressions"), "interpreted ("));
    run(device, 50, 33, 2.0f);
    CHECK(n_kernels(ree_cuda_of(device)) == 0);
    ree_device_destroy(device);
    return test_finish();
}
