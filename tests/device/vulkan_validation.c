// A message of the validation layer fails the operation in progress, and only that one. The tests
// that run with the layer on rely on this.
#include "device/vulkan/vulkan.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

// Writes a buffer twice without a barrier between. Returns the layer's opinion.
static enum ree_status write_twice(struct ree_vk *vk, const struct ree_device_buffer *buffer,
                                   struct ree_error *err) {
    const VkCommandBufferBeginInfo begin = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
    };
    REQUIRE(vk->vk.vkBeginCommandBuffer(vk->transfer_commands, &begin) == VK_SUCCESS);
    for (uint32_t i = 0; i < 2; i++)
        vk->vk.vkCmdFillBuffer(vk->transfer_commands, buffer->handle, buffer->offset, 64, i);
    REQUIRE(vk->vk.vkEndCommandBuffer(vk->transfer_commands) == VK_SUCCESS);
    return ree_vk_check_validation(vk, err);
}

int main(void) {
    struct ree_device_listing list[16];
    const char *note;
    if (ree_vulkan_device_list(list, 16, &note) == 0) return test_skip(note);
    struct ree_device_options options = {
        .size = sizeof options, .validation = true, .cache_dir = ""};
    struct ree_device *device;
    struct ree_error err;
    enum ree_status status = ree_vulkan_device_open("", &options, &device, &err);
    if (status == REE_UNAVAILABLE) return test_skip(err.message);
    REQUIRE(status == REE_OK);
    struct ree_vk *vk = ree_vk_of(device);
    CHECK(ree_vk_check_validation(vk, &err) == REE_OK);

    // A size of 0 violates VUID-VkBufferCreateInfo-size-00912.
    VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = 0,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT,
    };
    VkBuffer buffer = VK_NULL_HANDLE;
    if (vk->vk.vkCreateBuffer(vk->handle, &info, NULL, &buffer) == VK_SUCCESS && buffer)
        vk->vk.vkDestroyBuffer(vk->handle, buffer, NULL);
    // The next operation of the device reports it.
    struct ree_device_buffer *ours = NULL;
    uint32_t word = 0;
    status = device->vtable->buffer_create(device, 64, &ours, &err);
    if (status == REE_OK) status = ree_vk_check_validation(vk, &err);
    CHECK_MSG(status == REE_DEVICE && strstr(err.message, "Vulkan validation: ") &&
                  strstr(err.message, "VkBufferCreateInfo-size"),
              "%d: %s", status, err.message);
    // It was reported once; the device remains usable.
    CHECK(ree_vk_check_validation(vk, &err) == REE_OK);
    if (!ours) CHECK(device->vtable->buffer_create(device, 64, &ours, &err) == REE_OK);
    CHECK(device->vtable->buffer_write(device, ours, 0, &word, sizeof word, &err) == REE_OK);

    // The settings of tests/validation, which CTest names, find hazards between commands.
    if (getenv("VK_LAYER_SETTINGS_PATH")) {
        status = write_twice(vk, ours, &err);
        // Layer 1.4.363 spells it differently from 1.4.309.
        CHECK_MSG(status == REE_DEVICE && (strstr(err.message, "SYNC-HAZARD-WRITE-AFTER-WRITE") ||
                                           strstr(err.message, "WRITE_AFTER_WRITE hazard")),
                  "%d: %s", status, err.message);
    }
    device->vtable->buffer_destroy(device, ours);
    device->vtable->destroy(device);
    return test_finish();
}
