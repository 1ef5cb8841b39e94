// Sets and restores the floating-point environment of a thread: rounding, subnormals and exception
// traps. The bits of every sum depend on it. The environment belongs to the program that loads
// libree, which may have changed it with fesetround or feenableexcept, by the start-up code of
// -ffast-math, or through another library. ree computes in an environment of its own and then
// restores the caller's.
//
//     ree's      round to nearest even; subnormals kept; no exception traps
//     x86-64     MXCSR 0x1F80, x87 control word 0x037F (which strtod and printf use)
//     AArch64    FPCR 0
//     others     FE_DFL_ENV of <fenv.h>
//
// The caller's environment is saved and restored whole, status flags included: flags that ree
// raises are lost, flags that the caller had set are kept.
//
// Each macro below declares a variable whose cleanup undoes the macro's effect at every exit from
// the block. It must be the first statement of its block.
//
//     REE_FLOAT_ENV_API()
//         In a function of ree.h: sets ree's environment. No effect if ree itself called the
//         function.
//     REE_FLOAT_ENV_CALLBACK()
//         Before calling one of the caller's function pointers: sets the caller's environment.
//         The environment that the callback leaves becomes the caller's environment.
//     REE_FLOAT_ENV_THREAD(&env)
//         In a thread that ree started: sets ree's environment. Callbacks from this thread run in
//         *env.
//     REE_FLOAT_ENV_WORKER()
//         In an OpenMP region or the body of its loop, because its threads may be the caller's, and
//         in functions that tests call directly: sets ree's environment. No effect within a call.
//
// tests/library/float_env_entered.py checks that every function of ree.h, every region and every
// call of a caller's function pointer uses its macro. The macro adds about 40 ns to a call (on an
// EPYC of 2024) and about 25 ns per worker to a region; within a call a macro takes 4 ns.
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

// Sets ree's environment in the calling thread and does not restore the previous one. For ree's own
// programs, and within a call after foreign code that may have changed the environment (a driver,
// which loads libraries).
void ree_float_env_set(void);

// A call of a function of ree, by the program that loaded libree or by ree itself.
struct ree_float_call {
    struct ree_float_env caller; // environment to restore; set if is_outermost
    bool is_outermost;           // the program that loaded libree made the call, not ree itself
};

void ree_float_call_enter(struct ree_float_call *call);
void ree_float_call_leave(struct ree_float_call *call);

// Returns the environment in which callbacks of the current call run; outside of a call, the
// thread's current environment.
void ree_float_call_caller(struct ree_float_env *out);
// Begins a call in a thread that ree started: sets ree's environment; callbacks run in *caller.
void ree_float_thread_enter(struct ree_float_call *call, const struct ree_float_env *caller);

struct ree_float_worker {
    // The environment to restore, if !in_call; without the x87 unit, which no kernel uses.
    struct ree_float_env before;
    bool in_call; // the thread is in a call of ree: ree's environment is already set
};

void ree_float_worker_enter(struct ree_float_worker *worker);
void ree_float_worker_restore(const struct ree_float_worker *worker);
static inline void ree_float_worker_leave(struct ree_float_worker *worker) {
    if (!worker->in_call) ree_float_worker_restore(worker);
}

struct ree_float_callback {
    struct ree_float_call *call; // the call from which the callback was made; NULL: none
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
