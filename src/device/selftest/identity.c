#include "device/selftest/identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void ree_hash_processor(struct ree_hasher *hasher) {
    // Lines of the first processor that do not change from minute to minute.
    static const char *const keys[] = {"vendor_id",       "cpu family",  "model",    "stepping",
                                       "flags",           "Features",    "CPU part", "CPU variant",
                                       "CPU implementer", "CPU revision"};
    FILE *file = fopen("/proc/cpuinfo", "r");
    char *line = NULL;
    size_t capacity = 0;
    ssize_t n;
    while (file && (n = getline(&line, &capacity, file)) > 1)
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            if (strncmp(line, keys[i], strlen(keys[i])) == 0)
                ree_hasher_update(hasher, line, (size_t)n);
    free(line);
    if (file) fclose(file);
}

static int compare(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void ree_hash_driver_environment(struct ree_hasher *hasher) {
    static const char *const prefixes[] = {"LP_",  "GALLIVM_", "MESA_",  "NIR_",  "RADV_",
                                           "ACO_", "AMD_",     "INTEL_", "ANV_",  "NVK_",
                                           "NAK_", "TU_",      "IR3_",   "PANVK_"};
    const char *found[64];
    size_t n = 0;
    for (char **variable = environ; variable && *variable && n < 64; variable++)
        for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
            if (strncmp(*variable, prefixes[i], strlen(prefixes[i])) == 0) {
                found[n++] = *variable;
                break;
            }
    qsort(found, n, sizeof *found, compare);
    for (size_t i = 0; i < n; i++)
        ree_hasher_update(hasher, found[i], strlen(found[i]) + 1);
}
