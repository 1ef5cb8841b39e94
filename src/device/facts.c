#include "device/facts.h"

#include "base/log.h"
#include "base/memory.h"
#include "device/cache_folder.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ree_facts_add(struct ree_facts *facts, const char *kind, const char *name, const char *format,
                   ...) {
    if (facts->n == REE_MAX_FACTS || facts->failed) return;
    char value[512];
    va_list args;
    va_start(args, format);
    vsnprintf(value, sizeof value, format, args);
    va_end(args);
    if (strcmp(kind, "self-test") == 0 && strcmp(name, "failed") == 0)
        ree_log(REE_LOG_INFO, "self-test failed, another form runs: %s", value);
    char *copy = ree_strdup(value);
    facts->failed = copy == NULL;
    if (copy) facts->list[facts->n++] = (struct ree_device_fact){kind, name, copy};
}

void ree_facts_add_bytes(struct ree_facts *facts, const char *kind, const char *name,
                         uint64_t bytes) {
    static const struct {
        const char *name;
        int shift;
        bool whole; // only for whole multiples of the unit
    } units[] = {{"GiB", 30, true}, {"MiB", 20, false}, {"KiB", 10, true}, {"bytes", 0, false}};
    size_t u = 0;
    while (bytes >> units[u].shift == 0 || (units[u].whole && bytes % (1ull << units[u].shift)))
        if (++u == 3) break;
    ree_facts_add(facts, kind, name, "%llu %s", (unsigned long long)(bytes >> units[u].shift),
                  units[u].name);
}

void ree_facts_add_cache(struct ree_facts *facts, const char *path) {
    char why[512];
    if (!ree_cache_is_usable(path, why, sizeof why)) {
        ree_facts_add(facts, "cache", "not used", "%s", why);
        ree_log(REE_LOG_WARNING, "cache not used: %s", why);
    }
}

void ree_facts_finish(struct ree_facts *facts) {
    for (size_t i = 0; i < facts->n; i++)
        ree_free((char *)facts->list[i].value);
    facts->n = 0;
}
