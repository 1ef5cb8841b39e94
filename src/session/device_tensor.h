// The fields of tensors on a device.
#ifndef REE_SESSION_DEVICE_TENSOR_H
#define REE_SESSION_DEVICE_TENSOR_H

#include "device/device.h"
#include "ree/device_tensor.h"

struct ree_device_tensor {
    struct ree_device *device;
    struct ree_tensor type; // type, shape and size; without name and data
    struct ree_device_buffer *buffer;
    // While a run is prepared: how many of its inputs and outputs this tensor is. Otherwise 0.
    size_t n_uses;
};

#endif
