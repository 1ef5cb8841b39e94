// Loads and checks the indices of gather and scatter. A negative index counts from the end: wrap(x,
// n) = x < 0 ? x + n : x.
#ifndef REE_GLSL_INDEX
#define REE_GLSL_INDEX

#include "ree.glsl"

// Sets `index` to wrap(indices[at], size) and returns true. If indices[at] is outside [-size,
// size), reports it with ree_fault and returns false; `index` then has no meaning.
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
    // size < 2^31. If low + size wraps around, it is in range; otherwise it is 2^31 or more.
    bool ok = negative ? low >= 0x80000000u && index < size : high == 0u && low < size;
    if (!ok) ree_fault(low, high);
    return ok;
}

#endif
