// Hashes what compiled code depends on in addition to its source: the processor (for code that runs
// on it), the driver's libraries, and the environment variables and files that change how a driver
// compiles. Every start of a program on the same machine hashes the same bytes.
#ifndef REE_DEVICE_SELFTEST_IDENTITY_H
#define REE_DEVICE_SELFTEST_IDENTITY_H

#include "base/sha256.h"

#include <stdbool.h>

// Hashes the processor's model and features, as the operating system reports them. Returns false if
// it reports nothing.
bool ree_hash_processor(struct ree_hasher *hasher);
// Hashes the environment variables of drivers, of their compilers and of the Vulkan loader, except
// those that only choose a driver.
void ree_hash_driver_environment(struct ree_hasher *hasher);
// Hashes path, size and modification time of Mesa's configuration files (drirc).
void ree_hash_driver_settings(struct ree_hasher *hasher);
// Hashes which Vulkan driver and which compiler are loaded. Covers every loaded library with the
// name of a driver or compiler: its build ID or, if it has none, its path, size and modification
// time. Version numbers are not enough because distributions rebuild Mesa and LLVM under the same
// number. The driver must be loaded.
//
// Some drivers load more libraries during use. So a later call in this process for the same device
// name hashes the same bytes as the first call, as long as all libraries that the first call hashed
// are still loaded.
void ree_hash_loaded_drivers(struct ree_hasher *hasher, const char *device);

// Hashes path, size and modification time of the file that the code at `address` was loaded from.
// Returns false if there is no file.
bool ree_hash_file_of(struct ree_hasher *hasher, const void *address);

// Hashes the build ID of the program or library that contains `address`. Returns false if it has
// none.
bool ree_hash_binary(struct ree_hasher *hasher, const void *address);

// Hashes which function the dynamic linker has chosen: the build ID of its library (or path, size
// and modification time if it has none) and the function's offset in that library. A C library has
// several versions of one function and chooses by the processor and by environment variables.
// Returns false if no library was found.
bool ree_hash_function(struct ree_hasher *hasher, const void *address);

#endif
