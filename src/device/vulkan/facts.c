// What `ree-run devices` prints of a Vulkan device: identity, limits, features, and the probe's
// verdict for each primitive.
#include "base/strbuf.h"
#include "device/vulkan/vulkan.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FACTS 64

// Facts while they are made: values lie one after the other in `text`, which may still move, so
// that a fact's value is an offset until the end.
struct draft {
    struct ree_device_fact *facts;
    size_t offsets[MAX_FACTS];
    size_t n;
    struct ree_strbuf text;
};

// name must be static.
__attribute__((format(printf, 4, 5))) static void add(struct draft *draft, const char *kind,
                                                      const char *name, const char *format, ...) {
    if (draft->n == MAX_FACTS) return;
    char value[512];
    va_list args;
    va_start(args, format);
    vsnprintf(value, sizeof value, format, args);
    va_end(args);
    draft->facts[draft->n].kind = kind;
    draft->facts[draft->n].name = name;
    draft->offsets[draft->n++] = draft->text.size;
    ree_strbuf_append(&draft->text, value, strlen(value) + 1);
}

static void add_bytes(struct draft *draft, const char *kind, const char *name, uint64_t bytes) {
    if (bytes >= 1ull << 30 && bytes % (1ull << 30) == 0)
        add(draft, kind, name, "%llu GiB", (unsigned long long)(bytes >> 30));
    else if (bytes >= 1ull << 20)
        add(draft, kind, name, "%llu MiB", (unsigned long long)(bytes >> 20));
    else if (bytes >= 1ull << 10 && bytes % (1ull << 10) == 0)
        add(draft, kind, name, "%llu KiB", (unsigned long long)(bytes >> 10));
    else
        add(draft, kind, name, "%llu bytes", (unsigned long long)bytes);
}

static void add_identity(struct draft *draft, const struct ree_vk *vk) {
    static const char *const types[] = {"other", "integrated GPU", "discrete GPU", "virtual GPU",
                                        "CPU"};
    uint32_t type = vk->properties.deviceType, version = vk->properties.apiVersion;
    add(draft, "device", "name", "%s", vk->properties.deviceName);
    add(draft, "device", "type", "%s", type < 5 ? types[type] : "other");
    add(draft, "device", "driver", "%s, %s", vk->driver.driverName, vk->driver.driverInfo);
    add(draft, "device", "Vulkan", "%u.%u.%u", VK_API_VERSION_MAJOR(version),
        VK_API_VERSION_MINOR(version), VK_API_VERSION_PATCH(version));
}

static void add_limits(struct draft *draft, const struct ree_vk *vk) {
    const VkPhysicalDeviceLimits *limits = &vk->properties.limits;
    add(draft, "limit", "work group", "%u", limits->maxComputeWorkGroupInvocations);
    add_bytes(draft, "limit", "shared memory", limits->maxComputeSharedMemorySize);
    add(draft, "limit", "subgroup", "%u", vk->subgroup.subgroupSize);
    add_bytes(draft, "limit", "storage buffer range", limits->maxStorageBufferRange);
    add_bytes(draft, "limit", "largest tensor", vk->base.max_buffer_size);
    uint64_t heap = 0;
    for (uint32_t i = 0; i < vk->memory.memoryHeapCount; i++)
        if (vk->memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
            heap += vk->memory.memoryHeaps[i].size;
    add_bytes(draft, "limit", "memory", heap);
}

static void add_features(struct draft *draft, const struct ree_vk *vk) {
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
        {"timestamps", vk->has_timestamps},
        {"memory shared with the host", vk->unified},
    };
    for (size_t i = 0; i < sizeof features / sizeof *features; i++)
        add(draft, "feature", features[i].name, "%s", features[i].has ? "yes" : "no");
}

// "float64 (native is wrong in 248 of 1600 vectors: 007fffff 3f000000 00800001 gives 00c00001, not
// 00c00000)"
static void add_verdict(struct draft *draft, const struct ree_vk *vk, enum ree_vk_primitive p) {
    const struct ree_vk_verdict *verdict = &vk->verdicts[p];
    struct ree_strbuf why;
    ree_strbuf_init(&why);
    for (int form = REE_VK_NATIVE; form < REE_VK_INTEGER; form++) {
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
    add(draft, "primitive", ree_vk_primitive_name(p), "%s (%s)", ree_vk_form_name(verdict->form),
        why.data ? why.data : "");
    ree_strbuf_finish(&why);
}

static void add_observation(struct draft *draft, const struct ree_vk *vk,
                            enum ree_vk_observed function) {
    const struct ree_vk_observation *o = &vk->observations[function];
    if (o->n_wrong)
        add(draft, "not used", ree_vk_observed_name(function),
            "wrong for %u of %u arguments, e.g. %08x gives %08x, not %08x", o->n_wrong,
            o->n_vectors, o->example[0], o->example[1], o->example[2]);
    else
        add(draft, "not used", ree_vk_observed_name(function), "right for %u arguments",
            o->n_vectors);
}

enum ree_status ree_vk_facts_init(struct ree_vk *vk, struct ree_error *err) {
    struct draft draft = {.facts = calloc(MAX_FACTS, sizeof *draft.facts)};
    if (!draft.facts) return ree_fail(err, REE_NO_MEMORY, "no memory for a device's facts");
    ree_strbuf_init(&draft.text);
    add_identity(&draft, vk);
    add_limits(&draft, vk);
    add_features(&draft, vk);
    for (int p = 0; p < REE_VK_N_PRIMITIVES; p++)
        add_verdict(&draft, vk, (enum ree_vk_primitive)p);
    for (int f = 0; f < REE_VK_N_OBSERVED; f++)
        add_observation(&draft, vk, (enum ree_vk_observed)f);
    if (draft.text.failed) {
        free(draft.facts);
        ree_strbuf_finish(&draft.text);
        return ree_fail(err, REE_NO_MEMORY, "no memory for a device's facts");
    }
    vk->fact_text = ree_strbuf_take(&draft.text);
    vk->facts = draft.facts;
    vk->n_facts = draft.n;
    for (size_t i = 0; i < draft.n; i++)
        vk->facts[i].value = vk->fact_text + draft.offsets[i];
    return REE_OK;
}

size_t ree_vk_facts(const struct ree_device *device, const struct ree_device_fact **out_facts) {
    const struct ree_vk *vk = (const struct ree_vk *)device;
    *out_facts = vk->facts;
    return vk->n_facts;
}
