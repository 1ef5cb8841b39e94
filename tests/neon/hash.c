// Prints a hash of the results of random cases of each RepOp on the CPU's best instruction set;
// products also without dot products of bytes. The hash is the same on every processor.
#include "cases.h"
#include "device/cpu/execute.h"

#include <inttypes.h>
#include <stdio.h>

#define N_CASES 60

static uint64_t hash;

static void add(uint64_t value) { // FNV-1a
    hash = (hash ^ value) * 0x100000001B3u;
}

// Returns whether the case succeeded.
static bool run(const struct test_case *c, bool no_dot, struct ree_cpu_scratch *scratch) {
    struct ree_cpu_context ctx = {
        .n_threads = 1, .isa = ree_cpu_isa_best(), .scratch = scratch, .no_dot = no_dot};
    struct ree_error err;
    void *contents[REE_MAX_OPERANDS];
    for (uint32_t i = 0; i < c->dispatch.n_operands; i++)
        contents[i] = c->contents[i];
    const enum ree_status status = ree_cpu_run_dispatch(&ctx, &c->dispatch, contents, &err);
    add(status);
    // A case with an index out of range fails on every processor; its output is undefined.
    if (status != REE_OK) return false;
    for (uint32_t i = 0; i < c->dispatch.n_operands; i++)
        for (uint64_t b = 0; b < c->dispatch.operands[i].size; b++)
            add(((uint8_t *)contents[i])[b]);
    return true;
}

int main(void) {
    struct ree_cpu_scratch scratch = {0};
    for (int op = 0; op < REE_N_REPOPS; op++) {
        hash = 0xCBF29CE484222325u;
        uint32_t n_done = 0, n_succeeded = 0;
        for (uint64_t seed = 1; n_done < N_CASES; seed++) {
            struct rng rng = {.state = seed * 1000003 + (uint64_t)op};
            struct test_case c;
            if (case_generators[op](&rng, &c)) {
                n_succeeded += run(&c, false, &scratch);
                n_succeeded += run(&c, true, &scratch);
                n_done++;
            }
            test_case_finish(&c);
        }
        if (n_succeeded == 0) {
            fprintf(stderr, "FAILED: no case of %s succeeded\n",
                    ree_repop_name((enum ree_repop)op));
            return 1;
        }
        printf("%s %016" PRIx64 "\n", ree_repop_name((enum ree_repop)op), hash);
    }
    ree_cpu_scratch_finish(&scratch);
    fprintf(stderr, "%s%s\n", ree_cpu_isa_name(ree_cpu_isa_best()),
            ree_cpu_feature_available(REE_CPU_FEATURE_DOTPROD) ? " with dot products" : "");
    return 0;
}
