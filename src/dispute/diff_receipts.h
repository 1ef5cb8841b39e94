// Compares what two receipts state about their runs.
#ifndef REE_DISPUTE_DIFF_RECEIPTS_H
#define REE_DISPUTE_DIFF_RECEIPTS_H

#include "receipt/receipt.h"

struct ree_receipt_difference {
    char what[64]; // "weights", "prompt tokens", "seed", "output y", ...
    // The two values, in words for people; names and texts are those of the receipts.
    char detail[256];
};

// Compares all bound fields, in the order of receipt.h. Writes the first `max` differences and
// returns the number of all differences, which may be larger than `max`. Unbound fields are not
// compared.
size_t ree_receipt_diff(const struct ree_receipt *a, const struct ree_receipt *b,
                        struct ree_receipt_difference *out, size_t max);

#endif
