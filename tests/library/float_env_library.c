// A library that changes the floating-point environment of the thread that loads it, as the
// start-up code of a library linked with -ffast-math does. float_env.py uses it in place of CUDA's
// driver.
#include <fenv.h>

__attribute__((constructor)) static void change(void) {
    fesetround(FE_DOWNWARD);
#if defined(__x86_64__)
    unsigned mxcsr;
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    mxcsr |= 1u << 15 | 1u << 6; // FTZ, DAZ
    __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
#endif
}
