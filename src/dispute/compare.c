#include "dispute/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trace/model_header.h"
#include "base/memory.h"
#include "base/status.h"

struct ree_compare {
    struct ree_arena arena;
    const struct ree_graph *graph;
    struct ree_value *const **reads; // per node: the values that it reads
    uint32_t *n_reads;
    ptrdiff_t *kv_cache_input; // per kv cache: value id of its input
    size_t n_kv_caches;
    bool *differs; // per value, in the current step
    // Per kv cache, whether it differs. kv_cache_differs: since an earlier step; was_new: since the
    // current step.
    bool *kv_cache_differs, *was_new;
    // Values of the first session in the current step, in the order of arrival.
    struct ree_tensor *kept;
    size_t n_kept, at, capacity;
    struct ree_drift *drift;
    bool *node_differs; // per node, in the current step
    struct ree_compare_first first;
    uint64_t n_steps, steps_capacity; // steps done; capacity of `rel` and `ulp` in steps
    float *rel, *ulp;
    uint64_t n_differ, n_new;
};

static enum ree_status begin(struct ree_compare *c, const struct ree_model *model,
                             const struct ree_kv_cache_spec *specs, size_t n_specs,
                             struct ree_error *err) {
    struct ree_arena *arena = &c->arena;
    c->graph = model->graph;
    size_t n = c->graph->n_nodes;
    c->reads = ree_arena_alloc_array(arena, n + 1, sizeof *c->reads);
    c->n_reads = ree_arena_alloc_array(arena, n + 1, sizeof *c->n_reads);
    c->drift = ree_arena_alloc_array(arena, n + 1, sizeof *c->drift);
    c->node_differs = ree_arena_alloc_array(arena, n + 1, sizeof *c->node_differs);
    c->differs = ree_arena_alloc_array(arena, c->graph->n_values + 1, sizeof *c->differs);
    c->kv_cache_input = ree_arena_alloc_array(arena, n_specs + 1, sizeof *c->kv_cache_input);
    c->kv_cache_differs = ree_arena_alloc_array(arena, n_specs + 1, sizeof *c->kv_cache_differs);
    c->was_new = ree_arena_alloc_array(arena, n_specs + 1, sizeof *c->was_new);
    if (!c->reads || !c->n_reads || !c->drift || !c->node_differs || !c->differs ||
        !c->kv_cache_input || !c->kv_cache_differs || !c->was_new)
        return ree_no_memory(err);
    c->n_kv_caches = n_specs;
    for (size_t i = 0; i < n_specs; i++)
        c->kv_cache_input[i] = model->input_values[specs[i].input]->id;
    for (size_t i = 0; i < n; i++)
        REE_TRY(
            ree_trace_node_inputs(c->graph->nodes[i], arena, &c->reads[i], &c->n_reads[i], err));
    return REE_OK;
}

enum ree_status ree_compare_create(const struct ree_model *model,
                                   const struct ree_kv_cache_spec *specs, size_t n_specs,
                                   struct ree_compare **out, struct ree_error *err) {
    *out = NULL;
    struct ree_compare *c = ree_alloc_zeroed(1, sizeof *c);
    if (!c) return ree_no_memory(err);
    ree_arena_init(&c->arena);
    enum ree_status status = begin(c, model, specs, n_specs, err);
    if (status == REE_OK)
        *out = c;
    else
        ree_compare_destroy(c);
    return status;
}

// The first session's values

static void forget(struct ree_compare *c) {
    for (size_t i = 0; i < c->n_kept; i++)
        ree_tensor_finish(&c->kept[i]);
    c->n_kept = c->at = 0;
}

static enum ree_status copy_dense(const struct ree_tensor *from, struct ree_tensor *out,
                                  struct ree_error *err) {
    REE_TRY(ree_tensor_init(out, NULL, from->dtype, from->rank, from->dims, err));
    if (from->dtype != REE_STRING) {
        if (from->nbytes) memcpy(out->data, from->data, from->nbytes);
        return REE_OK;
    }
    for (size_t i = 0; i < from->nbytes / sizeof(char *); i++) {
        ((char **)out->data)[i] = ree_strdup(((char **)from->data)[i]);
        if (!((char **)out->data)[i]) return ree_no_memory(err);
    }
    return REE_OK;
}

static enum ree_status copy(const struct ree_tensor *from, struct ree_tensor *out,
                            struct ree_error *err) {
    if (from->kind == REE_TENSOR) return copy_dense(from, out, err);
    *out = (struct ree_tensor){.dtype = from->dtype, .kind = from->kind};
    for (size_t i = 0; i < from->n_items; i++) {
        struct ree_tensor item = {0};
        enum ree_status status = copy_dense(&from->items[i], &item, err);
        if (status != REE_OK) {
            ree_tensor_finish(&item);
            return status;
        }
        REE_TRY(ree_sequence_append(out, &item, err));
    }
    return REE_OK;
}

static enum ree_status keep(struct ree_compare *c, const struct ree_tensor *tensor,
                            struct ree_error *err) {
    if (c->n_kept == c->capacity) {
        size_t capacity = c->capacity ? c->capacity * 2 : 256;
        struct ree_tensor *grown = ree_realloc(c->kept, capacity * sizeof *grown);
        if (!grown) return ree_no_memory(err);
        c->kept = grown;
        c->capacity = capacity;
    }
    memset(&c->kept[c->n_kept], 0, sizeof *c->kept);
    return copy(tensor, &c->kept[c->n_kept++], err);
}

// Comparing

static bool same_type(const struct ree_tensor *a, const struct ree_tensor *b) {
    if (a->kind != b->kind || a->dtype != b->dtype || a->n_items != b->n_items) return false;
    if (a->kind != REE_TENSOR) {
        for (size_t i = 0; i < a->n_items; i++)
            if (!same_type(&a->items[i], &b->items[i])) return false;
        return true;
    }
    return a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0;
}

static void measure(const struct ree_tensor *a, const struct ree_tensor *b, struct ree_ulp *out) {
    if (a->kind == REE_TENSOR) ree_ulp_add(a, b, out);
    for (size_t i = 0; i < a->n_items; i++)
        ree_ulp_add(&a->items[i], &b->items[i], out);
}

// Adds the numbers of one run of an output to those of the node. The worst element is not copied:
// it is only reported for the first difference.
static void add_ulp(struct ree_ulp *all, const struct ree_ulp *one) {
    all->n += one->n;
    all->n_differ += one->n_differ;
    all->is_float = all->is_float || one->is_float;
    for (size_t i = 0; i < REE_ULP_BUCKETS; i++)
        all->histogram[i] += one->histogram[i];
    all->n_sign += one->n_sign;
    all->n_nan += one->n_nan;
    if (one->max_ulp > all->max_ulp) all->max_ulp = one->max_ulp;
    all->max_abs = fmax(all->max_abs, one->max_abs);
    all->max_rel = fmax(all->max_rel, one->max_rel);
}

static bool inputs_agree(const struct ree_compare *c, size_t node) {
    for (uint32_t i = 0; i < c->n_reads[node]; i++) {
        const struct ree_value *value = c->reads[node][i];
        if (!value) continue;
        if (c->differs[value->id]) return false;
        for (size_t k = 0; k < c->n_kv_caches; k++)
            if (c->kv_cache_input[k] == value->id && c->kv_cache_differs[k]) return false;
    }
    return true;
}

static void note_difference(struct ree_compare *c, const struct ree_observed *value,
                            const struct ree_ulp *ulp, bool other_shape) {
    struct ree_drift *drift = &c->drift[value->node];
    c->differs[c->graph->nodes[value->node]->outputs[value->output]->id] = true;
    if (value->kv_cache >= 0) c->was_new[value->kv_cache] = true;
    bool agree = inputs_agree(c, value->node);
    if (!c->node_differs[value->node]) {
        c->node_differs[value->node] = true;
        drift->n_differ++;
        drift->n_new += agree;
        c->n_differ++;
        c->n_new += agree;
    }
    if (c->first.found) return;
    const struct ree_tensor *t = value->tensor;
    c->first = (struct ree_compare_first){
        .found = true,
        .inputs_agree = agree,
        .other_shape = other_shape,
        .step = c->n_steps,
        .node = value->node,
        .output = value->output,
        .name = c->graph->nodes[value->node]->outputs[value->output]->name,
        .dtype = t->dtype,
        .rank = t->kind == REE_TENSOR ? t->rank : 0,
        .ulp = *ulp};
    memcpy(c->first.dims, t->dims, sizeof c->first.dims);
}

static enum ree_status compare(struct ree_compare *c, const struct ree_observed *value,
                               struct ree_error *err) {
    if (c->at == c->n_kept)
        return ree_fail(err, REE_INTERNAL, "the second session reports more values");
    struct ree_tensor *kept = &c->kept[c->at++];
    struct ree_drift *drift = &c->drift[value->node];
    size_t index = c->n_steps * c->graph->n_nodes + value->node;
    struct ree_ulp ulp = {0};
    bool other_shape = !same_type(kept, value->tensor);
    if (!other_shape) measure(kept, value->tensor, &ulp);
    drift->other_shape = drift->other_shape || other_shape;
    add_ulp(&drift->ulp, &ulp);
    if (other_shape || ulp.n_differ) {
        bool endless = other_shape || ulp.n_nan;
        c->rel[index] = fmaxf(c->rel[index], endless ? INFINITY : (float)ulp.max_rel);
        c->ulp[index] = fmaxf(c->ulp[index], endless ? INFINITY : (float)ulp.max_ulp);
        note_difference(c, value, &ulp, other_shape);
    }
    ree_tensor_finish(kept);
    return REE_OK;
}

// Observers

static enum ree_status first_inputs(void *user, const struct ree_tensor *inputs, size_t n,
                                    struct ree_error *err) {
    (void)inputs, (void)n, (void)err;
    forget(user);
    return REE_OK;
}

static enum ree_status first_value(void *user, const struct ree_observed *value,
                                   struct ree_error *err) {
    return keep(user, value->tensor, err);
}

static enum ree_status second_inputs(void *user, const struct ree_tensor *inputs, size_t n,
                                     struct ree_error *err) {
    struct ree_compare *c = user;
    (void)inputs, (void)n;
    size_t n_nodes = c->graph->n_nodes;
    memset(c->differs, 0, c->graph->n_values * sizeof *c->differs);
    memset(c->node_differs, 0, n_nodes * sizeof *c->node_differs);
    memset(c->was_new, 0, c->n_kv_caches * sizeof *c->was_new);
    if (c->n_steps == c->steps_capacity) {
        uint64_t steps_capacity = c->steps_capacity ? c->steps_capacity * 2 : 16;
        float *rel = ree_realloc(c->rel, (size_t)steps_capacity * (n_nodes + 1) * sizeof *rel);
        if (rel) c->rel = rel;
        float *ulp = ree_realloc(c->ulp, (size_t)steps_capacity * (n_nodes + 1) * sizeof *ulp);
        if (ulp) c->ulp = ulp;
        if (!rel || !ulp) return ree_no_memory(err);
        c->steps_capacity = steps_capacity;
    }
    memset(c->rel + c->n_steps * n_nodes, 0, n_nodes * sizeof *c->rel);
    memset(c->ulp + c->n_steps * n_nodes, 0, n_nodes * sizeof *c->ulp);
    return REE_OK;
}

static enum ree_status second_value(void *user, const struct ree_observed *value,
                                    struct ree_error *err) {
    return compare(user, value, err);
}

static enum ree_status second_end(void *user, struct ree_error *err) {
    struct ree_compare *c = user;
    if (c->at != c->n_kept)
        return ree_fail(err, REE_INTERNAL, "the second session reports fewer values");
    for (size_t i = 0; i < c->n_kv_caches; i++)
        c->kv_cache_differs[i] = c->kv_cache_differs[i] || c->was_new[i];
    for (size_t i = 0; i < c->graph->n_nodes; i++)
        c->drift[i].n_runs++;
    c->n_steps++;
    c->n_kept = c->at = 0; // every tensor was already released
    return REE_OK;
}

struct ree_observer ree_compare_observer(struct ree_compare *c, unsigned side) {
    return side ? (struct ree_observer){second_inputs, second_value, second_end, c, false}
                : (struct ree_observer){first_inputs, first_value, NULL, c, false};
}

struct ree_compare_result ree_compare_result(const struct ree_compare *c) {
    return (struct ree_compare_result){.n_steps = c->n_steps,
                                       .n_nodes = c->graph->n_nodes,
                                       .drift = c->drift,
                                       .first = c->first,
                                       .n_differ = c->n_differ,
                                       .n_new = c->n_new,
                                       .rel = c->rel,
                                       .ulp = c->ulp};
}

void ree_compare_destroy(struct ree_compare *c) {
    if (!c) return;
    forget(c);
    ree_free(c->kept);
    ree_free(c->rel);
    ree_free(c->ulp);
    ree_arena_finish(&c->arena);
    ree_free(c);
}
