// Compares what two receipts state about their runs: ree_receipt_diff (ree/audit.h). It compares
// all bound fields, in the order of receipt.h, but no unbound fields.
#ifndef REE_DISPUTE_DIFF_RECEIPTS_H
#define REE_DISPUTE_DIFF_RECEIPTS_H

#include "receipt/receipt.h"

#endif
