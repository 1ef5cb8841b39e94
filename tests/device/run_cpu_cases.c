#include "run_cpu_cases.h"

#include "cases.h"
#include "device/cpu/execute.h"
#include "reference.h"
#include "run_products.h"

#include <stdio.h>
#include <stdlib.h>

#define GUARD 256 // bytes before and after an operand, a multiple of 64
#define SENTINEL 0xA5
#define MAX_THREADS 3
#define MAX_PRINTED 10

struct run {
    const struct test_case *c;
    void *expected[REE_MAX_OPERANDS];
    bool faults; // the reference found an index out of range
    char *memory[REE_MAX_OPERANDS];
};

static uint64_t size_of(const struct test_case *c, uint32_t i) {
    return c->dispatch.operands[i].size;
}

static void *allocate(uint64_t size) {
    void *data = aligned_alloc(64, (size + 64) / 64 * 64);
    if (!data) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return data;
}

// Returns a description of what is wrong after a run (static storage), or NULL.
static const char *check(const struct run *run, enum ree_status status,
                         const struct ree_error *err) {
    static char text[256];
    const struct test_case *c = run->c;
    if (run->faults && (status != REE_INVALID || !strstr(err->message, "index ")))
        return "an index out of range went unnoticed";
    if (!run->faults && status != REE_OK) return err->message;
    for (uint32_t i = 0; i < c->dispatch.n_operands; i++) {
        uint64_t size = size_of(c, i);
        const char *is = run->memory[i] + GUARD, *should = run->expected[i];
        for (uint64_t b = 0; b < GUARD; b++) {
            if ((uint8_t)run->memory[i][b] == SENTINEL && (uint8_t)is[size + b] == SENTINEL)
                continue;
            snprintf(text, sizeof text, "operand %u: wrote outside", i);
            return text;
        }
        if (run->faults && c->is_written[i]) continue; // any contents
        if (memcmp(is, should, size) == 0) continue;
        uint64_t at = 0, n = 0;
        while (is[at] == should[at])
            at++;
        at -= at % 4;
        uint32_t words[2] = {0, 0};
        n = size - at < 4 ? size - at : 4;
        memcpy(&words[0], is + at, n);
        memcpy(&words[1], should + at, n);
        snprintf(text, sizeof text, "operand %u, byte %llu of %llu: word is %08x, expected %08x%s",
                 i, (unsigned long long)at, (unsigned long long)size, words[0], words[1],
                 c->is_written[i] ? "" : " (read-only)");
        return text;
    }
    return NULL;
}

static bool run_one(const struct run *run, const struct ree_cpu_context *ctx, bool print,
                    uint64_t seed) {
    const struct test_case *c = run->c;
    void *operands[REE_MAX_OPERANDS];
    for (uint32_t i = 0; i < c->dispatch.n_operands; i++) {
        uint64_t size = size_of(c, i);
        operands[i] = run->memory[i] + GUARD;
        memset(run->memory[i], SENTINEL, GUARD);
        memcpy(operands[i], c->contents[i], size);
        memset((char *)operands[i] + size, SENTINEL, GUARD);
    }
    struct ree_error err = {.message = ""};
    enum ree_status status = ree_cpu_run_dispatch(ctx, &c->dispatch, operands, &err);
    const char *wrong = check(run, status, &err);
    if (wrong && print)
        fprintf(stderr, "%s, seed %llu, %s, %u threads%s: %s\n", ree_repop_name(c->dispatch.op),
                (unsigned long long)seed, ree_cpu_isa_name(ctx->isa), ctx->n_threads,
                ctx->packed[1] ? ", packed" : "", wrong);
    return !wrong;
}

static long run_case(const struct test_case *c, uint64_t seed, struct ree_cpu_scratch *scratch,
                     bool print, long *n_runs) {
    struct run run = {.c = c};
    long n_wrong = 0;
    for (uint32_t i = 0; i < c->dispatch.n_operands; i++) {
        uint64_t size = size_of(c, i);
        run.memory[i] = allocate(size + 2 * GUARD);
        run.expected[i] = allocate(size);
        memcpy(run.expected[i], c->contents[i], size);
    }
    run.faults = !reference_run(&c->dispatch, run.expected);
    for (uint32_t isa = 0; isa < REE_N_CPU_ISAS; isa++) {
        if (!ree_cpu_isa_available((enum ree_cpu_isa)isa)) continue;
        // Varies the number of threads, and for products how pairs of terms are multiplied.
        for (uint32_t v = 0; v <= MAX_THREADS + 1; v++) {
            bool no_dot = v == MAX_THREADS, model = v == MAX_THREADS + 1;
            if (model && isa != REE_CPU_PORTABLE) continue;
            uint32_t n_threads = no_dot || model ? 1 : v + 1;
            bool is_product =
                c->dispatch.op == REE_REPOP_MATMUL || c->dispatch.op == REE_REPOP_CONV;
            if ((no_dot || model) && !is_product) continue;
            struct ree_cpu_context ctx = {
                .n_threads = n_threads,
                .isa = (enum ree_cpu_isa)isa,
                .scratch = scratch,
                .thread_grain = 1, // so that small work is also split
                .no_dot = no_dot,
                .pairs = model ? REE_CPU_PAIRS_MODEL : REE_CPU_PAIRS_WHERE_EXACT,
            };
            ++*n_runs;
            n_wrong += !run_one(&run, &ctx, print && n_wrong == 0, seed);
            if (is_product &&
                run_products_pack(&ctx, c->dispatch.op, &c->dispatch.params, c->contents)) {
                ++*n_runs;
                n_wrong += !run_one(&run, &ctx, print && n_wrong == 0, seed);
            }
            run_products_unpack(&ctx);
        }
    }
    for (uint32_t i = 0; i < c->dispatch.n_operands; i++) {
        free(run.memory[i]);
        free(run.expected[i]);
    }
    return n_wrong;
}

long run_cpu_cases(enum ree_repop op, uint32_t n, long *n_runs) {
    return run_cpu_cases_of(case_generators[op], op, n, n_runs);
}

long run_cpu_cases_of(bool (*generate)(struct rng *rng, struct test_case *out), enum ree_repop op,
                      uint32_t n, long *n_runs) {
    struct ree_cpu_scratch scratch[MAX_THREADS] = {0};
    long n_wrong = 0, n_printed = 0;
    uint32_t n_done = 0, n_faulty = 0;
    *n_runs = 0;
    for (uint64_t seed = 1; n_done < n; seed++) {
        struct rng rng = {.state = seed * 1000003 + (uint64_t)op, .host = true};
        struct test_case c;
        if (generate(&rng, &c)) {
            long wrong = run_case(&c, seed, scratch, n_printed < MAX_PRINTED, n_runs);
            n_printed += wrong > 0;
            n_faulty += wrong > 0;
            n_wrong += wrong;
            n_done++;
        }
        test_case_finish(&c);
    }
    for (uint32_t t = 0; t < MAX_THREADS; t++)
        ree_cpu_scratch_finish(&scratch[t]);
    printf("%s: %u cases, %ld runs, %u cases differ\n", ree_repop_name(op), n, *n_runs, n_faulty);
    return n_wrong;
}
