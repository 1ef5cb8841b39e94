#include "train/batches.h"

#include <string.h>

#include "base/memory.h"
#include "base/sha256.h"
#include "base/tensor_type.h"
#include "trace/model_header.h"
#include "train/order.h"

// Finds the tensor of the dataset for each input of the batch.
static enum ree_status match(struct ree_batches *b, const struct ree_model *model,
                             const struct ree_step_roles *roles, const struct ree_dataset *dataset,
                             struct ree_error *err) {
    for (size_t i = 0; i < roles->n_data; i++) {
        const struct ree_port *port = ree_model_input(model, roles->data[i]);
        const struct ree_tensor *tensor = ree_dataset_find(dataset, port->name);
        int64_t dims[REE_MAX_RANK];
        if (!tensor)
            return ree_fail(err, REE_INVALID,
                            "the dataset has no tensor '%.128s', which the step reads", port->name);
        memcpy(dims, port->dims, sizeof dims);
        dims[0] = tensor->rank ? tensor->dims[0] : -1;
        if (!ree_has_type(tensor, port->dtype, port->rank, dims)) {
            dims[0] = -1; // any number of samples
            return ree_wrong_type("the dataset's tensor", port->name, tensor, port->dtype,
                                  port->rank, dims, err);
        }
        if (i && (uint64_t)dims[0] != b->n_samples)
            return ree_fail(err, REE_INVALID,
                            "the dataset's tensor '%.128s' has %lld samples, but '%.128s' %llu",
                            port->name, (long long)dims[0], b->data[0]->name,
                            (unsigned long long)b->n_samples);
        if (!tensor->nbytes && dims[0])
            return ree_fail(err, REE_INVALID, "the samples '%.128s' have no elements", port->name);
        b->n_samples = (uint64_t)dims[0];
        b->data[i] = tensor;
    }
    if (b->n_samples < b->batch_size)
        return ree_fail(err, REE_INVALID,
                        "the dataset has %llu samples, fewer than a batch of %llu",
                        (unsigned long long)b->n_samples, (unsigned long long)b->batch_size);
    if (b->n_samples >= UINT32_MAX)
        return ree_fail(err, REE_UNSUPPORTED,
                        "the dataset has %llu samples; the maximum is 2^32 - 2",
                        (unsigned long long)b->n_samples);
    return REE_OK;
}

enum ree_status ree_batches_init(struct ree_batches *b, const struct ree_model *model,
                                 const struct ree_step_roles *roles,
                                 const struct ree_dataset *dataset, uint64_t seed, bool in_order,
                                 struct ree_error *err) {
    *b = (struct ree_batches){.n_data = roles->n_data,
                              .batch_size = (uint64_t)roles->batch_size,
                              .seed = seed,
                              .in_order = in_order,
                              .epoch = UINT64_MAX};
    b->data = ree_alloc_zeroed(roles->n_data, sizeof *b->data);
    if (!b->data) return ree_no_memory(err);
    if (match(b, model, roles, dataset, err) != REE_OK)
        return dataset->file ? ree_fail_prefix(err, "%s", dataset->file) : err->status;
    if (in_order) return REE_OK;
    b->order = ree_alloc(b->n_samples * sizeof *b->order);
    return b->order ? REE_OK : ree_no_memory(err);
}

void ree_batches_finish(struct ree_batches *b) {
    ree_free(b->data);
    ree_free(b->order);
    memset(b, 0, sizeof *b);
}

void ree_batches_fill(struct ree_batches *b, uint64_t step, size_t i, struct ree_tensor *out) {
    uint64_t per_epoch = b->n_samples / b->batch_size;
    uint64_t epoch = step / per_epoch, first = step % per_epoch * b->batch_size;
    if (epoch != b->epoch && !b->in_order)
        ree_order_shuffle(b->order, b->n_samples, b->seed, epoch);
    b->epoch = epoch;
    size_t n = out->nbytes / b->batch_size; // bytes of a sample
    unsigned char *to = out->data;
    const unsigned char *from = b->data[i]->data;
    for (uint64_t k = 0; n && k < b->batch_size; k++) {
        uint64_t sample = b->in_order ? first + k : b->order[first + k];
        memcpy(to + k * n, from + sample * n, n);
    }
}

void ree_batches_sha256(const struct ree_batches *b, char hex[65]) {
    struct ree_hasher *hasher = ree_hasher_create("ree-tensors/1");
    for (size_t i = 0; i < b->n_data; i++) {
        ree_digest digest;
        unsigned char size[4];
        uint64_t n = strlen(b->data[i]->name);
        for (int k = 0; k < 4; k++)
            size[k] = (unsigned char)(n >> 8 * k);
        ree_trace_tensor_digest(b->data[i], digest);
        ree_hasher_update(hasher, size, sizeof size);
        ree_hasher_update(hasher, b->data[i]->name, n);
        ree_hasher_update(hasher, digest, sizeof digest);
    }
    ree_hasher_finish(hasher, hex);
}
