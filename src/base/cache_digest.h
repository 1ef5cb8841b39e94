// Computes the digest of a kv cache. It is extended position by position, so a step hashes only its
// new positions. NUMERICS.md, "Traces" and "Checkpoints".
#ifndef REE_BASE_CACHE_DIGEST_H
#define REE_BASE_CACHE_DIGEST_H

#include "base/merkle.h"
#include "ree.h"

struct ree_cache_digest {
    uint32_t axis;       // dimension of the tensor that counts positions
    int64_t n_positions; // number of positions added so far
    ree_digest digest;
};
// Starts a digest without positions. Reads only the type and the dimensions of `tensor`; its length
// along `axis` may be any.
void ree_cache_digest_begin(struct ree_cache_digest *cache, const struct ree_tensor *tensor,
                            uint32_t axis);
// Adds all positions of `tensor` after those added before. Its other dimensions must equal those
// that were passed to ree_cache_digest_begin.
void ree_cache_digest_add(struct ree_cache_digest *cache, const struct ree_tensor *tensor);

#endif
