// Calls the caller's progress callback.
#ifndef REE_BASE_PROGRESS_H
#define REE_BASE_PROGRESS_H

#include "ree.h"

// Reports progress in the caller's floating-point environment. Fails with REE_CANCELLED if the
// callback returns false. `progress` may be NULL. All code calls report through this function, so
// that no caller ignores the return value.
__attribute__((warn_unused_result)) enum ree_status
ree_progress_report(const struct ree_progress *progress, const char *what, uint64_t done,
                    uint64_t total, struct ree_error *err);

#endif
