// The pipeline cache file is written when a program is created and when the device is closed, and
// read when it is opened again. It is never trusted: a file that is truncated, corrupted, from
// another driver, or not a cache at all is ignored.
#include "base/file.h"
#include "device/vulkan/vulkan.h"
#include "test.h"

#include <dirent.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64] = "vulkan-cache-XXXXXX", deep[128], path[512];
static struct ree_error err;

// Opens the device, which runs the probe, which creates pipelines.
static struct ree_device *open_device(void) {
    struct ree_device_options options = {.size = sizeof options, .cache_dir = deep};
    struct ree_device *device = NULL;
    CHECK_MSG(ree_vulkan_device_open("", &options, &device, &err) == REE_OK, "%s", err.message);
    return device;
}

static size_t loaded_size(void) {
    struct ree_device *device = open_device();
    if (!device) return SIZE_MAX;
    size_t size = ree_vk_of(device)->cache_size;
    device->vtable->destroy(device);
    return size;
}

// Stores the path of the pipeline cache in the folder in `path`; returns the number of caches
// found.
static int find_file(void) {
    DIR *dir = opendir(deep);
    int n = 0;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        const char *suffix = strrchr(entry->d_name, '.');
        if (!suffix || strcmp(suffix, ".bin") != 0) continue;
        snprintf(path, sizeof path, "%s/%s", deep, entry->d_name);
        n++;
    }
    if (dir) closedir(dir);
    return n;
}

static off_t file_size(void) {
    struct stat info;
    return stat(path, &info) == 0 ? info.st_size : -1;
}

// Writes a cache file that consists of this data and the digest that ends every cache file.
static void write_data(const void *data, size_t size) {
    unsigned char digest[REE_SHA256_SIZE];
    struct ree_hasher *hasher = ree_hasher_create("ree-vulkan-cache/1");
    REQUIRE(hasher != NULL);
    ree_hasher_update(hasher, data, size);
    ree_hasher_digest(hasher, digest);
    FILE *file = fopen(path, "wb");
    REQUIRE(file && fwrite(data, size, 1, file) == 1 &&
            fwrite(digest, sizeof digest, 1, file) == 1);
    fclose(file);
}

// Changes bytes of the data in the cache file, and the digest with them.
static void change_data(size_t at, const void *bytes, size_t n) {
    void *data;
    size_t size;
    REQUIRE(ree_file_read(path, &data, &size, &err) == REE_OK && size > REE_SHA256_SIZE + at + n);
    memcpy((char *)data + at, bytes, n);
    write_data(data, size - REE_SHA256_SIZE);
    free(data);
}

static void empty_folder(void) {
    DIR *dir = opendir(deep);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        snprintf(path, sizeof path, "%s/%s", deep, entry->d_name);
        if (entry->d_name[0] != '.') unlink(path);
    }
    if (dir) closedir(dir);
}

// Removes the pipeline cache, and not the records of the driver.
static void remove_cache(void) {
    if (find_file() > 0) unlink(path);
}

static void overwrite(long at, const void *bytes, size_t n) {
    FILE *file = fopen(path, "r+b");
    REQUIRE(file && fseek(file, at, SEEK_SET) == 0 && fwrite(bytes, 1, n, file) == n);
    fclose(file);
}

static size_t data_size = 64;

// Stands in for drivers whose cache has contents.
static VkResult VKAPI_PTR cache_data(VkDevice device, VkPipelineCache cache, size_t *size,
                                     void *out) {
    (void)device;
    (void)cache;
    if (out) memset(out, 1, *size);
    *size = data_size;
    return VK_SUCCESS;
}

// A program saves the pipelines that exist, but not again a moment later. Closing the device saves
// what was added since.
static void check_saved_early(void) {
    struct ree_device *device = open_device();
    if (!device) return;
    struct ree_vk *vk = ree_vk_of(device);
    vk->vk.vkGetPipelineCacheData = cache_data;
    vk->n_unsaved = 1; // as if the program had created one
    const struct ree_program source = {0};
    for (int i = 0; i < 2; i++) {
        struct ree_device_program *program = NULL;
        CHECK(find_file() == 0);
        CHECK_MSG(device->vtable->program_create(device, &source, NULL, NULL, &program, &err) ==
                      REE_OK,
                  "%s", err.message);
        CHECK(find_file() == (i == 0));
        if (program) device->vtable->program_destroy(device, program);
        remove_cache();
        vk->n_unsaved++;
        data_size += 64;
    }
    device->vtable->destroy(device);
    CHECK(find_file() == 1);
    remove_cache();
}

int main(void) {
    struct ree_device_listing list[16];
    const char *note;
    if (ree_vulkan_device_list(list, 16, &note) == 0) return test_skip(note);
    REQUIRE(mkdtemp(folder) != NULL);
    snprintf(deep, sizeof deep, "%s/a/b", folder); // the folders are created

    // The first start tries the driver and runs the probe, which may save a cache. Later ones do
    // not.
    loaded_size();
    remove_cache();
    check_saved_early();
    CHECK(loaded_size() == 0);
    int n_files = find_file();
    if (n_files == 0) {
        // This driver caches nothing. A cache file is read nevertheless.
        CHECK(loaded_size() == 0 && find_file() == 0);
        struct ree_device *device = open_device();
        REQUIRE(device != NULL);
        const struct ree_vk *vk = ree_vk_of(device);
        snprintf(path, sizeof path, "%s", vk->cache_path);
        VkPipelineCacheHeaderVersionOne header = {
            .headerSize = sizeof header,
            .headerVersion = VK_PIPELINE_CACHE_HEADER_VERSION_ONE,
            .vendorID = vk->properties.vendorID,
            .deviceID = vk->properties.deviceID,
        };
        memcpy(header.pipelineCacheUUID, vk->properties.pipelineCacheUUID, VK_UUID_SIZE);
        device->vtable->destroy(device);
        snprintf(deep, sizeof deep, "%s/a", folder);
        mkdir(deep, 0700);
        snprintf(deep, sizeof deep, "%s/a/b", folder);
        mkdir(deep, 0700);
        fclose(fopen(path, "wb"));
        CHECK(loaded_size() == 0);
        write_data(&header, sizeof header);
        CHECK(loaded_size() == sizeof header);
        overwrite(0, "damage", 6);
        CHECK(loaded_size() == 0);
        write_data(&header, sizeof header);
        REQUIRE(truncate(path, sizeof header + REE_SHA256_SIZE - 1) == 0);
        CHECK(loaded_size() == 0);
        header.vendorID ^= 1;
        write_data(&header, sizeof header);
        CHECK(loaded_size() == 0);
        header.vendorID ^= 1;
        header.pipelineCacheUUID[3] ^= 1;
        write_data(&header, sizeof header);
        CHECK(loaded_size() == 0);
    } else {
        CHECK(n_files == 1); // no temporary file is left
        off_t size = file_size();
        CHECK(size > (off_t)sizeof(VkPipelineCacheHeaderVersionOne));
        CHECK(loaded_size() == (size_t)size - REE_SHA256_SIZE);
        CHECK(find_file() == 1);

        uint32_t vendor = 0xFFFFFFFFu;
        change_data(offsetof(VkPipelineCacheHeaderVersionOne, vendorID), &vendor, sizeof vendor);
        CHECK(loaded_size() == 0);
        CHECK(find_file() == 1); // it was rewritten
        CHECK(loaded_size() == (size_t)file_size() - REE_SHA256_SIZE);
        overwrite((long)size / 2, "damage", 6);
        CHECK(loaded_size() == 0);

        REQUIRE(truncate(path, 10) == 0);
        CHECK(loaded_size() == 0);
        CHECK(loaded_size() == (size_t)file_size() - REE_SHA256_SIZE);

        REQUIRE(truncate(path, 0) == 0);
        CHECK(loaded_size() == 0);
    }
    empty_folder();
    // A folder that cannot be created is not an error.
    rmdir(deep);
    FILE *file = fopen(deep, "wb");
    REQUIRE(file != NULL);
    fclose(file);
    CHECK(loaded_size() == 0);
    unlink(deep);
    snprintf(path, sizeof path, "%s/a", folder);
    rmdir(path);
    rmdir(folder);
    return test_finish();
}
