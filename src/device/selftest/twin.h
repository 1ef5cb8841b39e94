// The twin of a dispatch: the same RepOp with the same types, options and expression, over a small
// problem that is hard to get right, and what the CPU makes of it. A backend runs the twin on the
// pipelines or kernels that the dispatch is about to use, and compares bytes.
//
// A twin keeps every property that selects code in a backend: ranks; zero, negative and contiguous
// strides; what struct ree_twin_size says. Its lengths do not depend on the dispatch's, except by
// the classes below. Sums run over several chunks of 256 terms.
#ifndef REE_DEVICE_SELFTEST_TWIN_H
#define REE_DEVICE_SELFTEST_TWIN_H

#include "device/selftest/hard_values.h"
#include "repops/repop.h"

// Part of a record's keys: another number where twins or their contents change.
#define REE_TWIN_VERSION 5

struct ree_twin_size {
    uint32_t elements;    // of elementwise RepOps, about
    uint32_t columns;     // of a product's result, where the dispatch has as many
    uint32_t length;      // of sums
    uint32_t long_length; // of rows in which the dispatch has long_from elements or more
    uint32_t long_from;
    bool one_chunk; // sums that fit one chunk do so in the twin, too: other code runs then
    // Sizes of 1 stay 1, and few queries as few, also where they select no code. With `alignment`
    // they do so in any case.
    bool keeps_ones;
    uint32_t few_rows;    // products of fewer rows have as many rows in the twin
    uint32_t rows;        // of other products
    uint32_t few_queries; // attention of as many queries of a head, or fewer, likewise
    uint32_t keys;        // of attention; 0: half a row
    // A power of two, or 0 for none of this. The twin keeps: the greatest common divisor with it
    // (or with 16) of lengths, strides and offsets; the place of operands within 16 bytes; the
    // number of chunks of a sum, as far as it is at most 9; what is fewer, or more, than one tile.
    uint32_t alignment;
    bool small; // the device is slow: no tile is full
};

struct ree_twin {
    // Operand i is slot i, at offset 0 or, with ree_twin_size.alignment, below 16. node is 0.
    struct ree_dispatch dispatch;
    // What the operands hold before the run; dispatch.operands[i].size bytes, aligned to 64.
    uint8_t *contents[REE_MAX_OPERANDS];
    // What they hold after it; NULL: the operand is only read.
    uint8_t *expected[REE_MAX_OPERANDS];
    struct ree_twin_operand *operands; // how contents are made
};

// The twin without its contents. REE_UNSUPPORTED where a dispatch has no elements.
enum ree_status ree_twin_init(struct ree_twin *twin, const struct ree_dispatch *like,
                              const struct ree_twin_size *size, struct ree_error *err);
// The dispatch of the twin alone, without its operands' memory.
enum ree_status ree_twin_dispatch(const struct ree_dispatch *like, const struct ree_twin_size *size,
                                  struct ree_dispatch *out, struct ree_error *err);
// Fills contents and expected, others in each round: rounds 0 ... REE_HARD_ROUNDS - 1 are a test.
enum ree_status ree_twin_fill(struct ree_twin *twin, uint32_t round, struct ree_error *err);
// Whether `results`, one pointer for each operand (NULL: was only read), has the expected bytes. If
// not: the first operand and the byte that differs, and the words there.
struct ree_twin_difference {
    uint32_t operand;
    uint64_t byte;
    uint32_t is, should_be;
};
bool ree_twin_matches(const struct ree_twin *twin, void *const *results,
                      struct ree_twin_difference *out);
void ree_twin_finish(struct ree_twin *twin);

#endif
