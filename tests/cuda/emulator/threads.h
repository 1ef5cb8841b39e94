// CUDA's built-ins that concern several threads, for the host: thread numbers, barriers, warp
// operations, fences, atomics.
#ifndef REE_EMULATOR_THREADS_H
#define REE_EMULATOR_THREADS_H

#include "pointer.h"

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
static const int warpSize = 32;

namespace ree_emulator {

enum barrier { BARRIER, BARRIER_OR, BARRIER_AND, BARRIER_COUNT };
int block_barrier(enum barrier kind, bool predicate, int line);

enum warp_op { WARP_SYNC, WARP_BALLOT, WARP_SHUFFLE, WARP_MATCH };
// Executes a warp operation. Every thread of the mask must call it, with a value. It returns when
// all have called it:
// - WARP_SHUFFLE: the value of thread `source` of the warp
// - WARP_BALLOT: the mask of threads whose value is not 0
// - WARP_MATCH: the mask of threads whose value equals this thread's
uint64_t warp_operation(enum warp_op op, uint32_t mask, uint64_t value, uint32_t source, int line);
uint32_t lane();

// How a shuffle within segments of `width` threads chooses the thread to take the value from.
// INDEX: thread `by` modulo `width` of the segment. UP, DOWN, XOR: the own lane minus, plus, or xor
// `by`; the own lane if that is outside the segment.
enum shuffle { SHUFFLE_INDEX, SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_XOR };
uint32_t shuffle_source(enum shuffle kind, uint32_t by, int width);

template <class T>
inline T shuffle(enum shuffle kind, uint32_t mask, T value, uint32_t by, int width, int line) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = warp_operation(WARP_SHUFFLE, mask, bits, shuffle_source(kind, by, width), line);
    memcpy(&value, &bits, sizeof value);
    return value;
}

} // namespace ree_emulator

// A parameter whose default is the line of the call, which distinguishes the barriers of a kernel.
#define REE_EMULATOR_LINE int line = __builtin_LINE()

static inline void __syncthreads(REE_EMULATOR_LINE) {
    ree_emulator::block_barrier(ree_emulator::BARRIER, false, line);
}
static inline int __syncthreads_or(int predicate, REE_EMULATOR_LINE) {
    return ree_emulator::block_barrier(ree_emulator::BARRIER_OR, predicate != 0, line);
}
static inline int __syncthreads_and(int predicate, REE_EMULATOR_LINE) {
    return ree_emulator::block_barrier(ree_emulator::BARRIER_AND, predicate != 0, line);
}
static inline int __syncthreads_count(int predicate, REE_EMULATOR_LINE) {
    return ree_emulator::block_barrier(ree_emulator::BARRIER_COUNT, predicate != 0, line);
}

static inline void __syncwarp(unsigned mask = 0xFFFFFFFFu, REE_EMULATOR_LINE) {
    ree_emulator::warp_operation(ree_emulator::WARP_SYNC, mask, 0, 0, line);
}
static inline unsigned __ballot_sync(unsigned mask, int predicate, REE_EMULATOR_LINE) {
    return (unsigned)ree_emulator::warp_operation(ree_emulator::WARP_BALLOT, mask, predicate != 0,
                                                  0, line);
}
static inline int __any_sync(unsigned mask, int predicate, REE_EMULATOR_LINE) {
    return __ballot_sync(mask, predicate, line) != 0;
}
static inline int __all_sync(unsigned mask, int predicate, REE_EMULATOR_LINE) {
    return __ballot_sync(mask, predicate == 0, line) == 0;
}
static inline unsigned __match_any_sync(unsigned mask, unsigned value, REE_EMULATOR_LINE) {
    return (unsigned)ree_emulator::warp_operation(ree_emulator::WARP_MATCH, mask, value, 0, line);
}
template <class T>
static inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, REE_EMULATOR_LINE) {
    return ree_emulator::shuffle(ree_emulator::SHUFFLE_INDEX, mask, value, (uint32_t)source, width,
                                 line);
}
template <class T>
static inline T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32,
                               REE_EMULATOR_LINE) {
    return ree_emulator::shuffle(ree_emulator::SHUFFLE_UP, mask, value, by, width, line);
}
template <class T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32,
                                 REE_EMULATOR_LINE) {
    return ree_emulator::shuffle(ree_emulator::SHUFFLE_DOWN, mask, value, by, width, line);
}
template <class T>
static inline T __shfl_xor_sync(unsigned mask, T value, int by, int width = 32, REE_EMULATOR_LINE) {
    return ree_emulator::shuffle(ree_emulator::SHUFFLE_XOR, mask, value, (uint32_t)by, width, line);
}
#undef REE_EMULATOR_LINE

static inline void __threadfence() {
    ree_emulator::fence();
}
static inline void __threadfence_block() {}

// Atomics, on checked memory and on plain pointers. Those on plain pointers order nothing.
namespace ree_emulator {
template <class T, class F> inline T atomically(pointer<T> p, F f) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    check(p.at, sizeof(T), sizeof(T), p.of, ATOMIC_ACCESS);
    T old;
    memcpy(&old, (const void *)p.at, sizeof old);
    T value = f(old);
    memcpy((void *)p.at, &value, sizeof value);
    if (p.of->kind < RANGE_SHARED) note_atomic();
    return old;
}
template <class T, class F> inline T atomically(T *p, F f) {
    T old = *p;
    *p = f(old);
    return old;
}
template <class T> struct same { typedef T type; };
} // namespace ree_emulator

#define REE_EMULATOR_ATOMIC(name, expression)                                                      \
    template <class T>                                                                             \
    static inline T name(ree_emulator::pointer<T> p, typename ree_emulator::same<T>::type value) { \
        return ree_emulator::atomically(p, [=](T old) { return (T)(expression); });                \
    }                                                                                              \
    template <class T> static inline T name(T *p, typename ree_emulator::same<T>::type value) {    \
        return ree_emulator::atomically(p, [=](T old) { return (T)(expression); });                \
    }
REE_EMULATOR_ATOMIC(atomicAdd, old + value)
REE_EMULATOR_ATOMIC(atomicSub, old - value)
REE_EMULATOR_ATOMIC(atomicMax, old > value ? old : value)
REE_EMULATOR_ATOMIC(atomicMin, old < value ? old : value)
REE_EMULATOR_ATOMIC(atomicAnd, old &value)
REE_EMULATOR_ATOMIC(atomicOr, old | value)
REE_EMULATOR_ATOMIC(atomicXor, old ^ value)
REE_EMULATOR_ATOMIC(atomicExch, ((void)old, value))
REE_EMULATOR_ATOMIC(atomicInc, old >= value ? 0 : old + 1)
#undef REE_EMULATOR_ATOMIC
template <class T>
static inline T atomicCAS(ree_emulator::pointer<T> p, typename ree_emulator::same<T>::type expected,
                          typename ree_emulator::same<T>::type value) {
    return ree_emulator::atomically(p, [=](T old) { return old == expected ? value : old; });
}
template <class T>
static inline T atomicCAS(T *p, typename ree_emulator::same<T>::type expected,
                          typename ree_emulator::same<T>::type value) {
    return ree_emulator::atomically(p, [=](T old) { return old == expected ? value : old; });
}

#endif
