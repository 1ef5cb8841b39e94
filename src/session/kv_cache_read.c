// Reads positions of kv caches back. One program gathers them on the device, so that the result
// depends neither on a sequence's index in the batch nor on the cache's capacity.
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/memory.h"
#include "session/kv_cache.h"
#include "session/session_internal.h"

// Describes a dispatch that copies positions first ... first + n - 1 of a sequence from kv cache
// `index`, and initialises the tensor *out for them. The caller sets the slots and the offset of
// the destination.
static enum ree_status plan_read(const struct ree_session *s, size_t index, int64_t sequence,
                                 int64_t first, int64_t n, struct ree_tensor *out,
                                 struct ree_dispatch *d, struct ree_error *err) {
    const struct ree_kv_cache *cache = &s->kv_caches[index];
    const struct ree_port *port = &s->model->inputs[cache->spec.input];
    if (sequence < 0 || sequence >= cache->dims[cache->spec.batch_axis] || first < 0 || n < 0 ||
        first > cache->dims[cache->spec.axis] || n > cache->dims[cache->spec.axis] - first)
        return ree_fail(err, REE_INVALID,
                        "the cache '%s' has %lld positions of %lld sequences; requested are %lld "
                        "positions from %lld on, of sequence %lld",
                        port->name, (long long)cache->dims[cache->spec.axis],
                        (long long)cache->dims[cache->spec.batch_axis], (long long)n,
                        (long long)first, (long long)sequence);
    int64_t dims[REE_MAX_RANK], stride = 1, dense = 1, offset = 0;
    memcpy(dims, cache->dims, sizeof dims);
    dims[cache->spec.batch_axis] = 1;
    dims[cache->spec.axis] = n;
    REE_TRY(ree_tensor_init(out, port->name, port->dtype, port->rank, dims, err));
    struct ree_copy_params *p = &d->params.copy;
    *p = (struct ree_copy_params){.elem_size = (uint32_t)ree_dtype_size(port->dtype),
                                  .rank = port->rank};
    for (uint32_t i = port->rank; i-- > 0;) {
        p->dims[i] = (uint32_t)dims[i];
        p->src_strides[i] = (int32_t)stride;
        p->dst_strides[i] = (int32_t)dense;
        if (i == cache->spec.batch_axis) offset += sequence * stride;
        if (i == cache->spec.axis) offset += first * stride;
        dense *= dims[i];
        // A kv cache has fewer than 2^31 elements, so strides and offset fit in 32 bits.
        stride *= i == cache->spec.axis ? cache->capacity : cache->dims[i];
    }
    p->n_elements = (uint32_t)dense;
    p->src_offset = (int32_t)offset;
    d->op = REE_REPOP_COPY;
    d->n_operands = 2;
    d->n_outputs = 1;
    d->operands[0].size = (uint64_t)stride * p->elem_size;
    d->operands[1].size = out->nbytes;
    return REE_OK;
}

// Runs the n dispatches, which write into one buffer of `size` bytes, slots[n]. Copies its contents
// to the tensors of[0] ... of[n - 1].
static enum ree_status gather(struct ree_session *s, const struct ree_dispatch *dispatches,
                              size_t n, struct ree_device_buffer **slots, uint64_t size,
                              struct ree_tensor **of, struct ree_error *err) {
    const struct ree_device_vtable *v = s->device->vtable;
    const char *name = "reading caches";
    struct ree_program program = {.dispatches = dispatches,
                                  .n_dispatches = (uint32_t)n,
                                  .n_slots = (uint32_t)n + 1,
                                  .node_names = &name,
                                  .n_node_names = 1};
    struct ree_device_buffer **none = ree_alloc_zeroed(n + 1, sizeof(struct ree_device_buffer *));
    char *bytes = ree_alloc(size);
    struct ree_device_program *made = NULL;
    enum ree_status status = none && bytes ? REE_OK : ree_no_memory(err);
    if (status == REE_OK) status = v->buffer_create(s->device, size, &slots[n], err);
    if (status == REE_OK) status = v->program_create(s->device, &program, none, NULL, &made, err);
    if (status == REE_OK) status = v->program_run(s->device, made, slots, NULL, err);
    if (status == REE_OK) status = v->buffer_read(s->device, slots[n], 0, bytes, size, err);
    for (size_t i = 0; status == REE_OK && i < n; i++) {
        struct ree_tensor *t = of[i];
        memcpy(t->data, bytes + dispatches[i].operands[1].offset, t->nbytes);
        ree_canonicalise_nans(t->dtype, t->nbytes / ree_dtype_size(t->dtype), t->data);
    }
    if (made) v->program_destroy(s->device, made);
    if (slots[n]) v->buffer_destroy(s->device, slots[n]);
    ree_free(none);
    ree_free(bytes);
    return status;
}

enum ree_status ree_session_read_kv_caches(struct ree_session *s, int64_t sequence, int64_t first,
                                           int64_t n, struct ree_tensor *out,
                                           struct ree_error *err) {
    memset(out, 0, s->n_kv_caches * sizeof *out);
    struct ree_dispatch *d = ree_alloc_zeroed(s->n_kv_caches + 1, sizeof *d);
    struct ree_device_buffer **slots =
        ree_alloc_zeroed(s->n_kv_caches + 1, sizeof(struct ree_device_buffer *));
    struct ree_tensor **of = ree_alloc_zeroed(s->n_kv_caches + 1, sizeof(struct ree_tensor *));
    enum ree_status status = d && slots && of ? REE_OK : ree_no_memory(err);
    uint64_t size = 0;
    size_t n_kept = 0;
    for (size_t i = 0; status == REE_OK && i < s->n_kv_caches; i++) {
        if (s->kv_caches[i].spec.output == REE_NO_OUTPUT) continue;
        struct ree_dispatch *to = &d[n_kept];
        status = plan_read(s, i, sequence, first, n, &out[i], to, err);
        if (!out[i].nbytes) continue;
        to->operands[0].slot = (uint32_t)n_kept;
        to->operands[1].offset = size;
        size += (out[i].nbytes + 63) / 64 * 64;
        of[n_kept] = &out[i];
        slots[n_kept++] = s->kv_caches[i].buffer;
    }
    for (size_t k = 0; k < n_kept; k++)
        d[k].operands[1].slot = (uint32_t)n_kept;
    if (status == REE_OK && n_kept) status = gather(s, d, n_kept, slots, size, of, err);
    for (size_t i = 0; status != REE_OK && i < s->n_kv_caches; i++)
        ree_tensor_finish(&out[i]);
    ree_free(d);
    ree_free(slots);
    ree_free(of);
    return status;
}
