// What identifies a driver: its libraries by their build IDs, or by their files if they have none,
// and the environment, except variables that only choose a driver. What identifies a function.
#include "device/selftest/identity.h"
#include "base/file.h"
#include "test.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct ree_error err;
static char folder[] = "selftest-identity-XXXXXX";

struct digest {
    unsigned char bytes[REE_SHA256_SIZE];
};

static bool same(struct digest a, struct digest b) {
    return memcmp(a.bytes, b.bytes, sizeof a.bytes) == 0;
}

// Returns the identity for `device`. Each caller passes a new name, so that no earlier result is
// reused.
static struct digest loaded(const char *device) {
    struct digest out;
    struct ree_hasher *hasher = ree_hasher_create(NULL);
    REQUIRE(hasher);
    ree_hash_loaded_drivers(hasher, device);
    ree_hasher_digest(hasher, out.bytes);
    return out;
}

static struct digest environment(void) {
    struct digest out;
    struct ree_hasher *hasher = ree_hasher_create(NULL);
    REQUIRE(hasher);
    ree_hash_driver_environment(hasher);
    ree_hasher_digest(hasher, out.bytes);
    return out;
}

static struct digest settings(void) {
    struct digest out;
    struct ree_hasher *hasher = ree_hasher_create(NULL);
    REQUIRE(hasher);
    ree_hash_driver_settings(hasher);
    ree_hasher_digest(hasher, out.bytes);
    return out;
}

// Returns the library's build ID note (header, "GNU", ID), or NULL if it has none.
static uint8_t *find_build_id(uint8_t *bytes, size_t n) {
    const ElfW(Nhdr) header = {.n_namesz = 4, .n_descsz = 20, .n_type = NT_GNU_BUILD_ID};
    uint8_t wanted[sizeof header + 4] = {0};
    memcpy(wanted, &header, sizeof header);
    memcpy(wanted + sizeof header, "GNU", 4);
    return memmem(bytes, n, wanted, sizeof wanted);
}

static void *load(const char *name, const void *bytes, size_t n, char path[128]) {
    snprintf(path, 128, "%s/%s", folder, name);
    REQUIRE(ree_file_write(path, bytes, n, &err) == REE_OK);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK_MSG(library, "%s", dlerror());
    return library;
}

// Loads `original` under the names of drivers, with other build IDs and without one.
static void hashes_libraries(uint8_t *original, size_t n) {
    char paths[6][128];
    uint8_t *note = find_build_id(original, n);
    if (!note) {
        printf("libraries: not tried, libm.so.6 has no build ID\n");
        return;
    }
    struct digest none = loaded("a");
    CHECK(same(none, loaded("b")));
    void *other = load("libsomething.so", original, n, paths[0]);
    CHECK(same(none, loaded("c"))); // not a driver's name
    void *first = load("libvulkan_test.so", original, n, paths[1]);
    struct digest with_first = loaded("d");
    CHECK(!same(none, with_first));
    // A library loaded later changes the identity only of devices that are not known yet.
    note[sizeof(ElfW(Nhdr)) + 4] ^= 1;
    void *second = load("libLLVM-test.so", original, n, paths[2]);
    CHECK(same(loaded("d"), with_first));
    struct digest with_both = loaded("e");
    CHECK(!same(with_both, with_first));
    dlclose(first);
    struct digest with_second = loaded("d"); // the cached identity was discarded
    CHECK(!same(with_second, with_first) && !same(with_second, with_both));
    dlclose(second);
    CHECK(same(loaded("f"), none));
    // Neither the order of loading nor the path of a library with a build ID counts.
    second = load("libspirv-elsewhere.so", original, n, paths[3]);
    note[sizeof(ElfW(Nhdr)) + 4] ^= 1;
    first = load("libvulkan_elsewhere.so", original, n, paths[4]);
    CHECK(same(loaded("g"), with_both));
    dlclose(first);
    dlclose(second);
    // Without a build ID the library's file counts.
    note[offsetof(ElfW(Nhdr), n_type)] ^= 64;
    void *nameless = load("libgallium-test.so", original, n, paths[5]);
    struct digest with_nameless = loaded("h");
    CHECK(!same(with_nameless, none) && same(loaded("i"), with_nameless));
    const struct timespec times[2] = {{.tv_sec = 1000000}, {.tv_sec = 1000000}};
    REQUIRE(utimensat(AT_FDCWD, paths[5], times, 0) == 0);
    CHECK(!same(loaded("j"), with_nameless));
    dlclose(nameless);
    dlclose(other);
    for (int i = 0; i < 6; i++)
        unlink(paths[i]);
}

static void hashes_environment(void) {
    struct digest before = environment();
    static const char *const choices[] = {"VK_ICD_FILENAMES", "VK_DRIVER_FILES", "VK_LOADER_DEBUG",
                                          "REE_TEST"};
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        const char *old = getenv(choices[i]);
        char *kept = old ? strdup(old) : NULL;
        setenv(choices[i], "another", 1);
        CHECK_MSG(same(environment(), before), "%s counts", choices[i]);
        if (kept)
            setenv(choices[i], kept, 1);
        else
            unsetenv(choices[i]);
        free(kept);
    }
    static const char *const switches[] = {"NV50_PROG_X",
                                           "PAN_X",
                                           "BIFROST_X",
                                           "V3D_X",
                                           "V3DV_X",
                                           "AGX_X",
                                           "VN_X",
                                           "VK_LAYER_X",
                                           "__GL_X",
                                           "LP_X",
                                           "radv_x",
                                           "LVP_X",
                                           "GALLIUM_OVERRIDE_CPU_CAPS"};
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++) {
        setenv(switches[i], "1", 1);
        struct digest one = environment();
        setenv(switches[i], "2", 1);
        CHECK_MSG(!same(one, before) && !same(environment(), one), "%s does not count",
                  switches[i]);
        unsetenv(switches[i]);
    }
    setenv("LP_A", "1", 1);
    setenv("LP_B", "2", 1);
    struct digest both = environment();
    unsetenv("LP_A");
    setenv("LP_A", "1", 1); // now added after LP_B
    CHECK(same(environment(), both));
    unsetenv("LP_A");
    unsetenv("LP_B");
    CHECK(same(environment(), before));
}

static void hashes_settings(void) {
    char path[128];
    snprintf(path, sizeof path, "%s/.drirc", folder);
    setenv("HOME", folder, 1);
    struct digest before = settings();
    CHECK(same(settings(), before));
    REQUIRE(ree_file_write(path, "<driconf/>", 10, &err) == REE_OK);
    struct digest with_file = settings();
    CHECK(!same(with_file, before) && same(settings(), with_file));
    REQUIRE(ree_file_write(path, "<driconf />", 11, &err) == REE_OK);
    CHECK(!same(settings(), with_file));
    unlink(path);
    CHECK(same(settings(), before));
}

// Returns false if nothing was found to hash; *out is then the digest of nothing.
static bool function(const void *address, struct digest *out) {
    struct ree_hasher *hasher = ree_hasher_create(NULL);
    REQUIRE(hasher);
    bool found = ree_hash_function(hasher, address);
    ree_hasher_digest(hasher, out->bytes);
    return found;
}

static void hashes_functions(void) {
    static const unsigned char bytes[] = "abc";
    struct digest a, again, b, c;
    int local = 0;
    CHECK(function((const void *)(uintptr_t)&strlen, &a));
    CHECK(function((const void *)(uintptr_t)&strlen, &again));
    CHECK(function((const void *)(uintptr_t)&memcpy, &b));
    CHECK(same(a, again) && !same(a, b));
    CHECK(function(bytes, &c) && !same(a, c)); // an address in this program
    CHECK(!function(&local, &c));
}

int main(void) {
    REQUIRE(mkdtemp(folder) != NULL);
    void *library = dlopen("libm.so.6", RTLD_NOW), *bytes;
    struct link_map *map;
    size_t n;
    if (library && dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 &&
        ree_file_read(map->l_name, &bytes, &n, &err) == REE_OK) {
        hashes_libraries(bytes, n);
        free(bytes);
    } else {
        printf("libraries: not tried, libm.so.6 cannot be read\n");
    }
    hashes_functions();
    hashes_environment();
    hashes_settings();
    rmdir(folder);
    return test_finish();
}
