#include "base/memory.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(char *) == 8, "strings are moved as 64-bit elements");

enum ree_status ree_tensor_init(struct ree_tensor *tensor, const char *name, enum ree_dtype dtype,
                                uint32_t rank, const int64_t *dims, struct ree_error *err) {
    memset(tensor, 0, sizeof *tensor);
    const char *label = name ? name : "";
    if (rank > REE_MAX_RANK)
        return ree_fail(err, REE_UNSUPPORTED, "tensor '%s': rank %u, at most %d is supported",
                        label, rank, REE_MAX_RANK);
    size_t elem_size = ree_dtype_size(dtype);
    if (elem_size == 0)
        return ree_fail(err, REE_UNSUPPORTED, "tensor '%s': elements of type %s have no fixed size",
                        label, ree_dtype_name(dtype));
    int64_t count;
    uint64_t nbytes;
    if (!ree_count_elements(rank, dims, &count))
        return ree_fail(err, REE_INVALID,
                        "tensor '%s': a dimension is negative, or their product "
                        "exceeds 64 bits",
                        label);
    if (!ree_mul_size((uint64_t)count, elem_size, &nbytes) || nbytes > SIZE_MAX / 2)
        return ree_fail(err, REE_NO_MEMORY, "tensor '%s': %lld elements do not fit in memory",
                        label, (long long)count);

    // The size is rounded up to a multiple of 64 bytes, because kernels may read device buffers
    // over this memory in words.
    void *data = ree_alloc_zeroed(((size_t)nbytes + 63) / 64 + (nbytes == 0), 64);
    char *copy = name ? ree_strdup(name) : NULL;
    if (!data || (name && !copy)) {
        ree_free(data);
        ree_free(copy);
        return ree_fail(err, REE_NO_MEMORY, "tensor '%s': out of memory for %llu bytes", label,
                        (unsigned long long)nbytes);
    }
    tensor->name = copy;
    tensor->dtype = dtype;
    tensor->rank = rank;
    if (rank) memcpy(tensor->dims, dims, rank * sizeof *dims);
    tensor->data = data;
    tensor->nbytes = (size_t)nbytes;
    return REE_OK;
}

enum ree_status ree_sequence_append(struct ree_tensor *sequence, struct ree_tensor *item,
                                    struct ree_error *err) {
    struct ree_tensor *grown = NULL;
    if (sequence->n_items < SIZE_MAX / sizeof *grown - 1)
        grown = ree_realloc(sequence->items, (sequence->n_items + 1) * sizeof *grown);
    if (!grown) {
        ree_tensor_finish(item);
        return ree_fail(err, REE_NO_MEMORY, "out of memory for another item of a sequence");
    }
    sequence->items = grown;
    sequence->items[sequence->n_items++] = *item;
    memset(item, 0, sizeof *item);
    return REE_OK;
}

void ree_tensor_finish(struct ree_tensor *tensor) {
    if (!tensor) return;
    char **strings = tensor->dtype == REE_STRING ? tensor->data : NULL;
    for (size_t i = 0; strings && i < tensor->nbytes / sizeof *strings; i++)
        ree_free(strings[i]);
    for (size_t i = 0; i < tensor->n_items; i++)
        ree_tensor_finish(&tensor->items[i]);
    ree_free(tensor->items);
    ree_free(tensor->name);
    ree_free(tensor->data);
    memset(tensor, 0, sizeof *tensor);
}
