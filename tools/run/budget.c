// Enforces --max-memory and --timeout.
//
// Memory: limited by RLIMIT_DATA, which counts private writable memory (heap, buffers, kv caches,
// thread stacks), but not memory that is only mapped for reading. RLIMIT_AS would count address
// space: a model's weights, which are mapped and which the kernel drops from memory if it needs
// space; gigabytes that libraries reserve and never touch, and terabytes with CUDA. Neither limit
// counts device memory, or memory that a driver shares with itself (lavapipe's buffers);
// --max-device-memory limits those.
//
// Time: a thread waits and ends the process with _exit. Other threads need not cooperate, whatever
// they are executing then: an endless loop, or a driver's compiler.
#include "budget.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "sandbox.h"

#define GRACE 10               // seconds for writing results after the timeout
#define STACK_SIZE (256 << 10) // in bytes; --max-memory counts it

// One set of limits per process, hence the statics.
enum stage { WORKING, WRITING, ENDED, TIMED_OUT };
static _Atomic enum stage stage;
static struct timespec began;
static struct budget limits;
static char memory_text[48];

void budget_begin(void) {
    clock_gettime(CLOCK_MONOTONIC, &began);
}

// Writes a line without stdio, because another thread may hold its locks.
static void print_line(const char *line) {
    ssize_t n = 0;
    if (isatty(STDERR_FILENO)) n = write(STDERR_FILENO, "\r\033[K", 4); // erases a progress line
    n += write(STDERR_FILENO, line, strlen(line));
    (void)n;
}

// Memory

static void describe_size(uint64_t n, char *out, size_t size) {
    static const char units[] = " KMGT";
    size_t unit = 0;
    while (unit + 1 < sizeof units - 1 && n >= 1024 && n % 1024 == 0) {
        n /= 1024;
        unit++;
    }
    snprintf(out, size, unit ? "%llu%c" : "%llu", (unsigned long long)n, units[unit]);
}

static int failure_code(void) {
    return limits.cannot ? limits.cannot : CLI_FAILED;
}

// Ends the process with a message. A C++ library aborts if an allocation fails, and a driver may
// dereference the NULL that it got. The functions called here take no lock and allocate no memory
// in existing C libraries.
static void on_fatal(int signal_number) {
    char line[200];
    snprintf(line, sizeof line,
             "ree-run: ended by signal %d, perhaps because memory was exhausted%s\n", signal_number,
             memory_text);
    print_line(line);
    _exit(failure_code());
}

static void catch_fatal(void) {
    // The handler's stack: the thread's own stack may be what could not be allocated.
    static char stack[1 << 14];
    const stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = on_fatal, .sa_flags = SA_ONSTACK};
    sigaltstack(&alternate, NULL);
    sigaction(SIGABRT, &action, NULL);
    sigaction(SIGSEGV, &action, NULL);
}

static int limit_memory(void) {
    struct rlimit limit;
    char size[24];
    if (!limits.max_memory) return 0;
    describe_size(limits.max_memory, size, sizeof size);
    snprintf(memory_text, sizeof memory_text, " (--max-memory is %s)", size);
    if (getrlimit(RLIMIT_DATA, &limit) != 0) limit.rlim_max = RLIM_INFINITY;
    // An existing smaller limit is kept.
    if (limit.rlim_max == RLIM_INFINITY || limits.max_memory < limit.rlim_max)
        limit.rlim_max = (rlim_t)limits.max_memory;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_DATA, &limit) != 0) {
        cli_error("--max-memory: %s", strerror(errno));
        return failure_code();
    }
    catch_fatal();
    return 0;
}

const char *budget_hint(const char *message) {
    static const char *const memory_messages[] = {
        "out of memory", "no memory", "Cannot allocate memory", "larger than memory",
        "cannot start a thread",
        // Drivers do not always report this error correctly.
        "Vulkan: ", "CUDA: "};
    for (size_t i = 0; limits.max_memory && i < sizeof memory_messages / sizeof *memory_messages;
         i++)
        if (strstr(message, memory_messages[i])) return memory_text;
    return "";
}

// Time

static void sleep_until(uint64_t seconds) {
    struct timespec until = began;
    until.tv_sec += (time_t)seconds;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

// LLVM's OpenMP creates this file (sandbox.c) and removes it at a normal exit.
static void remove_file_of_openmp(void) {
    char path[96];
    snprintf(path, sizeof path, "/dev/shm/__KMP_REGISTERED_LIB_%d_%u", (int)getpid(),
             (unsigned)getuid());
    unlink(path);
}

static void end_process(void) {
    char line[160];
    ree_file_abandon_named();
    remove_file_of_openmp();
    sandbox_remove_unused();
    snprintf(line, sizeof line, "ree-run: %s--timeout: not finished after %llu s\n",
             cli_rank_prefix(), (unsigned long long)limits.timeout);
    print_line(line);
    _exit(limits.cannot ? limits.cannot : BUDGET_TIMED_OUT);
}

static void *watch_time(void *unused) {
    (void)unused;
    sleep_until(limits.timeout);
    enum stage now = WORKING;
    if (!atomic_compare_exchange_strong(&stage, &now, TIMED_OUT) && now == WRITING) {
        sleep_until(limits.timeout + GRACE);
        if (!atomic_compare_exchange_strong(&stage, &now, TIMED_OUT)) return NULL;
        now = WORKING;
    }
    if (now == WORKING) end_process();
    return NULL;
}

static int start_clock(void) {
    pthread_t thread;
    pthread_attr_t attr;
    sigset_t all, before;
    if (!limits.timeout) return 0;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_SIZE);
    sigfillset(&all); // the working thread must handle signals
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, &attr, watch_time, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (error) {
        cli_error("--timeout: cannot start a thread: %s", strerror(error));
        return failure_code();
    }
    pthread_detach(thread);
    return 0;
}

// Enters the next stage. If the time ran out before, waits for the clock thread to end the process.
static void move_on(enum stage next) {
    enum stage now = atomic_load(&stage);
    while (now != TIMED_OUT)
        if (atomic_compare_exchange_weak(&stage, &now, next)) return;
    for (;;)
        pause();
}

void budget_results(void) {
    move_on(WRITING);
}

// If a library calls exit(1), as OpenMP does if it cannot start a thread, the exit code must not
// look like a verdict.
static void on_exit_of_library(void) {
    if (atomic_load(&stage) == ENDED) return;
    char line[160];
    snprintf(line, sizeof line, "ree-run: a library ended the process%s\n", memory_text);
    print_line(line);
    _exit(failure_code());
}

int budget_start(const struct budget *budget) {
    limits = *budget;
    atexit(on_exit_of_library);
    int code = limit_memory();
    return code ? code : start_clock();
}

int budget_end(int code) {
    move_on(ENDED);
    sandbox_remove_unused();
    return code;
}
