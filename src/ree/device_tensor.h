// Tensors in the memory of a device. They stay there from run to run, so that large values need not
// be copied between host and device in every run: parameters of a model that a program passes in,
// states of a training, states of a recurrent model.
//
//     ree_device_tensor_create      copies a tensor to a device
//     ree_session_run_on_device     a run that reads and writes such tensors (session.h)
//     ree_device_tensor_read        copies its contents back
#ifndef REE_DEVICE_TENSOR_H
#define REE_DEVICE_TENSOR_H

#include "device.h"
#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ree_device_tensor;

// Makes a tensor on a device with type, shape and contents of `contents`. The device must outlive
// it. Release *out_tensor with ree_device_tensor_destroy. Fails with REE_INVALID if the size of the
// data does not match the shape, or if an element is invalid; with REE_UNSUPPORTED for strings,
// sequences and absent values; with REE_NO_MEMORY if the device has too little memory.
REE_API enum ree_status ree_device_tensor_create(struct ree_device *device,
                                                 const struct ree_tensor *contents,
                                                 struct ree_device_tensor **out_tensor,
                                                 struct ree_error *err);
REE_API void ree_device_tensor_destroy(struct ree_device_tensor *tensor);

// Replaces the contents. Fails with REE_INVALID if type or shape is another one.
REE_API enum ree_status ree_device_tensor_write(struct ree_device_tensor *tensor,
                                                const struct ree_tensor *contents,
                                                struct ree_error *err);
// Copies the contents to *out, which this call initialises; out->name is NULL. Every NaN becomes
// the canonical one (NUMERICS.md, section 1). Release *out with ree_tensor_finish; after a failure
// it is zeroed.
REE_API enum ree_status ree_device_tensor_read(const struct ree_device_tensor *tensor,
                                               struct ree_tensor *out, struct ree_error *err);
// Like ree_device_tensor_read, into memory of `nbytes` bytes at `data`. Fails with REE_INVALID if
// the contents have another size.
REE_API enum ree_status ree_device_tensor_copy(const struct ree_device_tensor *tensor, void *data,
                                               size_t nbytes, struct ree_error *err);

#ifdef __cplusplus
}
#endif
#endif
