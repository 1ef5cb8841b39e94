// JIT-generated kernels for expressions (ptx.h). The driver compiles a kernel when a program first
// uses it. The kernel is kept until the device is closed. An expression that the driver cannot
// compile is interpreted. If the driver cannot compile at all, all expressions are interpreted.
#include "device/cuda/cuda.h"
#include "base/log.h"
#include "base/memory.h"
#include "device/cuda/encode.h"
#include "device/cuda/ptx.h"
#include "kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ree_cuda_jit {
    struct ree_cuda_jit *next;
    struct ree_cuda_ptx_key key;
    CUmodule module;
    CUfunction function; // NULL: the driver cannot compile this expression
};

#define MAX_REASONS 8 // facts about expressions that the driver cannot compile

enum { // CUjit_option
    JIT_ERROR_LOG_BUFFER = 5,
    JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
};

static void give_up(struct ree_cuda *cuda, const char *why) {
    cuda->no_jit = true;
    snprintf(cuda->no_jit_why, sizeof cuda->no_jit_why, "%s", why);
}

// Returns whether the driver compiles no PTX at all, or none of this version.
static bool compiles_nothing(CUresult result) {
    return result == CUDA_ERROR_JIT_COMPILER_NOT_FOUND ||
           result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION ||
           result == CUDA_ERROR_JIT_COMPILATION_DISABLED;
}

// Formats "mul_f32, add_f32".
static void list_operations(const struct ree_cuda_ptx_key *key, char *out, size_t size) {
    size_t n = (size_t)snprintf(out, size, "%s", key->n_instrs ? "" : "no operation");
    for (uint32_t i = 0; i < key->n_instrs && n < size; i++)
        n += (size_t)snprintf(out + n, size - n, "%s%s", i ? ", " : "",
                              ree_map_op_infos[key->instrs[i].op].name);
}

// Handles a failed compilation. The reason is the first line of the driver's log or, if that is
// empty, the error's name.
static void note_failure(struct ree_cuda *cuda, const struct ree_cuda_ptx_key *key, CUresult result,
                         char *log) {
    const char *name = NULL;
    char operations[128];
    log[strcspn(log, "\n")] = 0;
    cuda->driver.error_name(result, &name);
    const char *why = *log ? log : name ? name : "the driver cannot compile";
    if (compiles_nothing(result)) {
        give_up(cuda, why);
        return;
    }
    list_operations(key, operations, sizeof operations);
    ree_log(REE_LOG_WARNING, "%s cannot compile an expression, which is interpreted: %s: %s",
            cuda->base.name, operations, why);
    if (cuda->n_jit_failed++ < MAX_REASONS)
        ree_facts_add(&cuda->facts, "feature", "not compiled", "%s (%s)", operations, why);
}

// Writes the PTX of a kernel to *text, which the call initialises.
static enum ree_status write_ptx(const struct ree_cuda_ptx_key *key, struct ree_strbuf *text,
                                 struct ree_error *err) {
    ree_strbuf_init(text);
    // A build without kernels runs only on the tests' emulator, which contains the functions.
    const char *functions = ree_cuda_functions_ptx ? ree_cuda_functions_ptx : "";
    ree_cuda_ptx_module(key, functions, text);
    if (!text->failed && text->data) return REE_OK;
    ree_strbuf_finish(text);
    return ree_fail(err, REE_NO_MEMORY, "no memory for a program");
}

// Compiles the kernel of jit->key. If the driver cannot compile it, leaves jit->function NULL and
// returns REE_OK. Fails only if memory is exhausted.
static enum ree_status compile(struct ree_cuda *cuda, struct ree_cuda_jit *jit,
                               struct ree_error *err) {
    char log[256] = "";
    int options[] = {JIT_ERROR_LOG_BUFFER, JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    struct ree_strbuf text;
    REE_TRY(write_ptx(&jit->key, &text, err));
    CUresult result = cuda->driver.module_load_ex(&jit->module, text.data, 2, options, values);
    if (result == CUDA_SUCCESS)
        result = cuda->driver.module_function(&jit->function, jit->module, REE_CUDA_PTX_KERNEL);
    ree_strbuf_finish(&text);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return ree_cuda_fail(&cuda->driver, err, result, "cannot compile an expression");
    if (result == CUDA_SUCCESS) return REE_OK;
    jit->function = NULL;
    note_failure(cuda, &jit->key, result, log);
    return REE_OK;
}

static void destroy(struct ree_cuda *cuda, struct ree_cuda_jit *jit) {
    if (jit->module) cuda->driver.module_unload(jit->module);
    ree_free(jit);
}

enum ree_status ree_cuda_jit_map(struct ree_cuda *cuda, const struct ree_dispatch *dispatch,
                                 const struct ree_cuda_expr *prepared, CUfunction *out,
                                 struct ree_error *err) {
    struct ree_cuda_ptx_key key;
    *out = NULL;
    if (cuda->no_jit || dispatch->params.map.expr.n_elements == 0) return REE_OK;
    ree_cuda_ptx_key(dispatch, prepared, &key);
    for (struct ree_cuda_jit *w = cuda->jit; w; w = w->next)
        if (memcmp(&w->key, &key, sizeof key) == 0) {
            *out = w->function;
            return REE_OK;
        }
    struct ree_cuda_jit *fresh = ree_alloc_zeroed(1, sizeof *fresh);
    if (!fresh) return ree_fail(err, REE_NO_MEMORY, "no memory for a program");
    fresh->key = key;
    enum ree_status status = compile(cuda, fresh, err);
    if (status != REE_OK || cuda->no_jit) {
        destroy(cuda, fresh);
        return status;
    }
    fresh->next = cuda->jit;
    cuda->jit = fresh;
    *out = fresh->function;
    return REE_OK;
}

enum ree_status ree_cuda_jit_show(const struct ree_cuda *cuda, CUfunction function,
                                  const struct ree_kernel_sink *sink, bool *out_found,
                                  struct ree_error *err) {
    const struct ree_cuda_jit *jit = cuda->jit;
    while (jit && jit->function != function)
        jit = jit->next;
    *out_found = jit != NULL;
    if (!jit) return REE_OK;
    struct ree_strbuf text;
    REE_TRY(write_ptx(&jit->key, &text, err));
    const struct ree_kernel kernel = {
        .name = REE_CUDA_PTX_KERNEL, .format = "PTX", .code = text.data, .nbytes = text.size};
    sink->each(sink->user, &kernel);
    ree_strbuf_finish(&text);
    return REE_OK;
}

struct ree_cuda_step ree_cuda_jit_step(uint32_t n_elements) {
    const uint32_t of_block = REE_CUDA_PTX_THREADS * REE_CUDA_PTX_WIDTH;
    return (struct ree_cuda_step){
        .kernel = REE_CUDA_map_words, // only for the name in messages
        .threads = REE_CUDA_PTX_THREADS,
        .grid = {(n_elements - 1) / of_block + 1, 1},
    };
}

// Compiles a * exp(b), which calls a function, or a * b, which does not. Sets *out to NULL if the
// driver cannot compile it.
static enum ree_status try_one(struct ree_cuda *cuda, bool calls, CUfunction *out,
                               struct ree_error *err) {
    struct ree_dispatch dispatch = {.op = REE_REPOP_MAP, .n_operands = 3, .n_outputs = 1};
    struct ree_cuda_expr prepared;
    dispatch.params.map.expr = (struct ree_expr){
        .rank = 1,
        .dims = {4},
        .n_elements = 4,
        .out_dtype = REE_F32,
        .n_operands = 2,
        .n_instrs = 1,
        .operands = {{REE_EXPR_TENSOR, REE_F32, 0, {1}}, {REE_EXPR_TENSOR, REE_F32, 0, {1}}},
        .instrs = {{REE_MAP_mul_f32, {0, 1}, {0}}},
    };
    if (calls) {
        struct ree_expr *expr = &dispatch.params.map.expr;
        expr->n_instrs = 2;
        expr->instrs[0] = (struct ree_expr_instr){REE_MAP_exp_f32, {1}, {0}};
        expr->instrs[1] = (struct ree_expr_instr){REE_MAP_mul_f32, {0, 2}, {0}};
    }
    ree_cuda_expr_prepare(&dispatch.params.map.expr, false, &prepared);
    return ree_cuda_jit_map(cuda, &dispatch, &prepared, out, err);
}

// If the driver can compile neither of try_one's expressions, all expressions are interpreted.
static enum ree_status try_driver(struct ree_cuda *cuda, struct ree_error *err) {
    CUfunction function;
    REE_TRY(try_one(cuda, true, &function, err));
    if (function || cuda->no_jit) return REE_OK;
    REE_TRY(try_one(cuda, false, &function, err));
    if (!function) give_up(cuda, "the driver compiles no expression");
    return REE_OK;
}

enum ree_status ree_cuda_jit_init(struct ree_cuda *cuda, struct ree_error *err) {
    const char *form = getenv("REE_CUDA_EXPRESSIONS");
    if (form && strcmp(form, "interpreted") == 0)
        give_up(cuda, "REE_CUDA_EXPRESSIONS is set");
    else
        REE_TRY(try_driver(cuda, err));
    if (cuda->no_jit)
        ree_facts_add(&cuda->facts, "feature", "expressions", "interpreted (%s)", cuda->no_jit_why);
    else
        ree_facts_add(&cuda->facts, "feature", "expressions", "compiled by the driver");
    return REE_OK;
}

void ree_cuda_jit_finish(struct ree_cuda *cuda) {
    while (cuda->jit) {
        struct ree_cuda_jit *next = cuda->jit->next;
        destroy(cuda, cuda->jit);
        cuda->jit = next;
    }
}
