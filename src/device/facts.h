// Collects a device's facts (ree_device_facts) and holds them for the device's lifetime.
#ifndef REE_DEVICE_FACTS_H
#define REE_DEVICE_FACTS_H

#include "ree.h"

#define REE_MAX_FACTS 128

struct ree_facts {
    struct ree_device_fact list[REE_MAX_FACTS]; // `value` strings are owned, the others static
    size_t n;
    bool failed; // out of memory; later facts were not added
};

// kind and name must be static strings. Facts beyond REE_MAX_FACTS are ignored.
__attribute__((format(printf, 4, 5))) void ree_facts_add(struct ree_facts *facts, const char *kind,
                                                         const char *name, const char *format, ...);
void ree_facts_add_bytes(struct ree_facts *facts, const char *kind, const char *name,
                         uint64_t bytes); // "128 MiB"
// Adds the reason why the cache file or its folder is not used, if there is one. path may be NULL:
// adds nothing.
void ree_facts_add_cache(struct ree_facts *facts, const char *path);
void ree_facts_finish(struct ree_facts *facts);

#endif
