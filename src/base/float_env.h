// The floating-point environment of the calling thread, on which the bits of every sum depend:
// rounding, subnormals, exceptions that trap. It belongs to the program that loads libree, which
// may have changed it: by fesetround or feenableexcept, by the start-up code of -ffast-math, or
// through another library. ree computes in an environment of its own and gives back the caller's.
//
//     ree's      round to nearest even; subnormals kept; no exception traps
//     x86-64     MXCSR 0x1F80, x87 control word 0x037F (strtod and printf round by it)
//     AArch64    FPCR 0
//     others     FE_DFL_ENV of <fenv.h>
//
// The caller's environment is saved whole, status flags included: flags that ree raises are lost,
// flags that the caller had are still there.
//
// Each of the macros below declares a variable whose cleanup undoes its effect at the end of the
// block, on every way out. It is the first statement of its block.
//
//     REE_FLOAT_ENV_API()
//         In a function of ree.h: sets ree's environment. No effect if ree itself called the
//         function.
//     REE_FLOAT_ENV_CALLBACK()
//         Before a call of one of the caller's function pointers: sets the caller's environment.
//         What the callback leaves is the caller's environment from then on.
//     REE_FLOAT_ENV_THREAD(&env)
//         In a thread that ree started: sets ree's environment. Callbacks from this thread run in
//         *env.
//     REE_FLOAT_ENV_WORKER()
//         In an OpenMP region or the body of its loop, since its threads may be the caller's, and
//         in functions that tests call directly: sets ree's environment. No effect within a call.
//
// tests/library/float_env_entered.py checks that every function of ree.h, every region and every
// call of a caller's function pointer has its macro. A call takes some 40 ns more (on an EPYC of
// 2024), a region some 25 ns in each worker; within a call a macro takes 4 ns.
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

// Sets ree's environment in the calling thread and does not restore the one before: for ree's own
// programs, and within a call after foreign code ran that may have changed the environment (a
// driver, which loads libraries).
void ree_float_env_set(void);

// A call of ree from outside.
struct ree_float_call {
    struct ree_float_env caller; // its environment, if is_outermost
    bool is_outermost;           // false: called by ree itself
};

void ree_float_call_enter(struct ree_float_call *call);
void ree_float_call_leave(struct ree_float_call *call);

// The environment that callbacks of the current call run in; outside of a call the thread's own.
void ree_float_call_caller(struct ree_float_env *out);
// Begins a call whose caller has the environment *caller.
void ree_float_thread_enter(struct ree_float_call *call, const struct ree_float_env *caller);

struct ree_float_worker {
    struct ree_float_env before; // if not in_call; without the x87 unit, which no kernel uses
    bool in_call;                // within a call of ree: its environment is set already
};

void ree_float_worker_enter(struct ree_float_worker *worker);
void ree_float_worker_restore(const struct ree_float_worker *worker);
static inline void ree_float_worker_leave(struct ree_float_worker *worker) {
    if (!worker->in_call) ree_float_worker_restore(worker);
}

struct ree_float_callback {
    struct ree_float_call *call; // the call that made the callback; NULL: none
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
