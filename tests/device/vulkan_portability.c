// A device that lists VK_KHR_portability_subset is opened with this extension, as the specification
// requires; other devices are opened without it. The instance is created with portability drivers
// included if the loader can include them, and without the flag if it cannot.
#include "device/vulkan/vulkan.h"
#include "test.h"

#include <string.h>

#define SUBSET "VK_KHR_portability_subset"
#define ENUMERATION "VK_KHR_portability_enumeration"

static struct ree_error err;

// The driver and the loader, as seen through these functions.
static PFN_vkEnumerateDeviceExtensionProperties real_device_extensions;
static PFN_vkEnumerateInstanceExtensionProperties real_instance_extensions;
static PFN_vkCreateDevice real_create_device;
static PFN_vkCreateInstance real_create_instance;
static bool lists_subset, lists_enumeration; // what they list
static uint32_t n_subset, n_enumeration;     // what was enabled, how often
static bool is_flagged;                      // the last instance includes portability drivers

static bool is_enabled(const char *const *names, uint32_t n, const char *name) {
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

// Appends an extension to the complete list, or removes it.
static VkResult edit(VkExtensionProperties *list, uint32_t n, uint32_t *out_n,
                     VkExtensionProperties *out, const char *name, bool is_listed) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(list[i].extensionName, name) != 0) list[kept++] = list[i];
    if (is_listed) {
        memset(&list[kept], 0, sizeof list[kept]);
        strcpy(list[kept++].extensionName, name);
    }
    if (out) memcpy(out, list, (*out_n < kept ? *out_n : kept) * sizeof *list);
    VkResult result = out && *out_n < kept ? VK_INCOMPLETE : VK_SUCCESS;
    if (!out || *out_n > kept) *out_n = kept;
    return result;
}

static VkExtensionProperties extensions[1024];
static VkResult VKAPI_PTR device_extensions(VkPhysicalDevice physical, const char *layer,
                                            uint32_t *n, VkExtensionProperties *out) {
    uint32_t n_real = 1023;
    VkResult result = real_device_extensions(physical, layer, &n_real, extensions);
    return result ? result : edit(extensions, n_real, n, out, SUBSET, lists_subset);
}
static VkResult VKAPI_PTR instance_extensions(const char *layer, uint32_t *n,
                                              VkExtensionProperties *out) {
    uint32_t n_real = 1023;
    VkResult result = real_instance_extensions(layer, &n_real, extensions);
    return result ? result : edit(extensions, n_real, n, out, ENUMERATION, lists_enumeration);
}

// Notes an extension and passes the others on, because this driver does not have it.
static VkResult VKAPI_PTR create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo *info,
                                        const VkAllocationCallbacks *allocator, VkDevice *out) {
    VkDeviceCreateInfo passed = *info;
    const char *names[16];
    passed.enabledExtensionCount = 0;
    passed.ppEnabledExtensionNames = names;
    for (uint32_t i = 0; i < info->enabledExtensionCount; i++) {
        if (strcmp(info->ppEnabledExtensionNames[i], SUBSET) == 0)
            n_subset++;
        else
            names[passed.enabledExtensionCount++] = info->ppEnabledExtensionNames[i];
    }
    return real_create_device(physical, &passed, allocator, out);
}
static VkResult VKAPI_PTR create_instance(const VkInstanceCreateInfo *info,
                                          const VkAllocationCallbacks *allocator, VkInstance *out) {
    VkInstanceCreateInfo passed = *info;
    const char *names[16];
    passed.flags = 0;
    passed.enabledExtensionCount = 0;
    passed.ppEnabledExtensionNames = names;
    is_flagged = info->flags & 1; // VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR
    n_enumeration +=
        is_enabled(info->ppEnabledExtensionNames, info->enabledExtensionCount, ENUMERATION);
    for (uint32_t i = 0; i < info->enabledExtensionCount; i++)
        if (strcmp(info->ppEnabledExtensionNames[i], ENUMERATION) != 0)
            names[passed.enabledExtensionCount++] = info->ppEnabledExtensionNames[i];
    return real_create_instance(&passed, allocator, out);
}

int main(void) {
    struct ree_device_listing list[16];
    const char *note;
    if (ree_vulkan_device_list(list, 16, &note) == 0) return test_skip(note);
    struct ree_device_options options = {.size = sizeof options, .cache_dir = ""};
    struct ree_device *device;
    // Opens once, so that later opens need no child process and are seen by this one.
    REQUIRE(ree_vulkan_device_open("", &options, &device, &err) == REE_OK);
    device->vtable->destroy(device);

    real_device_extensions = vkEnumerateDeviceExtensionProperties;
    real_instance_extensions = vkEnumerateInstanceExtensionProperties;
    real_create_device = vkCreateDevice;
    real_create_instance = vkCreateInstance;
    vkEnumerateDeviceExtensionProperties = device_extensions;
    vkEnumerateInstanceExtensionProperties = instance_extensions;
    vkCreateDevice = create_device;
    vkCreateInstance = create_instance;
    for (int i = 0; i < 4; i++) {
        lists_subset = i & 1;
        lists_enumeration = i & 2;
        n_subset = n_enumeration = 0;
        CHECK_MSG(ree_vulkan_device_open("", &options, &device, &err) == REE_OK, "%s", err.message);
        if (device) device->vtable->destroy(device);
        CHECK_MSG(n_subset == lists_subset, "%u devices have the extension", n_subset);
        CHECK_MSG(n_enumeration == lists_enumeration && is_flagged == lists_enumeration,
                  "%u instances have the extension, the flag is %d", n_enumeration, is_flagged);
    }
    return test_finish();
}
