// What all other headers of ree need: version, status codes, error messages, progress callbacks,
// memory allocation and log messages.
#ifndef REE_CORE_H
#define REE_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Marks a function or a constant that libree.so exports.
#ifdef __GNUC__
#define REE_API __attribute__((visibility("default")))
#else
#define REE_API
#endif

// Marks a function that will be removed; `instead` names its replacement. See "Versions" in ree.h.
#ifdef __GNUC__
#define REE_DEPRECATED(instead) __attribute__((deprecated(instead)))
#else
#define REE_DEPRECATED(instead)
#endif

#ifdef __cplusplus
extern "C" {
#endif

// The version of these headers. A program that was compiled with them runs with any library of the
// same major version that is not older: see "Versions" in ree.h. For #if: REE_VERSION >= 200 is
// version 0.2.0 or later.
#define REE_VERSION_MAJOR 0
#define REE_VERSION_MINOR 2
#define REE_VERSION_PATCH 0
#define REE_VERSION (REE_VERSION_MAJOR * 10000 + REE_VERSION_MINOR * 100 + REE_VERSION_PATCH)
REE_API const char *ree_version(void);          // version of the loaded library, as "0.2.0"
REE_API const char *ree_numerics_version(void); // version of the output bits, as "RepOps/1"

enum ree_status {
    REE_OK = 0,
    REE_INVALID,     // a model, file, tensor or argument is malformed or inconsistent
    REE_UNSUPPORTED, // well formed, but not supported by ree (operator, opset, type, rank)
    REE_NOT_FOUND,   // the named file, device, input or other object does not exist
    REE_IO,          // reading or writing failed
    REE_NO_MEMORY,   // host or device memory exhausted
    REE_UNAVAILABLE, // no driver or no device of that kind on this machine
    REE_DEVICE,      // the device failed while running
    REE_INTERNAL,    // an error in ree itself
    REE_CANCELLED,   // a progress callback returned false
};

#define REE_ERROR_MAX 1024

struct ree_error {
    enum ree_status status;
    char message[REE_ERROR_MAX]; // one line, no newline at the end
};

REE_API const char *ree_status_name(enum ree_status status); // "invalid", "unsupported", ...

// Receives the progress of a long operation, and can cancel it. `what` names the current work
// ("reading", "hashing weights", "running"); `done` and `total` count in a unit of this work,
// mostly bytes. report must return true to continue. If it returns false, the operation stops soon,
// releases what it has made, writes no file, and fails with REE_CANCELLED. A device first completes
// what it has begun: the CPU the current dispatch, a GPU the current program. Objects that the
// operation used stay usable. report is called by the thread that called ree; a pipeline or a
// generator with several devices may call it from threads of its own, one at a time. This struct
// does not change between versions.
struct ree_progress {
    bool (*report)(void *user, const char *what, uint64_t done, uint64_t total); // NULL: off
    void *user;
};

// Hooks of the whole process

// Functions with which ree allocates memory. ree may call them from any thread, and from several
// threads at the same time.
struct ree_allocator {
    // Returns memory for any type, as malloc does; NULL if memory is exhausted. size is not 0.
    void *(*alloc)(void *user, size_t size);
    void *(*realloc)(void *user, void *memory, size_t size); // memory is not NULL, size is not 0
    void (*free)(void *user, void *memory);                  // memory is not NULL
    void *user;
};

// Makes ree allocate memory with these functions; `allocator` NULL: with malloc and free, as by
// default. Copies the struct. Call it before any other function of ree. Fails with REE_INVALID if a
// function is NULL, or if ree has already allocated memory. The functions run in ree's
// floating-point environment and must not call ree.
//
// The functions get all memory that ree's own code allocates, and that protobuf-c and PCRE2
// allocate for it. They do not get files that ree maps, nor the memory of threads, drivers, MPI,
// cJSON, OpenSSL, MPFR, utf8proc, libzip, OpenMP and the C library: hooks of these libraries, if
// there are any, would also affect their other users in the process.
REE_API enum ree_status ree_set_allocator(const struct ree_allocator *allocator,
                                          struct ree_error *err);
// Allocates memory that ree can release, such as the name and the data of a struct ree_tensor that
// the caller makes. Release it with ree_free. Returns NULL if memory is exhausted. If no allocator
// is set, ree_alloc and ree_free are malloc and free.
REE_API void *ree_alloc(size_t size);
// Releases memory that ree_alloc, or another function of ree, returned to the caller. Accepts NULL.
REE_API void ree_free(void *memory);

enum ree_log_level {
    REE_LOG_INFO,    // a choice that ree made, such as another form of a kernel
    REE_LOG_WARNING, // something that the user may want to repair, such as an unusable cache folder
};

// Sets the function that receives ree's messages: `text` is one line without a newline, valid only
// during the call. NULL, the default: messages are dropped. Errors are not logged; functions return
// them. Any thread inside a call of ree may call `log`, one thread at a time; `log` must not call
// ree. ree_set_log may be called at any time, from any thread; after it returns, ree no longer
// calls the former function.
REE_API void ree_set_log(void (*log)(void *user, enum ree_log_level level, const char *text),
                         void *user);

#ifdef __cplusplus
}
#endif
#endif
