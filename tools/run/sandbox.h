// Drops rights of the process before it reads untrusted files (Linux only), in two steps:
//
// 1. sandbox_enter, before the first thread starts and the first untrusted file is read: no new
//    privileges; Landlock with rules for the paths of the command line and of the drivers; a
//    seccomp filter.
// 2. sandbox_close, after the devices are opened: a second seccomp filter for all threads, which
//    also refuses sockets and child processes. A command that uses no GPU gets it in step 1.
//
// SECURITY.md explains how far this protects.
#ifndef REE_TOOLS_RUN_SANDBOX_H
#define REE_TOOLS_RUN_SANDBOX_H

#include "ree.h"

// Flags: which files a command uses in addition to the paths of its command line.
#define SANDBOX_DEVICE 1u // any device, including the CPU: the files of ree's cache
#define SANDBOX_VULKAN 2u
#define SANDBOX_CUDA 4u
#define SANDBOX_NO_OPENMP 8u // the command never uses OpenMP
// Returns the SANDBOX_... flags for a list of devices such as "cpu,vulkan:1"; NULL: the CPU.
unsigned sandbox_uses(const char *devices);

// Enters step 1. uses: SANDBOX_... flags. Creates the folders that the command line names for
// results, because the sandbox would refuse that later. If the kernel has no Landlock or no
// seccomp, uses only the other one. Returns 0; if the kernel has one of them but refuses it, prints
// an error and returns an exit code.
int sandbox_enter(unsigned uses);
// Records that the command runs without a sandbox, and why: "--no-sandbox", "several processes".
void sandbox_skip(const char *why);
// Enters step 2: the seccomp filter that also refuses sockets and child processes. Does nothing if
// step 1 already included it, or if seccomp is not in use.
enum ree_status sandbox_close(struct ree_error *err);
// Describes the sandbox: "landlock 7, seccomp"; "none (--no-sandbox)".
const char *sandbox_text(void);
// Returns text to append to the error message `message` if the sandbox may have caused the error;
// "" otherwise.
const char *sandbox_hint(const char *message);
// Removes the folders that sandbox_enter created and that are still empty. Thread-safe.
void sandbox_remove_unused(void);

#endif
