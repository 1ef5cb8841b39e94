// Index tuples, for gather and scatter: wrap(x, n) = x < 0 ? x + n : x.
#ifndef REE_GLSL_INDEX
#define REE_GLSL_INDEX

#include "ree.glsl"

// index = wrap(indices[at], size). Reports a fault and returns false if the index is outside
// [-size, size).
bool ree_index(ReeWords indices, bool wide, uint at, uint size, out uint index) {
    uint low, high;
    if (wide) {
        uvec2 both = ree_load64(indices, at);
        low = both.x;
        high = both.y;
    } else {
        low = indices.w[at];
        high = uint(int(low) >> 31);
    }
    bool negative = high == 0xFFFFFFFFu;
    index = negative ? low + size : low;
    // size < 2^31: a sum that wraps around is in range; a sum that does not wrap is still negative.
    bool ok = negative ? low >= 0x80000000u && index < size : high == 0u && low < size;
    if (!ok) ree_fault(low, high);
    return ok;
}

#endif
