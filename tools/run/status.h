// Reports failures of ree-run's own code as the library does: with a status code and a message in a
// struct ree_error.
#ifndef REE_TOOLS_RUN_STATUS_H
#define REE_TOOLS_RUN_STATUS_H

#include "ree.h"

// Stores `status` and a message (printf's arguments) in *err, and evaluates to `status`.
#define set_error(err, status, ...)                                                                \
    (set_error_message(err, status, __VA_ARGS__), (enum ree_status)(status))
__attribute__((format(printf, 3, 4))) void
set_error_message(struct ree_error *err, enum ree_status status, const char *format, ...);
// Stores REE_NO_MEMORY and "out of memory" in *err, and returns REE_NO_MEMORY.
enum ree_status memory_error(struct ree_error *err);
// Prepends a prefix (printf's arguments) and ": " to the message in *err. Returns the status in
// *err.
__attribute__((format(printf, 2, 3))) enum ree_status prefix_error(struct ree_error *err,
                                                                   const char *format, ...);

// Returns from the calling function if `expr` is not REE_OK.
#define TRY(expr)                                                                                  \
    do {                                                                                           \
        enum ree_status try_status_ = (expr);                                                      \
        if (try_status_ != REE_OK) return try_status_;                                             \
    } while (0)

#endif
