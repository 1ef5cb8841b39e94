// Dot products of bytes: four at a time, and on tensor cores. Sums have 32 bits and wrap around.
#ifndef REE_CUDA_BYTES_H
#define REE_CUDA_BYTES_H

#include "kernel.h"

// Returns c + the dot product of four bytes.
template <bool A_SIGNED, bool B_SIGNED> REE_DEVICE u32 bytes_dot(u32 a, u32 b, u32 c) {
    if (A_SIGNED && B_SIGNED) return (u32)__dp4a((int)a, (int)b, (int)c);
    if (!A_SIGNED && !B_SIGNED) return __dp4a(a, b, c);
    u32 s = A_SIGNED ? a : b, x = A_SIGNED ? b : a;
#ifdef __CUDACC__ // CUDA C has no function for this instruction
    asm("dp4a.s32.u32 %0, %1, %2, %3;" : "=r"(s) : "r"(s), "r"(x), "r"(c));
    return s;
#else
    // An unsigned byte x equals the signed byte (x ^ 128), plus 128.
    return (u32)__dp4a((int)s, (int)(x ^ 0x80808080u), (int)c) +
           128u * (u32)__dp4a((int)s, (int)0x01010101u, 0);
#endif
}

#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800
// Adds 16 x 8 sums of 32 products to those in c. Lane l has, with q = l % 4 and byte e = 0 ... 3,
//   a[0], a[1]   A[l / 4, 4 q + e] and A[l / 4 + 8, 4 q + e]; a[2], a[3] the same from k = 16 on
//   b0, b1       B[4 q + e, l / 4] and the same from k = 16 on
//   c            rows l / 4 (two values) and l / 4 + 8, columns 2 q and 2 q + 1
template <bool A_SIGNED, bool B_SIGNED>
REE_DEVICE void bytes_mma(u32 (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
#define BYTES_MMA(a_type, b_type)                                                                  \
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32." a_type "." b_type                        \
                 ".s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"            \
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])                                  \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
    if (A_SIGNED && B_SIGNED)
        BYTES_MMA("s8", "s8");
    else if (A_SIGNED)
        BYTES_MMA("s8", "u8");
    else if (B_SIGNED)
        BYTES_MMA("u8", "s8");
    else
        BYTES_MMA("u8", "u8");
#undef BYTES_MMA
}
#endif

#endif
