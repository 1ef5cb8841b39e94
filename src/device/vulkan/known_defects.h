// Known drivers that compile shaders incorrectly in a way that self-tests cannot detect reliably,
// because only the results of some operands are wrong.
#ifndef REE_DEVICE_VULKAN_KNOWN_DEFECTS_H
#define REE_DEVICE_VULKAN_KNOWN_DEFECTS_H

#include <stdbool.h>

// Returns why the device must not be used, and what to do; NULL: no defect is known. `name` is
// VkPhysicalDeviceProperties.deviceName. has_avx512: the processor has AVX-512VL.
const char *ree_vk_known_defect(const char *name, bool has_avx512);

#endif
