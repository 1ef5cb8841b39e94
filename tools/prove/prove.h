// ree-prove walks all 2^32 arguments of each one-argument function and compares the result with an
// oracle that shares nothing with the functions: the C library's double function, trusted to
// 2^-45, and MPFR wherever that leaves the rounding to float in doubt.
#ifndef REE_TOOLS_PROVE_H
#define REE_TOOLS_PROVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROVE_BLOCK 4096       // arguments evaluated together
#define PROVE_SLICE (1u << 24) // arguments in one unit of work and of the state file
#define PROVE_N_SLICES 256
#define PROVE_HARD 48 // hard cases kept for each function

enum prove_form { PROVE_C, PROVE_INTEGER };

struct prove_function {
    const char *name;
    void (*forms[2])(const uint32_t *restrict x, uint32_t *restrict y); // PROVE_BLOCK values
    const char *digests[2]; // of the sources of each form
    const char *bodies[2];  // "double", "integer": what the form is made of
    double (*reference)(double x);
};
extern const struct prove_function prove_functions[];
extern const size_t prove_n_functions;

// A rounding that is hard to get right: the exact value lies `distance` units in the last place of
// the result away from a tie.
struct prove_hard_case {
    uint32_t x, y;
    double distance;
};

struct prove_counts {
    uint64_t inputs, mismatches, settled_by_mpfr;
    struct prove_hard_case hard[PROVE_HARD]; // nearest first
    size_t n_hard;
    uint32_t wrong_x[16], wrong_y[16], wrong_expected[16]; // the first mismatches
};

void prove_counts_add(struct prove_counts *into, const struct prove_counts *from);

// Compares the n results y for arguments x, n at most PROVE_BLOCK. May run in several threads.
void prove_check(size_t function, const uint32_t *x, const uint32_t *y, size_t n,
                 struct prove_counts *counts);

struct prove_options {
    size_t function;
    enum prove_form form;
    uint32_t from, to; // arguments, both inclusive, widened to whole slices
    int n_threads;
    const char *state; // file of finished slices; NULL: none
    bool quiet;
};
// Returns false when the state file cannot be used, having said why.
bool prove_walk(const struct prove_options *options, struct prove_counts *out_counts);
// What the state file holds for a function, without walking: false when it is not complete.
bool prove_read_state(const struct prove_options *options, struct prove_counts *out_counts);

#endif
