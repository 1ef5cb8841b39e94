#include "device/selftest/identity.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
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

struct search {
    uintptr_t address;
    struct ree_hasher *hasher;
    bool found;
};

static bool contains(const struct dl_phdr_info *object, uintptr_t address) {
    for (int i = 0; i < object->dlpi_phnum; i++) {
        uintptr_t begin = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
        if (object->dlpi_phdr[i].p_type == PT_LOAD && address >= begin &&
            address - begin < object->dlpi_phdr[i].p_memsz)
            return true;
    }
    return false;
}

// A segment of notes: for each a header, a name and a descriptor, both padded to 4 bytes.
static void search_notes(struct search *search, const uint8_t *notes, size_t size) {
    ElfW(Nhdr) header;
    while (size >= sizeof header && !search->found) {
        memcpy(&header, notes, sizeof header);
        size_t name = (header.n_namesz + (size_t)3) / 4 * 4;
        size_t descriptor = (header.n_descsz + (size_t)3) / 4 * 4;
        size_t all = sizeof header + name + descriptor;
        if (all > size) return;
        if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 &&
            memcmp(notes + sizeof header, "GNU", 4) == 0) {
            ree_hasher_update(search->hasher, notes + sizeof header + name, header.n_descsz);
            search->found = true;
        }
        notes += all;
        size -= all;
    }
}

static int visit(struct dl_phdr_info *object, size_t size, void *user) {
    (void)size;
    struct search *search = user;
    if (!contains(object, search->address)) return 0;
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_NOTE)
            search_notes(search,
                         (const uint8_t *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr),
                         object->dlpi_phdr[i].p_memsz);
    return 1;
}

bool ree_hash_binary(struct ree_hasher *hasher, const void *address) {
    struct search search = {.address = (uintptr_t)address, .hasher = hasher};
    dl_iterate_phdr(visit, &search);
    return search.found;
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
