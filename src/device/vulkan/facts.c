// The facts that `ree-run devices` prints about a Vulkan device: identity, limits, features, and
// the probe's verdict for each primitive.
#include "base/strbuf.h"
#include "device/vulkan/vulkan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_identity(struct ree_facts *facts, const struct ree_vk *vk) {
    static const char *const types[] = {"other", "integrated GPU", "discrete GPU", "virtual GPU",
                                        "CPU"};
    uint32_t type = vk->properties.deviceType, version = vk->properties.apiVersion;
    ree_facts_add(facts, "device", "name", "%s", vk->properties.deviceName);
    ree_facts_add(facts, "device", "type", "%s", type < 5 ? types[type] : "other");
    ree_facts_add(facts, "device", "driver", "%s, %s", vk->driver.driverName,
                  vk->driver.driverInfo);
    ree_facts_add(facts, "device", "Vulkan", "%u.%u.%u", VK_API_VERSION_MAJOR(version),
                  VK_API_VERSION_MINOR(version), VK_API_VERSION_PATCH(version));
}

static void add_limits(struct ree_facts *facts, const struct ree_vk *vk) {
    const VkPhysicalDeviceLimits *limits = &vk->properties.limits;
    ree_facts_add(facts, "limit", "work group", "%u", limits->maxComputeWorkGroupInvocations);
    ree_facts_add_bytes(facts, "limit", "shared memory", limits->maxComputeSharedMemorySize);
    ree_facts_add(facts, "limit", "subgroup", "%u", vk->subgroup.subgroupSize);
    ree_facts_add_bytes(facts, "limit", "storage buffer range", limits->maxStorageBufferRange);
    ree_facts_add_bytes(facts, "limit", "largest tensor", vk->base.max_buffer_size);
    if (vk->loop_budget != UINT64_MAX)
        ree_facts_add(facts, "limit", "iterations of a thread's loops", "%llu",
                      (unsigned long long)vk->loop_budget);
    uint64_t heap = 0;
    for (uint32_t i = 0; i < vk->memory.memoryHeapCount; i++)
        if (vk->memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
            heap += vk->memory.memoryHeaps[i].size;
    ree_facts_add_bytes(facts, "limit", "memory", heap);
}

static void add_features(struct ree_facts *facts, const struct ree_vk *vk) {
    const struct {
        const char *name;
        bool has;
    } features[] = {
        {"buffer device address", true},
        {"float64", vk->has_float64},
        {"float16", vk->has_float16},
        {"int64", vk->has_int64},
        {"int16", vk->has_int16},
        {"int8", vk->has_int8},
        {"dot product of bytes", vk->has_dot8},
        {"subnormals kept on request", vk->float_controls.shaderDenormPreserveFloat32},
        {"rounding to even on request", vk->float_controls.shaderRoundingModeRTEFloat32},
        {"words compared with guards", vk->guarded},
        {"timestamps", vk->timestamp_mask != 0},
        {"memory shared with the host", vk->unified},
    };
    for (size_t i = 0; i < sizeof features / sizeof *features; i++)
        ree_facts_add(facts, "feature", features[i].name, "%s", features[i].has ? "yes" : "no");
}

// Adds a fact such as "float64 (native is wrong in 248 of 1600 vectors, e.g. 007fffff 3f000000
// 00800001 gives 00c00001, not 00c00000)".
static void add_verdict(struct ree_facts *facts, const struct ree_vk *vk, enum ree_vk_primitive p) {
    const struct ree_vk_verdict *verdict = &vk->verdicts[p];
    struct ree_strbuf why;
    ree_strbuf_init(&why);
    for (int form = REE_VK_NATIVE; form < REE_VK_N_FORMS; form++) {
        if (!verdict->tried[form]) continue;
        ree_strbuf_printf(&why, "%s%s is ", why.size ? "; " : "",
                          ree_vk_form_name((enum ree_vk_form)form));
        if (verdict->allowed[form]) {
            ree_strbuf_printf(&why, "right in %u vectors", verdict->n_vectors);
            continue;
        }
        const uint32_t *e = verdict->example[form];
        ree_strbuf_printf(&why,
                          "wrong in %u of %u vectors, e.g. %08x %08x %08x gives %08x, not %08x",
                          verdict->n_wrong[form], verdict->n_vectors, e[0], e[1], e[2], e[3], e[4]);
    }
    ree_facts_add(facts, "primitive", ree_vk_primitive_name(p), "%s (%s)",
                  ree_vk_form_name(verdict->form), why.data ? why.data : "");
    ree_strbuf_finish(&why);
}

static void add_observation(struct ree_facts *facts, const struct ree_vk *vk,
                            enum ree_vk_observed function) {
    const struct ree_vk_observation *o = &vk->observations[function];
    if (o->n_wrong)
        ree_facts_add(facts, "not used", ree_vk_observed_name(function),
                      "wrong for %u of %u arguments, e.g. %08x gives %08x, not %08x", o->n_wrong,
                      o->n_vectors, o->example[0], o->example[1], o->example[2]);
    else
        ree_facts_add(facts, "not used", ree_vk_observed_name(function), "right for %u arguments",
                      o->n_vectors);
}

enum ree_status ree_vk_facts_init(struct ree_vk *vk, struct ree_error *err) {
    struct ree_facts *facts = &vk->facts;
    add_identity(facts, vk);
    add_limits(facts, vk);
    add_features(facts, vk);
    for (int p = 0; p < REE_VK_N_PRIMITIVES; p++)
        add_verdict(facts, vk, (enum ree_vk_primitive)p);
    for (int f = 0; ree_vk_has_observed(vk) && f < REE_VK_N_OBSERVED; f++)
        add_observation(facts, vk, (enum ree_vk_observed)f);
    ree_vk_selftest_facts(vk);
    ree_facts_add_cache(facts, vk->cache_path);
    ree_facts_add_cache(facts, vk->tests.path);
    if (facts->failed) return ree_fail(err, REE_NO_MEMORY, "no memory for a device's facts");
    return REE_OK;
}

size_t ree_vk_facts(const struct ree_device *device, const struct ree_device_fact **out_facts) {
    const struct ree_vk *vk = REE_CONTAINER_OF(device, const struct ree_vk, base);
    *out_facts = vk->facts.list;
    return vk->facts.n;
}
