// A device's queue belongs to a family for computation only if there is one. Timestamps may have
// fewer than 64 bits, and then wrap around; a queue without timestamps is used as well. A wait with
// a limit ends although the device does not finish, and so does closing the device.
#include "device/vulkan/encode.h"
#include "device/vulkan/vulkan.h"
#include "device_cases.h"

#include <math.h>

static struct ree_error err;

// The families that vkGetPhysicalDeviceQueueFamilyProperties returns.
static VkQueueFamilyProperties families[4];
static uint32_t n_families;
static void VKAPI_PTR get_families(VkPhysicalDevice physical, uint32_t *n,
                                   VkQueueFamilyProperties *out) {
    (void)physical;
    if (out) memcpy(out, families, (*n < n_families ? *n : n_families) * sizeof *out);
    if (!out || *n > n_families) *n = n_families;
}

#define GRAPHICS VK_QUEUE_GRAPHICS_BIT
#define COMPUTE VK_QUEUE_COMPUTE_BIT
#define TRANSFER VK_QUEUE_TRANSFER_BIT

static void chooses_family(void) {
    static const struct {
        VkQueueFlags flags[4];
        uint32_t n, chosen;
    } devices[] = {
        {{GRAPHICS | COMPUTE | TRANSFER}, 1, 0},
        {{GRAPHICS | COMPUTE | TRANSFER, TRANSFER, COMPUTE | TRANSFER}, 3, 2},
        {{TRANSFER, COMPUTE, GRAPHICS | COMPUTE, COMPUTE}, 4, 1},
        {{GRAPHICS, GRAPHICS | COMPUTE, GRAPHICS | COMPUTE}, 3, 1},
        {{GRAPHICS, TRANSFER}, 2, UINT32_MAX},
    };
    static struct ree_vk vk;
    vk.properties.limits.timestampPeriod = 10;
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++) {
        n_families = devices[d].n;
        for (uint32_t i = 0; i < n_families; i++)
            families[i] = (VkQueueFamilyProperties){
                .queueFlags = devices[d].flags[i], .queueCount = 1, .timestampValidBits = 36 + i};
        enum ree_status status = ree_vk_queue_choose(&vk, &err);
        if (devices[d].chosen == UINT32_MAX) {
            CHECK(status == REE_UNAVAILABLE && strstr(err.message, "no compute queue"));
            continue;
        }
        CHECK(status == REE_OK);
        CHECK_MSG(vk.queue_family == devices[d].chosen, "device %zu: family %u", d,
                  vk.queue_family);
        CHECK(vk.timestamp_mask == (UINT64_C(1) << (36 + devices[d].chosen)) - 1);
    }
}

// The driver's timestamps, moved so that a counter of so many bits wraps around.
static PFN_vkGetQueryPoolResults real_results;
static uint32_t n_bits;
static uint64_t moved;
static VkResult VKAPI_PTR get_results(VkDevice device, VkQueryPool pool, uint32_t first, uint32_t n,
                                      size_t size, void *data, VkDeviceSize stride,
                                      VkQueryResultFlags flags) {
    VkResult result = real_results(device, pool, first, n, size, data, stride, flags);
    uint64_t *ticks = data;
    if (result != VK_SUCCESS || flags & VK_QUERY_RESULT_WITH_AVAILABILITY_BIT) return result;
    moved = moved ? moved : (UINT64_C(1) << n_bits) - 1 - ticks[0];
    for (uint32_t i = 0; i < n; i++)
        ticks[i] = (ticks[i] + moved) & ((UINT64_C(1) << n_bits) - 1);
    return result;
}

// Runs a program on a device whose queue has timestamps of so many bits.
static void runs_with_bits(uint32_t bits) {
    struct ree_device_options options = {.size = sizeof options, .cache_dir = ""};
    struct ree_device *device;
    families[0].timestampValidBits = bits;
    REQUIRE(ree_vulkan_device_open("", &options, &device, &err) == REE_OK);
    struct ree_vk *vk = ree_vk_of(device);
    const struct ree_device_vtable *vt = device->vtable;
    real_results = vk->vk.vkGetQueryPoolResults;
    if (bits > 0 && bits < 64) vk->vk.vkGetQueryPoolResults = get_results;
    n_bits = bits;
    moved = 0;
    struct ree_dispatch dispatches[2] = {0};
    struct ree_device_buffer *buffers[2] = {0};
    uint32_t words[2] = {1, 2}, read[2] = {0};
    for (uint32_t i = 0; i < 2; i++) {
        dispatches[i] = (struct ree_dispatch){
            .op = REE_REPOP_COPY,
            .n_operands = 2,
            .n_outputs = 1,
            .operands = {{i, 0, sizeof words}, {1 - i, 0, sizeof words}},
            .params.copy = {.elem_size = 4,
                            .rank = 1,
                            .n_elements = 2,
                            .dims = {2},
                            .src_strides = {1},
                            .dst_strides = {1}},
        };
        REQUIRE(vt->buffer_create(device, sizeof words, &buffers[i], &err) == REE_OK);
    }
    const struct ree_program source = {dispatches, 2, 2, NULL, 0};
    struct ree_device_program *program = NULL;
    CHECK(vt->buffer_write(device, buffers[0], 0, words, sizeof words, &err) == REE_OK);
    CHECK_MSG(vt->program_create(device, &source, NULL, NULL, &program, &err) == REE_OK, "%s",
              err.message);
    REQUIRE(program);
    CHECK(vt->program_run(device, program, buffers, NULL, &err) == REE_OK);
    CHECK(vt->buffer_read(device, buffers[1], 0, read, sizeof read, &err) == REE_OK);
    CHECK(memcmp(read, words, sizeof read) == 0);
    double times[2] = {-1, -1};
    bool is_timed = vt->program_times(device, program, times);
    CHECK_MSG(is_timed == (bits > 0), "%u bits: the run is %stimed", bits, is_timed ? "" : "not ");
    if (is_timed)
        CHECK_MSG(times[0] >= 0 && times[0] < 60 && times[1] >= 0 && times[1] < 60 &&
                      times[0] + times[1] > 0,
                  "%u bits: %g and %g seconds", bits, times[0], times[1]);
    vt->program_destroy(device, program);
    vt->buffer_destroy(device, buffers[0]);
    vt->buffer_destroy(device, buffers[1]);
    vt->destroy(device);
}

static VkResult VKAPI_PTR never_done(VkDevice device, uint32_t n, const VkFence *fences,
                                     VkBool32 all, uint64_t nanoseconds) {
    (void)device, (void)n, (void)fences, (void)all, (void)nanoseconds;
    return VK_TIMEOUT;
}
static void VKAPI_PTR destroyed(VkDevice device, const VkAllocationCallbacks *callbacks) {
    (void)device, (void)callbacks;
    CHECK_MSG(false, "destroys a device that still works");
}
#define DESTROYED(type)                                                                            \
    static void VKAPI_PTR destroyed_##type(VkDevice device, type object,                           \
                                           const VkAllocationCallbacks *callbacks) {               \
        (void)device, (void)object, (void)callbacks;                                               \
        CHECK_MSG(false, "destroys a " #type " of a device that still works");                     \
    }
DESTROYED(VkBuffer)
DESTROYED(VkCommandPool)
DESTROYED(VkDeviceMemory)
DESTROYED(VkFence)
DESTROYED(VkPipeline)
DESTROYED(VkPipelineCache)
DESTROYED(VkPipelineLayout)
DESTROYED(VkQueryPool)
static void VKAPI_PTR freed_commands(VkDevice device, VkCommandPool pool, uint32_t n,
                                     const VkCommandBuffer *buffers) {
    (void)device, (void)pool, (void)n, (void)buffers;
    CHECK_MSG(false, "frees commands of a device that still works");
}

// Makes a check fail if the device or an object of it is destroyed.
static void destroys_nothing(struct ree_vk *vk) {
    vk->vk.vkDestroyDevice = destroyed;
    vk->vk.vkDestroyBuffer = destroyed_VkBuffer;
    vk->vk.vkDestroyCommandPool = destroyed_VkCommandPool;
    vk->vk.vkFreeMemory = destroyed_VkDeviceMemory;
    vk->vk.vkDestroyFence = destroyed_VkFence;
    vk->vk.vkDestroyPipeline = destroyed_VkPipeline;
    vk->vk.vkDestroyPipelineCache = destroyed_VkPipelineCache;
    vk->vk.vkDestroyPipelineLayout = destroyed_VkPipelineLayout;
    vk->vk.vkDestroyQueryPool = destroyed_VkQueryPool;
    vk->vk.vkFreeCommandBuffers = freed_commands;
}

// A device that does not finish in a self-test: one test fails, not one for each form; further uses
// fail at once; nothing is destroyed.
static void gives_up(void) {
    struct ree_device_options options = {.size = sizeof options, .cache_dir = ""};
    struct ree_device *device;
    REQUIRE(ree_vulkan_device_open("", &options, &device, &err) == REE_OK);
    struct ree_vk *vk = ree_vk_of(device);
    const struct ree_device_vtable *vt = device->vtable;
    struct ree_device_buffer *buffer;
    struct ree_vk_encoding encoding;
    struct ree_dispatch dispatch = {
        .op = REE_REPOP_MATMUL,
        .n_operands = 3,
        .n_outputs = 1,
        .operands = {{0, 0, 16}, {1, 0, 16}, {2, 0, 16}},
        .params.matmul = {.n_batch = 1,
                          .m = 2,
                          .n = 2,
                          .k = 2,
                          .a_dtype = REE_F32,
                          .b_dtype = REE_F32,
                          .dtype = REE_F32,
                          .a_stride_m = 2,
                          .a_stride_k = 1,
                          .b_stride_k = 2,
                          .b_stride_n = 1},
    };
    REQUIRE(vt->buffer_create(device, 16, &buffer, &err) == REE_OK);
    const VkDevice abandoned = vk->handle;
    const PFN_vkDeviceWaitIdle wait_idle = vk->vk.vkDeviceWaitIdle;
    vk->vk.vkWaitForFences = never_done;
    destroys_nothing(vk);
    vk->test_seconds = 0.01;
    CHECK(ree_vk_encode_tested(vk, &dispatch, &encoding, NULL) == REE_DEVICE);
    CHECK(vk->n_tests_run == 0 && vk->is_abandoned);
    CHECK(ree_vk_encode_tested(vk, &dispatch, &encoding, &err) == REE_DEVICE);
    CHECK_MSG(strstr(err.message, "self-test of matmul"), "%s", err.message);
    CHECK(ree_vk_submit(vk, vk->transfer_commands, &err) == REE_DEVICE);
    CHECK(ree_vk_queue_wait(vk, vk->fences[0], NULL, NULL, &err) == REE_DEVICE);
    vt->buffer_destroy(device, buffer);
    vt->destroy(device);
    // This device does finish. A driver on the CPU whose threads still work when the process ends
    // may crash: by then its global objects are destroyed.
    CHECK(wait_idle(abandoned) == VK_SUCCESS);
}

int main(void) {
    struct ree_device_listing list[16];
    const char *note;
    if (ree_vulkan_device_list(list, 16, &note) == 0) return test_skip(note);
    struct ree_device_options options = {.size = sizeof options, .cache_dir = ""};
    struct ree_device *device;
    REQUIRE(ree_vulkan_device_open("", &options, &device, &err) == REE_OK);
    n_families = 4;
    vkGetPhysicalDeviceQueueFamilyProperties(ree_vk_of(device)->physical, &n_families, families);
    const VkQueueFamilyProperties own = families[0];
    const bool is_usable = n_families == 1 && own.timestampValidBits > 0;
    device->vtable->destroy(device);
    gives_up();
    vkGetPhysicalDeviceQueueFamilyProperties = get_families;
    if (is_usable) {
        runs_with_bits(0);
        runs_with_bits(36);
        runs_with_bits(own.timestampValidBits);
    }
    chooses_family();
    return test_finish();
}
