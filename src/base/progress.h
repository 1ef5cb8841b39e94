// Reports progress to the caller's callback.
#ifndef REE_BASE_PROGRESS_H
#define REE_BASE_PROGRESS_H

#include "ree.h"

// Calls progress->report in the caller's floating-point environment. Fails with REE_CANCELLED if it
// returns false. `progress` may be NULL. All code calls `report` through this function, so that its
// return value is never ignored.
__attribute__((warn_unused_result)) enum ree_status
ree_progress_report(const struct ree_progress *progress, const char *what, uint64_t done,
                    uint64_t total, struct ree_error *err);

#endif
