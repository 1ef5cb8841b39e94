// The system calls that a command gives up, enforced by a seccomp filter in the kernel.
#ifndef REE_TOOLS_RUN_SECCOMP_H
#define REE_TOOLS_RUN_SECCOMP_H

#include <stdbool.h>

// Leak checkers of sanitizers use a second process that traces this one. Under a sanitizer the
// filters therefore allow fork, clone and ptrace.
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

// Filters add up: the second filter restricts further.
enum seccomp_step {
    // Before GPU drivers are opened: a driver may contact a service through a UNIX socket, and its
    // first use is tried in a child process.
    SECCOMP_BEFORE_DRIVERS,
    // After all devices are open, or if none needs a driver: no sockets, no child processes.
    SECCOMP_CLOSED,
};

// Applies the filter to all existing threads of the process; new threads inherit it. Requires
// PR_SET_NO_NEW_PRIVS. False: see errno; ENOSYS if the kernel has no filters or ree supports no
// filter for this architecture.
bool seccomp_enter(enum seccomp_step step);

#endif
