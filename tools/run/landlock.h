// Landlock, the Linux kernel's access control that a process lays on itself: raw system calls, for
// C libraries and headers that do not know it, or know an older version.
//
// A ruleset names kinds of access to files and, for some folders and files, which of them stay
// allowed; all others are refused with EACCES, for good, also in child processes. Each version
// (ABI) of Landlock knows more kinds:
//
//     1  reading, writing, executing, making and removing files
//     2  moving and linking files from one folder to another (refused altogether in 1)
//     3  truncating            4  TCP: bind and connect      5  ioctl on devices
//     6  signals and abstract UNIX sockets of other processes 7  audit of refusals
//     8  all threads of the process at once
//
// Not governed by any: stat, chdir, chmod, chown, times, extended attributes, UDP, UNIX sockets
// with a name; seccomp.h refuses what of these matters. Source:
// Documentation/userspace-api/landlock.rst of the kernel.
#ifndef REE_TOOLS_RUN_LANDLOCK_H
#define REE_TOOLS_RUN_LANDLOCK_H

#include <stdbool.h>
#include <stdint.h>

// Kinds of access to files.
#define LANDLOCK_EXECUTE (UINT64_C(1) << 0)
#define LANDLOCK_WRITE_FILE (UINT64_C(1) << 1)
#define LANDLOCK_READ_FILE (UINT64_C(1) << 2)
#define LANDLOCK_READ_DIR (UINT64_C(1) << 3)
#define LANDLOCK_REMOVE_DIR (UINT64_C(1) << 4)
#define LANDLOCK_REMOVE_FILE (UINT64_C(1) << 5)
#define LANDLOCK_MAKE_DIR (UINT64_C(1) << 7)
#define LANDLOCK_MAKE_REG (UINT64_C(1) << 8)
#define LANDLOCK_REFER (UINT64_C(1) << 13)
#define LANDLOCK_TRUNCATE (UINT64_C(1) << 14)
#define LANDLOCK_IOCTL_DEV (UINT64_C(1) << 15)

struct landlock_rules {
    int abi;          // of the kernel; 0: it has none
    int error;        // errno of that
    int fd;           // of the ruleset
    uint64_t handled; // kinds of access to files that are refused without a rule
};

// Begins a ruleset of all that the kernel knows. False: it has none (rules->error), or refused.
bool landlock_begin(struct landlock_rules *rules);
// Allows these kinds of access to a file, or to a folder and all below it; kinds that the kernel
// does not know, or that a file does not have, are left out. A path that is not there gets no rule.
// False: the kernel refused; errno.
bool landlock_allow(const struct landlock_rules *rules, const char *path, uint64_t access);
// Lays the rules on this thread and, from version 8 on, on all others; threads made later inherit
// them. Closes the ruleset in any case. Needs PR_SET_NO_NEW_PRIVS. False: errno.
bool landlock_enter(struct landlock_rules *rules);

#endif
