// Tensors in the memory of a device.
#include "session/device_tensor.h"

#include <string.h>

#include "base/dtype.h"
#include "base/float_env.h"
#include "base/memory.h"
#include "base/tensor_type.h"
#include "session/session_internal.h"

// Kernels may read the last elements as a whole word of 4 bytes.
#define SLACK 4

static enum ree_status check_contents(const struct ree_tensor *contents, struct ree_error *err) {
    if (contents->kind != REE_TENSOR)
        return ree_fail(err, REE_UNSUPPORTED, "sequences and absent values have no device tensor");
    if (contents->dtype == REE_STRING)
        return ree_fail(err, REE_UNSUPPORTED, "strings have no device tensor");
    return ree_input_check_any(contents->name ? contents->name : "(device tensor)", contents, err);
}

static enum ree_status write_contents(struct ree_device_tensor *t,
                                      const struct ree_tensor *contents, struct ree_error *err) {
    if (!contents->nbytes) return REE_OK;
    return t->device->vtable->buffer_write(t->device, t->buffer, 0, contents->data,
                                           contents->nbytes, err);
}

enum ree_status ree_device_tensor_create(struct ree_device *device,
                                         const struct ree_tensor *contents,
                                         struct ree_device_tensor **out, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    *out = NULL;
    REE_TRY(check_contents(contents, err));
    struct ree_device_tensor *t = ree_alloc_zeroed(1, sizeof *t);
    if (!t) return ree_no_memory(err);
    t->device = device;
    t->type = *contents;
    t->type.name = NULL;
    t->type.data = NULL;
    enum ree_status status =
        device->vtable->buffer_create(device, t->type.nbytes + SLACK, &t->buffer, err);
    if (status == REE_OK) status = write_contents(t, contents, err);
    if (status != REE_OK) {
        ree_device_tensor_destroy(t);
        return status;
    }
    *out = t;
    return REE_OK;
}

void ree_device_tensor_destroy(struct ree_device_tensor *t) {
    REE_FLOAT_ENV_API();
    if (!t) return;
    if (t->buffer) t->device->vtable->buffer_destroy(t->device, t->buffer);
    ree_free(t);
}

enum ree_status ree_device_tensor_write(struct ree_device_tensor *t,
                                        const struct ree_tensor *contents, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    REE_TRY(check_contents(contents, err));
    if (!ree_has_type(contents, t->type.dtype, t->type.rank, t->type.dims))
        return ree_wrong_type("the value for a device tensor", NULL, contents, t->type.dtype,
                              t->type.rank, t->type.dims, err);
    return write_contents(t, contents, err);
}

enum ree_status ree_device_tensor_copy(const struct ree_device_tensor *t, void *data, size_t nbytes,
                                       struct ree_error *err) {
    REE_FLOAT_ENV_API();
    const struct ree_tensor *type = &t->type;
    if (nbytes != type->nbytes)
        return ree_fail(err, REE_INVALID,
                        "the device tensor has %zu bytes; memory of %zu bytes was given",
                        type->nbytes, nbytes);
    if (!nbytes) return REE_OK;
    REE_TRY(t->device->vtable->buffer_read(t->device, t->buffer, 0, data, nbytes, err));
    // NaN payloads and signs differ between devices.
    ree_canonicalise_nans(type->dtype, nbytes / ree_dtype_size(type->dtype), data);
    return REE_OK;
}

enum ree_status ree_device_tensor_read(const struct ree_device_tensor *t, struct ree_tensor *out,
                                       struct ree_error *err) {
    REE_FLOAT_ENV_API();
    REE_TRY(ree_tensor_init(out, NULL, t->type.dtype, t->type.rank, t->type.dims, err));
    enum ree_status status = ree_device_tensor_copy(t, out->data, out->nbytes, err);
    if (status != REE_OK) ree_tensor_finish(out);
    return status;
}
