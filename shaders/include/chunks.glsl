// The reduction scheme of NUMERICS.md, section 3, one term at a time:
//
//     ReeChunks s = ree_chunks_begin();
//     for (...) ree_chunks_add(s, x);        or ree_chunks_fma(s, a, b);
//     uint sum = ree_chunks_end(s);
//
// Each chunk of 256 terms is accumulated from +0; the chunk results are added in ascending order;
// then +0 is added.
#ifndef REE_GLSL_CHUNKS
#define REE_GLSL_CHUNKS

#include "primitives.glsl"

struct ReeChunks {
    uint acc;   // current chunk
    uint total; // earlier chunks
    uint n;     // terms so far
};

ReeChunks ree_chunks_begin() { return ReeChunks(0u, 0u, 0u); }

// Must be called before each term: if the chunk is full, adds it to the total.
void ree_chunks_turn(inout ReeChunks s) {
#if REE_PLANT == REE_PLANT_REORDERS
    if (REE_FORM_ADD != REE_INTEGER) s.n = 0u;
#endif
    if (s.n != 0u && s.n % REE_CHUNK == 0u) {
        s.total = s.n == REE_CHUNK ? s.acc : ree_add(s.total, s.acc);
        s.acc = 0u;
    }
    s.n++;
}
void ree_chunks_add(inout ReeChunks s, uint x) {
    ree_chunks_turn(s);
    s.acc = ree_add(s.acc, x);
}
void ree_chunks_fma(inout ReeChunks s, uint a, uint b) {
    ree_chunks_turn(s);
    s.acc = ree_fma(a, b, s.acc);
}
// Returns x + 0, the last step, computed on bits: a driver that sees the constant 0 may remove the
// addition.
uint ree_plus_zero(uint x) { return x == REE_SIGN ? 0u : x; }
uint ree_chunks_end(const ReeChunks s) {
    return ree_plus_zero(s.n <= REE_CHUNK ? s.acc : ree_add(s.total, s.acc));
}

#endif
