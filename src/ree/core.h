// Version, status and errors.
#ifndef REE_CORE_H
#define REE_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Marks what libree.so exports.
#ifdef __GNUC__
#define REE_API __attribute__((visibility("default")))
#else
#define REE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

// The version of these headers. A program that was compiled with them runs with any library of the
// same major version that is not older: see "Versions" in ree.h. For #if: REE_VERSION >= 200 is
// version 0.2.0 or later.
#define REE_VERSION_MAJOR 0
#define REE_VERSION_MINOR 1
#define REE_VERSION_PATCH 0
#define REE_VERSION (REE_VERSION_MAJOR * 10000 + REE_VERSION_MINOR * 100 + REE_VERSION_PATCH)
REE_API const char *ree_version(void);          // of the library that runs: "0.1.0"
REE_API const char *ree_numerics_version(void); // "RepOps/1"

enum ree_status {
    REE_OK = 0,
    REE_INVALID,     // the model, tensor or argument is malformed or inconsistent
    REE_UNSUPPORTED, // well formed, but not supported by ree (operator, opset, type, rank)
    REE_NOT_FOUND,   // no such file, device, input
    REE_IO,          // reading or writing failed
    REE_NO_MEMORY,   // host or device memory exhausted
    REE_UNAVAILABLE, // no driver or no device of that kind on this machine
    REE_DEVICE,      // the device failed while running
    REE_INTERNAL,    // an error in ree itself
};

#define REE_ERROR_MAX 1024

struct ree_error {
    enum ree_status status;
    char message[REE_ERROR_MAX]; // one line, no newline at the end
};

REE_API const char *ree_status_name(enum ree_status status); // "invalid", "unsupported", ...

#ifdef __cplusplus
}
#endif
#endif
