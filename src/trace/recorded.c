#include "trace/recorded.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/model_header.h"
#include "base/memory.h"
#include "base/npy.h"
#include "base/status.h"

// The file of a value.
struct place {
    struct ree_recorded_folder *folder;
    uint64_t step;
    struct ree_recorded_key key;
};

static enum ree_status load_file(const struct place *p, enum ree_dtype dtype,
                                 struct ree_tensor *out, struct ree_error *err) {
    char *path;
    memset(out, 0, sizeof *out);
    REE_TRY(ree_recorded_find(p->folder, p->step, &p->key, &path, err));
    enum ree_status status = ree_npy_load(out, path, err);
    if (status == REE_OK && dtype != REE_DTYPE_NONE) status = ree_tensor_retype(out, dtype, err);
    if (status != REE_OK) {
        ree_tensor_finish(out);
        ree_fail_prefix(err, "%s", path);
    }
    ree_free(path);
    return status;
}

// Finds the node that makes a value; *out_output receives the index of the output. Nodes number
// their outputs in their order.
static uint32_t maker_of(const struct ree_trace_header *h, uint32_t value, uint32_t *out_output) {
    uint32_t low = 0, high = h->n_nodes;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (h->nodes[middle].first_output + h->nodes[middle].n_outputs <= value)
            low = middle + 1;
        else
            high = middle;
    }
    *out_output = value - h->nodes[low].first_output;
    return low;
}

static struct place place_of(struct ree_recorded_folder *folder, const struct ree_opened *m,
                             uint64_t step, uint32_t value, enum ree_dtype *out_dtype) {
    struct place p = {.folder = folder, .step = step};
    if (value < m->header.n_inputs) {
        p.key = (struct ree_recorded_key){.is_input = true, .number = value};
        *out_dtype = m->model->input_values[value]->dtype;
    } else {
        p.key.number = maker_of(&m->header, value, &p.key.output);
        *out_dtype = m->model->graph->nodes[p.key.number]->outputs[p.key.output]->dtype;
    }
    return p;
}

// Caches

uint32_t ree_recorded_value_of_output(const struct ree_opened *m, size_t output) {
    const struct ree_graph *graph = m->model->graph;
    const struct ree_value *value = output < graph->n_outputs ? graph->outputs[output] : NULL;
    if (!value || !value->producer) return UINT32_MAX;
    const struct ree_trace_node *node = &m->header.nodes[value->producer->id];
    for (uint32_t i = 0; i < node->n_outputs; i++)
        if (value->producer->outputs[i] == value) return node->first_output + i;
    return UINT32_MAX;
}

void ree_recorded_source_of_output(const struct ree_opened *m, size_t output,
                                   struct ree_recorded_source *out) {
    const struct ree_value *value = m->model->graph->outputs[output];
    *out = (struct ree_recorded_source){.value = ree_recorded_value_of_output(m, output)};
    if (out->value != UINT32_MAX) return;
    for (size_t i = 0; i < m->header.n_inputs; i++)
        if (m->model->input_values[i] == value) {
            out->is_input = true;
            out->value = (uint32_t)i;
            return;
        }
    const struct ree_tensor tensor = ree_trace_constant_tensor(value);
    out->is_constant = true;
    ree_trace_tensor_digest(&tensor, out->digest);
}

// Returns the number of the value that a step leaves in the cache: the graph's output for the
// cache. UINT32_MAX: no node computes it.
static uint32_t value_of_kv_cache(const struct ree_opened *m, size_t cache) {
    return ree_recorded_value_of_output(m, m->roles.kv_caches[cache].output);
}

ptrdiff_t ree_recorded_kv_cache(const struct ree_opened *m, uint32_t value, bool *out_new) {
    for (size_t i = 0; i < m->roles.n_kv_caches; i++) {
        *out_new = value_of_kv_cache(m, i) == value;
        if (*out_new || m->roles.kv_caches[i].input == value) return (ptrdiff_t)i;
    }
    return -1;
}

void ree_recorded_positions_digest(const struct ree_tensor *tensor, uint32_t axis, ree_digest out) {
    struct ree_cache_digest positions;
    ree_cache_digest_begin(&positions, tensor, axis);
    ree_cache_digest_add(&positions, tensor);
    memcpy(out, positions.digest, sizeof positions.digest);
}

// Appends `positions` to `all` along `axis`. Both tensors must be dense.
static enum ree_status append(struct ree_tensor *all, const struct ree_tensor *positions,
                              uint32_t axis, struct ree_error *err) {
    struct ree_tensor grown;
    int64_t dims[REE_MAX_RANK];
    if (positions->rank != all->rank || positions->dtype != all->dtype || axis >= all->rank)
        return ree_fail(err, REE_INVALID,
                        "the positions of a cache have different types in different steps");
    memcpy(dims, all->dims, sizeof dims);
    for (uint32_t i = 0; i < all->rank; i++)
        if (i != axis && positions->dims[i] != dims[i])
            return ree_fail(err, REE_INVALID,
                            "the positions of a cache have different shapes in different steps");
    dims[axis] += positions->dims[axis];
    REE_TRY(ree_tensor_init(&grown, NULL, all->dtype, all->rank, dims, err));
    size_t outer = 1, inner = ree_dtype_size(all->dtype);
    for (uint32_t i = 0; i < all->rank; i++)
        if (i != axis) *(i < axis ? &outer : &inner) *= (size_t)dims[i];
    size_t a = inner * (size_t)all->dims[axis], b = inner * (size_t)positions->dims[axis];
    for (size_t o = 0; o < outer; o++) {
        char *to = (char *)grown.data + o * (a + b);
        if (a) memcpy(to, (char *)all->data + o * a, a);
        if (b) memcpy(to + a, (char *)positions->data + o * b, b);
    }
    ree_tensor_finish(all);
    *all = grown;
    return REE_OK;
}

// Loads the positions that the steps before `end` added to the cache. If end is 0, *out has no
// positions; its type and other dimensions are those of the first step.
static enum ree_status load_kv_cache(struct ree_recorded_folder *folder, const struct ree_opened *m,
                                     uint64_t end, size_t cache, struct ree_tensor *out,
                                     struct ree_error *err) {
    uint32_t axis = m->roles.kv_caches[cache].axis, value = value_of_kv_cache(m, cache);
    enum ree_dtype dtype;
    if (value == UINT32_MAX) return ree_fail(err, REE_UNSUPPORTED, "no node writes this cache");
    struct place p = place_of(folder, m, 0, value, &dtype);
    REE_TRY(load_file(&p, dtype, out, err));
    if (axis >= out->rank || out->dtype == REE_STRING)
        return ree_fail(err, REE_INVALID, "the first positions of a cache have no dimension %u",
                        axis);
    if (end == 0) {
        out->dims[axis] = 0;
        out->nbytes = 0;
    }
    for (p.step = 1; p.step < end; p.step++) {
        struct ree_tensor positions;
        REE_TRY(load_file(&p, dtype, &positions, err));
        enum ree_status status = append(out, &positions, axis, err);
        ree_tensor_finish(&positions);
        REE_TRY(status);
    }
    return REE_OK;
}

enum ree_status ree_recorded_load(struct ree_recorded_folder *folder, const struct ree_opened *m,
                                  uint64_t step, uint32_t value, const ree_digest digest,
                                  struct ree_tensor *out, struct ree_error *err) {
    bool is_new = false;
    ree_digest found;
    enum ree_dtype dtype;
    enum ree_status status;
    memset(out, 0, sizeof *out);
    ptrdiff_t cache = ree_recorded_kv_cache(m, value, &is_new);
    if (cache >= 0) {
        status = load_kv_cache(folder, m, step + is_new, (size_t)cache, out, err);
        if (status == REE_OK)
            ree_recorded_positions_digest(out, m->roles.kv_caches[cache].axis, found);
    } else {
        struct place p = place_of(folder, m, step, value, &dtype);
        status = load_file(&p, dtype, out, err);
        if (status == REE_OK) ree_trace_tensor_digest(out, found);
    }
    if (status == REE_OK && memcmp(found, digest, sizeof found) != 0)
        status = ree_fail(
            err, REE_INVALID,
            "the recorded value does not have the digest that both parties are committed to");
    if (status != REE_OK) ree_tensor_finish(out);
    return status;
}

enum ree_status ree_recorded_run_input(struct ree_recorded_folder *folder,
                                       const struct ree_opened *m, uint32_t input,
                                       const char *sha256, ree_digest out, struct ree_error *err) {
    struct ree_tensor tensor;
    enum ree_dtype dtype;
    char hex[65];
    struct place p = place_of(folder, m, 0, input, &dtype);
    enum ree_status status = load_file(&p, dtype, &tensor, err);
    if (status == REE_OK) {
        ree_tensor_sha256(&tensor, hex);
        ree_trace_tensor_digest(&tensor, out);
        if (strcmp(hex, sha256) != 0)
            status = ree_fail(err, REE_INVALID, "the recorded value is not the receipt's input");
    }
    ree_tensor_finish(&tensor);
    return status;
}
