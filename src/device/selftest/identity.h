// What compiled code depends on beside its source: the processor, for code that runs on it, and
// the environment variables by which drivers are told to compile otherwise.
#ifndef REE_DEVICE_SELFTEST_IDENTITY_H
#define REE_DEVICE_SELFTEST_IDENTITY_H

#include "base/sha256.h"

#include <stdbool.h>

// Model and features of the processor, as the operating system tells them.
void ree_hash_processor(struct ree_hasher *hasher);
// Variables of Mesa's drivers and of LLVM in them, in the order of their names.
void ree_hash_driver_environment(struct ree_hasher *hasher);

// The build ID of the program or library that has `address`. False: the linker gave it none.
bool ree_hash_binary(struct ree_hasher *hasher, const void *address);

#endif
