#include "base/float_env.h"

#include <stddef.h>

// On x86-64 and AArch64 do not use functions of <fenv.h>: a compiler may move them across a change
// of the environment. The memory clobber keeps loads and stores on their side of the change;
// arithmetic is in other functions.

#if defined(__x86_64__)

// Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, sections 8.1 and 10.2.3.
#define MXCSR 0x1F80u // all exceptions masked, round to nearest, no FTZ, no DAZ
#define MXCSR_FLAGS 0x3Fu
#define X87_CONTROL 0x037Fu // all exceptions masked, round to nearest, 64-bit significand
#define X87_FLAGS 0xFFu     // exceptions, stack fault, summary

// Memory layout of fnstenv and fldenv.
struct x87_env {
    uint16_t control, unused0, status, unused1, tags, unused2;
    uint32_t pointers[4];
};

static void load_mxcsr(uint32_t mxcsr) {
    __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr) : "memory");
}

// fnstenv masks all exceptions, so a pending exception of the caller does not trap here.
static void load_x87(uint16_t control, uint16_t flags) {
    struct x87_env env;
    __asm__ volatile("fnstenv %0" : "=m"(env) : : "memory");
    env.control = control;
    env.status = (uint16_t)((env.status & ~X87_FLAGS) | flags);
    __asm__ volatile("fldenv %0" : : "m"(env) : "memory");
}

static void save_and_set_mxcsr(struct ree_float_env *out) {
    __asm__ volatile("stmxcsr %0" : "=m"(out->mxcsr) : : "memory");
    if ((out->mxcsr & ~MXCSR_FLAGS) != MXCSR) load_mxcsr(MXCSR);
}

static void restore_mxcsr(const struct ree_float_env *env) {
    uint32_t now;
    __asm__ volatile("stmxcsr %0" : "=m"(now) : : "memory");
    if (now != env->mxcsr) load_mxcsr(env->mxcsr);
}

static void save_and_set(struct ree_float_env *out) {
    __asm__ volatile("fnstcw %0\n\tfnstsw %1"
                     : "=m"(out->x87_control), "=m"(out->x87_status)
                     :
                     : "memory");
    if (out->x87_control != X87_CONTROL) load_x87(X87_CONTROL, 0);
    save_and_set_mxcsr(out);
}

static void restore(const struct ree_float_env *env) {
    struct ree_float_env now;
    __asm__ volatile("fnstcw %0\n\tfnstsw %1"
                     : "=m"(now.x87_control), "=m"(now.x87_status)
                     :
                     : "memory");
    restore_mxcsr(env);
    if (now.x87_control != env->x87_control || (now.x87_status ^ env->x87_status) & X87_FLAGS)
        load_x87(env->x87_control, env->x87_status & X87_FLAGS);
}

#elif defined(__aarch64__)

// Arm Architecture Reference Manual, FPCR: round to nearest; FZ, FZ16, FIZ, AH, NEP and DN off; no
// exception traps.
#define FPCR UINT64_C(0)

static void load_fpcr(uint64_t fpcr) {
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr) : "memory");
}

static void save_and_set(struct ree_float_env *out) {
    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr"
                     : "=&r"(out->fpcr), "=r"(out->fpsr)
                     :
                     : "memory");
    if (out->fpcr != FPCR) load_fpcr(FPCR);
}

static void restore(const struct ree_float_env *env) {
    uint64_t fpcr, fpsr;
    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=&r"(fpcr), "=r"(fpsr) : : "memory");
    if (fpsr != env->fpsr) __asm__ volatile("msr fpsr, %0" : : "r"(env->fpsr) : "memory");
    if (fpcr != env->fpcr) load_fpcr(env->fpcr);
}

#else

static void save_and_set(struct ree_float_env *out) {
    fegetenv(&out->whole);
    fesetenv(FE_DFL_ENV);
}

static void restore(const struct ree_float_env *env) {
    fesetenv(&env->whole);
}

#endif

// The outermost call of ree in this thread; NULL in the caller's code and in OpenMP workers.
static _Thread_local struct ree_float_call *current;

void ree_float_env_set(void) {
    struct ree_float_env before;
    save_and_set(&before);
}

void ree_float_call_enter(struct ree_float_call *call) {
    call->is_outermost = !current;
    if (!call->is_outermost) return;
    save_and_set(&call->caller);
    current = call;
}

void ree_float_call_leave(struct ree_float_call *call) {
    if (!call->is_outermost) return;
    current = NULL;
    restore(&call->caller);
}

void ree_float_call_caller(struct ree_float_env *out) {
    if (current) {
        *out = current->caller;
        return;
    }
    save_and_set(out);
    restore(out);
}

void ree_float_worker_enter(struct ree_float_worker *worker) {
    worker->in_call = current != NULL;
    if (worker->in_call) return;
#if defined(__x86_64__)
    save_and_set_mxcsr(&worker->before);
#else
    save_and_set(&worker->before);
#endif
}

void ree_float_worker_restore(const struct ree_float_worker *worker) {
#if defined(__x86_64__)
    restore_mxcsr(&worker->before);
#else
    restore(&worker->before);
#endif
}

void ree_float_thread_enter(struct ree_float_call *call, const struct ree_float_env *caller) {
    ree_float_env_set();
    *call = (struct ree_float_call){.caller = *caller, .is_outermost = true};
    current = call;
}

void ree_float_callback_enter(struct ree_float_callback *callback) {
    callback->call = current;
    if (!current) return;
    current = NULL;
    restore(&callback->call->caller);
}

void ree_float_callback_leave(struct ree_float_callback *callback) {
    if (!callback->call) return;
    save_and_set(&callback->call->caller);
    current = callback->call;
}
