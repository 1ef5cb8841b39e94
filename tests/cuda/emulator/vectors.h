// CUDA's vector types, with CUDA's alignment.
#ifndef REE_EMULATOR_VECTORS_H
#define REE_EMULATOR_VECTORS_H

#include <stdint.h>

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
};

#define REE_EMULATOR_VECTOR_TYPES(name, T)                                                         \
    struct alignas(2 * sizeof(T)) name##2 {                                                        \
        T x, y;                                                                                    \
    };                                                                                             \
    struct alignas(4 * sizeof(T) > 16 ? 16 : 4 * sizeof(T)) name##4 {                              \
        T x, y, z, w;                                                                              \
    };                                                                                             \
    static inline name##2 make_##name##2(T x, T y) {                                               \
        return {x, y};                                                                             \
    }                                                                                              \
    static inline name##4 make_##name##4(T x, T y, T z, T w) {                                     \
        return {x, y, z, w};                                                                       \
    }
REE_EMULATOR_VECTOR_TYPES(char, signed char)
REE_EMULATOR_VECTOR_TYPES(uchar, unsigned char)
REE_EMULATOR_VECTOR_TYPES(short, short)
REE_EMULATOR_VECTOR_TYPES(ushort, unsigned short)
REE_EMULATOR_VECTOR_TYPES(int, int)
REE_EMULATOR_VECTOR_TYPES(uint, unsigned)
REE_EMULATOR_VECTOR_TYPES(longlong, long long)
REE_EMULATOR_VECTOR_TYPES(ulonglong, unsigned long long)
REE_EMULATOR_VECTOR_TYPES(float, float)
REE_EMULATOR_VECTOR_TYPES(double, double)
#undef REE_EMULATOR_VECTOR_TYPES

#define REE_EMULATOR_VECTORS_2(F)                                                                  \
    F(char2)                                                                                       \
    F(uchar2) F(short2) F(ushort2) F(int2) F(uint2) F(longlong2) F(ulonglong2) F(float2) F(double2)
#define REE_EMULATOR_VECTORS_4(F)                                                                  \
    F(char4)                                                                                       \
    F(uchar4) F(short4) F(ushort4) F(int4) F(uint4) F(longlong4) F(ulonglong4) F(float4) F(double4)

#endif
