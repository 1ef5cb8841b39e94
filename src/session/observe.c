// Selects the tensors of a bind that an observer receives, and reads them back from the device as
// dense tensors.
#include "session/observe.h"

#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/float_env.h"
#include "base/memory.h"
#include "session/kv_cache.h"
#include "session/session_internal.h"

enum ree_status ree_session_observe(struct ree_session *s, const struct ree_observer *observer,
                                    struct ree_error *err) {
    if (s->n_binds || s->observer)
        return ree_fail(err, REE_INVALID,
                        "observing a session must start before its first run, and only once");
    if (s->positions_input != REE_NO_INPUT)
        return ree_fail(err, REE_UNSUPPORTED,
                        "a session that mixes sequences of different lengths cannot be observed");
    s->observer = ree_alloc(sizeof *s->observer);
    if (!s->observer) return ree_no_memory(err);
    *s->observer = *observer;
    return REE_OK;
}

void ree_session_end_observation(struct ree_session *s) {
    // The binds stay as they are, so the session continues to count as observed.
    if (s->observer) *s->observer = (struct ree_observer){0};
}

const struct ree_model *ree_session_model(const struct ree_session *s) {
    return s->model;
}

enum ree_operation_set ree_session_operation_set(const struct ree_session *s) {
    return s->device->operation_set;
}

const struct ree_device *ree_session_device(const struct ree_session *s) {
    return s->device;
}

// While binding

// If *t is a view of a kv cache, replaces it by a copy, because later dispatches of the run may
// change the cache.
static enum ree_status detach_tensor(struct ree_lower *lower, struct ree_view **t) {
    if ((*t)->storage->kind != REE_STORAGE_KV_CACHE || ree_view_count(*t) == 0) return REE_OK;
    struct ree_view *copy;
    REE_TRY(ree_lower_new(lower, (*t)->dtype, (*t)->rank, (*t)->dims, &copy));
    REE_TRY(ree_lower_copy_into(lower, *t, copy));
    *t = copy;
    return REE_OK;
}

static enum ree_status detach(struct ree_lower *lower, struct ree_view **t) {
    if ((*t)->kind == REE_TENSOR) return detach_tensor(lower, t);
    if ((*t)->kind == REE_ABSENT) return REE_OK;
    struct ree_view *own;
    REE_TRY(ree_lower_sequence(lower, (*t)->dtype, (*t)->n_items, (*t)->items, &own));
    for (size_t i = 0; i < own->n_items; i++)
        REE_TRY(detach_tensor(lower, &own->items[i]));
    *t = own;
    return REE_OK;
}

static enum ree_status watch(struct ree_bind *b, const struct ree_node *node, size_t output,
                             struct ree_error *err) {
    const struct ree_value *value = node->outputs[output];
    struct ree_watched *w = &b->watched[b->n_watched];
    *w = (struct ree_watched){node->id, (uint32_t)output, b->values[value->id], -1, 0};
    if (!w->t) return ree_fail(err, REE_INTERNAL, "'%s' was not computed", value->name);
    w->kv_cache = ree_session_kv_cache_of_value(b->session, value);
    if (w->kv_cache >= 0 && ree_bind_kv_cache_grew(b, (size_t)w->kv_cache, w->t)) {
        const struct ree_lower_kv_cache *kept = w->t->storage->kv_cache;
        int64_t before = kept->dims[kept->axis], n_added = w->t->dims[kept->axis] - before;
        REE_TRY(ree_lower_slice(&b->lower, w->t, kept->axis, before, 1, n_added, &w->t));
        w->first_position = before;
    }
    b->lower.node = node; // the copies belong to this node
    REE_TRY(detach(&b->lower, &w->t));
    b->n_watched++;
    return REE_OK;
}

enum ree_status ree_bind_watch(struct ree_bind *b, struct ree_error *err) {
    const struct ree_graph *graph = b->session->model->graph;
    size_t n = 0;
    for (size_t i = 0; i < graph->n_nodes; i++)
        n += graph->nodes[i]->n_outputs;
    b->watched = ree_arena_alloc_array(&b->arena, n + 1, sizeof *b->watched);
    if (!b->watched) return ree_no_memory(err);
    for (size_t i = 0; i < graph->n_nodes; i++)
        for (size_t k = 0; k < graph->nodes[i]->n_outputs; k++)
            if (graph->nodes[i]->outputs[k]) REE_TRY(watch(b, graph->nodes[i], k, err));
    return REE_OK;
}

void ree_bind_keep_watched(const struct ree_bind *b, bool *keep) {
    for (size_t i = 0; i < b->n_watched; i++) {
        const struct ree_view *t = b->watched[i].t;
        if (t->kind == REE_TENSOR) keep[t->storage->id] = true;
        for (size_t k = 0; k < t->n_items; k++)
            keep[t->items[k]->storage->id] = true;
    }
}

// After a run

// Ensures that a block of memory has at least `nbytes` bytes; its contents may be lost. Returns the
// block, or NULL if memory is exhausted.
static void *reserve(void **block, size_t *size, uint64_t nbytes) {
    if (*block && nbytes <= *size) return *block;
    if (nbytes > SIZE_MAX - 64) return NULL;
    ree_free(*block);
    *size = 0;
    *block = ree_alloc((size_t)nbytes + 64);
    if (*block) *size = (size_t)nbytes + 64;
    return *block;
}

// Host copies of everything computed on the device: one block for the arena, one per earlier
// segment.
struct reader {
    struct ree_bind *b;
    const struct ree_run_inputs *run_inputs;
    char *arena;
    char **segments; // per segment: its results
};

static enum ree_status read_all(struct reader *r, struct ree_error *err) {
    struct ree_bind *b = r->b;
    struct ree_session *s = b->session;
    const struct ree_device_vtable *v = s->device->vtable;
    uint64_t total = b->watched_size;
    for (size_t i = 0; i < b->n_segments; i++)
        if (!ree_add_size(total, b->segments[i].results_size, &total)) return ree_no_memory(err);
    char *at = reserve(&s->observed, &s->observed_size, total);
    if (!at) return ree_no_memory(err);
    r->arena = at;
    if (b->watched_size) REE_TRY(v->buffer_read(s->device, s->arena, 0, at, b->watched_size, err));
    at += b->watched_size;
    for (size_t i = 0; i < b->n_segments; i++) {
        const struct ree_segment *seg = &b->segments[i];
        r->segments[i] = at;
        if (seg->results_size)
            REE_TRY(v->buffer_read(s->device, seg->results, 0, at, seg->results_size, err));
        at += seg->results_size;
    }
    return REE_OK;
}

// Returns the host address of the storage's bytes.
static const char *bytes_of(const struct reader *r, const struct ree_storage *storage) {
    if (storage->kind == REE_STORAGE_INPUT) return r->run_inputs->tensors[storage->input].data;
    if (storage->host) return storage->host;
    uint32_t home = r->b->segment_of[storage->id];
    return (home ? r->segments[home - 1] : r->arena) + r->b->offsets[storage->id];
}

static void copy_strided(char *to, const char *from, int64_t n, int64_t stride, size_t size) {
    for (int64_t i = 0; i < n; i++, to += size)
        switch (size) { // copies of constant size compile to single instructions
        case 1: *to = from[i * stride]; break;
        case 2: memcpy(to, from + i * stride * 2, 2); break;
        case 4: memcpy(to, from + i * stride * 4, 4); break;
        default: memcpy(to, from + i * stride * (int64_t)size, size); break;
        }
}

// Copies the elements of a view, row-major, to `to`. `from` points to the bytes of its storage.
static void gather(const char *from, const struct ree_view *t, char *to) {
    size_t size = ree_dtype_size(t->dtype);
    from += t->offset * (int64_t)size;
    // `run`: number of contiguous elements. `outer`: number of dimensions around them.
    int64_t run = 1, count = ree_view_count(t);
    uint32_t outer = t->rank;
    while (outer > 0 && (t->dims[outer - 1] == 1 || t->strides[outer - 1] == run))
        run *= t->dims[--outer];
    int64_t n = 1, stride = 1; // if run is 1: handle the innermost dimension in one step
    if (run == 1 && outer > 0) {
        n = t->dims[--outer];
        stride = t->strides[outer];
    }
    int64_t index[REE_MAX_RANK] = {0}, at = 0;
    for (int64_t done = 0; done < count; done += run * n) {
        if (run > 1)
            memcpy(to, from + at * (int64_t)size, (size_t)run * size);
        else
            copy_strided(to, from + at * (int64_t)size, n, stride, size);
        to += (size_t)(run * n) * size;
        for (uint32_t i = outer; i-- > 0;) {
            at += t->strides[i];
            if (++index[i] < t->dims[i]) break;
            at -= t->strides[i] * t->dims[i];
            index[i] = 0;
        }
    }
}

// Replaces the numbers that stand for strings by pointers to the strings.
static enum ree_status resolve_strings(const struct ree_lower *lower, struct ree_tensor *t,
                                       struct ree_error *err) {
    _Static_assert(sizeof(int64_t) == sizeof(const char *), "a string's number has its place");
    for (size_t i = 0; i < t->nbytes / sizeof(char *); i++) {
        int64_t number;
        memcpy(&number, (char *)t->data + i * sizeof number, sizeof number);
        const char *text = ree_lower_text(lower, number);
        if (!text)
            return ree_fail(err, REE_INTERNAL, "'%s' refers to a string that does not exist",
                            t->name);
        memcpy((char *)t->data + i * sizeof text, &text, sizeof text);
    }
    return REE_OK;
}

static void describe(const struct ree_view *t, struct ree_tensor *out) {
    *out = (struct ree_tensor){.name = out->name, .dtype = t->dtype, .kind = t->kind};
    if (t->kind != REE_TENSOR) return;
    out->rank = t->rank;
    memcpy(out->dims, t->dims, sizeof out->dims);
    out->nbytes = (size_t)ree_view_count(t) * ree_dtype_size(t->dtype);
}

// Sets *out to the value of a view, dense; out->name must be set before. out->data points into the
// host copies of `r` or, if a copy is needed, to `capacity`, which must have space for the tensor.
static enum ree_status show(const struct reader *r, const struct ree_view *t, char *capacity,
                            struct ree_tensor *out, struct ree_error *err) {
    describe(t, out);
    if (!out->nbytes) return REE_OK;
    bool is_float = ree_dtype_is_float(t->dtype);
    const char *from = bytes_of(r, t->storage);
    // Floats need a copy: their NaNs are changed below, and another view may show the same bytes as
    // integers.
    if (t->dtype != REE_STRING && ree_view_is_dense(t) && !is_float) {
        from += t->offset * (int64_t)ree_dtype_size(t->dtype);
        out->data = (void *)(uintptr_t)from;
    } else {
        gather(from, t, capacity);
        out->data = capacity;
    }
    if (t->dtype == REE_STRING) return resolve_strings(&r->b->lower, out, err);
    if (is_float)
        ree_canonicalise_nans(t->dtype, out->nbytes / ree_dtype_size(t->dtype), out->data);
    return REE_OK;
}

static uint64_t space_for(const struct ree_view *t) {
    uint64_t nbytes = (uint64_t)ree_view_count(t) * ree_dtype_size(t->dtype);
    return (nbytes + 63) / 64 * 64;
}

static enum ree_status pass_value(const struct reader *r, const struct ree_watched *w, void **block,
                                  size_t *block_size, struct ree_error *err) {
    struct ree_session *s = r->b->session;
    const struct ree_view *t = w->t;
    const struct ree_value *value = s->model->graph->nodes[w->node]->outputs[w->output];
    struct ree_tensor tensor = {.name = (char *)(uintptr_t)value->name}; // only read
    uint64_t capacity = t->kind == REE_TENSOR ? space_for(t) : 0;
    for (size_t i = 0; i < t->n_items; i++)
        capacity += space_for(t->items[i]);
    char *at = reserve(block, block_size, capacity);
    if (!at) return ree_no_memory(err);
    enum ree_status status = REE_OK;
    if (t->kind == REE_TENSOR) {
        status = show(r, t, at, &tensor, err);
    } else {
        describe(t, &tensor);
        tensor.n_items = t->n_items;
        tensor.items = ree_alloc_zeroed(t->n_items + 1, sizeof *tensor.items);
        if (!tensor.items) return ree_no_memory(err);
        for (size_t i = 0; i < t->n_items && status == REE_OK; i++) {
            status = show(r, t->items[i], at, &tensor.items[i], err);
            at += space_for(t->items[i]);
        }
    }
    struct ree_observed observed = {w->node, w->output, &tensor, w->kv_cache, w->first_position};
    if (status == REE_OK) status = s->observer->on_value(s->observer->user, &observed, err);
    ree_free(tensor.items);
    return status;
}

// Minimum number of bytes that is worth several threads: passing on less takes less time than
// waking them up.
#define WORTH_THREADS ((uint64_t)1 << 18)

// Returns the failure of the first failing value, in the order of values.
static enum ree_status pass_all(const struct reader *r, struct ree_error *err) {
    const struct ree_bind *b = r->b;
    const bool concurrent =
        b->session->observer->concurrent && b->session->observed_size > WORTH_THREADS;
    enum ree_status status = REE_OK;
    size_t failed = b->n_watched;
#pragma omp parallel if (concurrent)
    {
        REE_FLOAT_ENV_WORKER();
        void *block = NULL;
        size_t size = 0;
#pragma omp for schedule(dynamic, 4)
        for (size_t i = 0; i < b->n_watched; i++) {
            struct ree_error own;
            size_t first;
#pragma omp atomic read
            first = failed;
            if (i > first) continue;
            enum ree_status mine = pass_value(r, &b->watched[i], &block, &size, &own);
            if (mine == REE_OK) continue;
#pragma omp critical(ree_observe)
            if (i < failed) {
#pragma omp atomic write
                failed = i;
                status = mine;
                *err = own;
            }
        }
        ree_free(block);
    }
    return status;
}

enum ree_status ree_bind_observe(struct ree_bind *b, const struct ree_run_inputs *run_inputs,
                                 struct ree_error *err) {
    const struct ree_observer *observer = b->session->observer;
    if (observer->on_value) {
        struct reader r = {.b = b, .run_inputs = run_inputs};
        r.segments = ree_alloc_zeroed(b->n_segments + 1, sizeof(char *));
        enum ree_status status = r.segments ? read_all(&r, err) : ree_no_memory(err);
        if (status == REE_OK) status = pass_all(&r, err);
        ree_free(r.segments);
        REE_TRY(status);
    }
    return observer->on_end ? observer->on_end(observer->user, err) : REE_OK;
}
