// Philox4x32-10: random numbers as a function of a counter and a key, after Salmon, Moraes, Dror
// and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011). Each element's number is computed
// independently of the others, so the result does not depend on the thread or device. NUMERICS.md,
// "Random numbers".
#ifndef REE_SCALAR_PHILOX_H
#define REE_SCALAR_PHILOX_H

#include "repops/scalar/u64.h"

struct ree_philox {
    u32 x0, x1, x2, x3;
};
REE_TYPEDEF(ree_philox)

REE_FN ree_philox ree_philox4x32(ree_philox x, u32 key0, u32 key1) {
    for (u32 i = 0u; i < 10u; i++) {
        u64 p = u64_mul32(0xD2511F53u, x.x0), q = u64_mul32(0xCD9E8D57u, x.x2);
        x.x0 = u64_hi(q) ^ x.x1 ^ key0;
        x.x2 = u64_hi(p) ^ x.x3 ^ key1;
        x.x1 = u64_lo(q);
        x.x3 = u64_lo(p);
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return x;
}

// Returns words 0 (low) and 1 (high) of Philox4x32-10 for the 128-bit counter (a, 0) and the 64-bit
// key b. The low word of each number comes first.
REE_FN u64 ree_op_philox_b64(u64 a, u64 b) {
    ree_philox x;
    x.x0 = u64_lo(a);
    x.x1 = u64_hi(a);
    x.x2 = 0u;
    x.x3 = 0u;
    x = ree_philox4x32(x, u64_lo(b), u64_hi(b));
    return REE_U64(x.x1, x.x0);
}

#endif
