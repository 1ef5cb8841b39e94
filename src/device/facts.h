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

// Adds a fact whose value is the formatted text. kind and name must be static strings. Ignores
// facts beyond REE_MAX_FACTS.
__attribute__((format(printf, 4, 5))) void ree_facts_add(struct ree_facts *facts, const char *kind,
                                                         const char *name, const char *format, ...);
// Adds a fact whose value is a number of bytes with a unit, such as "128 MiB".
void ree_facts_add_bytes(struct ree_facts *facts, const char *kind, const char *name,
                         uint64_t bytes);
// Adds a fact with the reason if the cache file `path` or its folder must not be used. Adds nothing
// if they may be used, or if path is NULL.
void ree_facts_add_cache(struct ree_facts *facts, const char *path);
void ree_facts_finish(struct ree_facts *facts);

#endif
