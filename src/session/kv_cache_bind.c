// Kv caches within a bind: how the graph sees them, and where their outputs are stored.
#include <string.h>

#include "base/dtype.h"
#include "session/kv_cache.h"
#include "session/session_internal.h"

ptrdiff_t ree_session_kv_cache_of_input(const struct ree_session *s, size_t input) {
    for (size_t i = 0; i < s->n_kv_caches; i++)
        if (s->kv_caches[i].spec.input == input) return (ptrdiff_t)i;
    return -1;
}

ptrdiff_t ree_session_kv_cache_of_output(const struct ree_session *s, size_t output) {
    for (size_t i = 0; i < s->n_kv_caches; i++)
        if (s->kv_caches[i].spec.output == output) return (ptrdiff_t)i;
    return -1;
}

ptrdiff_t ree_session_kv_cache_of_value(const struct ree_session *s,
                                        const struct ree_value *value) {
    for (size_t i = 0; i < s->n_kv_caches; i++)
        if (s->kv_caches[i].spec.output != REE_NO_OUTPUT &&
            s->model->graph->outputs[s->kv_caches[i].spec.output] == value)
            return (ptrdiff_t)i;
    return -1;
}

enum ree_status ree_bind_kv_cache_input(struct ree_bind *b, size_t index, struct ree_view **out,
                                        struct ree_error *err) {
    (void)err; // b->lower.err is the same pointer
    const struct ree_kv_cache *cache = &b->session->kv_caches[index];
    const struct ree_port *port = &b->session->model->inputs[cache->spec.input];
    struct ree_lower_kv_cache run_inputs = {.index = (uint32_t)index,
                                            .rank = port->rank,
                                            .axis = cache->spec.axis,
                                            .batch_axis = cache->spec.batch_axis,
                                            .in_order = cache->spec.in_order,
                                            .value =
                                                b->session->model->input_values[cache->spec.input],
                                            .capacity = cache->capacity};
    // If another session keeps the cache, only its shape exists here.
    if (cache->spec.output == REE_NO_OUTPUT)
        run_inputs.capacity = cache->dims[cache->spec.axis];
    else
        run_inputs.next = b->session->model->graph->outputs[cache->spec.output];
    memcpy(run_inputs.dims, cache->dims, sizeof run_inputs.dims);
    if (b->session->pages) {
        run_inputs.table = b->page_table;
        run_inputs.targets = b->page_targets;
        run_inputs.page_bits = b->session->pages->page_bits;
        return ree_lower_paged_kv_cache(&b->lower, port->dtype, &run_inputs, cache->capacity, out);
    }
    return ree_lower_kv_cache(&b->lower, port->dtype, &run_inputs, out);
}

static void set_layout(struct ree_view *t, const struct ree_lower_kv_cache *cache) {
    int64_t stride = 1;
    for (uint32_t i = t->rank; i-- > 0;) {
        t->strides[i] = stride;
        stride *= i == cache->axis ? cache->capacity : t->dims[i];
    }
    t->offset = 0;
}

// Makes a view of the cache's buffer with the dims of t.
static enum ree_status target(struct ree_bind *b, struct ree_storage *storage,
                              const struct ree_view *t, struct ree_view **out) {
    struct ree_view *view = ree_lower_view(&b->lower, t);
    if (!view) return ree_no_memory(b->lower.err);
    view->storage = storage;
    set_layout(view, storage->kv_cache);
    *out = view;
    return REE_OK;
}

// Whether t starts at the beginning of the cache and has its strides, as `layout` does.
static bool lies_in(const struct ree_view *t, const struct ree_view *layout) {
    bool same = t->storage == layout->storage && t->offset == 0;
    for (uint32_t i = 0; same && i < t->rank; i++)
        same = t->dims[i] == 1 || t->strides[i] == layout->strides[i];
    return same;
}

bool ree_bind_kv_cache_grew(const struct ree_bind *b, size_t index, const struct ree_view *t) {
    const struct ree_kv_cache *cache = &b->session->kv_caches[index];
    const struct ree_model *model = b->session->model;
    const struct ree_view *in = b->values[model->input_values[cache->spec.input]->id];
    const struct ree_lower_kv_cache *kept = in->storage->kv_cache;
    if (t->kind != REE_TENSOR || t->storage != in->storage || t->rank != kept->rank ||
        kept->is_scattered || t->dims[kept->axis] < kept->dims[kept->axis])
        return false;
    struct ree_view layout = *t;
    set_layout(&layout, kept);
    return lies_in(t, &layout);
}

// Stores `t`, the output of a kv cache in pages. Emits nothing if t is the input `in` with new
// positions appended in place; otherwise emits the write of all positions.
static enum ree_status write_pages(struct ree_bind *b, const struct ree_view *in,
                                   struct ree_view *t) {
    const struct ree_lower_kv_cache *from = ree_lower_pages_of(in), *to = ree_lower_pages_of(t);
    if (to && to->pool == from->pool && t->dims[to->axis] == to->dims[to->axis]) {
        struct ree_view layout = *t;
        set_layout(&layout, to);
        layout.storage = t->storage;
        if (lies_in(t, &layout)) return REE_OK;
    }
    b->replaces_pages = true;
    // Without earlier positions, all positions are new, and none is rewritten.
    b->rewrites_pages = b->rewrites_pages || from->dims[from->axis] > 0;
    if (b->session->positions_input != REE_NO_INPUT)
        return ree_fail(b->lower.err, REE_UNSUPPORTED,
                        "a new cache is not its input with new positions appended, which sequences "
                        "of different lengths require");
    return ree_lower_write_pages(&b->lower, from, t);
}

enum ree_status ree_bind_kv_cache_output(struct ree_bind *b, size_t index, struct ree_view *t,
                                         struct ree_error *err) {
    const struct ree_session *s = b->session;
    const struct ree_kv_cache *cache = &s->kv_caches[index];
    const struct ree_view *in = b->values[s->model->input_values[cache->spec.input]->id];
    const struct ree_lower_kv_cache *kept = in->storage->kv_cache;
    const char *name = s->model->outputs[cache->spec.output].name;
    char text[128];
    bool fits = t->kind == REE_TENSOR && t->rank == kept->rank && t->dtype == in->dtype;
    for (uint32_t i = 0; fits && i < t->rank; i++)
        fits = i == kept->axis ? s->pages || t->dims[i] <= kept->capacity
                               : t->dims[i] == kept->dims[i];
    // A cache in pages must grow by as many positions as the run has targets.
    if (s->pages && fits)
        fits = t->dims[kept->axis] == kept->dims[kept->axis] + b->page_targets->dims[1];
    if (!fits)
        return ree_fail(
            err, REE_INVALID,
            "the cache '%s' became %s, which does not match its type, shape or capacity", name,
            ree_view_text(t, text, sizeof text));
    b->filled_positions[index] = t->dims[kept->axis];
    if (s->pages) return write_pages(b, in, t);
    struct ree_view *layout;
    REE_TRY(target(b, in->storage, t, &layout));
    if (t->storage == in->storage) {
        if (lies_in(t, layout)) return REE_OK;
        // `t` is another view of the same buffer: copy through temporary memory, because source and
        // destination may overlap.
        struct ree_view *aside;
        REE_TRY(ree_lower_new(&b->lower, t->dtype, t->rank, t->dims, &aside));
        REE_TRY(ree_lower_copy_into(&b->lower, t, aside));
        t = aside;
    }
    if (s->positions_input != REE_NO_INPUT)
        return ree_fail(err, REE_UNSUPPORTED,
                        "the new cache '%s' is not its input with new positions appended, which "
                        "sequences of different lengths require",
                        name);
    return ree_lower_copy_into(&b->lower, t, layout);
}
