// The digest of a kv cache, position by position, so that a step hashes only its new positions.
// NUMERICS.md, "Traces" and "Checkpoints".
#ifndef REE_BASE_CACHE_DIGEST_H
#define REE_BASE_CACHE_DIGEST_H

#include "base/merkle.h"
#include "ree.h"

// `tensor` holds only the positions to add. Its other
// dimensions must equal those that were passed to ree_cache_digest_begin.
struct ree_cache_digest {
    uint32_t axis;
    int64_t n_positions;
    ree_digest digest;
};
void ree_cache_digest_begin(struct ree_cache_digest *positions, const struct ree_tensor *tensor,
                            uint32_t axis);
void ree_cache_digest_add(struct ree_cache_digest *positions, const struct ree_tensor *tensor);

#endif
