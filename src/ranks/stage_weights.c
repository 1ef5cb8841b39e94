#include "ranks/stage_weights.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "graph/ir/mapping.h"

struct collector {
    struct ree_stage_weights *out;
    size_t capacity; // capacity for constants
    // Hash table of the values seen: 2 * capacity slots; NULL: free. Its keys are addresses,
    // because the table includes constants of subgraphs, whose ids are not unique.
    const struct ree_value **seen;
    bool failed;
};

// Returns the value's slot, or the free slot for it.
static const struct ree_value **find_slot(const struct collector *c, const struct ree_value *v) {
    size_t n = 2 * c->capacity,
           at = (size_t)(((uintptr_t)v >> 4) * UINT64_C(0x9E3779B97F4A7C15) % n);
    while (c->seen[at] && c->seen[at] != v)
        at = at + 1 == n ? 0 : at + 1;
    return &c->seen[at];
}

static void grow(struct collector *c) {
    const struct ree_value **old = c->seen;
    size_t n_old = 2 * c->capacity, capacity = 2 * c->capacity + 64;
    struct ree_constant *constants = ree_realloc(c->out->constants, capacity * sizeof *constants);
    if (constants) c->out->constants = constants;
    const struct ree_value **seen = ree_alloc_zeroed(2 * capacity, sizeof(struct ree_value *));
    if (!constants || !seen) {
        ree_free(seen);
        c->failed = true;
        return;
    }
    c->seen = seen;
    c->capacity = capacity;
    for (size_t i = 0; i < n_old; i++)
        if (old[i]) *find_slot(c, old[i]) = old[i];
    ree_free(old);
}

static void take(void *user, struct ree_value **use) {
    struct collector *c = user;
    const struct ree_value *v = *use;
    struct ree_stage_weights *w = c->out;
    if (!v->data || c->failed) return;
    if (w->n == c->capacity) grow(c);
    if (c->failed) return;
    const struct ree_value **slot = find_slot(c, v);
    if (*slot) return;
    *slot = v;
    struct ree_constant *constant = &w->constants[w->n++];
    *constant = (struct ree_constant){
        .name = v->name, .dtype = v->dtype, .rank = v->rank, .data = v->data, .nbytes = v->nbytes};
    memcpy(constant->dims, v->dims, sizeof constant->dims);
    w->nbytes += v->nbytes;
}

enum ree_status ree_stage_weights_make(const struct ree_graph *graph,
                                       const struct ree_partition *partition, size_t first,
                                       size_t n_stages, const struct ree_progress *progress,
                                       struct ree_stage_weights *out, struct ree_error *err) {
    struct collector c = {.out = out};
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        uint32_t stage = partition->stage_of[i];
        if (stage == REE_STAGE_CONTROL || (stage >= first && stage < first + n_stages))
            ree_node_visit_uses(graph->nodes[i], take, &c);
    }
    out->leaves = ree_alloc_zeroed(out->n + 1, sizeof *out->leaves);
    enum ree_status status =
        c.failed || !out->leaves
            ? ree_no_memory(err)
            : ree_identity_leaves(out->constants, out->n, progress, out->leaves, err);
    if (ree_mappings_check(graph->mappings, err) != REE_OK) status = REE_IO;
    ree_free(c.seen);
    if (status != REE_OK) ree_stage_weights_finish(out);
    return status;
}

void ree_stage_weights_finish(struct ree_stage_weights *weights) {
    ree_free(weights->constants);
    ree_free(weights->leaves);
    memset(weights, 0, sizeof *weights);
}

void ree_plan_digest(const struct ree_graph *graph, const struct ree_partition *partition,
                     ree_digest out) {
    struct ree_hasher *hasher = ree_hasher_create("ree-plan/1");
    uint64_t n = partition->n_stages;
    ree_hasher_update(hasher, &n, sizeof n);
    for (size_t s = 0; s < partition->n_stages; s++) {
        const struct ree_stage_cost *c = &partition->costs[s];
        const uint64_t costs[6] = {c->n_nodes,        c->weight_bytes, c->work_bytes,
                                   c->kv_cache_bytes, c->flops,        c->work};
        const struct ree_node *last =
            partition->ends[s] ? graph->nodes[partition->order[partition->ends[s] - 1]] : NULL;
        const char *name =
            last && last->n_outputs && last->outputs[0] ? last->outputs[0]->name : "";
        ree_hasher_update(hasher, name, strlen(name) + 1);
        ree_hasher_update(hasher, costs, sizeof costs);
    }
    ree_hasher_digest(hasher, out);
}
