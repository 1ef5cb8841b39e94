// How the bodies of tiles are compiled: functions without calls, and small loops without branches.
//
// AddressSanitizer would check every element of every unrolled copy, which takes minutes to
// compile. With it the bodies stay loops, shared by all tiles (TILES_SANITIZED).
#ifndef REE_CPU_UNROLL_H
#define REE_CPU_UNROLL_H

#if defined(__SANITIZE_ADDRESS__)
#define TILES_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TILES_SANITIZED
#endif
#endif

#if defined(TILES_SANITIZED)
#define UNROLL
#define INLINE static
#elif defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#define INLINE static inline __attribute__((always_inline))
#else
#define UNROLL _Pragma("GCC unroll 16")
#define INLINE static inline __attribute__((always_inline))
#endif

#endif
