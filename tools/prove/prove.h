// ree-prove evaluates each one-argument elementary function for all 2^32 float32 arguments and
// compares the results with an oracle that shares no code with the functions. The oracle is the C
// library's function in double, whose relative error is assumed to be at most 2^-45. If this error
// leaves the rounding to float32 in doubt, MPFR decides.
#ifndef REE_TOOLS_PROVE_H
#define REE_TOOLS_PROVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROVE_BLOCK 4096       // number of arguments per call of an evaluating function
#define PROVE_SLICE (1u << 24) // arguments per unit of work and per record of the state file
#define PROVE_N_SLICES 256
#define PROVE_HARD 48 // maximum number of hard cases kept per function

enum prove_form { PROVE_C, PROVE_INTEGER };

struct prove_function {
    const char *name;
    // Evaluate the function for PROVE_BLOCK arguments x; arguments and results are float32 bits.
    // Indexed by enum prove_form.
    void (*forms[2])(const uint32_t *restrict x, uint32_t *restrict y);
    const char *digests[2]; // digest (hexadecimal) of the source files of each form
    const char *bodies[2];  // arithmetic of each form: "native", "double" or "integer"
    double (*reference)(double x);
};
extern const struct prove_function prove_functions[];
extern const size_t prove_n_functions;

// An argument x whose result y is hard to round (float32 bits). The exact value is near a tie, the
// midpoint of two neighbouring floats; distance: its distance from the tie in ulps of the result.
struct prove_hard_case {
    uint32_t x, y;
    double distance;
};

struct prove_counts {
    uint64_t inputs, mismatches, settled_by_mpfr;
    struct prove_hard_case hard[PROVE_HARD]; // the hardest cases, nearest to a tie first
    size_t n_hard;
    // The first mismatches: arguments, computed results, correct results (float32 bits).
    uint32_t wrong_x[16], wrong_y[16], wrong_expected[16];
};

// Adds the counts of `from` to `into`, and merges its hard cases and mismatches into those of
// `into`.
void prove_counts_add(struct prove_counts *into, const struct prove_counts *from);

// Compares n results y of prove_functions[function] for the arguments x with the oracle, and adds
// the findings to *counts. n must be at most PROVE_BLOCK. Thread-safe if each thread has its own
// counts.
void prove_check(size_t function, const uint32_t *x, const uint32_t *y, size_t n,
                 struct prove_counts *counts);

struct prove_options {
    size_t function;
    enum prove_form form;
    uint32_t from, to; // range of arguments (float32 bits, inclusive), widened to whole slices
    int n_threads;
    const char *state; // path of the state file, which records finished slices; NULL: none
    bool quiet;
};
// Evaluates and compares all arguments of the range that the state file does not record as
// finished. *out_counts includes the recorded slices. If the state file cannot be read or written,
// prints the reason and returns false.
bool prove_walk(const struct prove_options *options, struct prove_counts *out_counts);
// Reads the results of a function's form from the state file and computes nothing. Returns false if
// not all 2^32 arguments are recorded.
bool prove_read_state(const struct prove_options *options, struct prove_counts *out_counts);

#endif
