#include "run_products.h"

#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#define GUARD 256 // bytes before and after an output
#define SENTINEL 0xA5
#define MAX_THREADS 3
// With sanitizers only the largest number of threads, the run without dot products, and the model.
#define FIRST_WAY (TEST_SANITIZED ? MAX_THREADS - 1 : 0)

static char difference[256];

// Checks the guards, except the bytes up to the next multiple of 4, which a kernel may write.
static bool guards_intact(const uint8_t *memory, size_t nbytes) {
    for (size_t i = 0; i < GUARD; i++)
        if (memory[i] != SENTINEL) return false;
    for (size_t i = (nbytes + 3) & ~(size_t)3; i < nbytes + GUARD; i++)
        if (memory[GUARD + i] != SENTINEL) return false;
    return true;
}

static bool run_one(const struct ree_cpu_context *ctx, enum ree_repop op,
                    const union ree_params *params, void **operands, uint32_t n_operands,
                    const uint8_t *expected, size_t nbytes, uint8_t *memory) {
    struct ree_error err;
    memset(memory, SENTINEL, nbytes + 2 * GUARD);
    operands[n_operands] = memory + GUARD;
    enum ree_status status = op == REE_REPOP_MATMUL
                                 ? ree_cpu_matmul(ctx, &params->matmul, operands, &err)
                                 : ree_cpu_conv(ctx, &params->conv, operands, &err);
    int used =
        snprintf(difference, sizeof difference, "%s, %u threads%s: ", ree_cpu_isa_name(ctx->isa),
                 ctx->n_threads, ctx->packed[1] ? ", packed" : "");
    char *rest = difference + used;
    size_t left = sizeof difference - (size_t)used;
    if (status != REE_OK) {
        snprintf(rest, left, "%s", err.message);
        return false;
    }
    if (!guards_intact(memory, nbytes)) {
        snprintf(rest, left, "wrote outside the output");
        return false;
    }
    for (size_t i = 0; i < nbytes; i++) {
        if (memory[GUARD + i] == expected[i]) continue;
        uint32_t is = 0, should = 0;
        size_t word = i & ~(size_t)3, n = nbytes - word < 4 ? nbytes - word : 4;
        memcpy(&is, memory + GUARD + word, n);
        memcpy(&should, expected + word, n);
        snprintf(rest, left, "byte %zu of %zu: word is %08x, expected %08x", i, nbytes, is, should);
        return false;
    }
    return true;
}

static size_t pack_size(const struct ree_cpu_context *ctx, enum ree_repop op,
                        const union ree_params *params, uint32_t operand) {
    struct ree_cpu_pack_key key;
    if (op == REE_REPOP_MATMUL)
        return ree_cpu_matmul_pack_size(ctx, &params->matmul, operand, &key);
    return operand == 1 ? ree_cpu_conv_pack_size(ctx, &params->conv, &key) : 0;
}

bool run_products_pack(struct ree_cpu_context *ctx, enum ree_repop op,
                       const union ree_params *params, void *const *operands) {
    bool any = false;
    for (uint32_t i = 1; i < REE_CPU_MAX_PACKED; i++) {
        size_t size = pack_size(ctx, op, params, i);
        void *packed = NULL;
        if (size == 0) continue;
        if (posix_memalign(&packed, 64, size) != 0) abort();
        if (op == REE_REPOP_MATMUL)
            ree_cpu_matmul_pack(ctx, &params->matmul, i, operands[i], packed);
        else
            ree_cpu_conv_pack(ctx, &params->conv, operands[i], packed);
        ctx->packed[i] = packed;
        any = true;
    }
    return any;
}

void run_products_unpack(struct ree_cpu_context *ctx) {
    for (int i = 0; i < REE_CPU_MAX_PACKED; i++) {
        free((void *)(uintptr_t)ctx->packed[i]);
        ctx->packed[i] = NULL;
    }
}

const char *run_products(enum ree_repop op, const union ree_params *params, void *const *operands,
                         uint32_t n_operands, const void *expected, size_t nbytes, long *n_runs) {
    void *all[REE_MAX_OPERANDS + 1];
    memcpy(all, operands, n_operands * sizeof *all);
    // Exact size: a sanitizer detects accesses beyond the guards.
    void *allocated = NULL;
    if (posix_memalign(&allocated, 64, nbytes + 2 * GUARD) != 0) return "out of memory";
    uint8_t *memory = allocated;
    bool ok = true;
    for (int isa = 0; isa < REE_N_CPU_ISAS && ok; isa++) {
        if (!ree_cpu_isa_available((enum ree_cpu_isa)isa)) continue;
        for (uint32_t v = FIRST_WAY; v <= MAX_THREADS + 1 && ok; v++) {
            bool no_dot = v == MAX_THREADS;    // without dot products of bytes or bfloat16
            bool model = v == MAX_THREADS + 1; // with a model of a dot product of bfloat16
            if (model && isa != REE_CPU_PORTABLE) continue;
            uint32_t n_threads = no_dot || model ? 1 : v + 1;
            struct ree_cpu_scratch scratch[MAX_THREADS] = {0};
            struct ree_cpu_context ctx = {
                .n_threads = n_threads,
                .isa = (enum ree_cpu_isa)isa,
                .scratch = scratch,
                .thread_grain = 1,
                .no_dot = no_dot,
                .pairs = model ? REE_CPU_PAIRS_MODEL : REE_CPU_PAIRS_WHERE_EXACT,
            };
            ok = run_one(&ctx, op, params, all, n_operands, expected, nbytes, memory);
            ++*n_runs;
            if (ok && run_products_pack(&ctx, op, params, operands)) {
                ok = run_one(&ctx, op, params, all, n_operands, expected, nbytes, memory);
                ++*n_runs;
            }
            run_products_unpack(&ctx);
            for (int i = 0; i < MAX_THREADS; i++)
                ree_cpu_scratch_finish(&scratch[i]);
        }
    }
    free(memory);
    return ok ? NULL : difference;
}
