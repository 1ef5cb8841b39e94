// Makes the kernel refuse system calls that a command does not need, by a seccomp filter.
#ifndef REE_TOOLS_RUN_SECCOMP_H
#define REE_TOOLS_RUN_SECCOMP_H

#include <stdbool.h>

// SECCOMP_ALLOWS_LEAK_CHECK is 1 if the program is built with a sanitizer. A sanitizer's leak
// checker uses a second process that traces this one, so the filters then allow fork, clone and
// ptrace.
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

// Which filter to apply. Filters add up: the second filter restricts the process further.
enum seccomp_step {
    // For the time before GPU drivers are opened. Allows UNIX sockets, through which drivers
    // contact services, and child processes, in which a driver's first use is tried.
    SECCOMP_BEFORE_DRIVERS,
    // For the time after all devices are open, or if none needs a driver. Refuses sockets and child
    // processes.
    SECCOMP_CLOSED,
};

// Applies a filter to all existing threads of the process; new threads inherit it. Requires
// PR_SET_NO_NEW_PRIVS. Returns false on failure and sets errno: ENOSYS if the kernel has no filters
// or ree has no filter for this architecture.
bool seccomp_enter(enum seccomp_step step);

#endif
