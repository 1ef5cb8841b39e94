// Types for accessing elements in memory as bits, regardless of the type they were written with.
//
// C allows an access only through the type an object has, or through bytes; compilers reorder
// accesses through different types. Kernels that move, select or mask elements of several types
// access them through the types below, which may alias all others (an attribute of GCC and Clang).
// To convert a single value, use memcpy, or ree_bits and ree_float of repops/scalar.
//
// tests/base/strict_aliasing.py rejects every other cast between pointers to different types.
#ifndef REE_BASE_ANY_H
#define REE_BASE_ANY_H

#include <stdint.h>

typedef int16_t ree_any_i16 __attribute__((may_alias));
typedef uint16_t ree_any_u16 __attribute__((may_alias));
typedef uint32_t ree_any_u32 __attribute__((may_alias));
typedef uint64_t ree_any_u64 __attribute__((may_alias));
typedef float ree_any_f32 __attribute__((may_alias));

#endif
