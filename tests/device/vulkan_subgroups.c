// Modules that share operands within a subgroup run only if the device has the operations and the
// pipeline can request the size of the subgroup that they rely on. Otherwise other modules compute
// the same bytes. Registered once for each of lavapipe's vector widths.
#include "device/vulkan/vulkan.h"
#include "device_cases.h"

static struct ree_error err;

// The device, as seen through these functions.
static PFN_vkGetPhysicalDeviceProperties real_properties;
static PFN_vkGetPhysicalDeviceProperties2 real_properties2;
static PFN_vkEnumerateDeviceExtensionProperties real_extensions;
static PFN_vkCreateShaderModule real_module;
static PFN_vkCreateComputePipelines real_pipelines;
static bool lacks_ballot, lacks_control, is_gpu;
static VkShaderModule with_subgroups; // the last module that uses subgroups
static uint32_t local_size;           // threads of a workgroup of the last module
static uint32_t n_with_subgroups, n_sized;

static void VKAPI_PTR properties(VkPhysicalDevice physical, VkPhysicalDeviceProperties *out) {
    real_properties(physical, out);
    if (is_gpu) out->deviceType = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
}

static void VKAPI_PTR properties2(VkPhysicalDevice physical, VkPhysicalDeviceProperties2 *out) {
    real_properties2(physical, out);
    for (VkBaseOutStructure *s = out->pNext; s; s = s->pNext) {
        if (s->sType != VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES || !lacks_ballot)
            continue;
        VkPhysicalDeviceSubgroupProperties *subgroup = (void *)s;
        subgroup->supportedOperations = VK_SUBGROUP_FEATURE_BASIC_BIT;
    }
}

static VkResult VKAPI_PTR extensions(VkPhysicalDevice physical, const char *layer, uint32_t *n,
                                     VkExtensionProperties *out) {
    VkResult result = real_extensions(physical, layer, n, out);
    for (uint32_t i = 0; out && lacks_control && i < *n; i++)
        if (strcmp(out[i].extensionName, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME) == 0)
            strcpy(out[i].extensionName, "none");
    return result;
}

// Returns whether a module declares the capability GroupNonUniformBallot (64). OpCapability is
// instruction 17 and has two words.
static bool declares_subgroups(const VkShaderModuleCreateInfo *info) {
    const uint32_t *words = info->pCode;
    size_t n = info->codeSize / sizeof *words;
    for (size_t i = 5; i + 1 < n && words[i] >> 16; i += words[i] >> 16)
        if ((words[i] & 0xFFFF) == 17 && words[i + 1] == 64) return true;
    return false;
}

// Returns the first word offset of an instruction with this opcode, and this id in its word `at`;
// 0: there is none.
static size_t find(const VkShaderModuleCreateInfo *info, uint32_t opcode, uint32_t at,
                   uint32_t id) {
    const uint32_t *words = info->pCode;
    const size_t n = info->codeSize / sizeof *words;
    for (size_t i = 5; i + at < n && words[i] >> 16; i += words[i] >> 16)
        if ((words[i] & 0xFFFF) == opcode && words[i] >> 16 > at && words[i + at] == id) return i;
    return 0;
}

// Returns the x of the workgroup's size: a composite that is decorated as the built-in variable 25.
static uint32_t read_local_size(const VkShaderModuleCreateInfo *info) {
    const uint32_t *words = info->pCode;
    const size_t decoration = find(info, 71, 3, 25); // OpDecorate
    const size_t composite = decoration ? find(info, 44, 2, words[decoration + 1]) : 0;
    const size_t constant = composite ? find(info, 43, 2, words[composite + 3]) : 0;
    return constant ? words[constant + 3] : 0;
}

static VkResult VKAPI_PTR create_module(VkDevice device, const VkShaderModuleCreateInfo *info,
                                        const VkAllocationCallbacks *allocator,
                                        VkShaderModule *out) {
    VkResult result = real_module(device, info, allocator, out);
    with_subgroups = VK_NULL_HANDLE;
    local_size = read_local_size(info);
    if (result == VK_SUCCESS && declares_subgroups(info)) with_subgroups = *out;
    return result;
}

static VkResult VKAPI_PTR create_pipelines(VkDevice device, VkPipelineCache cache, uint32_t n,
                                           const VkComputePipelineCreateInfo *infos,
                                           const VkAllocationCallbacks *allocator,
                                           VkPipeline *out) {
    const VkPipelineShaderStageRequiredSubgroupSizeCreateInfoEXT *size = infos->stage.pNext;
    if (infos->stage.module == with_subgroups) {
        n_with_subgroups++;
        n_sized +=
            size && size->requiredSubgroupSize == local_size &&
            infos->stage.flags & VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT_EXT;
    }
    return real_pipelines(device, cache, n, infos, allocator, out);
}

// A product of more rows than a tile has, whose columns do not fill the last tile, and whose terms
// do not fill the last chunk.
static void compare_product(struct ree_device *device, const char *what) {
    const uint32_t m = 19, n = 4 * 16 + 7, k = 300;
    const uint64_t sizes[3] = {(uint64_t)m * k, (uint64_t)k * n, (uint64_t)m * n};
    struct test_case c;
    struct rng rng = {.state = 1};
    uint32_t n_printed = 0;
    case_begin(&c, REE_REPOP_MATMUL);
    c.dispatch.params.matmul = dense_products(m, n, k);
    case_input(&c, &rng, REE_F32, sizes[0]);
    case_input(&c, &rng, REE_F32, sizes[1]);
    case_output(&c, &rng, REE_F32, sizes[2]);
    compare_case(device, what, REE_REPOP_MATMUL, 1, &c, &n_printed);
    test_case_finish(&c);
}

// Returns false if the device computes nothing in float64.
static bool try(const char *what, bool uses, bool sized) {
    struct ree_device_testing testing = {.size = sizeof testing, .force_form = "float64"};
    struct ree_device_options options = {
        .size = sizeof options, .validation = true, .cache_dir = "", .testing = &testing};
    struct ree_device *device;
    enum ree_status status = ree_vulkan_device_open("", &options, &device, &err);
    options.validation = false;
    if (status == REE_UNAVAILABLE) status = ree_vulkan_device_open("", &options, &device, &err);
    if (status == REE_UNSUPPORTED || status == REE_UNAVAILABLE) return false;
    REQUIRE(status == REE_OK);
    struct ree_vk *vk = ree_vk_of(device);
    // Modules for many rows use subgroups.
    vk->thresholds.small_product = vk->thresholds.tiny_product = 0;
    real_module = vk->vk.vkCreateShaderModule;
    real_pipelines = vk->vk.vkCreateComputePipelines;
    vk->vk.vkCreateShaderModule = create_module;
    vk->vk.vkCreateComputePipelines = create_pipelines;
    n_with_subgroups = n_sized = 0;
    compare_product(device, what);
    CHECK_MSG((n_with_subgroups > 0) == uses, "%s: %u pipelines use subgroups", what,
              n_with_subgroups);
    CHECK_MSG(n_sized == (sized ? n_with_subgroups : 0), "%s: %u of %u request a size", what,
              n_sized, n_with_subgroups);
    // No pipeline failed its self-test: none relied on subgroups that it did not have.
    const struct ree_device_fact *facts;
    size_t n_facts = device->vtable->facts(device, &facts);
    for (size_t i = 0; i < n_facts; i++)
        CHECK_MSG(strcmp(facts[i].name, "failed") != 0, "%s: %s", what, facts[i].value);
    printf("%s: subgroups of %u\n", what, vk->subgroup.subgroupSize);
    device->vtable->destroy(device);
    return true;
}

int main(void) {
    struct ree_device_listing list[16];
    const char *note;
    if (ree_vulkan_device_list(list, 16, &note) == 0) return test_skip(note);
    real_properties = vkGetPhysicalDeviceProperties;
    real_properties2 = vkGetPhysicalDeviceProperties2;
    real_extensions = vkEnumerateDeviceExtensionProperties;
    // What this device can do is known only after it was opened.
    struct ree_device_options options = {.size = sizeof options, .cache_dir = ""};
    struct ree_device *device;
    enum ree_status status = ree_vulkan_device_open("", &options, &device, &err);
    if (status == REE_UNAVAILABLE) return test_skip(err.message);
    // Lavapipe of some releases crashes with vectors of this width, and is refused.
    if (status == REE_DEVICE && strstr(err.message, "crashed in the probe"))
        return test_skip(err.message);
    REQUIRE(status == REE_OK);
    const bool is_cpu = ree_vk_of(device)->is_cpu;
    const bool uses = ree_vk_of(device)->has_subgroups;
    const bool sized = ree_vk_of(device)->has_subgroup_size;
    device->vtable->destroy(device);
    if (!try("the device itself", uses, sized)) return test_skip("no float64");
    vkGetPhysicalDeviceProperties = properties;
    vkGetPhysicalDeviceProperties2 = properties2;
    vkEnumerateDeviceExtensionProperties = extensions;
    lacks_ballot = true;
    CHECK(try("without ballot", false, false));
    lacks_ballot = false;
    lacks_control = true;
    CHECK(try("without control of the size", uses && is_cpu, false));
    is_gpu = true;
    CHECK(try("a GPU without control of the size", false, false));
    lacks_control = false;
    if (sized) CHECK(try("a GPU", true, true));
    return test_finish();
}
