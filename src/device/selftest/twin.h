// The twin of a dispatch: a small, numerically hard problem for the same RepOp with the same types,
// options and expression, plus the result that the CPU computes for it. A backend runs the twin on
// the pipelines or kernels that the dispatch is about to use, and compares bytes.
//
// A twin keeps every property that selects code in a backend: ranks; zero, negative and contiguous
// strides; and what struct ree_twin_size lists. It has a few typical lengths instead of the
// dispatch's lengths. Long sums still have several chunks of 256 terms.
#ifndef REE_DEVICE_SELFTEST_TWIN_H
#define REE_DEVICE_SELFTEST_TWIN_H

#include "device/selftest/hard_values.h"
#include "device/selftest/twin_size.h"
#include "repops/repop.h"

// Part of the keys in the record of self-tests (record.h). Increment it when twins or their
// contents change, so that tests are repeated.
#define REE_TWIN_VERSION 6

struct ree_twin {
    // The small problem. Operand i is slot i. Its offset is 0 or, if ree_twin_size.alignment is
    // set, the original offset modulo 16. `node` is 0.
    struct ree_dispatch dispatch;
    // Bytes of the operands before the run: dispatch.operands[i].size bytes, 64-byte aligned.
    uint8_t *contents[REE_MAX_OPERANDS];
    // Bytes of the operands after the run; NULL if the operand is only read.
    uint8_t *expected[REE_MAX_OPERANDS];
    struct ree_twin_operand *operands; // per operand: how its contents are generated
    // By round and operand: the expected bytes of a round that was filled before; NULL: not filled.
    // A backend may run each round several times, on different code.
    uint8_t *kept[REE_HARD_ROUNDS][REE_MAX_OPERANDS];
};

// Builds the twin without its contents. Fails with REE_UNSUPPORTED if the dispatch has no elements.
// On failure the caller must still call ree_twin_finish.
enum ree_status ree_twin_init(struct ree_twin *twin, const struct ree_dispatch *like,
                              const struct ree_twin_size *size, struct ree_error *err);
// Builds only the twin's dispatch, without memory for its operands.
enum ree_status ree_twin_dispatch(const struct ree_dispatch *like, const struct ree_twin_size *size,
                                  struct ree_dispatch *out, struct ree_error *err);
// Fills contents and expected for one round. A complete test runs rounds 0 to REE_HARD_ROUNDS - 1.
// n_threads: as for ree_cpu_execute_threads.
enum ree_status ree_twin_fill(struct ree_twin *twin, uint32_t round, uint32_t n_threads,
                              struct ree_error *err);
// The first difference between results and expected bytes.
struct ree_twin_difference {
    uint32_t operand;       // index of the operand
    uint64_t byte;          // offset in the operand, a multiple of 4
    uint32_t is, should_be; // the 32-bit words at that offset
};
// Returns whether the results equal the expected bytes; if not, fills *out. results has one pointer
// per operand (not used for operands that the dispatch only reads).
bool ree_twin_matches(const struct ree_twin *twin, void *const *results,
                      struct ree_twin_difference *out);
void ree_twin_finish(struct ree_twin *twin);

#endif
