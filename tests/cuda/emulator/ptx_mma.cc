// Instructions for tensor cores: ldmatrix and mma, with the fragments of "PTX ISA", section
// "Warp-level matrix instructions".
#include "ptx_lanes.h"

#include "launch.h"

using namespace ree_emulator;

namespace ree_ptx {

// ldmatrix.m8n8: n matrices of eight rows of 16 bytes. Thread l provides the address of row l % 8
// of matrix l / 8, and receives bytes l % 4 * 4 ... + 3 of row l / 4 of each matrix.
void load_matrices(struct warp &w, const struct instr &i, uint32_t lanes) {
    uint32_t words[4][LANES]; // the four words of each thread's address
    uint64_t at[LANES];
    const uint32_t used = i.n == 4 ? ALL_LANES : (1u << 8 * i.n) - 1;
    load_rows(w, i, lanes & used, words, at);
    for (uint32_t m = 0; m < i.n; m++)
        for (uint32_t l = 0; l < LANES; l++)
            row<uint32_t>(w, i.to[m])[l] = words[l % 4][m * 8 + l / 4];
    if (counts_memory()) count_shared(i, at, lanes & used, 16);
}

namespace {

template <class A, class B> void multiply(struct warp &w, const struct instr &i) {
    int32_t a[16][32], b[32][8], c[16][8]; // b: [k][column]
    for (uint32_t l = 0; l < LANES; l++) {
        const uint32_t group = l / 4, place = l % 4;
        for (uint32_t e = 0; e < 16; e++)
            a[group + (e / 4 % 2 ? 8 : 0)][place * 4 + e % 4 + (e >= 8 ? 16 : 0)] =
                (A)(row<uint32_t>(w, i.from[e / 4])[l] >> 8 * (e % 4));
        for (uint32_t e = 0; e < 8; e++)
            b[place * 4 + e % 4 + (e >= 4 ? 16 : 0)][group] =
                (B)(row<uint32_t>(w, i.from[4 + e / 4])[l] >> 8 * (e % 4));
        for (uint32_t e = 0; e < 4; e++)
            c[group + (e >= 2 ? 8 : 0)][place * 2 + e % 2] =
                (int32_t)row<uint32_t>(w, i.from[6 + e])[l];
    }
    for (uint32_t m = 0; m < 16; m++) {
        uint32_t sum[8];
        for (uint32_t n = 0; n < 8; n++)
            sum[n] = (uint32_t)c[m][n];
        for (uint32_t k = 0; k < 32; k++)
            for (uint32_t n = 0; n < 8; n++)
                sum[n] += (uint32_t)(a[m][k] * b[k][n]);
        for (uint32_t n = 0; n < 8; n++)
            c[m][n] = (int32_t)sum[n];
    }
    for (uint32_t l = 0; l < LANES; l++)
        for (uint32_t e = 0; e < 4; e++)
            row<uint32_t>(w, i.to[e])[l] = (uint32_t)c[l / 4 + (e >= 2 ? 8 : 0)][l % 4 * 2 + e % 2];
}

} // namespace

// mma.m16n8k32 of bytes, summed in 32 bits, wrapping around. number: bit 0 = A is signed, bit 1 =
// B.
void multiply_bytes(struct warp &w, const struct instr &i, uint32_t) {
    switch (i.number) {
    case 0: return multiply<uint8_t, uint8_t>(w, i);
    case 1: return multiply<int8_t, uint8_t>(w, i);
    case 2: return multiply<uint8_t, int8_t>(w, i);
    default: return multiply<int8_t, int8_t>(w, i);
    }
}

} // namespace ree_ptx
