#include "device/selftest/identity.h"

#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/memory.h"

bool ree_hash_processor(struct ree_hasher *hasher) {
    // Lines with these keys are hashed, of the first processor only. Their values do not change
    // over time.
    static const char *const keys[] = {"vendor_id",       "cpu family",  "model",    "stepping",
                                       "flags",           "Features",    "CPU part", "CPU variant",
                                       "CPU implementer", "CPU revision"};
    FILE *file = fopen("/proc/cpuinfo", "r");
    char *line = NULL;
    size_t capacity = 0;
    ssize_t n;
    bool found = false;
    while (file && (n = getline(&line, &capacity, file)) > 1)
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            if (strncmp(line, keys[i], strlen(keys[i])) == 0) {
                ree_hasher_update(hasher, line, (size_t)n);
                found = true;
            }
    free(line);
    if (file) fclose(file);
    return found;
}

struct search {
    uintptr_t address;
    struct ree_hasher *hasher;
    uintptr_t base; // load address of the object that contains `address`
    bool found;     // a build ID was found
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

// Searches a note segment. Each note has a header, a name and a descriptor; the last two are padded
// to 4 bytes.
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

// Adds the build ID of a loaded object, if it has one, to search->hasher.
static void search_object(struct search *search, const struct dl_phdr_info *object) {
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_NOTE)
            search_notes(search,
                         (const uint8_t *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr),
                         object->dlpi_phdr[i].p_memsz);
}

static int visit(struct dl_phdr_info *object, size_t size, void *user) {
    (void)size;
    struct search *search = user;
    if (!contains(object, search->address)) return 0;
    search->base = object->dlpi_addr;
    search_object(search, object);
    return 1;
}

bool ree_hash_binary(struct ree_hasher *hasher, const void *address) {
    struct search search = {.address = (uintptr_t)address, .hasher = hasher};
    dl_iterate_phdr(visit, &search);
    return search.found;
}

// Hashes path, size and modification time. Returns false if the file does not exist.
static bool hash_file(struct ree_hasher *hasher, const char *name) {
    struct stat file;
    char *path = realpath(name, NULL);
    bool found = path && stat(path, &file) == 0;
    if (found) {
        const int64_t numbers[] = {file.st_size, file.st_mtim.tv_sec, file.st_mtim.tv_nsec};
        ree_hasher_update(hasher, path, strlen(path) + 1);
        ree_hasher_update(hasher, numbers, sizeof numbers);
    }
    free(path);
    return found;
}

bool ree_hash_file_of(struct ree_hasher *hasher, const void *address) {
    Dl_info info;
    return dladdr(address, &info) && info.dli_fname && hash_file(hasher, info.dli_fname);
}

bool ree_hash_function(struct ree_hasher *hasher, const void *address) {
    struct search search = {.address = (uintptr_t)address, .hasher = hasher};
    if (dl_iterate_phdr(visit, &search) == 0) return false;
    const uint64_t offset = search.address - search.base;
    ree_hasher_update(hasher, &offset, sizeof offset);
    return search.found || ree_hash_file_of(hasher, address);
}

// Sets of digests, for items whose order differs between starts.

struct digests {
    unsigned char (*all)[REE_SHA256_SIZE];
    size_t n, capacity;
};

// Takes ownership of the hasher, which may be NULL. Adds nothing if memory is exhausted.
static void add_digest(struct digests *digests, struct ree_hasher *hasher) {
    unsigned char digest[REE_SHA256_SIZE];
    if (!hasher) return;
    ree_hasher_digest(hasher, digest);
    if (digests->n == digests->capacity) {
        size_t capacity = digests->capacity * 2 + 64;
        void *all = ree_realloc(digests->all, capacity * sizeof *digests->all);
        if (!all) return;
        digests->all = all;
        digests->capacity = capacity;
    }
    memcpy(digests->all[digests->n++], digest, sizeof digest);
}

static int compare(const void *a, const void *b) {
    return memcmp(a, b, REE_SHA256_SIZE);
}

static void sort_digests(struct digests *digests) {
    if (digests->n > 0) qsort(digests->all, digests->n, sizeof *digests->all, compare);
}

static void hash_digests(struct ree_hasher *hasher, const struct digests *digests) {
    const uint64_t n = digests->n;
    ree_hasher_update(hasher, &n, sizeof n);
    if (n > 0) ree_hasher_update(hasher, digests->all, digests->n * sizeof *digests->all);
}

// Returns whether `many` contains all of `few`; both must be sorted.
static bool includes(const struct digests *many, const struct digests *few) {
    for (size_t i = 0; i < few->n; i++)
        if (!bsearch(few->all[i], many->all, many->n, sizeof *many->all, compare)) return false;
    return true;
}

static bool has_prefix(const char *text, const char *const *prefixes, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (strncasecmp(text, prefixes[i], strlen(prefixes[i])) == 0) return true;
    return false;
}

void ree_hash_driver_environment(struct ree_hasher *hasher) {
    static const char *const prefixes[] = {
        "LP_",    "LVP_", "GALLIVM_", "GALLIUM_",   "MESA_", "NIR_", "RADV_",  "ACO_",  "AMD_",
        "INTEL_", "ANV_", "NVK_",     "NAK_",       "TU_",   "IR3_", "PANVK_", "PAN_",  "BIFROST_",
        "PVR_",   "V3D",  "AGX_",     "NV50_PROG_", "VN_",   "VK_",  "CUDA_",  "__GL_", "DRIRC_"};
    // These variables only choose among the drivers. The key already covers the chosen driver's
    // properties and files, so a variable that names the driver that would run anyway must not
    // change the key. Other variables of the loader may add a layer, and a layer may rewrite
    // modules.
    static const char *const choices[] = {
        "VK_ICD_FILENAMES=",         "VK_DRIVER_FILES=",           "VK_ADD_DRIVER_FILES=",
        "VK_LOADER_DRIVERS_SELECT=", "VK_LOADER_DRIVERS_DISABLE=", "VK_LOADER_DEBUG="};
    struct digests found = {0};
    for (char **variable = environ; variable && *variable; variable++) {
        if (!has_prefix(*variable, prefixes, sizeof prefixes / sizeof *prefixes) ||
            has_prefix(*variable, choices, sizeof choices / sizeof *choices))
            continue;
        struct ree_hasher *one = ree_hasher_create("ree-variable/1");
        if (one) ree_hasher_update(one, *variable, strlen(*variable));
        add_digest(&found, one);
    }
    sort_digests(&found);
    hash_digests(hasher, &found);
    ree_free(found.all);
}

static void add_file(struct digests *digests, const char *path) {
    struct ree_hasher *one = ree_hasher_create("ree-file/1");
    if (one) hash_file(one, path);
    add_digest(digests, one);
}

static void add_folder(struct digests *digests, const char *path) {
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char *name;
        if (entry->d_name[0] == '.' || ree_asprintf(&name, "%s/%s", path, entry->d_name) < 0)
            continue;
        add_file(digests, name);
        ree_free(name);
    }
    if (dir) closedir(dir);
}

void ree_hash_driver_settings(struct ree_hasher *hasher) {
    const char *home = getenv("HOME"), *folder = getenv("DRIRC_CONFIGDIR");
    struct digests files = {0};
    char *name;
    add_file(&files, "/etc/drirc");
    add_folder(&files, "/usr/share/drirc.d");
    if (folder) add_folder(&files, folder);
    if (home && ree_asprintf(&name, "%s/.drirc", home) >= 0) {
        add_file(&files, name);
        ree_free(name);
    }
    sort_digests(&files);
    hash_digests(hasher, &files);
    ree_free(files.all);
}

// Returns whether the name is that of a library of drivers, of their compilers or of layers.
static bool is_of_driver(const char *path) {
    static const char *const parts[] = {"vulkan", "llvm",   "gallium", "swiftshader",
                                        "nvidia", "amdvlk", "spirv",   "vklayer",
                                        "vk_img", "mali",   "adreno"};
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcasestr(name, parts[i])) return true;
    return false;
}

static int add_object(struct dl_phdr_info *object, size_t size, void *user) {
    (void)size;
    struct digests *digests = user;
    if (!object->dlpi_name || !is_of_driver(object->dlpi_name)) return 0;
    struct search search = {.hasher = ree_hasher_create("ree-object/1")};
    if (!search.hasher) return 0;
    search_object(&search, object);
    if (!search.found) hash_file(search.hasher, object->dlpi_name);
    add_digest(digests, search.hasher);
    return 0;
}

#define MAX_KNOWN 16

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct known {
    char device[256];
    struct digests objects;
} known[MAX_KNOWN];
static size_t n_known;

// Returns the digests to hash for a device: those of an earlier call for it in this process if
// `objects` contains them all, otherwise `objects`. The caller must hold the lock. Takes ownership
// of `objects->all`, except if it returns `objects`.
static const struct digests *recall(const char *device, struct digests *objects) {
    struct known *k = known;
    while (k < known + n_known && strcmp(k->device, device) != 0)
        k++;
    if (k < known + n_known && includes(objects, &k->objects)) {
        ree_free(objects->all);
        return &k->objects;
    }
    if (k == known + n_known) {
        if (n_known == MAX_KNOWN || strlen(device) >= sizeof k->device) return objects;
        n_known++;
        strcpy(k->device, device);
    }
    ree_free(k->objects.all);
    k->objects = *objects;
    return &k->objects;
}

void ree_hash_loaded_drivers(struct ree_hasher *hasher, const char *device) {
    struct digests objects = {0};
    dl_iterate_phdr(add_object, &objects);
    sort_digests(&objects);
    pthread_mutex_lock(&lock);
    const struct digests *hashed = recall(device, &objects);
    hash_digests(hasher, hashed);
    if (hashed == &objects) ree_free(objects.all);
    pthread_mutex_unlock(&lock);
}
