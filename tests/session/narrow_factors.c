// Products whose operands were widened from float16 or bfloat16: with fusion, a matmul reads the
// narrow operand itself. Every instruction set gives the bits of the portable kernels without
// fusion. The map that widens is gone if nothing else reads it.
#include <stdio.h>
#include <string.h>

#include "graph/model_text.h"
#include "ree.h"
#include "test.h"

// In each model, h is narrow and f the same, widened.
static const struct {
    const char *name, *text;
    uint32_t n_maps, n_narrow; // with fusion: maps, and products with a narrow operand
} models[] = {
    {"one product",
     "(x:float32[9,40], w:float32[40,33]) -> (y) {"
     "  s = Sin(x) h = Cast(s) {to=%d} f = Cast(h) {to=1} y = MatMul(f, w) }",
     1, 1},
    {"the second factor",
     "(x:float32[40,33], w:float32[9,40]) -> (y) {"
     "  s = Sin(x) h = Cast(s) {to=%d} f = Cast(h) {to=1} y = MatMul(w, f) }",
     1, 1},
    {"two products, and a sum that reads the wide factor",
     "(x:float32[9,40], w:float32[40,40]) -> (y) {"
     "  s = Sin(x) h = Cast(s) {to=%d} f = Cast(h) {to=1} v = Neg(w) a = MatMul(f, w) b = "
     "MatMul(f, v)"
     "  c = Add(a, b) y = Add(c, f) }",
     2, 0},
    {"two products with narrow weights",
     "(x:float32[9,40], w:float32[40,40]) -> (y) {"
     "  s = Sin(x) h = Cast(s) {to=%d} f = Cast(h) {to=1} n = Cast(w) {to=%d} u = Cast(n) {to=1}"
     "  v = Transpose(u) {perm=[1,0]} a = MatMul(f, u) b = MatMul(f, v) y = Add(a, b) }",
     2, 2},
    {"both factors from one tensor",
     "(x:float32[40,40], w:float32[1]) -> (y) {"
     "  s = Sin(x) h = Cast(s) {to=%d} f = Cast(h) {to=1} y = MatMul(f, f) }",
     1, 1},
    {"the narrow tensor is an output",
     "(x:float32[9,40], w:float32[40,33]) -> (y, h) {"
     "  s = Sin(x) h = Cast(s) {to=%d} f = Cast(h) {to=1} y = MatMul(f, w) }",
     1, 1},
    {"the wide tensor is an output",
     "(x:float32[9,40], w:float32[40,33]) -> (y, f) {"
     "  s = Sin(x) h = Cast(s) {to=%d} f = Cast(h) {to=1} y = MatMul(f, w) }",
     2, 1},
    {"a transposed part",
     "(x:float32[9,40], w:float32[9,33]) -> (y) {"
     "  s = Sin(x) h = Cast(s) {to=%d} f = Cast(h) {to=1} t = Transpose(f) {perm=[1,0]}"
     "  y = MatMul(t, w) }",
     1, 1},
    {"rounded after the product, and again",
     "(x:float32[9,40], w:float32[40,40]) -> (y) {"
     "  s = Sin(x) h = Cast(s) {to=%d} f = Cast(h) {to=1} a = MatMul(f, w) b = Cast(a) {to=%d}"
     "  c = Cast(b) {to=1} y = MatMul(c, w) }",
     1, 2},
};

struct program {
    uint32_t n_maps, n_narrow; // maps, and products with a narrow operand
};

static void count(void *user, const char *title, const char *text) {
    struct program *program = user;
    if (strcmp(title, "lowered") != 0) return;
    for (const char *line = text; (line = strstr(line, "\n")); line++) {
        char op[32] = "";
        sscanf(line + 1, "%*u %31s", op);
        const char *end = strchr(line + 1, '\n');
        program->n_maps += !strcmp(op, "map");
        if (strcmp(op, "matmul") != 0 || !end) continue;
        const char *narrow = strstr(line, "float16");
        program->n_narrow += narrow && narrow < end;
    }
}

static void run(const char *text, struct ree_device *device, bool fuse, char hash[65],
                struct program *program) {
    struct ree_error err = {.message = ""};
    struct ree_session_options options = {
        .size = sizeof options, .no_fuse = !fuse, .on_program = count, .user = program};
    struct ree_model *model;
    struct ree_session *session;
    struct ree_tensor inputs[2], outputs[2];
    struct pb bytes = model_text(text);
    memset(program, 0, sizeof *program);
    REQUIRE(ree_model_load_memory(bytes.data, bytes.size, NULL, &model, &err) == REE_OK);
    REQUIRE(ree_session_create(model, device, &options, &session, &err) == REE_OK);
    uint32_t state = 3;
    for (size_t i = 0; i < 2; i++) {
        const struct ree_port *port = ree_model_input(model, i);
        REQUIRE(ree_tensor_init(&inputs[i], port->name, REE_F32, port->rank, port->dims, &err) ==
                REE_OK);
        for (size_t k = 0; k < inputs[i].nbytes / sizeof(float); k++)
            ((float *)inputs[i].data)[k] =
                (float)(int32_t)(state = state * 1664525u + 1013904223u) * 0x1p-30f;
    }
    REQUIRE(ree_session_run(session, inputs, 2, outputs, &err) == REE_OK);
    ree_tensors_sha256(outputs, ree_model_n_outputs(model), hash);
    for (size_t i = 0; i < ree_model_n_outputs(model); i++)
        ree_tensor_finish(&outputs[i]);
    for (size_t i = 0; i < 2; i++)
        ree_tensor_finish(&inputs[i]);
    ree_session_destroy(session);
    ree_model_destroy(model);
    pb_free(&bytes);
}

int main(void) {
    static const char *const isas[] = {"portable", "avx2", "avx512", "neon"};
    static const int types[] = {REE_F16, REE_BF16};
    struct ree_device *devices[4];
    size_t n_devices = 0;
    for (size_t i = 0; i < 4; i++) {
        struct ree_error err = {.message = ""};
        struct ree_device_options options = {
            .size = sizeof options, .n_threads = 2, .cpu_isa = isas[i]};
        if (ree_device_open("cpu", &options, &devices[n_devices], &err) == REE_OK)
            n_devices++;
        else // this machine lacks the instruction set
            CHECK_MSG(i > 0 && err.status == REE_UNAVAILABLE, "%s: %s", isas[i], err.message);
    }
    REQUIRE(n_devices > 0);
    for (size_t m = 0; m < sizeof models / sizeof *models; m++)
        for (size_t t = 0; t < 2; t++) {
            char text[1000], expected[65], hash[65];
            snprintf(text, sizeof text, models[m].text, types[t], types[t]);
            struct program program;
            run(text, devices[0], false, expected, &program);
            CHECK_MSG(program.n_narrow == 0, "%s: narrow without fusion", models[m].name);
            for (size_t i = 0; i < n_devices; i++) {
                run(text, devices[i], true, hash, &program);
                CHECK_MSG(!strcmp(hash, expected), "%s, %s, %s: other bits", models[m].name,
                          ree_dtype_name((enum ree_dtype)types[t]), ree_device_name(devices[i]));
                CHECK_MSG(program.n_maps == models[m].n_maps &&
                              program.n_narrow == models[m].n_narrow,
                          "%s: %u maps, %u products with a narrow factor", models[m].name,
                          program.n_maps, program.n_narrow);
            }
        }
    for (size_t i = 0; i < n_devices; i++)
        ree_device_destroy(devices[i]);
    return test_finish();
}
