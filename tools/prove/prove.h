// ree-prove evaluates each one-argument function for all 2^32 arguments and compares the results
// with an oracle that shares no code with the functions: the C library's double function, trusted
// to 2^-45, and MPFR if that leaves the rounding to float in doubt.
#ifndef REE_TOOLS_PROVE_H
#define REE_TOOLS_PROVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROVE_BLOCK 4096       // arguments evaluated together
#define PROVE_SLICE (1u << 24) // arguments per unit of work and per record of the state file
#define PROVE_N_SLICES 256
#define PROVE_HARD 48 // hard cases kept per function

enum prove_form { PROVE_C, PROVE_INTEGER };

struct prove_function {
    const char *name;
    // evaluate PROVE_BLOCK values; indexed by prove_form
    void (*forms[2])(const uint32_t *restrict x, uint32_t *restrict y);
    const char *digests[2]; // digest of the sources of each form
    const char *bodies[2];  // implementation of each form: "double", "integer"
    double (*reference)(double x);
};
extern const struct prove_function prove_functions[];
extern const size_t prove_n_functions;

// An argument whose result is hard to round: the exact value is `distance` ulps of the result away
// from a tie.
struct prove_hard_case {
    uint32_t x, y;
    double distance;
};

struct prove_counts {
    uint64_t inputs, mismatches, settled_by_mpfr;
    struct prove_hard_case hard[PROVE_HARD]; // sorted, nearest to a tie first
    size_t n_hard;
    uint32_t wrong_x[16], wrong_y[16], wrong_expected[16]; // the first mismatches
};

// Adds the counts and merges the hard cases and mismatches.
void prove_counts_add(struct prove_counts *into, const struct prove_counts *from);

// Compares n results y for the arguments x; n is at most PROVE_BLOCK. Thread-safe if each thread
// has its own counts.
void prove_check(size_t function, const uint32_t *x, const uint32_t *y, size_t n,
                 struct prove_counts *counts);

struct prove_options {
    size_t function;
    enum prove_form form;
    uint32_t from, to; // range of arguments, both inclusive, widened to whole slices
    int n_threads;
    const char *state; // file of finished slices; NULL: none
    bool quiet;
};
// Returns false if the state file cannot be used; prints the reason.
bool prove_walk(const struct prove_options *options, struct prove_counts *out_counts);
// Reads the results from the state file without walking. Returns false if they are incomplete.
bool prove_read_state(const struct prove_options *options, struct prove_counts *out_counts);

#endif
