// The floating-point environment of the calling thread, on which the bits of every sum depend:
// rounding, subnormals, exceptions that trap. It belongs to the program that loads libree, which
// may have changed it: by fesetround or feenableexcept, by the start-up code of -ffast-math, or
// through another library. ree computes in an environment of its own and gives back the caller's.
//
//     ree's            to nearest even; subnormals kept, as operands and results; no exception
//     traps x86-64           MXCSR 0x1F80; x87 control word 0x037F, which strtod and printf round
//     by AArch64          FPCR 0 others           FE_DFL_ENV of <fenv.h>
//
// The caller's environment is saved whole, status flags included: flags that ree raises are lost,
// flags that the caller had are still there.
//
// Four macros declare a variable whose cleanup undoes them at the end of the block, on every way
// out. Each is the first statement of its block:
//
//     REE_FLOAT_ENV_API()       in a function of ree.h: ree's environment. No effect if the
//                               function was called by ree itself.
//     REE_FLOAT_ENV_CALLBACK()  before a call of a function pointer of the caller's: the caller's
//                               environment. What the callback leaves is the caller's from then on.
//     REE_FLOAT_ENV_THREAD(caller)
//                               in a thread that ree started and that may call such a pointer
//     REE_FLOAT_ENV_WORKER()    in an OpenMP region or the body of its loop, whose threads may be
//                               the caller's too, and in what tests call without ree.h: ree's
//                               environment. No effect within a call.
//
// tests/library/float_env_entered.py checks that every function of ree.h and every region has its
// macro. A call from outside takes some 40 ns more, a region some 25 ns in each worker, anything
// within a call 4 ns.
#ifndef REE_BASE_FLOAT_ENV_H
#define REE_BASE_FLOAT_ENV_H

#include <stdbool.h>
#include <stdint.h>
#if !defined(__x86_64__) && !defined(__aarch64__)
#include <fenv.h>
#endif

struct ree_float_env {
#if defined(__x86_64__)
    uint32_t mxcsr;
    uint16_t x87_control, x87_status;
#elif defined(__aarch64__)
    uint64_t fpcr, fpsr;
#else
    fenv_t whole;
#endif
};

// Sets ree's environment in the calling thread for good: for the main function of a program of
// ree's, and after code that is not ree's (drivers, which load libraries) ran inside of ree.
void ree_float_env_set(void);

// A call of ree from outside.
struct ree_float_call {
    struct ree_float_env caller; // its environment, if is_outermost
    bool is_outermost;           // false: called by ree itself
};

void ree_float_call_enter(struct ree_float_call *call);
void ree_float_call_leave(struct ree_float_call *call);

// The environment of the program that called ree, as the thread's callbacks have it. Outside of a
// call: the thread's own.
void ree_float_call_caller(struct ree_float_env *out);
// In a thread that ree started: like a call whose caller has the environment *caller, so that
// callbacks from this thread run in that one.
void ree_float_thread_enter(struct ree_float_call *call, const struct ree_float_env *caller);

// A thread of an OpenMP team, and other code that is also run outside of calls.
struct ree_float_worker {
    // The thread's, if not in_call. Without x86's x87 environment, which takes longer than the rest
    // to read and which no kernel computes by.
    struct ree_float_env before;
    bool in_call; // within a call of ree, whose environment is set
};

void ree_float_worker_enter(struct ree_float_worker *worker);
void ree_float_worker_leave(struct ree_float_worker *worker);

struct ree_float_callback {
    struct ree_float_call *call; // that the callback interrupts; NULL: none
};

void ree_float_callback_enter(struct ree_float_callback *callback);
void ree_float_callback_leave(struct ree_float_callback *callback);

#define REE_FLOAT_ENV_NAME_(line) float_env_##line
#define REE_FLOAT_ENV_NAME(line) REE_FLOAT_ENV_NAME_(line)
#define REE_FLOAT_ENV_SCOPE(type, enter, leave)                                                    \
    __attribute__((cleanup(leave))) type REE_FLOAT_ENV_NAME(__LINE__);                             \
    enter(&REE_FLOAT_ENV_NAME(__LINE__))

#define REE_FLOAT_ENV_API()                                                                        \
    REE_FLOAT_ENV_SCOPE(struct ree_float_call, ree_float_call_enter, ree_float_call_leave)
#define REE_FLOAT_ENV_CALLBACK()                                                                   \
    REE_FLOAT_ENV_SCOPE(struct ree_float_callback, ree_float_callback_enter,                       \
                        ree_float_callback_leave)
#define REE_FLOAT_ENV_THREAD(caller)                                                               \
    __attribute__((cleanup(ree_float_call_leave))) struct ree_float_call float_env_thread;         \
    ree_float_thread_enter(&float_env_thread, caller)
#define REE_FLOAT_ENV_WORKER()                                                                     \
    REE_FLOAT_ENV_SCOPE(struct ree_float_worker, ree_float_worker_enter, ree_float_worker_leave)

#endif
