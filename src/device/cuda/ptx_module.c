// Writes the module of a JIT-generated kernel. The functions that the kernel calls, and their
// tables, are copied from the PTX that nvcc generated from cuda/functions.cu.
#include "device/cuda/ptx.h"

#include <stdio.h>
#include <string.h>

// Returns the line after `at`.
static const char *next_line(const char *at) {
    at += strcspn(at, "\n");
    return *at ? at + 1 : at;
}

static bool starts(const char *at, const char *with) {
    return strncmp(at, with, strlen(with)) == 0;
}

// Appends the function called `name` in nvcc's format: from the line that begins with ".visible
// .func" to the line that begins with "}". Returns false if there is none.
static bool append_function(const char *functions, const char *name, struct ree_strbuf *out) {
    const size_t n = strlen(name);
    for (const char *at = functions; *at; at = next_line(at)) {
        if (!starts(at, ".visible .func")) continue;
        const char *end = next_line(at), *found = strstr(at, name);
        if (!found || found >= end || found[n] != '(' || found[-1] != ' ') continue;
        while (*end && *end != '}')
            end = next_line(end);
        end = next_line(end);
        at += strlen(".visible "); // internal linkage, so that ptxas may inline it
        ree_strbuf_append(out, at, (size_t)(end - at));
        return true;
    }
    return false;
}

// Appends the tables (global arrays) that `text` refers to.
static void append_tables(const char *functions, const char *text, struct ree_strbuf *out) {
    for (const char *at = functions; *at; at = next_line(at)) {
        if (!starts(at, ".global")) continue;
        const char *bracket = at + strcspn(at, "[\n"), *name = bracket;
        char copy[256];
        while (name > at && name[-1] != ' ')
            name--;
        snprintf(copy, sizeof copy, "%.*s", (int)(bracket - name), name);
        if (*bracket == '[' && strstr(text, copy))
            ree_strbuf_append(out, at, (size_t)(next_line(at) - at));
    }
}

static void declare(uint32_t op, struct ree_strbuf *out) {
    const struct ree_map_op_info *info = &ree_map_op_infos[op];
    ree_strbuf_printf(out, ".extern .func (.param .b%d v) " REE_CUDA_PTX_FUNCTION "%s(",
                      info->result == REE_CLASS_D ? 64 : 32, info->name);
    for (uint32_t a = 0; a < info->n_args; a++)
        ree_strbuf_printf(out, "%s.param .b%d a%u", a ? ", " : "",
                          info->args[a] == REE_CLASS_D ? 64 : 32, a);
    ree_strbuf_printf(out, ");\n");
}

void ree_cuda_ptx_module(const struct ree_cuda_ptx_key *key, const char *functions,
                         struct ree_strbuf *out) {
    struct ree_strbuf kernel, bodies;
    bool needs[REE_N_MAP_OPS] = {false};
    ree_strbuf_init(&kernel);
    ree_strbuf_init(&bodies);
    ree_cuda_ptx_write(key, &kernel, needs);
    ree_strbuf_printf(out, ".version 7.1\n.target sm_75\n.address_size 64\n");
    for (uint32_t op = 0; op < REE_N_MAP_OPS; op++) {
        char name[64];
        if (!needs[op]) continue;
        snprintf(name, sizeof name, REE_CUDA_PTX_FUNCTION "%s", ree_map_op_infos[op].name);
        if (!append_function(functions, name, &bodies)) declare(op, &bodies);
    }
    if (bodies.data) {
        append_tables(functions, bodies.data, out);
        ree_strbuf_append(out, bodies.data, bodies.size);
    }
    if (kernel.data) ree_strbuf_append(out, kernel.data, kernel.size);
    out->failed = out->failed || kernel.failed || bodies.failed;
    ree_strbuf_finish(&kernel);
    ree_strbuf_finish(&bodies);
}
