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

// Loads the file of a value. The tensor has the type of the file, which may stand for another one
// (take_type).
static enum ree_status load_file(const struct place *p, struct ree_tensor *out,
                                 struct ree_error *err) {
    char *path;
    memset(out, 0, sizeof *out);
    REE_TRY(ree_recorded_find(p->folder, p->step, &p->key, &path, err));
    enum ree_status status = ree_npy_load(out, path, err);
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
                             uint64_t step, uint32_t value) {
    struct place p = {.folder = folder, .step = step};
    if (value < m->header.n_inputs)
        p.key = (struct ree_recorded_key){.is_input = true, .number = value};
    else
        p.key.number = maker_of(&m->header, value, &p.key.output);
    return p;
}

// What a loaded tensor must have.
struct wanted {
    const unsigned char *digest; // in a trace; NULL: not known
    ptrdiff_t axis;              // of the positions that make the digest of a cache; -1: no cache
    const char *sha256;          // in a receipt; NULL: not known
};

static bool is_wanted(const struct ree_tensor *t, const struct wanted *wanted) {
    char hex[65];
    ree_digest found;
    if (wanted->sha256) {
        ree_tensor_sha256(t, hex);
        return strcmp(hex, wanted->sha256) == 0;
    }
    if (wanted->axis >= 0)
        ree_recorded_positions_digest(t, (uint32_t)wanted->axis, found);
    else
        ree_trace_tensor_digest(t, found);
    return memcmp(found, wanted->digest, sizeof found) == 0;
}

// Gives the tensor the type with which it has the wanted hash: that of its file, or one that is
// saved as that (ree_tensor_retype). The hash decides, because the types that the model declares
// for values within the graph are only hints. Returns false if it has the hash with no type.
static bool take_type(struct ree_tensor *t, const struct wanted *wanted) {
    const enum ree_dtype stored = t->dtype;
    struct ree_error unused;
    if (is_wanted(t, wanted)) return true;
    for (int dtype = REE_F32; dtype <= REE_I2; dtype++) {
        t->dtype = stored;
        if (ree_tensor_retype(t, (enum ree_dtype)dtype, &unused) != REE_OK || t->dtype == stored)
            continue;
        if (is_wanted(t, wanted)) return true;
    }
    t->dtype = stored;
    return false;
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

static bool has_axis(const struct ree_tensor *t, uint32_t axis) {
    return axis < t->rank && t->dtype != REE_STRING;
}

// Loads the positions that the steps before `end` added to the cache. If end is 0, *out has no
// positions; its type and other dimensions are those of the first step.
static enum ree_status append_steps(struct place p, uint64_t end, uint32_t axis,
                                    struct ree_tensor *out, struct ree_error *err) {
    p.step = 0;
    REE_TRY(load_file(&p, out, err));
    if (!has_axis(out, axis))
        return ree_fail(err, REE_INVALID, "the first positions of a cache have no dimension %u",
                        axis);
    if (end == 0) {
        out->dims[axis] = 0;
        out->nbytes = 0;
    }
    while (++p.step < end) {
        struct ree_tensor positions;
        REE_TRY(load_file(&p, &positions, err));
        enum ree_status status = append(out, &positions, axis, err);
        ree_tensor_finish(&positions);
        REE_TRY(status);
    }
    return REE_OK;
}

// Loads the cache as the steps before `end` left it. The file of a step contains the positions that
// the step added, or the whole cache if the step wrote all of it again. Which of the two is not
// recorded: the digest decides.
static enum ree_status load_kv_cache(struct ree_recorded_folder *folder, const struct ree_opened *m,
                                     uint64_t end, size_t cache, const struct wanted *wanted,
                                     struct ree_tensor *out, struct ree_error *err) {
    uint32_t axis = m->roles.kv_caches[cache].axis, value = value_of_kv_cache(m, cache);
    if (value == UINT32_MAX) return ree_fail(err, REE_UNSUPPORTED, "no node writes this cache");
    struct place last = place_of(folder, m, end > 1 ? end - 1 : 0, value);
    if (end > 1) {
        REE_TRY(load_file(&last, out, err));
        if (has_axis(out, axis) && take_type(out, wanted)) return REE_OK;
        ree_tensor_finish(out);
    }
    return append_steps(last, end, axis, out, err);
}

enum ree_status ree_recorded_load(struct ree_recorded_folder *folder, const struct ree_opened *m,
                                  uint64_t step, uint32_t value, const ree_digest digest,
                                  struct ree_tensor *out, struct ree_error *err) {
    bool is_new = false;
    enum ree_status status;
    struct wanted wanted = {.digest = digest, .axis = -1};
    memset(out, 0, sizeof *out);
    ptrdiff_t cache = ree_recorded_kv_cache(m, value, &is_new);
    if (cache >= 0) {
        wanted.axis = (ptrdiff_t)m->roles.kv_caches[cache].axis;
        status = load_kv_cache(folder, m, step + is_new, (size_t)cache, &wanted, out, err);
    } else {
        struct place p = place_of(folder, m, step, value);
        status = load_file(&p, out, err);
    }
    if (status == REE_OK && !take_type(out, &wanted))
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
    struct place p = place_of(folder, m, 0, input);
    const struct wanted wanted = {.sha256 = sha256, .axis = -1};
    enum ree_status status = load_file(&p, &tensor, err);
    if (status == REE_OK && !take_type(&tensor, &wanted))
        status = ree_fail(err, REE_INVALID, "the recorded value is not the receipt's input");
    if (status == REE_OK) ree_trace_tensor_digest(&tensor, out);
    ree_tensor_finish(&tensor);
    return status;
}
