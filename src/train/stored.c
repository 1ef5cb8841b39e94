// Tensors and metadata of safetensors files.
#include <string.h>

#include "base/memory.h"
#include "graph/hf/safetensors.h"
#include "train/dataset.h"

static enum ree_status add_tensor(struct ree_dataset *d, const struct ree_stored_tensor *from,
                                  const unsigned char *bytes, struct ree_error *err) {
    struct ree_tensor tensor;
    REE_TRY(ree_tensor_init(&tensor, from->name, from->dtype, from->rank, from->dims, err));
    if (tensor.nbytes) memcpy(tensor.data, bytes + from->offset, tensor.nbytes);
    return ree_dataset_add(d, &tensor, err);
}

enum ree_status ree_stored_read(struct ree_dataset *d, const unsigned char *bytes, size_t size,
                                const char *key, struct ree_arena *arena, const char **out_metadata,
                                struct ree_error *err) {
    struct ree_arena own;
    struct ree_stored_tensor *tensors;
    size_t n;
    ree_arena_init(&own);
    enum ree_status status = ree_safetensors_parse(bytes, size, &own, &tensors, &n, err);
    for (size_t i = 0; status == REE_OK && i < n; i++) {
        status = tensors[i].name[0] ? add_tensor(d, &tensors[i], bytes, err)
                                    : ree_fail(err, REE_INVALID, "a tensor has an empty name");
        if (status != REE_OK) status = ree_fail_prefix(err, "tensor '%.128s'", tensors[i].name);
    }
    ree_arena_finish(&own);
    if (status == REE_OK && out_metadata)
        status = ree_safetensors_metadata(bytes, size, key, arena, out_metadata, err);
    return status;
}
