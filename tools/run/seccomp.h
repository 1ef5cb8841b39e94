// The system calls that a command gives up, as a seccomp filter in the kernel.
#ifndef REE_TOOLS_RUN_SECCOMP_H
#define REE_TOOLS_RUN_SECCOMP_H

#include <stdbool.h>

// Sanitizers look for leaks from a second process, which traces this one: under one the filters
// leave fork, clone and ptrace alone.
#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||                               \
    __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) ||                         \
    __has_feature(thread_sanitizer)
#define SECCOMP_ALLOWS_LEAK_CHECK 1
#else
#define SECCOMP_ALLOWS_LEAK_CHECK 0
#endif

// Filters add up: the second tightens the first.
enum seccomp_step {
    // Before the drivers of GPUs are opened, which may ask a service through a UNIX socket, and
    // whose first use is tried in a child process.
    SECCOMP_BEFORE_DRIVERS,
    // Once all devices are open, or where none needs a driver: no sockets, no processes.
    SECCOMP_CLOSED,
};

// Lays the filter on all threads of the process, and on those to come. Needs PR_SET_NO_NEW_PRIVS.
// False: errno; ENOSYS where the kernel has no filters, or ree none for this architecture.
bool seccomp_enter(enum seccomp_step step);

#endif
