// The dialect in which the scalar functions are written once, for C, CUDA C and GLSL.
//
// Rules of the dialect: functions are declared with REE_FN and return values (no pointers, no out
// parameters); types are u32, i32, u64 and structs followed by REE_TYPEDEF; constants carry their
// suffix (1u); conditions are bool; conversions are written REE_U32(x), REE_I32(x); a 64-bit value
// is used only through the u64_ functions of u64.h; shift counts stay below the width. Right shifts
// of i32 are arithmetic in all three languages.
//
// With REE_SCALAR_LIMBS, u64 is a pair of 32-bit words. GLSL always uses it; C does in tests.
#ifndef REE_SCALAR_LANG_H
#define REE_SCALAR_LANG_H

#ifdef REE_GLSL

#define REE_FN
#define REE_TABLE const
#define REE_TYPEDEF(name)
#define REE_SCALAR_LIMBS
#define u32 uint
#define i32 int
#define u64 uvec2
#define REE_U32(x) uint(x)
#define REE_I32(x) int(x)
#define REE_U64(hi, lo) uvec2(lo, hi)

#else

#include <stdbool.h>
#include <stdint.h>

#ifdef __CUDACC__
#define REE_FN static __device__ __forceinline__
#define REE_TABLE static __device__ const
#else
#define REE_FN static inline
#define REE_TABLE static const
#endif
#define REE_TYPEDEF(name) typedef struct name name;
typedef uint32_t u32;
typedef int32_t i32;
#define REE_U32(x) ((u32)(x))
#define REE_I32(x) ((i32)(x))
#ifdef REE_SCALAR_LIMBS
struct ree_limbs {
    u32 x, y; // low, high
};
typedef struct ree_limbs u64;
#define REE_U64(hi, lo) ((u64){(lo), (hi)})
#else
typedef uint64_t u64;
#define REE_U64(hi, lo) (((u64)(hi) << 32) | (u64)(lo))
#endif

#endif

#define REE_NAN 0x7FC00000u
#define REE_INF 0x7F800000u
#define REE_SIGN 0x80000000u
#define REE_ONE 0x3F800000u

#endif
