// The public functions that describe a trace that was read.
#include <string.h>

#include "base/status.h"
#include "base/options.h"
#include "trace/trace.h"

enum ree_status ree_trace_info(const struct ree_trace *t, struct ree_trace_info *out,
                               struct ree_error *err) {
    const struct ree_trace_header *h = &t->header;
    struct ree_trace_info info = {.graph_sha256 = h->graph_sha256,
                                  .weights_sha256 = h->weights_sha256,
                                  .numerics = h->numerics,
                                  .operation_set = h->operation_set,
                                  .n_steps = t->n_steps,
                                  .prefill_chunk = h->prefill_chunk,
                                  .n_inputs = h->n_inputs,
                                  .n_constants = h->n_constants,
                                  .n_nodes = h->n_nodes};
    ree_hex(t->root, info.root);
    for (uint32_t i = 0; i < h->n_inputs; i++)
        info.n_caches += h->inputs[i].cache_axis >= 0;
    return ree_stats_write(out, &info, sizeof info, "ree_trace_info", err);
}

const char *ree_trace_input_name(const struct ree_trace *t, uint32_t input) {
    return input < t->header.n_inputs ? t->header.inputs[input].name : NULL;
}

enum ree_status ree_trace_node(const struct ree_trace *t, uint32_t node, struct ree_node_info *out,
                               struct ree_error *err) {
    if (node >= t->header.n_nodes)
        return ree_fail(err, REE_NOT_FOUND, "node %u does not exist; the trace has %u", node,
                        t->header.n_nodes);
    const struct ree_trace_node *n = &t->header.nodes[node];
    struct ree_node_info info = {.name = n->name,
                                 .domain = n->domain,
                                 .op_type = n->op_type,
                                 .opset = n->opset,
                                 .n_inputs = n->n_inputs,
                                 .inputs = n->inputs,
                                 .n_outputs = n->n_outputs,
                                 .first_output = n->first_output,
                                 .omitted = n->omitted};
    return ree_stats_write(out, &info, sizeof info, "ree_node_info", err);
}

// Text

void ree_trace_append_node(const struct ree_trace_header *h, uint32_t node,
                           struct ree_strbuf *out) {
    const struct ree_trace_node *n = &h->nodes[node];
    ree_strbuf_printf(out, "node %u", node);
    if (n->name[0]) ree_strbuf_printf(out, " '%s'", n->name);
    ree_strbuf_printf(out, " (%s%s%s)", n->domain, n->domain[0] ? "." : "", n->op_type);
}

// Finds the node that makes a value: the last node whose outputs begin at or before it.
static uint32_t maker_of(const struct ree_trace_header *h, uint32_t value) {
    uint32_t low = 0, high = h->n_nodes;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (h->nodes[middle].first_output <= value)
            low = middle;
        else
            high = middle;
    }
    // Nodes without outputs have the same first_output as the next node; skip them.
    while (value - h->nodes[low].first_output >= h->nodes[low].n_outputs)
        low--;
    return low;
}

static void append_value(const struct ree_trace_header *h, int32_t value, struct ree_strbuf *out) {
    if (value == REE_TRACE_OMITTED) {
        ree_strbuf_printf(out, "omitted");
    } else if ((uint32_t)value < h->n_inputs) {
        ree_strbuf_printf(out, "input '%s'", h->inputs[value].name);
    } else if ((uint32_t)value < h->n_inputs + h->n_constants) {
        ree_strbuf_printf(out, "constant '%s'", h->constants[(uint32_t)value - h->n_inputs].name);
    } else {
        uint32_t node = maker_of(h, (uint32_t)value);
        ree_strbuf_printf(out, "output %u of ", (uint32_t)value - h->nodes[node].first_output);
        ree_trace_append_node(h, node, out);
    }
}

char *ree_trace_value_text(const struct ree_trace *t, int32_t value) {
    struct ree_strbuf text;
    if (value != REE_TRACE_OMITTED && (value < 0 || (uint32_t)value >= t->header.n_values))
        return NULL;
    ree_strbuf_init(&text);
    append_value(&t->header, value, &text);
    return ree_strbuf_take(&text);
}
