// Compares what two receipts state about their runs.
#ifndef REE_AUDIT_DIFF_RECEIPTS_H
#define REE_AUDIT_DIFF_RECEIPTS_H

#include "receipt/receipt.h"

struct ree_receipt_difference {
    char what[64]; // "weights", "prompt tokens", "seed", "output y", ...
    // The two values, in words for people; names and texts are those of the receipts.
    char detail[256];
};

// Writes at most `max` differences, in the order of the fields in receipt.h, and returns their
// number. Unbound fields are not compared.
size_t ree_receipt_diff(const struct ree_receipt *a, const struct ree_receipt *b,
                        struct ree_receipt_difference *out, size_t max);

#endif
