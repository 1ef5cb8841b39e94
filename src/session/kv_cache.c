// Memory of kv caches: reserving, growing, clearing.
#include "session/kv_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/memory.h"
#include "session/session_internal.h"

static const struct ree_port *port_of(const struct ree_session *s,
                                      const struct ree_kv_cache *cache) {
    return &s->model->inputs[cache->spec.input];
}

static enum ree_status check_spec(const struct ree_session *s, const struct ree_kv_cache_spec *spec,
                                  struct ree_error *err) {
    bool elsewhere = spec->output == REE_NO_OUTPUT;
    if (spec->input >= s->model->n_inputs || (!elsewhere && spec->output >= s->model->n_outputs))
        return ree_fail(
            err, REE_INVALID,
            "a cache refers to input %zu or output %zu, but the model does not have both",
            spec->input, spec->output);
    const struct ree_port *in = &s->model->inputs[spec->input];
    const struct ree_port *out = elsewhere ? in : &s->model->outputs[spec->output];
    if (!in->has_shape || in->kind != REE_TENSOR || out->kind != REE_TENSOR ||
        spec->axis >= in->rank || spec->batch_axis >= in->rank || spec->axis == spec->batch_axis)
        return ree_fail(err, REE_INVALID,
                        "the cache '%s' has no declared shape with a dimension for tokens and one "
                        "for sequences",
                        in->name);
    if (in->dtype != out->dtype || (out->has_shape && out->rank != in->rank))
        return ree_fail(err, REE_INVALID, "the cache '%s' and its output '%s' have different types",
                        in->name, out->name);
    for (uint32_t i = 0; i < in->rank; i++)
        if (in->dims[i] < 0 && i != spec->axis && i != spec->batch_axis)
            return ree_fail(err, REE_UNSUPPORTED, "the cache '%s' does not declare dimension %u",
                            in->name, i);
    return REE_OK;
}

enum ree_status ree_session_declare_kv_caches(struct ree_session *s,
                                              const struct ree_kv_cache_spec *specs, size_t n,
                                              size_t positions_input, struct ree_error *err) {
    for (size_t i = 0; i < n; i++)
        REE_TRY(check_spec(s, &specs[i], err));
    struct ree_kv_cache *kv_caches = ree_alloc_zeroed(n + 1, sizeof *kv_caches);
    struct ree_kv_cache **cache_slots = ree_alloc_zeroed(1, sizeof(struct ree_kv_cache *));
    if (!kv_caches || !cache_slots) {
        ree_free(kv_caches);
        ree_free(cache_slots);
        return ree_no_memory(err);
    }
    for (size_t k = 0; k < s->n_cache_slots; k++)
        ree_free(s->cache_slots[k]);
    ree_free(s->cache_slots);
    s->cache_slots = cache_slots;
    s->n_cache_slots = 1;
    cache_slots[0] = s->kv_caches = kv_caches;
    s->n_kv_caches = n;
    s->positions_input = positions_input;
    for (size_t i = 0; i < n; i++) {
        kv_caches[i].spec = specs[i];
        memcpy(kv_caches[i].dims, s->model->inputs[specs[i].input].dims, sizeof kv_caches[i].dims);
        kv_caches[i].dims[specs[i].axis] = 0;
    }
    return REE_OK;
}

enum ree_status ree_session_create_cache_slots(struct ree_session *s, size_t n_cache_slots,
                                               struct ree_error *err) {
    if (s->n_cache_slots == 0) return REE_OK; // no kv caches
    struct ree_kv_cache **cache_slots =
        ree_realloc(s->cache_slots, n_cache_slots * sizeof(struct ree_kv_cache *));
    if (!cache_slots) return ree_no_memory(err);
    s->cache_slots = cache_slots;
    while (s->n_cache_slots < n_cache_slots) {
        struct ree_kv_cache *kv_caches = ree_alloc_zeroed(s->n_kv_caches + 1, sizeof *kv_caches);
        if (!kv_caches) return ree_no_memory(err);
        memcpy(kv_caches, cache_slots[0], s->n_kv_caches * sizeof *kv_caches);
        cache_slots[s->n_cache_slots++] = kv_caches;
    }
    return REE_OK;
}

void ree_session_use_cache_slot(struct ree_session *s, size_t slot) {
    if (slot < s->n_cache_slots) s->kv_caches = s->cache_slots[slot];
}

// Products of the dims before the axis (*outer) and after it (*inner).
static void split_dims(const struct ree_session *s, const struct ree_kv_cache *cache,
                       int64_t *outer, int64_t *inner) {
    *outer = *inner = 1;
    for (uint32_t i = 0; i < port_of(s, cache)->rank; i++)
        if (i != cache->spec.axis) *(i < cache->spec.axis ? outer : inner) *= cache->dims[i];
}

static uint64_t kv_cache_size(const struct ree_session *s, const struct ree_kv_cache *cache) {
    int64_t outer, inner;
    if (!cache->capacity) return 0;
    split_dims(s, cache, &outer, &inner);
    return (uint64_t)(outer * inner * cache->capacity) * ree_dtype_size(port_of(s, cache)->dtype);
}

static void drop(struct ree_session *s, struct ree_kv_cache *cache) {
    if (cache->buffer) {
        s->device->vtable->buffer_destroy(s->device, cache->buffer);
        ree_session_release_memory(s, kv_cache_size(s, cache) + 4);
    }
    cache->buffer = NULL;
    cache->capacity = 0;
    cache->n_written = 0;
}

// Two programs run in this file. Slot 0 of both has 64 bytes of zeros. In the program that grows a
// cache, slot 1 is the new buffer and slot 2 the present one. In the program that clears kv caches,
// the slots from 1 on are their buffers.

// Describes a dispatch that copies zeros to the first n of `capacity` positions of the buffer in
// slot `slot`.
static void describe_zeros(const struct ree_session *s, const struct ree_kv_cache *cache,
                           int64_t capacity, int64_t n, uint32_t slot, struct ree_dispatch *d) {
    int64_t outer, inner;
    split_dims(s, cache, &outer, &inner);
    const uint32_t size = (uint32_t)ree_dtype_size(port_of(s, cache)->dtype);
    struct ree_copy_params *p = &d->params.copy;
    memset(d, 0, sizeof *d);
    *p = (struct ree_copy_params){
        .elem_size = size, .rank = 2, .n_elements = (uint32_t)(outer * n * inner)};
    p->dims[0] = (uint32_t)outer;
    p->dims[1] = (uint32_t)(n * inner);
    p->dst_strides[0] = (int32_t)(capacity * inner);
    p->dst_strides[1] = 1;
    d->op = REE_REPOP_COPY;
    d->n_operands = 2;
    d->n_outputs = 1;
    d->operands[0] = (struct ree_operand){0, 0, 64};
    d->operands[1] = (struct ree_operand){slot, 0, (uint64_t)(outer * capacity * inner) * size};
}

// Describes a dispatch that copies the filled positions of the cache from its present buffer, slot
// 2, to a buffer for `capacity` positions, slot 1.
static void describe_move(const struct ree_session *s, const struct ree_kv_cache *cache,
                          int64_t capacity, struct ree_dispatch *d) {
    int64_t outer, inner;
    describe_zeros(s, cache, capacity, cache->dims[cache->spec.axis], 1, d);
    split_dims(s, cache, &outer, &inner);
    d->params.copy.src_strides[0] = (int32_t)(cache->capacity * inner);
    d->params.copy.src_strides[1] = 1;
    d->operands[0] = (struct ree_operand){
        2, 0, (uint64_t)(outer * cache->capacity * inner) * d->params.copy.elem_size};
}

// Runs the dispatches once. Creates the buffer of zeros in slots[0] and destroys it after the run.
static enum ree_status run_once(struct ree_session *s, const struct ree_dispatch *d,
                                uint32_t n_dispatches, struct ree_device_buffer **slots,
                                uint32_t n_slots, const char *name, struct ree_error *err) {
    const struct ree_device_vtable *v = s->device->vtable;
    const struct ree_program program = {.dispatches = d,
                                        .n_dispatches = n_dispatches,
                                        .n_slots = n_slots,
                                        .node_names = &name,
                                        .n_node_names = 1};
    const char zeros[64] = {0};
    struct ree_device_program *made = NULL;
    struct ree_device_buffer **none = ree_alloc_zeroed(n_slots, sizeof(struct ree_device_buffer *));
    if (!none) return ree_no_memory(err);
    enum ree_status status = v->buffer_create(s->device, sizeof zeros, &slots[0], err);
    if (status == REE_OK)
        status = v->buffer_write(s->device, slots[0], 0, zeros, sizeof zeros, err);
    if (status == REE_OK) status = v->program_create(s->device, &program, none, NULL, &made, err);
    if (status == REE_OK) status = v->program_run(s->device, made, slots, NULL, err);
    if (made) v->program_destroy(s->device, made);
    if (slots[0]) v->buffer_destroy(s->device, slots[0]);
    ree_free(none);
    return status;
}

// Zeroes `to`, which has capacity for `positions` positions, and copies the filled positions from
// the current buffer: two dispatches on the device.
static enum ree_status move_positions(struct ree_session *s, const struct ree_kv_cache *cache,
                                      struct ree_device_buffer *to, int64_t positions,
                                      struct ree_error *err) {
    int64_t outer, inner, filled = cache->dims[cache->spec.axis];
    split_dims(s, cache, &outer, &inner);
    const bool has_positions = cache->buffer && filled && outer && inner;
    struct ree_device_buffer *slots[3] = {NULL, to, cache->buffer};
    struct ree_dispatch d[2];
    describe_zeros(s, cache, positions, positions, 1, &d[0]);
    if (has_positions) describe_move(s, cache, positions, &d[1]);
    const uint32_t n = has_positions ? 2 : 1;
    return run_once(s, d, n, slots, n + 1, "growing a cache", err);
}

// Zeroes the positions that earlier texts have written. Attention sums over whole chunks of
// positions, with weight 0 for positions that a query does not see, and 0 times an infinity is NaN.
// Without zeroing, a text could depend on the text before it.
static enum ree_status clear_positions(struct ree_session *s, struct ree_error *err) {
    struct ree_dispatch *d = ree_alloc_zeroed(s->n_kv_caches + 1, sizeof *d);
    struct ree_device_buffer **slots =
        ree_alloc_zeroed(s->n_kv_caches + 1, sizeof(struct ree_device_buffer *));
    enum ree_status status = d && slots ? REE_OK : ree_no_memory(err);
    uint32_t n = 0;
    for (size_t i = 0; status == REE_OK && i < s->n_kv_caches; i++) {
        const struct ree_kv_cache *cache = &s->kv_caches[i];
        int64_t outer, inner;
        split_dims(s, cache, &outer, &inner);
        if (!cache->buffer || !cache->n_written || !outer || !inner) continue;
        slots[n + 1] = cache->buffer;
        describe_zeros(s, cache, cache->capacity, cache->n_written, n + 1, &d[n]);
        n++;
    }
    if (status == REE_OK && n)
        status = run_once(s, d, n, slots, n + 1, "clearing the kv caches", err);
    for (size_t i = 0; status == REE_OK && i < s->n_kv_caches; i++)
        s->kv_caches[i].n_written = 0;
    ree_free(d);
    ree_free(slots);
    return status;
}

enum ree_status ree_session_reset_kv_caches(struct ree_session *s, int64_t batch,
                                            struct ree_error *err) {
    for (size_t i = 0; i < s->n_kv_caches; i++) {
        struct ree_kv_cache *cache = &s->kv_caches[i];
        int64_t declared = port_of(s, cache)->dims[cache->spec.batch_axis];
        if (declared >= 0 && declared != batch)
            return ree_fail(err, REE_INVALID, "the model takes %lld sequences at a time, not %lld",
                            (long long)declared, (long long)batch);
        if (cache->dims[cache->spec.batch_axis] != batch) drop(s, cache);
        cache->dims[cache->spec.batch_axis] = batch;
        cache->dims[cache->spec.axis] = 0;
    }
    return clear_positions(s, err);
}

void ree_session_note_written(struct ree_session *s, const int64_t *positions) {
    for (size_t i = 0; i < s->n_kv_caches; i++)
        if (positions[i] > s->kv_caches[i].n_written) s->kv_caches[i].n_written = positions[i];
}

static enum ree_status reserve(struct ree_session *s, struct ree_kv_cache *cache, int64_t positions,
                               struct ree_error *err) {
    if (cache->capacity >= positions) return REE_OK;
    if (cache->spec.output == REE_NO_OUTPUT) return REE_OK;
    const struct ree_port *port = port_of(s, cache);
    int64_t dims[REE_MAX_RANK], count;
    memcpy(dims, cache->dims, sizeof dims);
    dims[cache->spec.axis] = positions;
    // A tensor has fewer than 2^31 elements (repop.h). The buffer has 4 additional bytes, because
    // devices write words of 4 bytes.
    if (!ree_count_elements(port->rank, dims, &count) || count >= INT64_C(1) << 31)
        return ree_fail(err, REE_UNSUPPORTED, "the cache '%s' would have 2^31 elements or more",
                        port->name);
    uint64_t nbytes = (uint64_t)count * ree_dtype_size(port->dtype);
    struct ree_device_buffer *buffer = NULL;
    const uint64_t before = cache->buffer ? kv_cache_size(s, cache) + 4 : 0;
    REE_TRY(ree_session_reserve_memory(s, nbytes + 4, port->name, err));
    enum ree_status status = s->device->vtable->buffer_create(s->device, nbytes + 4, &buffer, err);
    if (status == REE_OK && count) status = move_positions(s, cache, buffer, positions, err);
    if (status != REE_OK) {
        if (buffer) s->device->vtable->buffer_destroy(s->device, buffer);
        ree_session_release_memory(s, nbytes + 4);
        ree_fail_prefix(err, "the cache '%s' of %lld positions (%llu MiB)", port->name,
                        (long long)positions, (unsigned long long)(nbytes >> 20));
        return status;
    }
    if (cache->buffer) s->device->vtable->buffer_destroy(s->device, cache->buffer);
    ree_session_release_memory(s, before);
    cache->buffer = buffer;
    cache->capacity = positions;
    return REE_OK;
}

// Bytes held, as counted by ree_session_reserve_memory.
static uint64_t held_bytes(const struct ree_session *s, const struct ree_kv_cache *kv_caches) {
    uint64_t n = 0;
    for (size_t i = 0; i < s->n_kv_caches; i++)
        if (kv_caches[i].buffer) n += kv_cache_size(s, &kv_caches[i]) + 4;
    return n;
}

uint64_t ree_session_cache_slot_bytes(const struct ree_session *s,
                                      const struct ree_kv_cache *kv_caches) {
    uint64_t n = 0;
    for (size_t i = 0; i < s->n_kv_caches; i++)
        n += kv_cache_size(s, &kv_caches[i]);
    return n;
}

void ree_session_estimate_growth(const struct ree_session *s, const struct ree_kv_cache *kv_caches,
                                 int64_t positions, uint64_t *used, uint64_t *peak) {
    for (size_t i = 0; i < s->n_kv_caches; i++) {
        const struct ree_kv_cache *cache = &kv_caches[i];
        int64_t dims[REE_MAX_RANK], count;
        if (cache->capacity >= positions || cache->spec.output == REE_NO_OUTPUT) continue;
        memcpy(dims, cache->dims, sizeof dims);
        dims[cache->spec.axis] = positions;
        // A cache that is too large is rejected later, with its name.
        if (!ree_count_elements(port_of(s, cache)->rank, dims, &count) || count >= INT64_C(1) << 31)
            continue;
        uint64_t nbytes = (uint64_t)count * ree_dtype_size(port_of(s, cache)->dtype) + 4;
        *used = nbytes > UINT64_MAX - *used ? UINT64_MAX : *used + nbytes;
        if (*used > *peak) *peak = *used;
        if (cache->buffer) *used -= kv_cache_size(s, cache) + 4;
    }
}

// Checks the total of all kv caches against the device's memory before any of them grows. Without
// this check, a system that overcommits memory would kill the process later. If memory is counted
// (s->memory), the total includes the other sessions that share the counter.
static enum ree_status check_memory(const struct ree_session *s, int64_t positions,
                                    struct ree_error *err) {
    double need = (double)s->weight_bytes; // double: cannot overflow
    for (size_t k = 0; k < s->n_cache_slots; k++)
        if (s->cache_slots[k] != s->kv_caches)
            need += (double)ree_session_cache_slot_bytes(s, s->cache_slots[k]);
    if (s->memory) need = (double)s->memory->used - (double)held_bytes(s, s->kv_caches);
    for (size_t i = 0; i < s->n_kv_caches; i++) {
        const struct ree_kv_cache *cache = &s->kv_caches[i];
        if (cache->spec.output == REE_NO_OUTPUT) continue;
        double size = (double)ree_dtype_size(port_of(s, cache)->dtype);
        for (uint32_t d = 0; d < port_of(s, cache)->rank; d++)
            size *= (double)(d == cache->spec.axis ? positions : cache->dims[d]);
        need += size;
    }
    if (need <= (double)s->device->memory_size) return REE_OK;
    return ree_fail(err, REE_NO_MEMORY,
                    "caches of %lld tokens for %lld sequences and the other data on the device "
                    "require %.1f GiB, but %s has %.1f GiB",
                    (long long)positions,
                    (long long)s->kv_caches[0].dims[s->kv_caches[0].spec.batch_axis],
                    need / (1 << 30), s->device->name, (double)s->device->memory_size / (1 << 30));
}

enum ree_status ree_session_reserve_kv_caches(struct ree_session *s, int64_t positions,
                                              struct ree_error *err) {
    REE_TRY(check_memory(s, positions, err));
    for (size_t i = 0; i < s->n_kv_caches; i++)
        REE_TRY(reserve(s, &s->kv_caches[i], positions, err));
    return REE_OK;
}

void ree_session_set_filled_positions(struct ree_session *s, int64_t positions) {
    for (size_t i = 0; i < s->n_kv_caches; i++)
        s->kv_caches[i].dims[s->kv_caches[i].spec.axis] = positions;
}

int64_t ree_session_filled_positions(const struct ree_session *s) {
    return s->n_kv_caches ? s->kv_caches[0].dims[s->kv_caches[0].spec.axis] : 0;
}

int64_t ree_session_kv_cache_capacity(const struct ree_session *s) {
    int64_t least = INT64_MAX; // capacities differ if memory was exhausted while they grew
    for (size_t i = 0; i < s->n_kv_caches; i++)
        if (s->kv_caches[i].spec.output != REE_NO_OUTPUT && s->kv_caches[i].capacity < least)
            least = s->kv_caches[i].capacity;
    return least == INT64_MAX ? 0 : least;
}

uint64_t ree_session_kv_cache_bytes(const struct ree_session *s) {
    return ree_session_cache_slot_bytes(s, s->kv_caches);
}
