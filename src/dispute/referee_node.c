// Decides claims about a node: computes the node from the input values that both parties agree on.
#include <stdlib.h>
#include <string.h>

#include "trace/model_header.h"
#include "dispute/recompute.h"
#include "trace/recorded.h"
#include "dispute/referee_internal.h"
#include "base/memory.h"
#include "base/status.h"

static bool same(const ree_digest a, const ree_digest b) {
    return memcmp(a, b, sizeof(ree_digest)) == 0;
}

// Checks one input of the claim against the header, which is already known to be the model's.
static enum ree_status check_source(const struct ree_trace_header *h, int32_t value, uint32_t i,
                                    const struct ree_claim_input *in, struct ree_error *err) {
    enum ree_claim_source source = REE_CLAIM_OMITTED;
    uint32_t index = 0;
    bool ok = true;
    if (value != REE_TRACE_OMITTED && (uint32_t)value < h->n_inputs) {
        source = REE_CLAIM_INPUT;
        index = (uint32_t)value;
    } else if (value != REE_TRACE_OMITTED && (uint32_t)value < h->n_inputs + h->n_constants) {
        source = REE_CLAIM_CONSTANT;
        index = (uint32_t)value - h->n_inputs;
        ok = in->index == index && same(in->digest, h->constants[index].digest);
    } else if (value != REE_TRACE_OMITTED) {
        source = REE_CLAIM_NODE;
        index = in->index;
        ok = in->index < h->n_nodes && in->output < h->nodes[in->index].n_outputs &&
             h->nodes[in->index].first_output + in->output == (uint32_t)value &&
             same(in->op, h->ops[in->index]) && in->n_inputs == h->nodes[in->index].n_inputs &&
             in->n_outputs == h->nodes[in->index].n_outputs;
    }
    if (in->source != source || in->index != index || !ok)
        return ree_fail(err, REE_INVALID,
                        "input %u of the node does not come from where the model says", i);
    return REE_OK;
}

static enum ree_status check_node(const struct ree_claim *c, const struct ree_trace_header *h,
                                  struct ree_error *err) {
    ree_digest op;
    ree_trace_op_digest(&c->op, c->trace_version, op);
    if (c->node >= h->n_nodes)
        return ree_fail(err, REE_INVALID, "the model has no node %u", c->node);
    const struct ree_trace_node *node = &h->nodes[c->node];
    if (!same(op, h->ops[c->node]))
        return ree_fail(err, REE_INVALID, "node %u of the model is another operator", c->node);
    if (c->n_inputs != node->n_inputs || c->n_outputs != node->n_outputs)
        return ree_fail(err, REE_INVALID, "node %u of the model has other inputs or outputs",
                        c->node);
    for (uint32_t i = 0; i < c->n_inputs; i++)
        REE_TRY(check_source(h, node->inputs[i], i, &c->inputs[i], err));
    return REE_OK;
}

// Computing

// Finds for each input of the node the first one that reads the same value: they share a tensor.
static enum ree_status find_first(const struct ree_trace_node *node, uint32_t *first,
                                  struct ree_error *err) {
    uint32_t n_values = 0;
    for (uint32_t i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] != REE_TRACE_OMITTED && (uint32_t)node->inputs[i] >= n_values)
            n_values = (uint32_t)node->inputs[i] + 1;
    uint32_t *seen = ree_alloc_zeroed((size_t)n_values + 1, sizeof *seen); // 1 + an input; 0: none
    if (!seen) return ree_no_memory(err);
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        first[i] = i;
        if (node->inputs[i] == REE_TRACE_OMITTED) continue;
        uint32_t *of_value = &seen[node->inputs[i]];
        if (!*of_value) *of_value = i + 1;
        first[i] = *of_value - 1;
    }
    ree_free(seen);
    return REE_OK;
}

static enum ree_status load_inputs(const struct ree_claim *c, const struct ree_opened *m,
                                   struct ree_recorded_folder *folder, const uint32_t *firsts,
                                   struct ree_tensor *tensors, struct ree_ruling *out,
                                   struct ree_error *err) {
    const struct ree_trace_node *node = &m->header.nodes[c->node];
    for (uint32_t i = 0; i < c->n_inputs; i++) {
        if (c->inputs[i].source == REE_CLAIM_OMITTED) continue;
        if (c->inputs[i].source == REE_CLAIM_CONSTANT) {
            out->n_constant++;
            continue;
        }
        const uint32_t first = firsts[i];
        out->n_loaded++;
        if (first < i) {
            if (!same(c->inputs[first].digest, c->inputs[i].digest))
                return ree_fail(err, REE_INVALID,
                                "inputs %u and %u of the node are one value, but have two digests",
                                first, i);
            tensors[i] = tensors[first];
            continue;
        }
        if (ree_recorded_load(folder, m, c->step, (uint32_t)node->inputs[i], c->inputs[i].digest,
                              &tensors[i], err) != REE_OK)
            return ree_fail_prefix(err, "input %u of the node", i);
    }
    return REE_OK;
}

// Computes the digests of the outputs as a trace has them. `axes` and `omitted` were determined
// before the graph was reduced to the node.
static enum ree_status digest_outputs(const struct ree_claim *c, const struct ree_tensor *tensors,
                                      const int64_t *axes, const bool *omitted,
                                      struct ree_ruling *out, struct ree_error *err) {
    out->n_outputs = c->n_outputs;
    out->outputs = ree_alloc_zeroed((size_t)c->n_outputs + 1, sizeof *out->outputs);
    if (!out->outputs) return ree_no_memory(err);
    for (uint32_t i = 0; i < c->n_outputs; i++) {
        if (omitted[i]) continue;
        if (axes[i] < 0) {
            ree_trace_tensor_digest(&tensors[i], out->outputs[i]);
            continue;
        }
        if (axes[i] >= tensors[i].rank)
            return ree_fail(err, REE_INTERNAL, "a computed cache has no new positions");
        ree_recorded_positions_digest(&tensors[i], (uint32_t)axes[i], out->outputs[i]);
    }
    return REE_OK;
}

static void judge(const struct ree_claim *c, struct ree_ruling *out) {
    for (unsigned k = 0; k < 2; k++) {
        out->misread[k] = ree_claim_misread(c, k);
        out->wrong[k] = -1;
        for (uint32_t i = c->n_outputs; i-- > 0;)
            if (!same(c->sides[k].at.outputs[i], out->outputs[i])) out->wrong[k] = i;
        if (out->misread[k] >= 0)
            ree_ruling_wrong(
                out, k, "input %lld of its record is not the value that both parties agreed on",
                (long long)out->misread[k]);
        else if (out->wrong[k] >= 0)
            ree_ruling_wrong(out, k, "output %lld", (long long)out->wrong[k]);
    }
}

struct work {
    struct ree_tensor *inputs, *outputs;
    int64_t *axes; // per output: axis of its positions if it is kept as a kv cache; -1: it is not
    bool *omitted;
    uint32_t *first; // per input: the first that reads the same value
};

static enum ree_status compute(const struct ree_claim *c, struct ree_opened *m,
                               struct ree_recorded_folder *folder, struct work *w,
                               struct ree_ruling *out, struct ree_error *err) {
    const struct ree_trace_node *node = &m->header.nodes[c->node];
    bool is_new;
    for (uint32_t i = 0; i < c->n_outputs; i++) {
        ptrdiff_t cache = ree_recorded_kv_cache(m, node->first_output + i, &is_new);
        w->axes[i] = cache < 0 ? -1 : (int64_t)m->roles.kv_caches[cache].axis;
        w->omitted[i] = node->omitted[i];
    }
    REE_TRY(find_first(node, w->first, err));
    REE_TRY(load_inputs(c, m, folder, w->first, w->inputs, out, err));
    REE_TRY(ree_recompute(m->model, c->node, w->inputs, c->n_inputs, w->outputs, err));
    return digest_outputs(c, w->outputs, w->axes, w->omitted, out, err);
}

enum ree_status ree_referee_node(const struct ree_claim *c, struct ree_opened *m,
                                 struct ree_recorded_folder *folder, struct ree_ruling *out,
                                 struct ree_error *err) {
    REE_TRY(check_node(c, &m->header, err));
    if (!folder)
        return ree_fail(err, REE_NOT_FOUND, "the inputs of the node are required: --inputs DIR");
    struct work w = {ree_alloc_zeroed((size_t)c->n_inputs + 1, sizeof *w.inputs),
                     ree_alloc_zeroed((size_t)c->n_outputs + 1, sizeof *w.outputs),
                     ree_alloc_zeroed((size_t)c->n_outputs + 1, sizeof *w.axes),
                     ree_alloc_zeroed((size_t)c->n_outputs + 1, sizeof *w.omitted),
                     ree_alloc_zeroed((size_t)c->n_inputs + 1, sizeof *w.first)};
    enum ree_status status = w.inputs && w.outputs && w.axes && w.omitted && w.first
                                 ? compute(c, m, folder, &w, out, err)
                                 : ree_no_memory(err);
    for (uint32_t i = 0; w.inputs && i < c->n_inputs; i++)
        if (w.first && w.first[i] == i) ree_tensor_finish(&w.inputs[i]);
    for (uint32_t i = 0; w.outputs && i < c->n_outputs; i++)
        ree_tensor_finish(&w.outputs[i]);
    ree_free(w.inputs);
    ree_free(w.outputs);
    ree_free(w.axes);
    ree_free(w.omitted);
    ree_free(w.first);
    if (status == REE_OK) judge(c, out);
    return status;
}
