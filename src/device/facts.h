// A device's facts (ree_device_facts) while a backend collects them, and as long as it lives.
#ifndef REE_DEVICE_FACTS_H
#define REE_DEVICE_FACTS_H

#include "ree.h"

#define REE_MAX_FACTS 128

struct ree_facts {
    struct ree_device_fact list[REE_MAX_FACTS]; // values are ours
    size_t n;
    bool failed; // out of memory; nothing was added since
};

// kind and name must be static. Facts beyond REE_MAX_FACTS are left out.
__attribute__((format(printf, 4, 5))) void ree_facts_add(struct ree_facts *facts, const char *kind,
                                                         const char *name, const char *format, ...);
void ree_facts_add_bytes(struct ree_facts *facts, const char *kind, const char *name,
                         uint64_t bytes); // "128 MiB"
// The reason why a file of the cache folder, or the folder, is not used, if there is one. NULL: no
// file.
void ree_facts_add_cache(struct ree_facts *facts, const char *path);
void ree_facts_finish(struct ree_facts *facts);

#endif
