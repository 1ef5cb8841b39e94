// Executes instructions of PTX for the threads of a warp: access to rows (ptx_code.h), and
// templates that apply a function of numbers to each element of rows.
#ifndef REE_EMULATOR_PTX_LANES_H
#define REE_EMULATOR_PTX_LANES_H

#include "ptx_code.h"

#include "repops/scalar/ops.h"

#include <type_traits>

namespace ree_ptx {

// Threads of a warp with the same next instruction, in the same call of a function.
struct group {
    uint32_t at, lanes; // index of the next instruction; mask of the threads
    int frame;          // index in warp.frames of the call; -1: in the kernel
    bool waits;         // the threads wait for other threads of the warp
};
struct frame {
    const struct instr *call;
    uint32_t back; // index of the instruction after the call
    // caller: index in warp.frames of the caller's own call; -1: the kernel is the caller. depth:
    // number of nested calls, this one included.
    int caller, depth;
};

enum warp_state { RUNNING, AT_BARRIER, DONE };

struct warp {
    unsigned char *registers, *params;
    uint32_t *predicates;
    uint32_t number; // number of the warp in its block
    uint32_t left;   // mask of the threads that have not exited
    enum warp_state state;
    const struct instr *barrier; // barrier instruction where the warp waits, if AT_BARRIER
    std::vector<struct group> groups;
    std::vector<struct frame> frames;
};

template <class T> using element_t = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
template <class T> inline element_t<T> *row(const struct warp &w, uint32_t at) {
    return (element_t<T> *)(w.registers + at);
}

// Returns an element of a row as a value of type T. A type narrower than the element gets its low
// bits.
template <class T> inline T get(element_t<T> x) {
    if constexpr (std::is_same_v<T, float>)
        return ree_float(x);
    else if constexpr (std::is_same_v<T, double>)
        return ree_from_double_bits(x);
    else
        return (T)x;
}
// Converts a value of type T to an element of a row. Every NaN gets the same bits, those
// of the hardware.
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

// run_1, run_2 and run_3 execute to[0] = F::of(from[0], ...) for each thread. R is the type of the
// result; A, B and C are the types of the arguments.
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
// Sets the predicate to[0] to F::of(from[0], from[1]) for each thread. T is the type of the
// arguments.
template <class F, class T> void run_set(struct warp &w, const struct instr &i, uint32_t lanes) {
    const element_t<T> *a = row<T>(w, i.from[0]), *b = row<T>(w, i.from[1]);
    uint32_t bits = 0;
    each(lanes,
         [=, &bits](uint32_t l) { bits |= (uint32_t)F::of(get<T>(a[l]), get<T>(b[l])) << l; });
    uint32_t &to = w.predicates[i.to[0]];
    to = (to & ~lanes) | bits;
}

// An instruction and its name in PTX. `operands` has a letter for each operand, the result first: w
// (a row of 32-bit elements), l (64-bit elements), p (a predicate).
struct entry {
    std::string name;
    run_t *run;
    const char *operands;
};
void add_integer_entries(std::vector<struct entry> &to);
void add_float_entries(std::vector<struct entry> &to);
void add_conversion_entries(std::vector<struct entry> &to);

run_t run_join_words; // mov.b64 from two 32-bit registers
// Instructions that access memory (ptx_memory.cc).
run_t load, store, load_parameter, store_parameter, load_argument, atomic, async_copy, async_commit,
    async_wait, fence;
// Loads 16 bytes for each thread l of `lanes` into to[0 ... 3][l], not into registers. at[l]
// receives the thread's address.
void load_rows(struct warp &w, const struct instr &i, uint32_t lanes, uint32_t (*to)[LANES],
               uint64_t *at);
// Instructions of tensor cores (ptx_mma.cc).
run_t load_matrices, multiply_bytes;
// Instructions that exchange values within a warp (ptx_exchange.cc).
run_t shuffle, vote, warp_barrier;

// Prepare the emulator's state (state.h) for accesses: `enter` for an instruction of the warp,
// `enter_lane` for one of the warp's threads.
void enter(const struct warp &w, const struct instr &i);
void enter_lane(const struct warp &w, uint32_t lane);
// Set the memory that the kernel may access, at the start of a launch and of a block.
void begin_memory(struct ree_emulator_ptx *ptx);
void begin_memory_of_block();

// Statistics (ptx_statistics.cc). Returns whether accesses to memory are counted.
bool counts_memory();
// Count an access by the threads in `lanes` to shared or global memory: thread l accesses `bytes`
// bytes at at[l].
void count_shared(const struct instr &i, const uint64_t *at, uint32_t lanes, uint32_t bytes);
void count_global(const struct instr &i, const uint64_t *at, uint32_t lanes, uint32_t bytes);
void keep_statistics(const struct ree_emulator_ptx *ptx, uint64_t n_blocks);

} // namespace ree_ptx

#endif
