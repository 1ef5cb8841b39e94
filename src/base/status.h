// Errors as values. Every function that can fail returns enum ree_status and fills `err` with the
// functions below.
#ifndef REE_BASE_STATUS_H
#define REE_BASE_STATUS_H

#include "ree.h"

// Fills *err (if not NULL) and evaluates to `status`, so that callers write `return ree_fail(err,
// status, format, ...)`. A macro, so that the compiler knows the value returned.
#define ree_fail(err, status, ...)                                                                 \
    (ree_fail_message(err, status, __VA_ARGS__), ree_same_status(status))
static inline enum ree_status ree_same_status(enum ree_status status) {
    return status;
}
__attribute__((format(printf, 3, 4))) void
ree_fail_message(struct ree_error *err, enum ree_status status, const char *format, ...);
// Fails with REE_NO_MEMORY, "out of memory".
static inline enum ree_status ree_no_memory(struct ree_error *err) {
    return ree_fail(err, REE_NO_MEMORY, "out of memory");
}
// Sets *err to success, for a caller that goes on after a failure: no message of the failure
// remains. `err` may be NULL.
static inline void ree_error_clear(struct ree_error *err) {
    if (!err) return;
    err->status = REE_OK;
    err->message[0] = 0;
}
// Prepends the formatted prefix and ": " to the message in *err and returns err->status. Callers
// use it to add context ("model.onnx: ", "node 'conv1' (Conv): "). Never returns REE_OK: returns
// REE_INTERNAL if err is NULL or holds no failure.
__attribute__((format(printf, 2, 3))) enum ree_status ree_fail_prefix(struct ree_error *err,
                                                                      const char *format, ...);
#ifdef __clang_analyzer__
// The analyzer does not see the body in status.c; without this it would assume that a failure can
// return REE_OK.
static inline enum ree_status ree_never_ok(enum ree_status status) {
    if (status == REE_OK) __builtin_unreachable();
    return status;
}
#define ree_fail_prefix(...) ree_never_ok(ree_fail_prefix(__VA_ARGS__))
#endif

// Returns from the calling function if `expr` is not REE_OK.
#define REE_TRY(expr)                                                                              \
    do {                                                                                           \
        enum ree_status ree_try_status_ = (expr);                                                  \
        if (ree_try_status_ != REE_OK) return ree_try_status_;                                     \
    } while (0)

// Checked arithmetic on sizes from untrusted files: return false on overflow, and then do not
// change *out.
bool ree_mul_size(uint64_t a, uint64_t b, uint64_t *out);
bool ree_add_size(uint64_t a, uint64_t b, uint64_t *out);
// Sets *out to the product of dims[rank]. Returns false if a dim is negative or the product, with
// dims of 0 counted as 1, exceeds INT64_MAX.
bool ree_count_elements(uint32_t rank, const int64_t *dims, int64_t *out);

#endif
