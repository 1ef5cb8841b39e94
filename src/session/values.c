// Makes values of a bind from the caller's inputs, and the caller's outputs from results: tensors,
// sequences, strings.
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/memory.h"
#include "session/device_tensor.h"
#include "session/kv_cache.h"
#include "session/session_internal.h"

// Inputs

// Binds run input tensor k, which has strings. Its contents are part of the bind's key, because the
// numbers that stand for strings are valid only in this bind.
static enum ree_status bind_strings(struct ree_bind *b, size_t k, struct ree_view **out,
                                    struct ree_error *err) {
    const struct ree_tensor *t = &b->run_inputs->tensors[k];
    size_t n = t->nbytes / sizeof(char *);
    const char **copies = ree_arena_alloc_array(&b->arena, n + 1, sizeof *copies);
    if (!copies) return ree_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        const char *s = ((const char *const *)t->data)[i];
        copies[i] = ree_arena_strdup(&b->arena, s ? s : "");
        if (!copies[i]) return ree_no_memory(err);
    }
    b->consulted[k] = copies;
    return ree_lower_strings(&b->lower, t->rank, t->dims, copies, out);
}

// Binds run input tensor k.
static enum ree_status bind_tensor(struct ree_bind *b, size_t k, struct ree_view **out,
                                   struct ree_error *err) {
    const struct ree_tensor *t = &b->run_inputs->tensors[k];
    b->ranks[k] = t->rank;
    memcpy(b->dims[k], t->dims, sizeof b->dims[k]);
    if (t->dtype == REE_STRING) return bind_strings(b, k, out, err);
    REE_TRY(ree_lower_new(&b->lower, t->dtype, t->rank, t->dims, out));
    (*out)->storage->kind = REE_STORAGE_INPUT;
    (*out)->storage->input = (uint32_t)k;
    return REE_OK;
}

static enum ree_status bind_sequence(struct ree_bind *b, const struct ree_tensor *sequence,
                                     size_t first, struct ree_view **out, struct ree_error *err) {
    size_t n = sequence->n_items;
    struct ree_view **items = ree_arena_alloc_array(&b->arena, n + 1, sizeof *items);
    if (!items) return ree_no_memory(err);
    for (size_t i = 0; i < n; i++)
        REE_TRY(bind_tensor(b, first + i, &items[i], err));
    return ree_lower_sequence(&b->lower, sequence->dtype, n, items, out);
}

static bool is_on_device(const struct ree_run_inputs *run_inputs, size_t output) {
    return run_inputs->outputs && run_inputs->outputs[output];
}

enum ree_status ree_bind_inputs(struct ree_bind *b, struct ree_error *err) {
    const struct ree_model *model = b->session->model;
    const struct ree_run_inputs *run_inputs = b->run_inputs;
    size_t n = model->n_inputs + 1, n_tensors = run_inputs->n_tensors + 1, k = 0;
    b->kinds = ree_arena_alloc_array(&b->arena, n, sizeof *b->kinds);
    b->counts = ree_arena_alloc_array(&b->arena, n, sizeof *b->counts);
    b->ranks = ree_arena_alloc_array(&b->arena, n_tensors, sizeof *b->ranks);
    b->dims = ree_arena_alloc_array(&b->arena, n_tensors, sizeof *b->dims);
    b->consulted = ree_arena_alloc_array(&b->arena, n_tensors, sizeof *b->consulted);
    if (!b->kinds || !b->counts || !b->ranks || !b->dims || !b->consulted)
        return ree_no_memory(err);
    size_t n_kv_caches = b->session->n_kv_caches;
    b->capacities = ree_arena_alloc_array(&b->arena, n_kv_caches + 1, sizeof *b->capacities);
    b->filled_positions =
        ree_arena_alloc_array(&b->arena, n_kv_caches + 1, sizeof *b->filled_positions);
    b->on_device = ree_arena_alloc_array(&b->arena, model->n_outputs + 1, sizeof *b->on_device);
    if (!b->capacities || !b->filled_positions || !b->on_device) return ree_no_memory(err);
    for (size_t i = 0; i < model->n_outputs; i++)
        b->on_device[i] = is_on_device(run_inputs, i);
    for (size_t i = 0; i < n_kv_caches; i++)
        b->capacities[i] = b->session->kv_caches[i].capacity;
    // Initial values, which stay for kv caches that have no output in this model.
    for (size_t i = 0; i < n_kv_caches; i++)
        b->filled_positions[i] = b->session->kv_caches[i].dims[b->session->kv_caches[i].spec.axis];
    b->n_tensors = run_inputs->n_tensors;
    if (b->session->pages) { // page table and targets follow the model's inputs
        size_t first = run_inputs->n_tensors - REE_PAGE_TENSORS;
        REE_TRY(bind_tensor(b, first, &b->page_table, err));
        REE_TRY(bind_tensor(b, first + 1, &b->page_targets, err));
    }
    for (size_t i = 0; i < model->n_inputs; i++) {
        const struct ree_tensor *t = &run_inputs->values[i];
        struct ree_view **out = &b->values[model->input_values[i]->id];
        b->kinds[i] = t->kind;
        b->counts[i] = t->kind == REE_SEQUENCE ? t->n_items : 0;
        ptrdiff_t cache = ree_session_kv_cache_of_input(b->session, i);
        if (cache >= 0) {
            b->ranks[k] = t->rank;
            memcpy(b->dims[k], t->dims, sizeof b->dims[k]);
            REE_TRY(ree_bind_kv_cache_input(b, (size_t)cache, out, err));
        } else if (t->kind == REE_TENSOR)
            REE_TRY(bind_tensor(b, k, out, err));
        else if (t->kind == REE_SEQUENCE)
            REE_TRY(bind_sequence(b, t, k, out, err));
        else
            REE_TRY(ree_lower_absent(&b->lower, t->dtype, out));
        k += t->kind == REE_TENSOR ? 1 : b->counts[i];
    }
    if (b->session->positions_input != REE_NO_INPUT)
        b->lower.cache_positions = b->values[model->input_values[b->session->positions_input]->id];
    return REE_OK;
}

static bool same_strings(const char *const *a, const struct ree_tensor *t) {
    const char *const *b = t->data;
    for (size_t i = 0; i < t->nbytes / sizeof *b; i++)
        if (strcmp(a[i], b[i] ? b[i] : "") != 0) return false;
    return true;
}

bool ree_bind_matches(const struct ree_bind *b, const struct ree_run_inputs *run_inputs) {
    if (b->n_segments != 1) return false; // contains the data of one run
    if (b->n_tensors != run_inputs->n_tensors) return false;
    for (size_t i = 0; i < b->session->n_kv_caches; i++)
        if (b->capacities[i] != b->session->kv_caches[i].capacity) return false;
    for (size_t i = 0; i < b->session->model->n_outputs; i++)
        if (b->on_device[i] != is_on_device(run_inputs, i)) return false;
    for (size_t i = 0; i < b->session->model->n_inputs; i++)
        if (b->kinds[i] != run_inputs->values[i].kind ||
            (b->kinds[i] == REE_SEQUENCE && b->counts[i] != run_inputs->values[i].n_items))
            return false;
    for (size_t k = 0; k < run_inputs->n_tensors; k++) {
        const struct ree_tensor *t = &run_inputs->tensors[k];
        if (b->ranks[k] != t->rank) return false;
        for (uint32_t d = 0; d < t->rank; d++)
            if (b->dims[k][d] != t->dims[d]) return false;
        if (!b->consulted[k] || !t->nbytes) continue;
        if (!t->data) return false; // on the device
        if (t->dtype == REE_STRING ? !same_strings(b->consulted[k], t)
                                   : memcmp(b->consulted[k], t->data, t->nbytes) != 0)
            return false;
    }
    return true;
}

// Outputs

static enum ree_status read_bytes(struct ree_bind *b, const struct ree_view *t,
                                  const struct ree_run_inputs *run_inputs, void *out, size_t nbytes,
                                  struct ree_error *err) {
    struct ree_session *s = b->session;
    const struct ree_storage *storage = t->storage;
    uint64_t skip = (uint64_t)t->offset * ree_dtype_size(t->dtype);
    const struct ree_device_vtable *v = s->device->vtable;
    if (storage->kind == REE_STORAGE_INPUT) {
        uint32_t k = storage->input;
        if (run_inputs->on_device && run_inputs->on_device[k])
            return v->buffer_read(s->device, run_inputs->on_device[k]->buffer, skip, out, nbytes,
                                  err);
        memcpy(out, (const char *)run_inputs->tensors[k].data + skip, nbytes);
        return REE_OK;
    }
    if (storage->kind == REE_STORAGE_OUTPUT)
        return v->buffer_read(s->device, run_inputs->outputs[storage->output]->buffer, skip, out,
                              nbytes, err);
    if (storage->host) {
        memcpy(out, (const char *)storage->host + skip, nbytes);
        return REE_OK;
    }
    uint32_t home = b->segment_of[storage->id];
    struct ree_device_buffer *buffer = home ? b->segments[home - 1].results : s->arena;
    return v->buffer_read(s->device, buffer, b->offsets[storage->id] + skip, out, nbytes, err);
}

static enum ree_status read_strings(struct ree_bind *b, const struct ree_view *t,
                                    const struct ree_run_inputs *run_inputs, struct ree_tensor *out,
                                    struct ree_error *err) {
    int64_t *numbers = ree_alloc(out->nbytes);
    if (!numbers) return ree_no_memory(err);
    enum ree_status status = read_bytes(b, t, run_inputs, numbers, out->nbytes, err);
    char **strings = out->data;
    for (size_t i = 0; status == REE_OK && i < out->nbytes / sizeof *numbers; i++) {
        const char *text = ree_lower_text(&b->lower, numbers[i]);
        if (!text)
            status = ree_fail(err, REE_INTERNAL,
                              "output '%s' refers to a string that does not exist", out->name);
        else if (!(strings[i] = ree_strdup(text)))
            status = ree_no_memory(err);
    }
    ree_free(numbers);
    return status;
}

static enum ree_status read_tensor(struct ree_bind *b, const struct ree_view *t, const char *name,
                                   const struct ree_run_inputs *run_inputs, struct ree_tensor *out,
                                   struct ree_error *err) {
    REE_TRY(ree_tensor_init(out, name, t->dtype, t->rank, t->dims, err));
    if (!out->nbytes) return REE_OK;
    if (t->dtype == REE_STRING) return read_strings(b, t, run_inputs, out, err);
    REE_TRY(read_bytes(b, t, run_inputs, out->data, out->nbytes, err));
    // NaN payloads and signs differ between devices.
    ree_canonicalise_nans(out->dtype, out->nbytes / ree_dtype_size(out->dtype), out->data);
    return REE_OK;
}

enum ree_status ree_bind_output(struct ree_bind *b, const struct ree_view *t, const char *name,
                                const struct ree_run_inputs *run_inputs, struct ree_tensor *out,
                                struct ree_error *err) {
    if (t->kind == REE_TENSOR) return read_tensor(b, t, name, run_inputs, out, err);
    out->kind = t->kind;
    out->dtype = t->dtype;
    out->name = ree_strdup(name);
    if (!out->name) return ree_no_memory(err);
    for (size_t i = 0; i < t->n_items; i++) {
        struct ree_tensor item = {0};
        enum ree_status status = read_tensor(b, t->items[i], NULL, run_inputs, &item, err);
        if (status != REE_OK) {
            ree_tensor_finish(&item);
            return status;
        }
        REE_TRY(ree_sequence_append(out, &item, err));
    }
    return REE_OK;
}
