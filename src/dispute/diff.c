#include "trace/trace.h"

#include "base/float_env.h"
#include "base/options.h"

#include <string.h>

// Headers

static bool same_inputs(const struct ree_trace_header *a, const struct ree_trace_header *b) {
    if (a->n_inputs != b->n_inputs) return false;
    for (uint32_t i = 0; i < a->n_inputs; i++)
        if (strcmp(a->inputs[i].name, b->inputs[i].name) != 0 ||
            a->inputs[i].cache_axis != b->inputs[i].cache_axis)
            return false;
    return true;
}

static bool same_constants(const struct ree_trace_header *a, const struct ree_trace_header *b) {
    if (a->n_constants != b->n_constants) return false;
    for (uint32_t i = 0; i < a->n_constants; i++)
        if (strcmp(a->constants[i].name, b->constants[i].name) != 0 ||
            memcmp(a->constants[i].digest, b->constants[i].digest, sizeof(ree_digest)) != 0)
            return false;
    return true;
}

static bool same_nodes(const struct ree_trace_header *a, const struct ree_trace_header *b) {
    if (a->n_nodes != b->n_nodes) return false;
    for (uint32_t i = 0; i < a->n_nodes; i++) {
        const struct ree_trace_node *x = &a->nodes[i], *y = &b->nodes[i];
        if (memcmp(a->ops[i], b->ops[i], sizeof(ree_digest)) != 0 || x->n_inputs != y->n_inputs ||
            x->n_outputs != y->n_outputs ||
            memcmp(x->inputs, y->inputs, x->n_inputs * sizeof *x->inputs) != 0 ||
            memcmp(x->omitted, y->omitted, x->n_outputs * sizeof *x->omitted) != 0)
            return false;
    }
    return true;
}

static uint32_t compare_headers(const struct ree_trace_header *a,
                                const struct ree_trace_header *b) {
    uint32_t what = 0;
    if (memcmp(a->digest, b->digest, sizeof a->digest) == 0) return 0;
    if (strcmp(a->graph_sha256, b->graph_sha256) != 0) what |= REE_DIFF_GRAPH;
    if (strcmp(a->weights_sha256, b->weights_sha256) != 0) what |= REE_DIFF_WEIGHTS;
    if (strcmp(a->numerics, b->numerics) != 0) what |= REE_DIFF_NUMERICS;
    if (strcmp(a->operation_set, b->operation_set) != 0) what |= REE_DIFF_OPERATION_SET;
    if (a->prefill_chunk != b->prefill_chunk) what |= REE_DIFF_CHUNK;
    if (!same_inputs(a, b)) what |= REE_DIFF_PORTS;
    if (!same_constants(a, b)) what |= REE_DIFF_CONSTANTS;
    if (!same_nodes(a, b)) what |= REE_DIFF_NODES;
    return what;
}

// Steps

static bool digests_agree(const struct ree_trace *a, const struct ree_trace *b, uint64_t step,
                          int64_t index, size_t n) {
    return memcmp(ree_trace_step(a, step)[index], ree_trace_step(b, step)[index],
                  n * sizeof(ree_digest)) == 0;
}

static bool have_step(const struct ree_trace *a, const struct ree_trace *b, uint64_t step) {
    return step < a->n_steps && step < b->n_steps;
}

bool ree_trace_node_differs(const struct ree_trace *a, const struct ree_trace *b, uint64_t step,
                            uint32_t node) {
    if (!have_step(a, b, step) || node >= a->header.n_nodes) return false;
    const struct ree_trace_node *n = &a->header.nodes[node];
    return n->n_outputs &&
           !digests_agree(a, b, step, ree_trace_digest_index(&a->header, n->first_output),
                          n->n_outputs);
}

bool ree_trace_value_agrees(const struct ree_trace *a, const struct ree_trace *b, uint64_t step,
                            int32_t value) {
    if (value < 0 || (uint32_t)value >= a->header.n_values || !have_step(a, b, step)) return true;
    int64_t index = ree_trace_digest_index(&a->header, (uint32_t)value);
    // Constants (index < 0) are equal because the headers are equal.
    return index < 0 || digests_agree(a, b, step, index, 1);
}

bool ree_trace_inputs_agree(const struct ree_trace *a, const struct ree_trace *b, uint64_t step,
                            uint32_t node) {
    if (node >= a->header.n_nodes) return true;
    const struct ree_trace_node *n = &a->header.nodes[node];
    for (uint32_t i = 0; i < n->n_inputs; i++)
        if (!ree_trace_value_agrees(a, b, step, n->inputs[i])) return false;
    return true;
}

// Finds the first difference in a step. Returns false if there is none.
static bool find_first(const struct ree_trace *a, const struct ree_trace *b, uint64_t step,
                       struct ree_diff *out) {
    if (digests_agree(a, b, step, 0, a->header.n_step_digests)) return false;
    out->step = step;
    for (uint32_t i = 0; i < a->header.n_inputs; i++)
        if (!digests_agree(a, b, step, i, 1)) {
            out->kind = REE_DIFF_INPUT;
            out->input = i;
            return true;
        }
    for (uint32_t i = 0; i < a->header.n_nodes; i++)
        if (ree_trace_node_differs(a, b, step, i)) {
            out->kind = REE_DIFF_NODE;
            out->node = i;
            return true;
        }
    return false;
}

static void count_after(const struct ree_trace *a, const struct ree_trace *b,
                        struct ree_diff *out) {
    for (uint64_t step = out->step; step < out->n_steps; step++) {
        if (digests_agree(a, b, step, 0, a->header.n_step_digests)) continue;
        uint32_t first = 0;
        if (step == out->step && out->kind == REE_DIFF_NODE) first = out->node + 1;
        for (uint32_t i = first; i < a->header.n_nodes; i++) {
            if (!ree_trace_node_differs(a, b, step, i)) continue;
            out->n_after++;
            if (ree_trace_inputs_agree(a, b, step, i)) out->n_new++;
        }
    }
}

static void diff(const struct ree_trace *a, const struct ree_trace *b, struct ree_diff *out) {
    *out = (struct ree_diff){.kind = REE_DIFF_SAME};
    out->header = compare_headers(&a->header, &b->header);
    if (out->header) {
        out->kind = REE_DIFF_OTHER_RUN;
        return;
    }
    out->n_steps = a->n_steps < b->n_steps ? a->n_steps : b->n_steps;
    uint64_t step = 0;
    while (step < out->n_steps && !find_first(a, b, step, out))
        step++;
    if (step == out->n_steps) {
        out->step = step;
        if (a->n_steps != b->n_steps) out->kind = REE_DIFF_LENGTH;
    }
    out->n_before = out->step * a->header.n_nodes;
    if (out->kind == REE_DIFF_NODE) out->n_before += out->node;
    count_after(a, b, out);
}

enum ree_status ree_trace_diff(const struct ree_trace *a, const struct ree_trace *b,
                               struct ree_diff *out, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_diff found;
    diff(a, b, &found);
    return ree_stats_write(out, &found, sizeof found, "ree_diff", err);
}

const char *ree_diff_kind_name(enum ree_diff_kind kind) {
    static const char *const names[] = {"same", "other_run", "input", "node", "length"};
    return (size_t)kind < sizeof names / sizeof *names ? names[kind] : "?";
}
