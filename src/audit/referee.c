#include "audit/referee.h"

#include <stdlib.h>
#include <string.h>

#include "audit/header.h"
#include "audit/recompute.h"
#include "audit/recorded.h"
#include "base/status.h"

static bool same(const ree_digest a, const ree_digest b) {
    return memcmp(a, b, sizeof(ree_digest)) == 0;
}

const char *ree_verdict_text(enum ree_verdict verdict) {
    static const char *const texts[] = {"A is right", "B is right", "neither is right"};
    return texts[verdict];
}

// Whether the claim is of this model

static enum ree_status check_numerics(const struct ree_claim *c, struct ree_error *err) {
    if (strcmp(c->numerics, ree_numerics_version()) != 0)
        return ree_fail(err, REE_UNSUPPORTED, "the runs follow '%.32s', this is %s", c->numerics,
                        ree_numerics_version());
    if (strcmp(c->operation_set, ree_operation_set_name(REE_REPRODUCIBLE)) != 0)
        return ree_fail(err, REE_UNSUPPORTED,
                        "the operation set is '%.32s'; what is right is defined for %s alone",
                        c->operation_set, ree_operation_set_name(REE_REPRODUCIBLE));
    return REE_OK;
}

static enum ree_status check_model(const struct ree_claim *c, const struct ree_opened *m,
                                   struct ree_error *err) {
    if (strcmp(c->graph_sha256, m->header.graph_sha256) != 0)
        return ree_fail(err, REE_INVALID, "the model's graph is another than that of the traces");
    if (strcmp(c->weights_sha256, m->header.weights_sha256) != 0)
        return ree_fail(err, REE_INVALID,
                        "the model's weights are others than those of the traces");
    if (!same(c->header, m->header.digest))
        return ree_fail(err, REE_INVALID,
                        "the traces have another header than this version of ree makes of the "
                        "model: made by another version, with --no-fold, or altered");
    return REE_OK;
}

// A part of the claim against the header, which is now known to be the model's.
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
        return ree_fail(err, REE_INVALID, "input %u of the node is not what the model says", i);
    return REE_OK;
}

static enum ree_status check_node(const struct ree_claim *c, const struct ree_trace_header *h,
                                  struct ree_error *err) {
    ree_digest op;
    ree_claim_op_digest(&c->op, op);
    if (c->n_nodes != h->n_nodes || c->n_step_inputs != h->n_inputs || c->node >= h->n_nodes)
        return ree_fail(err, REE_INVALID, "the model has another number of nodes or inputs");
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

static enum ree_status load_inputs(const struct ree_claim *c, const struct ree_opened *m,
                                   const char *folder, struct ree_tensor *tensors,
                                   struct ree_ruling *out, struct ree_error *err) {
    const struct ree_trace_node *node = &m->header.nodes[c->node];
    for (uint32_t i = 0; i < c->n_inputs; i++) {
        if (c->inputs[i].source == REE_CLAIM_OMITTED) continue;
        if (c->inputs[i].source == REE_CLAIM_CONSTANT) {
            out->n_constant++;
            continue;
        }
        if (ree_recorded_load(folder, m, c->step, (uint32_t)node->inputs[i], c->inputs[i].digest,
                              &tensors[i], err) != REE_OK)
            return ree_fail_prefix(err, "input %u of the node", i);
        out->n_loaded++;
    }
    return REE_OK;
}

// Digests of what was computed, as a trace has them. `states` was found before the graph was cut.
static enum ree_status digest_outputs(const struct ree_claim *c, const struct ree_tensor *tensors,
                                      const int64_t *axes, const bool *omitted,
                                      struct ree_ruling *out, struct ree_error *err) {
    out->n_outputs = c->n_outputs;
    out->outputs = calloc((size_t)c->n_outputs + 1, sizeof *out->outputs);
    if (!out->outputs) return ree_fail(err, REE_NO_MEMORY, "out of memory");
    for (uint32_t i = 0; i < c->n_outputs; i++) {
        if (omitted[i]) continue;
        if (axes[i] < 0) {
            ree_audit_value_digest(&tensors[i], out->outputs[i]);
            continue;
        }
        if (axes[i] >= tensors[i].rank)
            return ree_fail(err, REE_INTERNAL, "a cache came out without its rows");
        ree_recorded_rows_digest(&tensors[i], (uint32_t)axes[i], out->outputs[i]);
    }
    return REE_OK;
}

static void judge(const struct ree_claim *c, struct ree_ruling *out) {
    bool right[2];
    for (unsigned k = 0; k < 2; k++) {
        out->misread[k] = ree_claim_misread(c, k);
        out->wrong[k] = -1;
        for (uint32_t i = c->n_outputs; i-- > 0;)
            if (!same(c->sides[k].outputs[i], out->outputs[i])) out->wrong[k] = i;
        right[k] = out->misread[k] < 0 && out->wrong[k] < 0;
    }
    // Both cannot be: their records differ.
    out->verdict = right[0] ? REE_VERDICT_A : right[1] ? REE_VERDICT_B : REE_VERDICT_NEITHER;
}

struct work {
    struct ree_tensor *inputs, *outputs;
    int64_t *axes; // per output; -1: no state
    bool *omitted;
};

static enum ree_status compute(const struct ree_claim *c, struct ree_opened *m, const char *folder,
                               struct work *w, struct ree_ruling *out, struct ree_error *err) {
    const struct ree_trace_node *node = &m->header.nodes[c->node];
    bool is_new;
    for (uint32_t i = 0; i < c->n_outputs; i++) {
        ptrdiff_t state = ree_recorded_state(m, node->first_output + i, &is_new);
        w->axes[i] = state < 0 ? -1 : (int64_t)m->roles.states[state].axis;
        w->omitted[i] = node->omitted[i];
    }
    ree_model_infer(m->model->graph); // types, for what .npy has none
    REE_TRY(load_inputs(c, m, folder, w->inputs, out, err));
    REE_TRY(ree_recompute(m->model, c->node, w->inputs, c->n_inputs, w->outputs, err));
    return digest_outputs(c, w->outputs, w->axes, w->omitted, out, err);
}

static enum ree_status decide(const struct ree_claim *c, struct ree_opened *m, const char *folder,
                              struct ree_ruling *out, struct ree_error *err) {
    struct work w = {calloc((size_t)c->n_inputs + 1, sizeof *w.inputs),
                     calloc((size_t)c->n_outputs + 1, sizeof *w.outputs),
                     calloc((size_t)c->n_outputs + 1, sizeof *w.axes),
                     calloc((size_t)c->n_outputs + 1, sizeof *w.omitted)};
    enum ree_status status = w.inputs && w.outputs && w.axes && w.omitted
                                 ? compute(c, m, folder, &w, out, err)
                                 : ree_fail(err, REE_NO_MEMORY, "out of memory");
    for (uint32_t i = 0; w.inputs && i < c->n_inputs; i++)
        ree_tensor_finish(&w.inputs[i]);
    for (uint32_t i = 0; w.outputs && i < c->n_outputs; i++)
        ree_tensor_finish(&w.outputs[i]);
    free(w.inputs);
    free(w.outputs);
    free(w.axes);
    free(w.omitted);
    if (status == REE_OK) judge(c, out);
    return status;
}

enum ree_status ree_referee(const struct ree_claim *c, const struct ree_referee_options *options,
                            struct ree_ruling *out, struct ree_error *err) {
    struct ree_error local;
    if (!err) err = &local; // prefixes need the message that they prefix
    struct ree_opened opened = {0};
    memset(out, 0, sizeof *out);
    REE_TRY(ree_claim_check(c, err));
    REE_TRY(check_numerics(c, err));
    struct ree_open_options open = {REE_REPRODUCIBLE, c->prefill_chunk, options->on_progress};
    enum ree_status status = ree_open_model(options->model, &open, &opened, err);
    if (status == REE_OK) status = check_model(c, &opened, err);
    if (status == REE_OK) status = check_node(c, &opened.header, err);
    if (status == REE_OK) status = decide(c, &opened, options->folder, out, err);
    ree_opened_finish(&opened);
    return status;
}

void ree_ruling_finish(struct ree_ruling *ruling) {
    free(ruling->outputs);
    ruling->outputs = NULL;
}
