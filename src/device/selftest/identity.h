// What compiled code depends on beside its source: the processor, for code that runs on it, the
// driver's libraries, and the environment variables and files that tell a driver to compile
// otherwise. Every start of a program on the same machine hashes the same bytes.
#ifndef REE_DEVICE_SELFTEST_IDENTITY_H
#define REE_DEVICE_SELFTEST_IDENTITY_H

#include "base/sha256.h"

#include <stdbool.h>

// Model and features of the processor, as the operating system tells them. False: it tells nothing.
bool ree_hash_processor(struct ree_hasher *hasher);
// Variables of drivers, of the compilers in them and of the Vulkan loader; not those that only
// choose a driver.
void ree_hash_driver_environment(struct ree_hasher *hasher);
// Path, size and time of change of Mesa's configuration files (drirc).
void ree_hash_driver_settings(struct ree_hasher *hasher);
// Which Vulkan driver and which compiler are loaded. Hashes every loaded library with a name of
// either: its build ID or, if it has none, its path, size and time of change. Version numbers are
// not enough, because distributions rebuild Mesa and LLVM under the same number. The driver must be
// loaded.
//
// Some drivers load more libraries while they work. For the same device name, later calls in this
// process hash what the first one did, as long as all of those libraries are still loaded.
void ree_hash_loaded_drivers(struct ree_hasher *hasher, const char *device);

// Path, size and time of change of the file that the code at `address` was loaded from. False:
// there is none.
bool ree_hash_file_of(struct ree_hasher *hasher, const void *address);

// The build ID of the program or library that has `address`. False: the linker gave it none.
bool ree_hash_binary(struct ree_hasher *hasher, const void *address);

// Which function the dynamic linker has chosen: the build ID of its library (if it has none, path,
// size and time of change) and the function's offset there. A C library has several versions of one
// function and chooses by the processor and by environment variables. False: no library was found.
bool ree_hash_function(struct ree_hasher *hasher, const void *address);

#endif
