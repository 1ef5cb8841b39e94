// The file in the cache folder that keeps the probe's results, so that the next start repeats only
// a part of the probe. The child that tries a new driver (driver_trial.c) writes it for its parent.
#include "device/vulkan/vulkan.h"

#include "base/memory.h"
#include "base/sha256.h"
#include "device/cache_folder.h"

#include <stddef.h>
#include <string.h>

// Everything that the probe finds out. The layout depends on this build of ree, which the digest
// covers through vk->tester.
struct results {
    struct ree_vk_verdict verdicts[REE_VK_N_PRIMITIVES];
    struct ree_vk_observation observations[REE_VK_N_OBSERVED];
    uint64_t loop_budget;
    uint64_t is_guarded;
};

struct probe_file {
    struct results results;
    unsigned char digest[REE_SHA256_SIZE];
};

// The digest covers the driver, this build of ree and the processor, so that results of others are
// never used.
static bool digest_of(const struct ree_vk *vk, const struct results *results,
                      unsigned char out[REE_SHA256_SIZE]) {
    struct ree_hasher *hasher = ree_hasher_create("ree-vulkan-probe/1");
    if (!hasher) return false;
    ree_hasher_update(hasher, vk->identity, sizeof vk->identity);
    ree_hasher_update(hasher, vk->tester, sizeof vk->tester);
    ree_hasher_update(hasher, results, sizeof *results);
    ree_hasher_digest(hasher, out);
    return true;
}

bool ree_vk_probe_recall(struct ree_vk *vk) {
    void *bytes = NULL;
    size_t size = 0;
    struct probe_file file;
    unsigned char digest[REE_SHA256_SIZE];
    if (!vk->probe_path || !ree_cache_read(vk->probe_path, sizeof file, &bytes, &size))
        return false;
    const bool is_whole = size == sizeof file;
    if (is_whole) memcpy(&file, bytes, sizeof file);
    ree_free(bytes);
    if (!is_whole || !digest_of(vk, &file.results, digest) ||
        memcmp(digest, file.digest, sizeof digest) != 0)
        return false;
    memcpy(vk->verdicts, file.results.verdicts, sizeof vk->verdicts);
    memcpy(vk->observations, file.results.observations, sizeof vk->observations);
    vk->loop_budget = file.results.loop_budget;
    vk->guarded = file.results.is_guarded != 0;
    return true;
}

void ree_vk_probe_keep(const struct ree_vk *vk) {
    struct probe_file file;
    if (!vk->probe_path) return;
    memset(&file, 0, sizeof file); // padding is hashed, too
    memcpy(file.results.verdicts, vk->verdicts, sizeof vk->verdicts);
    memcpy(file.results.observations, vk->observations, sizeof vk->observations);
    file.results.loop_budget = vk->loop_budget;
    file.results.is_guarded = vk->guarded;
    if (digest_of(vk, &file.results, file.digest))
        ree_cache_write(vk->probe_path, &file, sizeof file);
}
