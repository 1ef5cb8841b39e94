#include "base/progress.h"

#include "base/float_env.h"
#include "base/status.h"

enum ree_status ree_progress_report(const struct ree_progress *progress, const char *what,
                                    uint64_t done, uint64_t total, struct ree_error *err) {
    if (!progress || !progress->report) return REE_OK;
    bool goes_on;
    {
        REE_FLOAT_ENV_CALLBACK();
        goes_on = progress->report(progress->user, what, done, total);
    }
    return goes_on ? REE_OK : ree_fail(err, REE_CANCELLED, "cancelled");
}
