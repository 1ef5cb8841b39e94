// Binding: lowers the model for given shapes, plans its memory, and creates and runs its programs.
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/memory.h"
#include "base/progress.h"
#include "session/device_tensor.h"
#include "session/memory_plan.h"
#include "session/kv_cache.h"
#include "session/session_internal.h"

#define LITERAL_ALIGN 64
// Results of at most this many bytes are computed on the host while binding, if the host knows all
// their inputs.
#define HOST_LIMIT ((uint64_t)64 << 10)
// Maximum number of values read back while binding: sizes that depend on computed data, loop
// conditions. Each ends a segment, whose results stay in memory.
#define MAX_SEGMENTS 1024

static uint64_t round_up(uint64_t n, uint64_t to) {
    return (n + to - 1) / to * to;
}

// Loads the constant onto the device, unless the session has loaded it before.
static enum ree_status load_constant(struct ree_session *session, const struct ree_value *value,
                                     struct ree_error *err) {
    if (session->constants[value->number]) return REE_OK;
    const struct ree_device_vtable *v = session->device->vtable;
    struct ree_device_buffer *buffer = NULL;
    bool wraps = v->buffer_wrap && (uintptr_t)value->data % 4 == 0;
    REE_TRY(ree_session_reserve_memory(session, value->nbytes, value->name, err));
    enum ree_status status =
        wraps ? v->buffer_wrap(session->device, value->data, value->nbytes, &buffer, err)
              : v->buffer_create(session->device, value->nbytes, &buffer, err);
    if (status == REE_OK && !wraps)
        status = v->buffer_write(session->device, buffer, 0, value->data, value->nbytes, err);
    if (status != REE_OK) {
        if (buffer) v->buffer_destroy(session->device, buffer);
        ree_session_release_memory(session, value->nbytes);
        return status;
    }
    if (!wraps) session->copied_bytes += value->nbytes;
    session->constants[value->number] = buffer;
    session->weight_bytes += value->nbytes;
    // model->weight_bytes was counted before the passes, which may have added constants.
    uint64_t total = session->model->weight_bytes;
    if (total < session->weight_bytes) total = session->weight_bytes;
    return ree_progress_report(&session->options.progress, "weights", session->weight_bytes, total,
                               err);
}

// Extends the arrays `offsets` and `segment_of` to all storages that the lowering has made.
static enum ree_status grow_offsets(struct ree_bind *b, struct ree_error *err) {
    size_t n = b->lower.n_storages;
    if (n <= b->offsets_capacity) return REE_OK;
    size_t capacity = n * 2;
    uint64_t *offsets = ree_arena_alloc_array(&b->arena, capacity, sizeof *offsets);
    uint32_t *segment_of = ree_arena_alloc_array(&b->arena, capacity, sizeof *segment_of);
    if (!offsets || !segment_of) return ree_no_memory(err);
    if (b->offsets_capacity) {
        memcpy(offsets, b->offsets, b->offsets_capacity * sizeof *offsets);
        memcpy(segment_of, b->segment_of, b->offsets_capacity * sizeof *segment_of);
    }
    b->offsets = offsets;
    b->segment_of = segment_of;
    b->offsets_capacity = capacity;
    return REE_OK;
}

// Places the tensors with keep[id] one after another at the beginning of the arena, so that one
// transfer reads all observed values. Moves the other tensors to the front of `tensors` and returns
// their number.
static size_t place_watched(struct ree_bind *b, struct ree_memory_plan_tensor *tensors, size_t n,
                            const bool *keep) {
    size_t rest = 0;
    b->watched_size = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t id = tensors[i].id;
        if (!keep[id]) {
            tensors[rest++] = tensors[i];
            continue;
        }
        b->offsets[id] = b->watched_size;
        b->watched_size += round_up(tensors[i].nbytes, REE_MEMORY_PLAN_ALIGN);
    }
    return rest;
}

// Sets the offsets of the TEMP storages that the dispatches use; *out_size receives the bytes that
// all of them need. In a segment that is not the last, no two of them share bytes, because later
// nodes may read any of them.
static enum ree_status place_temporaries(struct ree_bind *b, bool last_segment, const bool *keep,
                                         uint64_t *out_size, struct ree_error *err) {
    struct ree_lower *lower = &b->lower;
    size_t n_storages = lower->n_storages, n = 0;
    struct ree_memory_plan_tensor *tensors =
        ree_arena_alloc_array(&b->scratch, n_storages + 1, sizeof *tensors);
    uint32_t *index = ree_arena_alloc_array(&b->scratch, n_storages + 1, sizeof *index);
    if (!tensors || !index) return ree_no_memory(err);
    uint32_t end = (uint32_t)lower->n_dispatches;
    for (uint32_t i = 0; i < lower->n_dispatches; i++) {
        const struct ree_dispatch *d = &lower->dispatches[i];
        for (uint32_t k = 0; k < d->n_operands; k++) {
            uint32_t id = d->operands[k].slot;
            const struct ree_storage *s = lower->storages[id];
            if (s->kind != REE_STORAGE_TEMP || b->segment_of[id]) continue;
            if (!index[id]) {
                index[id] = (uint32_t)++n;
                tensors[n - 1] =
                    (struct ree_memory_plan_tensor){.id = id, .nbytes = s->nbytes, .first = i};
                if (!last_segment) tensors[n - 1].first = 0;
            }
            tensors[index[id] - 1].last = last_segment ? i : end;
        }
    }
    for (size_t i = 0; last_segment && i < b->n_results; i++) {
        uint32_t id = b->results[i]->storage->id;
        if (index[id]) tensors[index[id] - 1].last = end;
    }
    if (last_segment && b->watched) n = place_watched(b, tensors, n, keep);
    REE_TRY(ree_memory_plan(tensors, n, &b->scratch, out_size, err));
    for (size_t i = 0; i < n; i++)
        b->offsets[tensors[i].id] = b->watched_size + tensors[i].offset;
    b->planned = tensors;
    b->n_planned = n;
    *out_size += b->watched_size;
    return REE_OK;
}

struct slot_table {
    uint32_t n;
    struct ree_slot *slots;
    uint32_t *of_storage; // per storage: 1 + slot
    uint32_t n_buckets;   // power of two
    uint32_t *buckets;    // hash table, open addressing, key (kind, index): 1 + slot; 0: free
};

static uint32_t add_slot(struct slot_table *table, enum ree_slot_kind kind, uint32_t index) {
    uint32_t at = (index * 8u + (uint32_t)kind) * 0x9E3779B1u & (table->n_buckets - 1);
    for (; table->buckets[at]; at = (at + 1) & (table->n_buckets - 1)) {
        uint32_t slot = table->buckets[at] - 1;
        if (table->slots[slot].kind == kind && table->slots[slot].index == index) return slot;
    }
    table->slots[table->n] = (struct ree_slot){kind, index};
    table->buckets[at] = table->n + 1;
    return table->n++;
}

// The buffer of a slot. run_inputs may be NULL if the slot is a constant.
static struct ree_device_buffer *slot_buffer(const struct ree_bind *b,
                                             const struct ree_segment *seg,
                                             const struct ree_slot *slot,
                                             const struct ree_run_inputs *run_inputs) {
    switch (slot->kind) {
    case REE_SLOT_ARENA: return seg->results ? seg->results : b->session->arena;
    case REE_SLOT_CONSTANT: return b->session->constants[slot->index];
    case REE_SLOT_INPUT:
        if (run_inputs->on_device && run_inputs->on_device[slot->index])
            return run_inputs->on_device[slot->index]->buffer;
        return b->session->inputs[slot->index];
    case REE_SLOT_LITERALS: return seg->literals;
    case REE_SLOT_SEGMENT: return b->segments[slot->index].results;
    case REE_SLOT_KV_CACHE: return b->session->kv_caches[slot->index].buffer;
    case REE_SLOT_OUTPUT: return run_inputs->outputs[slot->index]->buffer;
    }
    return NULL;
}

// Uploads the literals that the dispatches read, packed into one buffer.
static enum ree_status upload_literals(struct ree_bind *b, struct ree_segment *seg,
                                       struct ree_error *err) {
    struct ree_lower *lower = &b->lower;
    const struct ree_device_vtable *v = b->session->device->vtable;
    struct ree_device *device = b->session->device;
    bool *used = ree_arena_alloc_array(&b->scratch, lower->n_storages + 1, sizeof *used);
    if (!used) return ree_no_memory(err);
    uint64_t size = 0;
    for (size_t i = 0; i < lower->n_dispatches; i++) {
        const struct ree_dispatch *d = &lower->dispatches[i];
        for (uint32_t k = 0; k < d->n_operands; k++) {
            uint32_t id = d->operands[k].slot;
            if (lower->storages[id]->kind != REE_STORAGE_LITERAL || used[id]) continue;
            used[id] = true;
            b->offsets[id] = size;
            size += round_up(lower->storages[id]->nbytes + 4, LITERAL_ALIGN);
        }
    }
    if (!size) return REE_OK;
    REE_TRY(ree_session_reserve_memory(b->session, size, "constants computed while binding", err));
    seg->literals_size = size;
    REE_TRY(v->buffer_create(device, size, &seg->literals, err));
    for (size_t id = 0; id < lower->n_storages; id++) {
        const struct ree_storage *s = lower->storages[id];
        if (used[id] && s->nbytes)
            REE_TRY(
                v->buffer_write(device, seg->literals, b->offsets[id], s->host, s->nbytes, err));
    }
    return REE_OK;
}

// Replaces the storage id in each operand by a slot of the program, and the offset in the storage
// by the offset in that slot's buffer. Loads the constants that the dispatches read.
static enum ree_status resolve_operands(struct ree_bind *b, struct slot_table *table,
                                        struct ree_error *err) {
    struct ree_lower *lower = &b->lower;
    for (size_t i = 0; i < lower->n_dispatches; i++) {
        struct ree_dispatch *d = &lower->dispatches[i];
        for (uint32_t k = 0; k < d->n_operands; k++) {
            struct ree_operand *o = &d->operands[k];
            uint32_t id = o->slot;
            const struct ree_storage *s = lower->storages[id];
            if (!table->of_storage[id]) {
                uint32_t slot = 0;
                switch (s->kind) {
                case REE_STORAGE_TEMP:
                    slot = b->segment_of[id]
                               ? add_slot(table, REE_SLOT_SEGMENT, b->segment_of[id] - 1)
                               : add_slot(table, REE_SLOT_ARENA, 0);
                    break;
                case REE_STORAGE_CONST:
                    REE_TRY(load_constant(b->session, s->value, err));
                    slot = add_slot(table, REE_SLOT_CONSTANT, s->value->number);
                    break;
                case REE_STORAGE_INPUT: slot = add_slot(table, REE_SLOT_INPUT, s->input); break;
                case REE_STORAGE_LITERAL: slot = add_slot(table, REE_SLOT_LITERALS, 0); break;
                case REE_STORAGE_KV_CACHE:
                    slot = add_slot(table, REE_SLOT_KV_CACHE, s->kv_cache->index);
                    break;
                case REE_STORAGE_OUTPUT: slot = add_slot(table, REE_SLOT_OUTPUT, s->output); break;
                }
                table->of_storage[id] = slot + 1;
            }
            o->slot = table->of_storage[id] - 1;
            o->offset += b->offsets[id];
        }
    }
    return REE_OK;
}

static enum ree_status add_segment(struct ree_bind *b, struct ree_segment **out,
                                   struct ree_error *err) {
    if (b->n_segments == MAX_SEGMENTS)
        return ree_fail(err, REE_UNSUPPORTED,
                        "sizes or conditions depend on computed data more than %d times",
                        MAX_SEGMENTS);
    if (b->n_segments == b->segments_capacity) {
        size_t capacity = b->segments_capacity ? b->segments_capacity * 2 : 4;
        struct ree_segment *grown = ree_realloc(b->segments, capacity * sizeof *grown);
        if (!grown) return ree_no_memory(err);
        b->segments = grown;
        b->segments_capacity = capacity;
    }
    *out = &b->segments[b->n_segments++];
    memset(*out, 0, sizeof **out);
    return REE_OK;
}

// Makes the labels of the nodes to which dispatches belong, for messages.
static enum ree_status make_labels(struct ree_bind *b, struct ree_error *err) {
    const struct ree_lower *lower = &b->lower;
    if (!b->labels) {
        b->labels = ree_arena_alloc_array(&b->arena, lower->graph->n_nodes + 1, sizeof *b->labels);
        if (!b->labels) return ree_no_memory(err);
    }
    for (size_t i = 0; i < lower->n_dispatches; i++) {
        uint32_t node = lower->dispatches[i].node;
        if (b->labels[node]) continue;
        char label[256];
        ree_node_label(lower->graph->nodes[node], label, sizeof label);
        b->labels[node] = ree_arena_strdup(&b->arena, label);
        if (!b->labels[node]) return ree_no_memory(err);
    }
    return REE_OK;
}

static enum ree_status make_program(struct ree_bind *b, struct ree_segment *seg,
                                    struct ree_error *err) {
    struct ree_lower *lower = &b->lower;
    if (!lower->n_dispatches) return REE_OK;
#ifdef REE_CHECK_DISPATCHES
    for (size_t i = 0; i < lower->n_dispatches; i++)
        REE_TRY(ree_dispatch_check(&lower->dispatches[i], err));
#endif
    REE_TRY(make_labels(b, err));
    struct ree_program program = {
        .dispatches = lower->dispatches,
        .n_dispatches = (uint32_t)lower->n_dispatches,
        .n_slots = seg->n_slots,
        .node_names = b->labels,
        .n_node_names = (uint32_t)lower->graph->n_nodes,
    };
    REE_TRY(ree_segment_note(b, seg, &program, err));
    struct ree_device_buffer **constants =
        ree_arena_alloc_array(&b->scratch, seg->n_slots + 1, sizeof *constants);
    if (!constants) return ree_no_memory(err);
    // The device may make copies of the buffers in `constants`. The session counts these copies and
    // does not subtract those of a destroyed bind. So with a memory budget, literals, which belong
    // to the bind, are not among these buffers.
    struct ree_session *s = b->session;
    const bool limited = s->memory && s->memory->limit != UINT64_MAX;
    for (uint32_t i = 0; i < seg->n_slots; i++)
        if (seg->slots[i].kind == REE_SLOT_CONSTANT ||
            (seg->slots[i].kind == REE_SLOT_LITERALS && !limited))
            constants[i] = slot_buffer(b, seg, &seg->slots[i], NULL);
    const uint64_t capacity = ree_session_copies_capacity(s, b->arena_size);
    uint64_t left = capacity;
    enum ree_status status = s->device->vtable->program_create(
        s->device, &program, constants, capacity == UINT64_MAX ? NULL : &left, &seg->program, err);
    const uint64_t made = capacity - left;
    if (!made) return status;
    s->packed_bytes += made;
    enum ree_status taken = ree_session_reserve_memory(s, made, "copies of weights", err);
    return status == REE_OK ? taken : status;
}

static enum ree_status fill_segment(struct ree_bind *b, struct ree_segment *seg, bool last,
                                    struct ree_error *err) {
    struct ree_lower *lower = &b->lower;
    struct ree_session *session = b->session;
    bool *keep = ree_arena_alloc_array(&b->scratch, lower->n_storages + 1, sizeof *keep);
    if (!keep) return ree_no_memory(err);
    for (size_t i = 0; i < lower->n_storages; i++)
        keep[i] = !last || lower->storages[i]->kind == REE_STORAGE_KV_CACHE;
    for (size_t i = 0; last && i < b->n_results; i++)
        keep[b->results[i]->storage->id] = true;
    if (last) ree_bind_keep_watched(b, keep);
    lower->arena = &b->scratch; // the passes' data is needed until the segment is finished
    enum ree_status status = ree_prune_program(lower, keep);
    if (status == REE_OK && !session->options.no_fuse) status = ree_fuse_program(lower, keep);
    lower->arena = &b->arena;
    REE_TRY(status);
    for (size_t i = 0; b->page_table && i < lower->n_dispatches; i++)
        b->n_page_copies += lower->dispatches[i].op == REE_REPOP_GATHER &&
                            lower->dispatches[i].operands[1].slot == b->page_table->storage->id;
    REE_TRY(grow_offsets(b, err));
    uint64_t size;
    REE_TRY(place_temporaries(b, last, keep, &size, err));
    // own[id]: this segment computes storage `id`. While the segment is built, segment_of[id] is 0,
    // so that its operands refer to the segment's own buffer. Then segment_of[id] is set for later
    // segments.
    bool *own = ree_arena_alloc_array(&b->scratch, lower->n_storages + 1, sizeof *own);
    if (!own) return ree_no_memory(err);
    for (size_t i = 0; i < lower->n_dispatches; i++)
        for (uint32_t k = 0; k < lower->dispatches[i].n_operands; k++) {
            uint32_t id = lower->dispatches[i].operands[k].slot;
            own[id] = lower->storages[id]->kind == REE_STORAGE_TEMP && !b->segment_of[id];
        }
    if (last)
        b->arena_size = size;
    else
        REE_TRY(ree_session_reserve_memory(session, size, "intermediate results", err));
    if (!last) seg->results_size = size;
    if (!last)
        REE_TRY(session->device->vtable->buffer_create(session->device, size, &seg->results, err));
    REE_TRY(upload_literals(b, seg, err));
    struct slot_table table = {0};
    size_t most = lower->n_storages + 4;
    table.slots = ree_arena_alloc_array(&b->scratch, most, sizeof *table.slots);
    table.of_storage = ree_arena_alloc_array(&b->scratch, most, sizeof *table.of_storage);
    for (table.n_buckets = 16; table.n_buckets < 2 * most; table.n_buckets *= 2)
        ;
    table.buckets = ree_arena_alloc_array(&b->scratch, table.n_buckets, sizeof *table.buckets);
    if (!table.slots || !table.of_storage || !table.buckets) return ree_no_memory(err);
    REE_TRY(resolve_operands(b, &table, err));
    for (size_t i = 0; !last && i < lower->n_storages; i++)
        if (own[i]) b->segment_of[i] = (uint32_t)b->n_segments;
    seg->slots = ree_arena_alloc_array(&b->arena, table.n + 1, sizeof *seg->slots);
    if (!seg->slots) return ree_no_memory(err);
    memcpy(seg->slots, table.slots, table.n * sizeof *seg->slots);
    seg->n_slots = table.n;
    REE_TRY(make_program(b, seg, err));
    if (session->options.on_program) REE_TRY(ree_segment_describe(b, seg, size, err));
    return session->options.on_kernel ? ree_segment_show_kernels(b, seg, err) : REE_OK;
}

// Makes a segment of the dispatches lowered since the previous segment and clears their list.
static enum ree_status finish_segment(struct ree_bind *b, bool last, struct ree_error *err) {
    struct ree_segment *seg;
    REE_TRY(add_segment(b, &seg, err));
    enum ree_status status = fill_segment(b, seg, last, err);
    ree_arena_finish(&b->scratch);
    b->n_dispatches += b->lower.n_dispatches;
    b->lower.n_dispatches = 0;
    return status;
}

static void drop_input(struct ree_session *s, uint32_t i) {
    if (s->inputs[i]) s->device->vtable->buffer_destroy(s->device, s->inputs[i]);
    ree_session_release_memory(s, s->input_sizes[i]);
    s->inputs[i] = NULL;
    s->input_sizes[i] = 0;
}

// Passes the caller's bytes to the device; without a copy if the device can read host memory in
// place.
static enum ree_status bind_input(struct ree_session *s, uint32_t i, const struct ree_tensor *t,
                                  struct ree_error *err) {
    const struct ree_device_vtable *v = s->device->vtable;
    if (v->buffer_wrap && (uintptr_t)t->data % 64 == 0 && t->nbytes % 4 == 0 && t->nbytes) {
        drop_input(s, i);
        return v->buffer_wrap(s->device, t->data, t->nbytes, &s->inputs[i], err);
    }
    if (!s->inputs[i] || s->input_sizes[i] < t->nbytes || s->input_sizes[i] == 0) {
        drop_input(s, i);
        REE_TRY(ree_session_reserve_memory(s, t->nbytes + 4, "inputs", err));
        s->input_sizes[i] = t->nbytes + 4;
        REE_TRY(v->buffer_create(s->device, t->nbytes + 4, &s->inputs[i], err));
    }
    return t->nbytes ? v->buffer_write(s->device, s->inputs[i], 0, t->data, t->nbytes, err)
                     : REE_OK;
}

static enum ree_status run_segment(struct ree_bind *b, struct ree_segment *seg,
                                   const struct ree_run_inputs *run_inputs, struct ree_error *err) {
    if (!seg->program) return REE_OK;
    struct ree_session *s = b->session;
    struct ree_device_buffer **buffers =
        ree_alloc_zeroed(seg->n_slots + 1, sizeof(struct ree_device_buffer *));
    if (!buffers) return ree_no_memory(err);
    enum ree_status status = REE_OK;
    for (uint32_t i = 0; i < seg->n_slots && status == REE_OK; i++) {
        uint32_t index = seg->slots[i].index;
        bool is_host_input = seg->slots[i].kind == REE_SLOT_INPUT &&
                             !(run_inputs->on_device && run_inputs->on_device[index]);
        if (is_host_input) status = bind_input(s, index, &run_inputs->tensors[index], err);
        buffers[i] = slot_buffer(b, seg, &seg->slots[i], run_inputs);
    }
    const struct ree_program_run options = {.measures = s->measure,
                                            .progress = s->options.progress};
    // Report before the run, because GPUs report progress only during long runs.
    if (status == REE_OK)
        status = ree_progress_report(&options.progress, REE_RUNNING, 0, seg->n_entries, err);
    if (status == REE_OK)
        status = s->device->vtable->program_run(s->device, seg->program, buffers, &options, err);
    if (status == REE_OK) ree_segment_measure(b, seg);
    ree_free(buffers);
    return status;
}

enum ree_status ree_bind_flush(struct ree_bind *b, struct ree_error *err) {
    REE_TRY(finish_segment(b, false, err));
    return run_segment(b, &b->segments[b->n_segments - 1], b->run_inputs, err);
}

// Callback ree_lower.read_storage: copies the contents of a storage to the host, because a shape or
// a condition depends on them. Runs the dispatches lowered so far if they compute the storage.
static enum ree_status read_storage(struct ree_lower *lower, struct ree_storage *storage) {
    struct ree_bind *b = lower->user;
    void *copy = ree_arena_alloc(&b->arena, (size_t)storage->nbytes + 64);
    if (!copy) return ree_no_memory(lower->err);
    if (storage->kind == REE_STORAGE_INPUT) {
        uint32_t i = storage->input;
        if (b->run_inputs->on_device && b->run_inputs->on_device[i])
            REE_TRY(ree_device_tensor_copy(b->run_inputs->on_device[i], copy, storage->nbytes,
                                           lower->err));
        else if (storage->nbytes)
            memcpy(copy, b->run_inputs->tensors[i].data, storage->nbytes);
        b->consulted[i] = storage->host = copy;
        return REE_OK;
    }
    if (storage->kind == REE_STORAGE_KV_CACHE)
        return ree_lower_fail(lower, REE_UNSUPPORTED, "a shape depends on the contents of a cache");
    if (storage->kind != REE_STORAGE_TEMP)
        return ree_lower_fail(lower, REE_INTERNAL, "a constant without contents");
    if (storage->id >= b->offsets_capacity || !b->segment_of[storage->id])
        REE_TRY(ree_bind_flush(b, lower->err));
    if (!b->segment_of[storage->id])
        return ree_lower_fail(lower, REE_INTERNAL, "a value is read before it is computed");
    struct ree_segment *seg = &b->segments[b->segment_of[storage->id] - 1];
    REE_TRY(b->session->device->vtable->buffer_read(b->session->device, seg->results,
                                                    b->offsets[storage->id], copy, storage->nbytes,
                                                    lower->err));
    storage->host = copy;
    return REE_OK;
}

// Lets the device tensor hold output `index`, the dense tensor *inout. The dispatch that computes
// the output then writes there. A copy is needed unless the output is the whole of a result that
// this segment computes, and no earlier output has taken it.
static enum ree_status place_on_device(struct ree_bind *b, size_t index, struct ree_view **inout,
                                       struct ree_error *err) {
    (void)err; // b->lower.err is the same pointer
    struct ree_view *t = *inout;
    struct ree_storage *s = t->storage;
    uint64_t nbytes = (uint64_t)ree_view_count(t) * ree_dtype_size(t->dtype);
    bool is_earlier = s->id < b->offsets_capacity && b->segment_of[s->id];
    if (s->kind != REE_STORAGE_TEMP || s->host || is_earlier || t->offset || s->nbytes != nbytes) {
        REE_TRY(ree_lower_new(&b->lower, t->dtype, t->rank, t->dims, inout));
        s = (*inout)->storage;
        s->kind = REE_STORAGE_OUTPUT;
        s->device_written = true; // the host must not write it while binding
        REE_TRY(ree_lower_copy_into(&b->lower, t, *inout));
    }
    s->kind = REE_STORAGE_OUTPUT;
    s->output = (uint32_t)index;
    return REE_OK;
}

// Called after all nodes are lowered: makes every output tensor dense, and stores the new contents
// of kv caches in their buffers.
// Copies outputs that view a kv cache, except a cache's own next value, before anything is stored
// into the caches: the rows that they view may be replaced then. read_bytes (values.c) cannot read
// from a cache either.
static enum ree_status set_aside(struct ree_bind *b) {
    const struct ree_session *session = b->session;
    for (size_t i = 0; i < session->model->n_outputs; i++) {
        struct ree_view *t = b->outputs[i];
        if (t->kind != REE_TENSOR || t->storage->kind != REE_STORAGE_KV_CACHE) continue;
        ptrdiff_t cache = ree_session_kv_cache_of_output(session, i);
        if (cache >= 0) {
            size_t input = session->kv_caches[cache].spec.input;
            const struct ree_view *in = b->values[session->model->input_values[input]->id];
            if (t->storage == in->storage) continue;
        }
        b->lower.node = session->model->graph->outputs[i]->producer;
        REE_TRY(ree_lower_new(&b->lower, t->dtype, t->rank, t->dims, &b->outputs[i]));
        REE_TRY(ree_lower_copy_into(&b->lower, t, b->outputs[i]));
    }
    return REE_OK;
}

static enum ree_status finish_outputs(struct ree_bind *b, struct ree_error *err) {
    const struct ree_model *model = b->session->model;
    size_t n = 0;
    REE_TRY(set_aside(b));
    for (size_t i = 0; i < model->n_outputs; i++)
        n += b->outputs[i]->kind == REE_TENSOR ? 1 : b->outputs[i]->n_items;
    b->results = ree_arena_alloc_array(&b->arena, n + 1, sizeof *b->results);
    if (!b->results) return ree_no_memory(err);
    for (size_t i = 0; i < model->n_outputs; i++) {
        // Attribute the copies to the node that produced the value.
        b->lower.node = model->graph->outputs[i]->producer;
        struct ree_view *t = b->outputs[i];
        ptrdiff_t cache = ree_session_kv_cache_of_output(b->session, i);
        if (cache >= 0) {
            REE_TRY(ree_bind_kv_cache_output(b, (size_t)cache, t, err));
            continue;
        }
        if (t->kind == REE_TENSOR) {
            REE_TRY(ree_lower_dense(&b->lower, t, &b->outputs[i]));
            if (b->on_device[i]) REE_TRY(place_on_device(b, i, &b->outputs[i], err));
            b->results[b->n_results++] = b->outputs[i];
            continue;
        }
        REE_TRY(t->kind == REE_SEQUENCE
                    ? ree_lower_sequence(&b->lower, t->dtype, t->n_items, t->items, &b->outputs[i])
                    : REE_OK);
        t = b->outputs[i]; // a sequence with its own list of items
        for (size_t k = 0; k < t->n_items; k++) {
            REE_TRY(ree_lower_dense(&b->lower, t->items[k], &t->items[k]));
            b->results[b->n_results++] = t->items[k];
        }
    }
    return REE_OK;
}

static enum ree_status lower_model(struct ree_bind *b, struct ree_error *err) {
    struct ree_model *model = b->session->model;
    const struct ree_graph *graph = model->graph;
    REE_TRY(ree_bind_inputs(b, err));
    const struct ree_session *session = b->session;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        REE_TRY(ree_lower_node(&b->lower, graph->nodes[i], b->values));
        if (session->has_fault && session->fault.run == 0 && session->fault.node == i)
            REE_TRY(ree_bind_inject_fault(b, err));
    }
    if (session->observer) REE_TRY(ree_bind_watch(b, err));
    b->lower.node = NULL;
    for (size_t i = 0; i < model->n_outputs; i++) {
        const struct ree_value *value = graph->outputs[i];
        if (!b->values[value->id]) {
            // Before IR version 4, weights are also inputs of the graph; they have data.
            if (!value->data && (value->producer || value->is_input))
                return ree_fail(err, REE_INTERNAL, "output '%s' was not computed", value->name);
            if (value->has_two_types) // a node that computed it would fail, too
                return ree_fail(err, REE_UNSUPPORTED, "output '%s' is declared as another type",
                                value->name);
            REE_TRY(ree_lower_value(&b->lower, value, REE_STORAGE_CONST, value->dims,
                                    &b->values[value->id]));
        }
        b->outputs[i] = b->values[value->id];
    }
    return finish_outputs(b, err);
}

enum ree_status ree_bind_create(struct ree_session *session,
                                const struct ree_run_inputs *run_inputs, struct ree_bind **out,
                                struct ree_error *err) {
    *out = NULL;
    struct ree_model *model = session->model;
    struct ree_bind *b = ree_alloc_zeroed(1, sizeof *b);
    if (!b) return ree_no_memory(err);
    b->session = session;
    b->run_inputs = run_inputs;
    ree_arena_init(&b->arena);
    ree_arena_init(&b->scratch);
    b->lower = (struct ree_lower){
        .arena = &b->arena,
        .err = err,
        .graph = model->graph,
        .fuse = !session->options.no_fuse,
        .fold = !model->no_fold,
        .fold_limit = HOST_LIMIT,
        .paged_queries = session->device->paged_queries,
        .host_execute = ree_cpu_execute,
        .read_storage = read_storage,
        .user = b,
    };
    b->values = ree_arena_alloc_array(&b->arena, model->graph->n_values + 1, sizeof *b->values);
    b->outputs = ree_arena_alloc_array(&b->arena, model->n_outputs + 1, sizeof *b->outputs);
    enum ree_status status = b->values && b->outputs ? REE_OK : ree_no_memory(err);
    if (status == REE_OK) status = lower_model(b, err);
    if (status == REE_OK) status = finish_segment(b, true, err);
    b->lower.err = NULL;
    b->run_inputs = NULL;
    if (status == REE_OK) {
        *out = b;
        return REE_OK;
    }
    ree_bind_destroy(b);
    if (model->graph->file && model->graph->file[0]) ree_fail_prefix(err, "%s", model->graph->file);
    return status;
}

void ree_bind_destroy(struct ree_bind *b) {
    if (!b) return;
    struct ree_device *device = b->session->device;
    for (size_t i = 0; i < b->n_segments; i++) {
        if (b->segments[i].program) device->vtable->program_destroy(device, b->segments[i].program);
        if (b->segments[i].literals)
            device->vtable->buffer_destroy(device, b->segments[i].literals);
        if (b->segments[i].results) device->vtable->buffer_destroy(device, b->segments[i].results);
        ree_session_release_memory(b->session,
                                   b->segments[i].literals_size + b->segments[i].results_size);
    }
    ree_free(b->segments);
    ree_arena_finish(&b->scratch);
    ree_arena_finish(&b->arena);
    ree_free(b);
}

enum ree_status ree_bind_reserve(struct ree_bind *b, struct ree_error *err) {
    struct ree_session *s = b->session;
    const struct ree_device_vtable *v = s->device->vtable;
    if (b->arena_size <= s->arena_size) return REE_OK;
    if (s->arena) v->buffer_destroy(s->device, s->arena);
    ree_session_release_memory(s, s->arena_size);
    s->arena = NULL;
    s->arena_size = 0;
    REE_TRY(ree_session_reserve_memory(s, b->arena_size, "intermediate results", err));
    enum ree_status made = v->buffer_create(s->device, b->arena_size, &s->arena, err);
    if (made != REE_OK)
        ree_session_release_memory(s, b->arena_size);
    else
        s->arena_size = b->arena_size;
    return made;
}

enum ree_status ree_bind_run(struct ree_bind *b, const struct ree_run_inputs *run_inputs,
                             struct ree_tensor *outputs, struct ree_error *err) {
    struct ree_session *s = b->session;
    REE_TRY(run_segment(b, &b->segments[b->n_segments - 1], run_inputs, err));
    size_t n = s->model->n_outputs;
    memset(outputs, 0, n * sizeof *outputs);
    enum ree_status status = REE_OK;
    for (size_t i = 0; i < n && status == REE_OK; i++) {
        if (ree_session_kv_cache_of_output(s, i) >= 0 || b->on_device[i]) continue;
        status = ree_bind_output(b, b->outputs[i], s->model->outputs[i].name, run_inputs,
                                 &outputs[i], err);
    }
    if (status == REE_OK && s->observer) status = ree_bind_observe(b, run_inputs, err);
    for (size_t i = 0; i < n && status != REE_OK; i++)
        ree_tensor_finish(&outputs[i]);
    return status;
}
