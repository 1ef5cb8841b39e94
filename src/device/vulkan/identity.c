// Identifies the driver: computes digests of everything that results may depend on, and names the
// files of the cache folder that belong to this driver.
#include "base/memory.h"
#include "device/cache_folder.h"
#include "device/selftest/identity.h"
#include "device/selftest/twin.h"
#include "device/vulkan/vulkan.h"
#include "shaders.h"

#include <stdio.h>
#include <string.h>

// Hashes everything about a driver that its compiler's output may depend on.
static void hash_driver(struct ree_vk *vk) {
    struct ree_hasher *hasher = ree_hasher_create("ree-vulkan-driver/3");
    if (!hasher) return;
    const VkPhysicalDeviceProperties *p = &vk->properties;
    const VkPhysicalDeviceFloatControlsProperties *f = &vk->float_controls;
    const uint32_t numbers[] = {
        p->apiVersion,
        p->driverVersion,
        p->vendorID,
        p->deviceID,
        (uint32_t)p->deviceType,
        (uint32_t)vk->driver.driverID,
        vk->subgroup.subgroupSize,
        vk->has_float64,
        vk->has_dot8,
        vk->has_subgroup_size,
        f->shaderDenormPreserveFloat32,
        f->shaderRoundingModeRTEFloat32,
        f->shaderSignedZeroInfNanPreserveFloat32,
        f->shaderRoundingModeRTEFloat64,
        f->shaderSignedZeroInfNanPreserveFloat64,
        (uint32_t)f->denormBehaviorIndependence,
        (uint32_t)f->roundingModeIndependence,
    };
    ree_hasher_update(hasher, numbers, sizeof numbers);
    ree_hasher_update(hasher, p->pipelineCacheUUID, sizeof p->pipelineCacheUUID);
    const char *const texts[] = {p->deviceName, vk->driver.driverName, vk->driver.driverInfo};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ree_hasher_update(hasher, texts[i], strlen(texts[i]) + 1);
    bool known = !vk->is_cpu || ree_hash_processor(hasher);
    ree_hash_driver_environment(hasher);
    ree_hash_driver_settings(hasher);
    ree_hash_loaded_drivers(hasher, p->deviceName);
    ree_hasher_digest(hasher, vk->identity);
    if (!known) memset(vk->identity, 0, sizeof vk->identity);
}

// Hashes the program or library that contains ree, because it contains the twins, the encoders and
// the reference kernels. Includes the processor, on which the reference kernels' results depend
// too.
static void hash_tester(struct ree_vk *vk) {
    struct ree_hasher *hasher = ree_hasher_create("ree-vulkan-tester/1");
    const uint32_t version = REE_TWIN_VERSION;
    const void *here = ree_vk_shader_modules;
    if (!hasher) return;
    ree_hasher_update(hasher, &version, sizeof version);
    if (!ree_hash_binary(hasher, here)) ree_hash_file_of(hasher, here);
    bool known = ree_hash_processor(hasher);
    ree_hasher_digest(hasher, vk->tester);
    if (!known) memset(vk->tester, 0, sizeof vk->tester);
}

// Returns the path of the file "vulkan-VENDOR-DEVICE-UUID<suffix>" in the cache folder, or NULL if
// there is no folder. The caller owns the path.
static char *cache_path(const struct ree_vk *vk, const char *cache_dir, const char *suffix) {
    char uuid[2 * VK_UUID_SIZE + 1], name[160];
    for (uint32_t i = 0; i < VK_UUID_SIZE; i++)
        snprintf(uuid + 2 * i, 3, "%02x", vk->properties.pipelineCacheUUID[i]);
    snprintf(name, sizeof name, "vulkan-%04x-%04x-%s%s", vk->properties.vendorID,
             vk->properties.deviceID, uuid, suffix);
    return ree_cache_path(cache_dir, name);
}

void ree_vk_identify(struct ree_vk *vk, const char *cache_dir) {
    static const unsigned char none[REE_SHA256_SIZE];
    hash_driver(vk);
    hash_tester(vk);
    // If a digest could not be computed, nothing is stored: it would be used for every driver.
    if (memcmp(vk->identity, none, sizeof none) == 0 || memcmp(vk->tester, none, sizeof none) == 0)
        cache_dir = "";
    // The name has the first 16 digits of the identity, because the UUIDs of some drivers do not
    // cover everything that affects their compiler.
    char suffix[2 * REE_SHA256_SIZE + 8] = "-";
    ree_hex(vk->identity, suffix + 1);
    strcpy(suffix + 1 + 16, ".bin");
    vk->cache_path = cache_path(vk, cache_dir, suffix);
    // The name also has digits of this build's digest, so every build of ree has a file of its own.
    char tester[2 * REE_SHA256_SIZE + 1];
    ree_hex(vk->tester, tester);
    snprintf(suffix + 1 + 16, sizeof suffix - 17, "-%.8s.probe", tester);
    vk->probe_path = cache_path(vk, cache_dir, suffix);
    ree_test_record_init(&vk->tests, cache_path(vk, cache_dir, ".tests"));
}

void ree_vk_unidentify(struct ree_vk *vk) {
    ree_test_record_finish(&vk->tests);
    ree_free(vk->cache_path);
    ree_free(vk->probe_path);
    vk->cache_path = vk->probe_path = NULL;
}
