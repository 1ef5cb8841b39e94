// Execution of an instruction for the threads of a warp: rows, and templates that apply a function
// of numbers to them.
#ifndef REE_EMULATOR_PTX_LANES_H
#define REE_EMULATOR_PTX_LANES_H

#include "ptx_code.h"

#include "repops/scalar/ops.h"

#include <type_traits>

namespace ree_ptx {

// Threads with the same next instruction.
struct group {
    uint32_t at, lanes;
    int frame;  // index in warp.frames; -1: in the kernel
    bool waits; // for other threads of the warp
};
struct frame {
    const struct instr *call;
    uint32_t back; // instruction after the call
    int caller, depth;
};

enum warp_state { RUNNING, AT_BARRIER, DONE };

struct warp {
    unsigned char *registers, *params;
    uint32_t *predicates;
    uint32_t number; // in the block
    uint32_t left;   // threads that have not exited
    enum warp_state state;
    const struct instr *barrier; // AT_BARRIER
    std::vector<struct group> groups;
    std::vector<struct frame> frames;
};

template <class T> using element_t = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
template <class T> inline element_t<T> *row(const struct warp &w, uint32_t at) {
    return (element_t<T> *)(w.registers + at);
}

// The value of an element; a type narrower than the element has its low bits.
template <class T> inline T get(element_t<T> x) {
    if constexpr (std::is_same_v<T, float>)
        return ree_float(x);
    else if constexpr (std::is_same_v<T, double>)
        return ree_from_double_bits(x);
    else
        return (T)x;
}
// The element for a value; a NaN gets the hardware's bits.
template <class T> inline element_t<T> put(T x) {
    if constexpr (std::is_same_v<T, float>)
        return x == x ? ree_bits(x) : 0x7FFFFFFFu;
    else if constexpr (std::is_same_v<T, double>)
        return x == x ? ree_double_bits(x) : UINT64_C(0xFFF8000000000000);
    else
        return (element_t<T>)(std::make_unsigned_t<T>)x;
}

template <class F> inline void each(uint32_t lanes, F f) {
    if (lanes == ALL_LANES) {
#ifndef __clang__
#pragma GCC ivdep
#endif
        for (uint32_t l = 0; l < LANES; l++)
            f(l);
    } else {
        for (; lanes; lanes &= lanes - 1)
            f((uint32_t)__builtin_ctz(lanes));
    }
}

// to[0] = F(from[0], ...), with result R and arguments A, B, C.
template <class F, class R, class A>
void run_1(struct warp &w, const struct instr &i, uint32_t lanes) {
    element_t<R> *to = row<R>(w, i.to[0]);
    const element_t<A> *a = row<A>(w, i.from[0]);
    each(lanes, [=](uint32_t l) { to[l] = put<R>(F::of(get<A>(a[l]))); });
}
template <class F, class R, class A, class B>
void run_2(struct warp &w, const struct instr &i, uint32_t lanes) {
    element_t<R> *to = row<R>(w, i.to[0]);
    const element_t<A> *a = row<A>(w, i.from[0]);
    const element_t<B> *b = row<B>(w, i.from[1]);
    each(lanes, [=](uint32_t l) { to[l] = put<R>(F::of(get<A>(a[l]), get<B>(b[l]))); });
}
template <class F, class R, class A, class B, class C>
void run_3(struct warp &w, const struct instr &i, uint32_t lanes) {
    element_t<R> *to = row<R>(w, i.to[0]);
    const element_t<A> *a = row<A>(w, i.from[0]);
    const element_t<B> *b = row<B>(w, i.from[1]);
    const element_t<C> *c = row<C>(w, i.from[2]);
    each(lanes,
         [=](uint32_t l) { to[l] = put<R>(F::of(get<A>(a[l]), get<B>(b[l]), get<C>(c[l]))); });
}
// A predicate of two numbers.
template <class F, class T> void run_set(struct warp &w, const struct instr &i, uint32_t lanes) {
    const element_t<T> *a = row<T>(w, i.from[0]), *b = row<T>(w, i.from[1]);
    uint32_t bits = 0;
    each(lanes,
         [=, &bits](uint32_t l) { bits |= (uint32_t)F::of(get<T>(a[l]), get<T>(b[l])) << l; });
    uint32_t &to = w.predicates[i.to[0]];
    to = (to & ~lanes) | bits;
}

// An instruction by its name. `operands` has a letter for each: w (a row of 32 bits), l (64 bits),
// p (a predicate); the first is the result.
struct entry {
    std::string name;
    run_t *run;
    const char *operands;
};
void add_integer_entries(std::vector<struct entry> &to);
void add_float_entries(std::vector<struct entry> &to);
void add_conversion_entries(std::vector<struct entry> &to);

run_t run_join_words; // mov.b64 of two registers
// ptx_memory.cc
run_t load, store, load_parameter, store_parameter, load_argument, atomic, async_copy, async_commit,
    async_wait, fence;
// Loads 16 bytes for each thread, without a row for the result; `at` receives the addresses.
void load_rows(struct warp &w, const struct instr &i, uint32_t lanes, uint32_t (*to)[LANES],
               uint64_t *at);
// ptx_mma.cc
run_t load_matrices, multiply_bytes;
// ptx_exchange.cc
run_t shuffle, vote, warp_barrier;

// Prepares the emulator's state for accesses of the warp, and of one of its threads.
void enter(const struct warp &w, const struct instr &i);
void enter_lane(const struct warp &w, uint32_t lane);
void begin_memory(struct ree_emulator_ptx *ptx); // of a launch
void begin_memory_of_block();

// ptx_statistics.cc
bool counts_memory();
// `at` has the address of each thread's access to `bytes` bytes.
void count_shared(const struct instr &i, const uint64_t *at, uint32_t lanes, uint32_t bytes);
void count_global(const struct instr &i, const uint64_t *at, uint32_t lanes, uint32_t bytes);
void keep_statistics(const struct ree_emulator_ptx *ptx, uint64_t n_blocks);

} // namespace ree_ptx

#endif
