// Comparing two receipts: what they say of their runs differently.
#ifndef REE_AUDIT_DIFF_RECEIPTS_H
#define REE_AUDIT_DIFF_RECEIPTS_H

#include "receipt/receipt.h"

struct ree_receipt_difference {
    char what[64];    // "weights", "prompt tokens", "seed", "output y", ...
    char detail[256]; // of both, for a person; names and texts as the receipts have them
};

// In the order of the list in receipt.h, at most `max`; returns how many there are. What is unbound
// is not compared.
size_t ree_receipt_diff(const struct ree_receipt *a, const struct ree_receipt *b,
                        struct ree_receipt_difference *out, size_t max);

#endif
