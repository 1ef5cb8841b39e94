// The rights that ree-run drops before it reads files from strangers (Linux only).
//
// 1. sandbox_enter, before the first thread and the first foreign file: no new privileges; Landlock
//    with rules for the paths of the command line and of the drivers; a seccomp filter.
// 2. sandbox_close, after the devices are opened: a second filter, for all threads that exist by
//    then, which also refuses sockets and child processes. Commands without GPUs get it in step 1.
//
// SECURITY.md explains how far this protects.
#ifndef REE_TOOLS_RUN_SANDBOX_H
#define REE_TOOLS_RUN_SANDBOX_H

#include "ree.h"

// What a command uses in addition to the paths of its command line.
#define SANDBOX_DEVICE 1u // any device, including the CPU: ree's cache
#define SANDBOX_VULKAN 2u
#define SANDBOX_CUDA 4u
// The flags for a list of devices such as "cpu,vulkan:1"; NULL is the CPU.
unsigned sandbox_uses(const char *devices);

// Enters step 1. If the kernel lacks Landlock or seccomp, uses only the other one. Creates the
// folders that the command line names if they are missing. If the kernel has one of them but
// refuses it, prints an error and returns an exit code.
int sandbox_enter(unsigned uses);
// Records that the command runs without a sandbox, and why: "--no-sandbox", "several processes".
void sandbox_skip(const char *why);
// Enters step 2, if it was not part of step 1.
enum ree_status sandbox_close(struct ree_error *err);
// Describes the sandbox: "landlock 7, seccomp"; "none (--no-sandbox)".
const char *sandbox_text(void);
// Text to append to an error message that the sandbox may have caused; "" otherwise.
const char *sandbox_hint(const char *message);
// Removes the folders that sandbox_enter created and that are still empty. Thread-safe.
void sandbox_remove_unused(void);

#endif
