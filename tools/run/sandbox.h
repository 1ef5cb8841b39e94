// What ree-run gives up before it reads files of strangers (Linux only).
//
// 1. sandbox_enter, before the first thread and the first foreign file: no new privileges; Landlock
//    with rules for the places of the command line and of the drivers; a seccomp filter.
// 2. sandbox_close, once the devices are open: a second filter, for all threads that there are by
//    then, without sockets and child processes. A command without GPUs has it from the beginning.
//
// SECURITY.md says what that is worth.
#ifndef REE_TOOLS_RUN_SANDBOX_H
#define REE_TOOLS_RUN_SANDBOX_H

#include "ree.h"

// What a command uses, beside the places of its command line.
#define SANDBOX_DEVICE 1u // a device, the CPU too: ree's cache
#define SANDBOX_VULKAN 2u
#define SANDBOX_CUDA 4u
// Of a list of devices, "cpu,vulkan:1"; NULL is the CPU.
unsigned sandbox_uses(const char *devices);

// Where the kernel lacks one part, the other is used. Prints what it has but refuses, and returns
// an exit code. Folders that the command line names and that are not there are made here.
int sandbox_enter(unsigned uses);
// Of a command that runs without: "--no-sandbox", "several processes".
void sandbox_skip(const char *why);
enum ree_status sandbox_close(struct ree_error *err);
// "landlock 7, seccomp"; "none (--no-sandbox)".
const char *sandbox_text(void);
// What to add to an error message that may come from the sandbox; "".
const char *sandbox_hint(const char *message);
// Removes the folders that sandbox_enter made and that are still empty. Safe in any thread.
void sandbox_remove_unused(void);

#endif
