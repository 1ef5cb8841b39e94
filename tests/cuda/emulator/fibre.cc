#include "fibre.h"

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>
#endif

// Stacks cannot overflow into each other: each has an inaccessible page range below it.
#define GUARD (64u << 10)
#define STACK (256u << 10)
#define MAX_FIBRES 1024u

#if defined(__x86_64__) || defined(__aarch64__)

// Pushes the callee-saved registers, stores the stack pointer in *from and continues where `to` was
// paused.
extern "C" void ree_emulator_switch(void **from, void *to);

#if defined(__x86_64__)
asm(R"(
    .text
    .p2align 4
    .globl ree_emulator_switch
    .hidden ree_emulator_switch
    .type ree_emulator_switch, @function
ree_emulator_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size ree_emulator_switch, . - ree_emulator_switch
)");
#else
asm(R"(
    .text
    .p2align 4
    .globl ree_emulator_switch
    .hidden ree_emulator_switch
    .type ree_emulator_switch, %function
ree_emulator_switch:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
    .size ree_emulator_switch, . - ree_emulator_switch
)");
#endif

typedef void *place_t;

// Prepares a stack as if a switch had been made from the function's first instruction.
static void *first_frame(unsigned char *top, void (*main)()) {
#if defined(__x86_64__)
    // 6 registers, the return address, and 0 as that function's return address
    void **frame = (void **)(top - 64);
    memset(frame, 0, 64);
    frame[6] = (void *)main;
#else
    void **frame = (void **)(top - 160);
    memset(frame, 0, 160);
    frame[11] = (void *)main;
#endif
    return frame;
}

#else

typedef ucontext_t place_t;

#endif

namespace ree_emulator {

static unsigned char *stacks;
static uint32_t n_fibres, current;
static void (*fibre_main)();
static place_t places[MAX_FIBRES];
static place_t outside;

static void start(uint32_t i) {
    unsigned char *stack = stacks + (size_t)i * (GUARD + STACK) + GUARD;
#if defined(__x86_64__) || defined(__aarch64__)
    // Stacks start at different page offsets, or they would compete for few cache lines.
    places[i] = first_frame(stack + STACK - i * 1088u % (64u << 10), fibre_main);
#else
    getcontext(&places[i]);
    places[i].uc_stack.ss_sp = stack;
    places[i].uc_stack.ss_size = STACK;
    places[i].uc_link = NULL;
    makecontext(&places[i], fibre_main, 0);
#endif
}

bool fibres_create(uint32_t n, void (*main)()) {
    if (n > MAX_FIBRES) return false;
    if (!stacks) {
        // Memory is committed at the first touch.
        void *memory = mmap(NULL, (size_t)MAX_FIBRES * (GUARD + STACK), PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) return false;
        stacks = (unsigned char *)memory;
    }
    fibre_main = main;
    for (; n_fibres < n; n_fibres++) {
        if (mprotect(stacks + (size_t)n_fibres * (GUARD + STACK) + GUARD, STACK,
                     PROT_READ | PROT_WRITE) != 0)
            return false;
        start(n_fibres);
    }
    return true;
}

void fibre_resume(uint32_t i) {
    current = i;
#if defined(__x86_64__) || defined(__aarch64__)
    ree_emulator_switch(&outside, places[i]);
#else
    swapcontext(&outside, &places[i]);
#endif
}

void fibre_pause() {
#if defined(__x86_64__) || defined(__aarch64__)
    ree_emulator_switch(&places[current], outside);
#else
    swapcontext(&places[current], &outside);
#endif
}

void fibres_restart() {
    for (uint32_t i = 0; i < n_fibres; i++)
        start(i);
}

} // namespace ree_emulator
