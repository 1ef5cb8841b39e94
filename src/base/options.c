#include "base/options.h"

#include <string.h>

#include "base/status.h"

// Maximum bytes by which a struct of a later version may be larger. A larger `size` means that the
// caller did not initialise the struct.
#define MAX_GROWTH 4096

static enum ree_status check_size(size_t size, size_t known, const char *what, const char *name,
                                  struct ree_error *err) {
    if (size >= sizeof size && size <= known + MAX_GROWTH) return REE_OK;
    return ree_fail(err, REE_INVALID, "%s.size is %zu: set it to sizeof(struct %s)", what, size,
                    name);
}

enum ree_status ree_options_read(void *out, size_t known, const void *options, const char *name,
                                 struct ree_error *err) {
    size_t size = known;
    memset(out, 0, known);
    if (options) memcpy(&size, options, sizeof size);
    REE_TRY(check_size(size, known, "options", name, err));
    const unsigned char *bytes = options;
    for (size_t i = known; i < size; i++)
        if (bytes[i])
            return ree_fail(err, REE_UNSUPPORTED,
                            "struct %s has %zu bytes and sets a field after the %zu bytes that "
                            "this version of ree (%s) knows",
                            name, size, known, ree_version());
    if (options) memcpy(out, options, size < known ? size : known);
    memcpy(out, &known, sizeof known);
    return REE_OK;
}

enum ree_status ree_stats_check(const void *out, size_t known, const char *name,
                                struct ree_error *err) {
    size_t size;
    memcpy(&size, out, sizeof size);
    return check_size(size, known, "stats", name, err);
}

void ree_stats_fill(void *out, const void *stats, size_t known) {
    size_t size;
    memcpy(&size, out, sizeof size);
    size_t n = size < known ? size : known;
    memcpy((unsigned char *)out + sizeof size, (const unsigned char *)stats + sizeof size,
           n - sizeof size);
    memset((unsigned char *)out + n, 0, size - n);
}

enum ree_status ree_stats_write(void *out, const void *stats, size_t known, const char *name,
                                struct ree_error *err) {
    enum ree_status status = ree_stats_check(out, known, name, err);
    if (status == REE_OK) ree_stats_fill(out, stats, known);
    return status;
}
