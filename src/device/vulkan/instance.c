// The Vulkan loader, the instance, and the choice of a physical device. volk loads libvulkan.so.1
// at run time, so the same binary runs on a machine without Vulkan.
#include "device/vulkan/vulkan.h"

#include "base/float_env.h"
#include "base/memory.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INSTALL_HINT "install libvulkan1 and a driver, e.g. mesa-vulkan-drivers"
#define MAX_DEVICES 16

// Vulkan's headers have these names only since 1.3.208.
#define PORTABILITY_EXTENSION "VK_KHR_portability_enumeration"
#define ENUMERATE_PORTABILITY_BIT 1u // VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR

static pthread_once_t loader_once = PTHREAD_ONCE_INIT;
static VkResult loader_result;

static void loader_init(void) {
    loader_result = volkInitialize();
    ree_float_env_set(); // the loader's libraries may have changed it
}

enum ree_status ree_vk_fail(struct ree_error *err, VkResult result, const char *what) {
    enum ree_status status = REE_DEVICE;
    const char *name = NULL;
    switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
        status = REE_NO_MEMORY;
        name = "out of host memory";
        break;
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
        status = REE_NO_MEMORY;
        name = "out of device memory";
        break;
    case VK_ERROR_DEVICE_LOST:
        name = "the device was lost: it was reset, or its driver failed; open it again";
        break;
    case VK_ERROR_INITIALIZATION_FAILED: name = "initialization failed"; break;
    case VK_ERROR_INCOMPATIBLE_DRIVER:
        status = REE_UNAVAILABLE;
        name = "no compatible driver (" INSTALL_HINT ")";
        break;
    case VK_ERROR_INVALID_SHADER_NV: name = "the driver refused the shader"; break;
    case VK_TIMEOUT: name = "timeout"; break;
    default: break;
    }
    if (name) return ree_fail(err, status, "Vulkan: %s: %s", what, name);
    return ree_fail(err, status, "Vulkan: %s: VkResult %d", what, (int)result);
}

static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                 VkDebugUtilsMessageTypeFlagsEXT types,
                                                 const VkDebugUtilsMessengerCallbackDataEXT *data,
                                                 void *user) {
    (void)severity, (void)types;
    struct ree_vk *vk = user;
    if (!vk->has_validation_message) {
        snprintf(vk->validation_message, sizeof vk->validation_message, "%s", data->pMessage);
        vk->has_validation_message = true;
    }
    return VK_FALSE;
}

enum ree_status ree_vk_check_validation(struct ree_vk *vk, struct ree_error *err) {
    if (!vk->has_validation_message) return REE_OK;
    vk->has_validation_message = false;
    return ree_fail(err, REE_DEVICE, "Vulkan validation: %.900s", vk->validation_message);
}

static bool has_layer(const char *name) {
    uint32_t n = 0;
    if (vkEnumerateInstanceLayerProperties(&n, NULL) != VK_SUCCESS || n == 0) return false;
    VkLayerProperties *layers = ree_alloc_zeroed(n, sizeof *layers);
    bool found = false;
    if (layers && vkEnumerateInstanceLayerProperties(&n, layers) >= 0)
        for (uint32_t i = 0; i < n; i++)
            found = found || strcmp(layers[i].layerName, name) == 0;
    ree_free(layers);
    return found;
}

static bool has_instance_extension(const char *name) {
    uint32_t n = 0;
    if (vkEnumerateInstanceExtensionProperties(NULL, &n, NULL) != VK_SUCCESS || n == 0)
        return false;
    VkExtensionProperties *extensions = ree_alloc_zeroed(n, sizeof *extensions);
    bool found = false;
    if (extensions && vkEnumerateInstanceExtensionProperties(NULL, &n, extensions) >= 0)
        for (uint32_t i = 0; i < n; i++)
            found = found || strcmp(extensions[i].extensionName, name) == 0;
    ree_free(extensions);
    return found;
}

// volk keeps instance functions in global variables. Functions of core Vulkan belong to the loader
// and are the same for every instance. Extension functions differ between instances, so they are
// looked up at their use.
static void load_functions(VkInstance instance) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static bool done;
    pthread_mutex_lock(&mutex);
    if (!done) volkLoadInstanceOnly(instance);
    done = true;
    pthread_mutex_unlock(&mutex);
}

static enum ree_status create_instance(VkInstance *out, bool validation, struct ree_vk *user,
                                       struct ree_error *err) {
    pthread_once(&loader_once, loader_init);
    if (loader_result != VK_SUCCESS)
        return ree_fail(err, REE_UNAVAILABLE,
                        "Vulkan: libvulkan.so.1 was not found (" INSTALL_HINT ")");
    if (volkGetInstanceVersion() < VK_API_VERSION_1_2)
        return ree_fail(err, REE_UNAVAILABLE, "Vulkan: the loader is older than version 1.2");
    static const char layer[] = "VK_LAYER_KHRONOS_validation";
    if (validation && !has_layer(layer))
        return ree_fail(err, REE_UNAVAILABLE,
                        "Vulkan: %s is not installed (vulkan-validationlayers)", layer);
    const char *layers[] = {layer};
    const char *extensions[2];
    uint32_t n_extensions = 0;
    if (validation) extensions[n_extensions++] = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
    // Without this extension the loader hides drivers that lack parts of Vulkan, such as MoltenVK.
    bool portability = has_instance_extension(PORTABILITY_EXTENSION);
    if (portability) extensions[n_extensions++] = PORTABILITY_EXTENSION;
    VkApplicationInfo application = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
        .pApplicationName = "ree",
        .pEngineName = "ree",
        .apiVersion = VK_API_VERSION_1_2,
    };
    VkDebugUtilsMessengerCreateInfoEXT messenger = {
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
        .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                           VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
        .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT,
        .pfnUserCallback = on_message,
        .pUserData = user,
    };
    VkInstanceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pNext = validation ? &messenger : NULL,
        .flags = portability ? ENUMERATE_PORTABILITY_BIT : 0,
        .pApplicationInfo = &application,
        .enabledLayerCount = validation ? 1 : 0,
        .ppEnabledLayerNames = layers,
        .enabledExtensionCount = n_extensions,
        .ppEnabledExtensionNames = extensions,
    };
    VkResult created = vkCreateInstance(&info, NULL, out);
    ree_float_env_set(); // drivers and layers loaded by this call may have changed it
    REE_VK_TRY(err, created, "cannot create an instance");
    load_functions(*out);
    if (validation && user) {
        PFN_vkCreateDebugUtilsMessengerEXT create =
            (PFN_vkCreateDebugUtilsMessengerEXT)vkGetInstanceProcAddr(
                *out, "vkCreateDebugUtilsMessengerEXT");
        VkResult result = create ? create(*out, &messenger, NULL, &user->messenger)
                                 : VK_ERROR_EXTENSION_NOT_PRESENT;
        if (result != VK_SUCCESS) {
            vkDestroyInstance(*out, NULL);
            *out = VK_NULL_HANDLE;
            return ree_vk_fail(err, result, "cannot create a debug messenger");
        }
    }
    return REE_OK;
}

// Lists up to MAX_DEVICES physical devices in the loader's order.
static enum ree_status enumerate(VkInstance instance, VkPhysicalDevice *devices, uint32_t *n,
                                 struct ree_error *err) {
    *n = MAX_DEVICES;
    VkResult result = vkEnumeratePhysicalDevices(instance, n, devices);
    if (result != VK_SUCCESS && result != VK_INCOMPLETE)
        return ree_vk_fail(err, result, "cannot list the devices");
    if (*n == 0)
        return ree_fail(err, REE_UNAVAILABLE, "Vulkan: no driver has a device (" INSTALL_HINT ")");
    return REE_OK;
}

static bool contains_any_case(const char *text, const char *part) {
    size_t n = strlen(part);
    for (; *text; text++) {
        size_t i = 0;
        while (i < n && tolower((unsigned char)text[i]) == tolower((unsigned char)part[i]))
            i++;
        if (i == n) return true;
    }
    return n == 0;
}

static enum ree_status choose(VkInstance instance, const char *which, VkPhysicalDevice *out,
                              struct ree_error *err) {
    VkPhysicalDevice devices[MAX_DEVICES];
    uint32_t n;
    REE_TRY(enumerate(instance, devices, &n, err));
    if (which[0] == '\0') {
        *out = devices[0];
        return REE_OK;
    }
    char *end;
    unsigned long index = strtoul(which, &end, 10);
    if (isdigit((unsigned char)which[0]) && *end == '\0') {
        if (index >= n)
            return ree_fail(err, REE_NOT_FOUND,
                            "Vulkan: device %s does not exist; devices are 0 to %u", which, n - 1);
        *out = devices[index];
        return REE_OK;
    }
    for (uint32_t i = 0; i < n; i++) {
        VkPhysicalDeviceProperties properties;
        vkGetPhysicalDeviceProperties(devices[i], &properties);
        if (contains_any_case(properties.deviceName, which)) {
            *out = devices[i];
            return REE_OK;
        }
    }
    return ree_fail(err, REE_NOT_FOUND, "Vulkan: no device has '%s' in its name", which);
}

enum ree_status ree_vk_instance_init(struct ree_vk *vk, const char *which, bool validation,
                                     struct ree_error *err) {
    REE_TRY(create_instance(&vk->instance, validation, vk, err));
    enum ree_status status = choose(vk->instance, which, &vk->physical, err);
    if (status != REE_OK) ree_vk_instance_finish(vk);
    return status;
}

void ree_vk_instance_finish(struct ree_vk *vk) {
    if (vk->messenger) {
        PFN_vkDestroyDebugUtilsMessengerEXT destroy =
            (PFN_vkDestroyDebugUtilsMessengerEXT)vkGetInstanceProcAddr(
                vk->instance, "vkDestroyDebugUtilsMessengerEXT");
        destroy(vk->instance, vk->messenger, NULL);
    }
    if (vk->instance && !vk->is_abandoned) vkDestroyInstance(vk->instance, NULL);
    vk->messenger = VK_NULL_HANDLE;
    vk->instance = VK_NULL_HANDLE;
}

pthread_mutex_t ree_vk_opening = PTHREAD_MUTEX_INITIALIZER;

size_t ree_vulkan_device_list(struct ree_device_listing *out_list, size_t max,
                              const char **out_note) {
    static _Thread_local struct ree_error err;
    if (out_note) *out_note = NULL;
    VkInstance instance = VK_NULL_HANDLE;
    VkPhysicalDevice devices[MAX_DEVICES];
    uint32_t n = 0;
    pthread_mutex_lock(&ree_vk_opening);
    if (create_instance(&instance, false, NULL, &err) != REE_OK ||
        enumerate(instance, devices, &n, &err) != REE_OK) {
        n = 0;
        if (out_note) *out_note = err.message;
    }
    for (uint32_t i = 0; i < n && i < max; i++) {
        VkPhysicalDeviceProperties properties;
        vkGetPhysicalDeviceProperties(devices[i], &properties);
        snprintf(out_list[i].spec, sizeof out_list[i].spec, "vulkan:%u", i);
        snprintf(out_list[i].name, sizeof out_list[i].name, "%s", properties.deviceName);
    }
    if (instance) vkDestroyInstance(instance, NULL);
    pthread_mutex_unlock(&ree_vk_opening);
    return n;
}
