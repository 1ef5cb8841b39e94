// The digest of a kv cache. It is extended position by position, so a step hashes only its new
// positions. NUMERICS.md, "Traces" and "Checkpoints".
#ifndef REE_BASE_CACHE_DIGEST_H
#define REE_BASE_CACHE_DIGEST_H

#include "base/merkle.h"
#include "ree.h"

struct ree_cache_digest {
    uint32_t axis;       // dimension of the positions
    int64_t n_positions; // positions added
    ree_digest digest;
};
// Starts a digest without positions. Only the type and the dims of `tensor` are read.
void ree_cache_digest_begin(struct ree_cache_digest *cache, const struct ree_tensor *tensor,
                            uint32_t axis);
// Adds the positions in `tensor`, which holds no others. Its other dimensions must equal those that
// were passed to ree_cache_digest_begin.
void ree_cache_digest_add(struct ree_cache_digest *cache, const struct ree_tensor *tensor);

#endif
