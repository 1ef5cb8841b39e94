// Device memory. Large buffers have their own allocation. Small ones are parts of 16 MiB blocks,
// because a device may allow only 4096 allocations and a model has thousands of small tensors. If
// device memory is host-visible (CPU drivers, integrated GPUs), writes and reads are memcpy;
// otherwise they use one staging buffer.
#include "device/vulkan/vulkan.h"

#include <stdlib.h>
#include <string.h>
#include "base/memory.h"

#define ALIGNMENT 64ull             // of every buffer, device.h
#define BLOCK_SIZE (16ull << 20)    // bytes
#define LARGEST_POOLED (1ull << 20) // bytes; larger buffers get their own memory
#define STAGING_SIZE (16ull << 20)  // bytes

struct free_range {
    uint64_t offset, size;
};

struct ree_vk_block {
    struct ree_vk_block *next;
    struct ree_device_buffer whole;
    struct free_range *ranges; // free ranges by ascending offset, never adjacent
    size_t n_ranges;
};

static uint64_t round_up(uint64_t x, uint64_t to) {
    return (x + to - 1) / to * to;
}

// Memory types

static bool find_type(const struct ree_vk *vk, uint32_t allowed, VkMemoryPropertyFlags wanted,
                      uint32_t *out) {
    for (uint32_t i = 0; i < vk->memory.memoryTypeCount; i++) {
        VkMemoryPropertyFlags flags = vk->memory.memoryTypes[i].propertyFlags;
        if ((allowed >> i & 1) && (flags & wanted) == wanted) {
            *out = i;
            return true;
        }
    }
    return false;
}

static VkBufferCreateInfo buffer_info(uint64_t size) {
    return (VkBufferCreateInfo){
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = size,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT,
        .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
    };
}

enum ree_status ree_vk_memory_init(struct ree_vk *vk, struct ree_error *err) {
    // All buffers have the same usage, so one of them shows which memory types are suitable.
    VkBufferCreateInfo info = buffer_info(ALIGNMENT);
    VkBuffer buffer;
    REE_VK_TRY(err, vk->vk.vkCreateBuffer(vk->handle, &info, NULL, &buffer),
               "cannot create a buffer");
    VkMemoryRequirements requirements;
    vk->vk.vkGetBufferMemoryRequirements(vk->handle, buffer, &requirements);
    vk->vk.vkDestroyBuffer(vk->handle, buffer, NULL);
    uint32_t types = requirements.memoryTypeBits;

    const VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    const VkMemoryPropertyFlags visible =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    const VkMemoryPropertyFlags cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    if (!find_type(vk, types, visible | cached, &vk->host_type) &&
        !find_type(vk, types, visible, &vk->host_type))
        return ree_fail(err, REE_UNAVAILABLE, "Vulkan: '%s' has no host-visible coherent memory",
                        vk->properties.deviceName);
    vk->unified = find_type(vk, types, local | visible | cached, &vk->device_type);
    if (!vk->unified && !find_type(vk, types, local, &vk->device_type) &&
        !find_type(vk, types, 0, &vk->device_type))
        return ree_fail(err, REE_UNAVAILABLE, "Vulkan: '%s' has no memory for buffers",
                        vk->properties.deviceName);
    return REE_OK;
}

void ree_vk_force_staging(struct ree_vk *vk) {
    vk->unified = false;
}

// Allocations

static void release(struct ree_vk *vk, struct ree_device_buffer *buffer) {
    if (buffer->handle) vk->vk.vkDestroyBuffer(vk->handle, buffer->handle, NULL);
    if (buffer->memory) vk->vk.vkFreeMemory(vk->handle, buffer->memory, NULL); // unmaps
}

static enum ree_status allocate(struct ree_vk *vk, uint64_t size, uint32_t type, bool map,
                                struct ree_device_buffer *out, struct ree_error *err) {
    *out = (struct ree_device_buffer){.size = size, .reserved = size};
    VkBufferCreateInfo info = buffer_info(size);
    REE_VK_TRY(err, vk->vk.vkCreateBuffer(vk->handle, &info, NULL, &out->handle),
               "cannot create a buffer");
    VkMemoryRequirements requirements;
    vk->vk.vkGetBufferMemoryRequirements(vk->handle, out->handle, &requirements);
    VkMemoryAllocateFlagsInfo flags = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
        .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT,
    };
    VkMemoryAllocateInfo allocation = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
        .pNext = &flags,
        .allocationSize = requirements.size,
        .memoryTypeIndex = type,
    };
    VkResult result = vk->vk.vkAllocateMemory(vk->handle, &allocation, NULL, &out->memory);
    if (result == VK_SUCCESS)
        result = vk->vk.vkBindBufferMemory(vk->handle, out->handle, out->memory, 0);
    void *mapped = NULL;
    if (result == VK_SUCCESS && map)
        result = vk->vk.vkMapMemory(vk->handle, out->memory, 0, VK_WHOLE_SIZE, 0, &mapped);
    if (result != VK_SUCCESS) {
        release(vk, out);
        ree_vk_fail(err, result, "cannot allocate memory");
        return ree_fail_prefix(err, "%llu bytes", (unsigned long long)size);
    }
    out->mapped = mapped;
    VkBufferDeviceAddressInfo address = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
        .buffer = out->handle,
    };
    out->address = vk->vk.vkGetBufferDeviceAddress(vk->handle, &address);
    if (out->address % ALIGNMENT != 0) {
        release(vk, out);
        return ree_fail(err, REE_DEVICE, "Vulkan: a buffer's address is not a multiple of 64");
    }
    return REE_OK;
}

// Blocks: first fit in a sorted list of free ranges.

static bool block_take(struct ree_vk_block *block, uint64_t size, uint64_t *out_offset) {
    for (size_t i = 0; i < block->n_ranges; i++) {
        struct free_range *range = &block->ranges[i];
        if (range->size < size) continue;
        *out_offset = range->offset;
        range->offset += size;
        range->size -= size;
        if (range->size == 0) {
            block->n_ranges--;
            memmove(range, range + 1, (block->n_ranges - i) * sizeof *range);
        }
        return true;
    }
    return false;
}

static void block_give(struct ree_vk_block *block, uint64_t offset, uint64_t size) {
    size_t i = 0;
    while (i < block->n_ranges && block->ranges[i].offset < offset)
        i++;
    struct free_range *ranges = block->ranges;
    bool joins_left = i > 0 && ranges[i - 1].offset + ranges[i - 1].size == offset;
    bool joins_right = i < block->n_ranges && offset + size == ranges[i].offset;
    if (joins_left) {
        ranges[i - 1].size += size;
        if (joins_right) {
            ranges[i - 1].size += ranges[i].size;
            block->n_ranges--;
            memmove(&ranges[i], &ranges[i + 1], (block->n_ranges - i) * sizeof *ranges);
        }
    } else if (joins_right) {
        ranges[i].offset = offset;
        ranges[i].size += size;
    } else {
        memmove(&ranges[i + 1], &ranges[i], (block->n_ranges - i) * sizeof *ranges);
        ranges[i] = (struct free_range){offset, size};
        block->n_ranges++;
    }
}

static enum ree_status block_create(struct ree_vk *vk, struct ree_error *err) {
    struct ree_vk_block *block = ree_alloc_zeroed(1, sizeof *block);
    // Worst case: every second unit of the smallest size is free.
    size_t capacity = BLOCK_SIZE / ALIGNMENT / 2 + 1;
    if (block) block->ranges = ree_alloc_zeroed(capacity, sizeof *block->ranges);
    if (!block || !block->ranges) {
        ree_free(block);
        return ree_fail(err, REE_NO_MEMORY, "no memory for a block of buffers");
    }
    enum ree_status status =
        allocate(vk, BLOCK_SIZE, vk->device_type, vk->unified, &block->whole, err);
    if (status != REE_OK) {
        ree_free(block->ranges);
        ree_free(block);
        return status;
    }
    block->ranges[0] = (struct free_range){0, BLOCK_SIZE};
    block->n_ranges = 1;
    block->next = vk->blocks;
    vk->blocks = block;
    return REE_OK;
}

static enum ree_status take_pooled(struct ree_vk *vk, uint64_t reserved,
                                   struct ree_device_buffer *out, struct ree_error *err) {
    struct ree_vk_block *block = vk->blocks;
    uint64_t offset = 0;
    while (block && !block_take(block, reserved, &offset))
        block = block->next;
    if (!block) {
        REE_TRY(block_create(vk, err));
        block = vk->blocks;
        block_take(block, reserved, &offset);
    }
    *out = (struct ree_device_buffer){
        .handle = block->whole.handle,
        .block = block,
        .offset = offset,
        .reserved = reserved,
        .address = block->whole.address + offset,
        .mapped = block->whole.mapped ? block->whole.mapped + offset : NULL,
    };
    return REE_OK;
}

enum ree_status ree_vk_buffer_create(struct ree_device *device, uint64_t size,
                                     struct ree_device_buffer **out, struct ree_error *err) {
    struct ree_vk *vk = ree_vk_of(device);
    *out = NULL;
    if (size > device->max_buffer_size)
        return ree_fail(err, REE_UNSUPPORTED,
                        "a tensor of %llu bytes is larger than device '%s' supports (%llu)",
                        (unsigned long long)size, device->name,
                        (unsigned long long)device->max_buffer_size);
    struct ree_device_buffer *buffer = ree_alloc_zeroed(1, sizeof *buffer);
    if (!buffer) return ree_fail(err, REE_NO_MEMORY, "no memory for a buffer");
    uint64_t reserved = round_up(size ? size : 1, ALIGNMENT);
    enum ree_status status = reserved <= LARGEST_POOLED ? take_pooled(vk, reserved, buffer, err)
                                                        : allocate(vk, reserved, vk->device_type,
                                                                   vk->unified, buffer, err);
    if (status != REE_OK) {
        ree_free(buffer);
        return status;
    }
    buffer->size = size;
    *out = buffer;
    return ree_vk_check_validation(vk, err);
}

enum ree_status ree_vk_host_buffer_create(struct ree_vk *vk, uint64_t size,
                                          struct ree_device_buffer **out, struct ree_error *err) {
    *out = NULL;
    struct ree_device_buffer *buffer = ree_alloc_zeroed(1, sizeof *buffer);
    if (!buffer) return ree_fail(err, REE_NO_MEMORY, "no memory for a buffer");
    enum ree_status status =
        allocate(vk, round_up(size ? size : 1, ALIGNMENT), vk->host_type, true, buffer, err);
    if (status != REE_OK) {
        ree_free(buffer);
        return status;
    }
    *out = buffer;
    return REE_OK;
}

void ree_vk_buffer_destroy(struct ree_device *device, struct ree_device_buffer *buffer) {
    if (!buffer) return;
    if (buffer->block)
        block_give(buffer->block, buffer->offset, buffer->reserved);
    else
        release(ree_vk_of(device), buffer);
    ree_free(buffer);
}

void ree_vk_memory_finish(struct ree_vk *vk) {
    ree_vk_buffer_destroy(&vk->base, vk->staging);
    vk->staging = NULL;
    while (vk->blocks) {
        struct ree_vk_block *block = vk->blocks;
        vk->blocks = block->next;
        release(vk, &block->whole);
        ree_free(block->ranges);
        ree_free(block);
    }
}

// Transfers

// Copies between a buffer and the start of the staging buffer, and waits for the copy.
static enum ree_status copy_staged(struct ree_vk *vk, struct ree_device_buffer *buffer,
                                   uint64_t offset, uint64_t size, bool to_device,
                                   struct ree_error *err) {
    VkCommandBuffer commands = vk->transfer_commands;
    VkCommandBufferBeginInfo begin = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
    };
    REE_VK_TRY(err, vk->vk.vkBeginCommandBuffer(commands, &begin), "cannot record a copy");
    VkBufferCopy region = {
        .srcOffset = to_device ? 0 : buffer->offset + offset,
        .dstOffset = to_device ? buffer->offset + offset : 0,
        .size = size,
    };
    VkMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT,
    };
    vk->vk.vkCmdPipelineBarrier(commands, REE_VK_STAGES, REE_VK_STAGES, 0, 1, &barrier, 0, NULL, 0,
                                NULL);
    vk->vk.vkCmdCopyBuffer(commands, to_device ? vk->staging->handle : buffer->handle,
                           to_device ? buffer->handle : vk->staging->handle, 1, &region);
    barrier.dstAccessMask |= VK_ACCESS_HOST_READ_BIT;
    vk->vk.vkCmdPipelineBarrier(commands, REE_VK_STAGES, REE_VK_STAGES | VK_PIPELINE_STAGE_HOST_BIT,
                                0, 1, &barrier, 0, NULL, 0, NULL);
    REE_VK_TRY(err, vk->vk.vkEndCommandBuffer(commands), "cannot record a copy");
    return ree_vk_submit(vk, commands, err);
}

// Writes if `from` is not NULL, reads if `to` is not NULL; exactly one of them must be set.
static enum ree_status transfer(struct ree_vk *vk, struct ree_device_buffer *buffer,
                                uint64_t offset, const uint8_t *from, uint8_t *to, uint64_t size,
                                struct ree_error *err) {
    if (offset > buffer->size || size > buffer->size - offset)
        return ree_fail(
            err, REE_INTERNAL, "a transfer of %llu bytes at %llu exceeds a buffer of %llu bytes",
            (unsigned long long)size, (unsigned long long)offset, (unsigned long long)buffer->size);
    if (size == 0) return REE_OK;
    if (buffer->mapped) {
        if (from) memcpy(buffer->mapped + offset, from, size);
        if (to) memcpy(to, buffer->mapped + offset, size);
        return REE_OK;
    }
    if (!vk->staging) REE_TRY(ree_vk_host_buffer_create(vk, STAGING_SIZE, &vk->staging, err));
    for (uint64_t done = 0; done < size;) {
        uint64_t part = size - done < STAGING_SIZE ? size - done : STAGING_SIZE;
        if (from) memcpy(vk->staging->mapped, from + done, part);
        REE_TRY(copy_staged(vk, buffer, offset + done, part, from != NULL, err));
        if (to) memcpy(to + done, vk->staging->mapped, part);
        done += part;
    }
    return ree_vk_check_validation(vk, err);
}

enum ree_status ree_vk_buffer_write(struct ree_device *device, struct ree_device_buffer *buffer,
                                    uint64_t offset, const void *data, uint64_t size,
                                    struct ree_error *err) {
    return transfer(ree_vk_of(device), buffer, offset, data, NULL, size, err);
}

enum ree_status ree_vk_buffer_read(struct ree_device *device, struct ree_device_buffer *buffer,
                                   uint64_t offset, void *data, uint64_t size,
                                   struct ree_error *err) {
    return transfer(ree_vk_of(device), buffer, offset, NULL, data, size, err);
}
