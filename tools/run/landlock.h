// Landlock, the Linux kernel's access control by which a process restricts itself. Uses raw system
// calls, for C libraries and headers that lack Landlock or have an older version.
//
// A ruleset names the kinds of file access that it handles, and allows some of them for certain
// folders and files. All other handled accesses fail with EACCES, permanently, also in child
// processes. Each version (ABI) of Landlock handles more kinds:
//
//     1  reading, writing, executing, creating and removing files
//     2  moving and linking files from one folder to another (refused altogether in 1)
//     3  truncating            4  TCP: bind and connect      5  ioctl on devices
//     6  signals and abstract UNIX sockets of other processes 7  audit of refusals
//     8  all threads of the process at once
//
// No version handles: stat, chdir, chmod, chown, times, extended attributes, UDP, named UNIX
// sockets. seccomp.h refuses those that matter. Source: Documentation/userspace-api/landlock.rst of
// the kernel.
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
    int abi;          // the kernel's Landlock version; 0: none
    int error;        // errno if landlock_begin failed; otherwise 0
    int fd;           // file descriptor of the ruleset
    uint64_t handled; // kinds of file access that are refused unless a rule allows them
};

// Creates a ruleset that handles every kind of access that the kernel's Landlock and this program
// know. Returns false if the kernel has no Landlock or refused; rules->error is the errno.
bool landlock_begin(struct landlock_rules *rules);
// Allows kinds of access (LANDLOCK_...) to a file, or to a folder and everything below it. Kinds
// that the kernel does not know are ignored, and for a file also those that apply only to folders.
// A path that does not exist gets no rule. Returns false if the kernel refused; see errno.
bool landlock_allow(const struct landlock_rules *rules, const char *path, uint64_t access);
// Applies the ruleset to this thread and, from version 8 on, to all others. Threads created later
// inherit it. Always closes the ruleset. Requires PR_SET_NO_NEW_PRIVS. Returns false if the kernel
// refused; see errno.
bool landlock_enter(struct landlock_rules *rules);

#endif
