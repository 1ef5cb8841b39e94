// The digest of a kv cache, position by position, so that a step hashes only its new positions.
// NUMERICS.md, "Traces" and "Checkpoints".
#ifndef REE_BASE_CACHE_DIGEST_H
#define REE_BASE_CACHE_DIGEST_H

#include "receipt/merkle.h"
#include "ree.h"

// `tensor` holds only the rows to add. Its other
// dimensions must equal those that were passed to ree_trace_rows_begin.
struct ree_trace_rows {
    uint32_t axis;
    int64_t n_rows;
    ree_digest digest;
};
void ree_trace_rows_begin(struct ree_trace_rows *rows, const struct ree_tensor *tensor,
                          uint32_t axis);
void ree_trace_rows_add(struct ree_trace_rows *rows, const struct ree_tensor *tensor);

#endif
