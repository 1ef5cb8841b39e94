#include "ranks/stage_weights.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

struct collector {
    struct ree_stage_weights *out;
    const struct ree_value **seen; // of the values taken so far
    size_t room;
    bool failed;
};

static void take(void *user, struct ree_value **use) {
    struct collector *c = user;
    const struct ree_value *v = *use;
    if (!v->data || c->failed) return;
    struct ree_stage_weights *w = c->out;
    for (size_t i = 0; i < w->n; i++)
        if (c->seen[i] == v) return;
    if (w->n == c->room) {
        size_t room = 2 * c->room + 64;
        struct ree_constant *constants = realloc(w->constants, room * sizeof *constants);
        if (constants) w->constants = constants;
        const struct ree_value **seen = realloc(c->seen, room * sizeof(struct ree_value *));
        if (seen) c->seen = seen;
        if (!constants || !seen) {
            c->failed = true;
            return;
        }
        c->room = room;
    }
    struct ree_constant *constant = &w->constants[w->n];
    c->seen[w->n++] = v;
    *constant = (struct ree_constant){
        .name = v->name, .dtype = v->dtype, .rank = v->rank, .data = v->data, .nbytes = v->nbytes};
    memcpy(constant->dims, v->dims, sizeof constant->dims);
    w->nbytes += v->nbytes;
}

enum ree_status
ree_stage_weights_make(const struct ree_graph *graph, const struct ree_partition *partition,
                       size_t first, size_t n_stages,
                       void (*on_progress)(void *, const char *, uint64_t, uint64_t), void *user,
                       struct ree_stage_weights *out, struct ree_error *err) {
    struct collector c = {.out = out};
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        uint32_t stage = partition->stage_of[i];
        if (stage == REE_STAGE_CONTROL || (stage >= first && stage < first + n_stages))
            ree_node_visit_uses(graph->nodes[i], take, &c);
    }
    out->leaves = calloc(out->n + 1, sizeof *out->leaves);
    enum ree_status status =
        c.failed || !out->leaves
            ? ree_fail(err, REE_NO_MEMORY, "out of memory")
            : ree_identity_leaves(out->constants, out->n, on_progress, user, out->leaves, err);
    free(c.seen);
    if (status != REE_OK) ree_stage_weights_finish(out);
    return status;
}

void ree_stage_weights_finish(struct ree_stage_weights *weights) {
    free(weights->constants);
    free(weights->leaves);
    memset(weights, 0, sizeof *weights);
}

void ree_plan_digest(const struct ree_graph *graph, const struct ree_partition *partition,
                     ree_digest out) {
    struct ree_hasher *hasher = ree_hasher_create("ree-plan/1");
    uint64_t n = partition->n_stages;
    ree_hasher_update(hasher, &n, sizeof n);
    for (size_t s = 0; s < partition->n_stages; s++) {
        const struct ree_stage_cost *c = &partition->costs[s];
        const uint64_t costs[6] = {c->n_nodes,     c->weight_bytes, c->work_bytes,
                                   c->state_bytes, c->flops,        c->work};
        const struct ree_node *last =
            partition->ends[s] ? graph->nodes[partition->order[partition->ends[s] - 1]] : NULL;
        const char *name =
            last && last->n_outputs && last->outputs[0] ? last->outputs[0]->name : "";
        ree_hasher_update(hasher, name, strlen(name) + 1);
        ree_hasher_update(hasher, costs, sizeof costs);
    }
    ree_hasher_digest(hasher, out);
}
