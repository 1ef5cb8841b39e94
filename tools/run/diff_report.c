#include "diff_report.h"

#include <stdlib.h>

#include "cli.h"

#include "json.h"

static const struct {
    uint32_t bit;
    const char *key, *text;
} header_fields[] = {
    {REE_DIFF_GRAPH, "graph", "the models differ (SHA-256 of the graph)"},
    {REE_DIFF_WEIGHTS, "weights", "the weights differ (SHA-256)"},
    {REE_DIFF_NUMERICS, "numerics", "the numerics versions differ"},
    {REE_DIFF_OPERATION_SET, "operation_set", "the operation sets differ"},
    {REE_DIFF_CHUNK, "prefill_chunk", "the prompts were divided differently (--prefill-chunk)"},
    {REE_DIFF_PORTS, "inputs", "the models' inputs differ"},
    {REE_DIFF_CONSTANTS, "constants", "the constants of the graph differ"},
    {REE_DIFF_NODES, "nodes", "the nodes differ: another version of ree, or --no-fold"},
};
#define N_HEADER_FIELDS (sizeof header_fields / sizeof *header_fields)

static struct ree_node_info node_of(const struct diff_pair *p, uint32_t node) {
    struct ree_node_info info = {.size = sizeof info};
    ree_trace_node(p->a, node, &info, NULL);
    return info;
}

// Names come from files, so they are escaped.
static void append_node(struct strbuf *out, const struct diff_pair *p, uint32_t number) {
    const struct ree_node_info node = node_of(p, number);
    strbuf_printf(out, "node %u", number);
    if (node.name[0]) {
        strbuf_printf(out, " '");
        cli_append_name(out, node.name);
        strbuf_printf(out, "'");
    }
    strbuf_printf(out, " (");
    cli_append_name(out, node.domain);
    if (node.domain[0]) strbuf_printf(out, ".");
    cli_append_name(out, node.op_type);
    strbuf_printf(out, ")");
}

static void append_value(struct strbuf *out, const struct ree_trace *t, int32_t value) {
    char *text = ree_trace_value_text(t, value);
    if (text)
        cli_append_name(out, text);
    else
        out->failed = true;
    free(text);
}

static void text_of_node(const struct diff_pair *p, struct strbuf *out) {
    const struct ree_diff *d = &p->diff;
    const struct ree_node_info node = node_of(p, d->node);
    strbuf_printf(out, "step %llu: ", (unsigned long long)d->step);
    append_node(out, p, d->node);
    strbuf_printf(out, " differs\n");
    for (uint32_t i = 0; i < node.n_inputs; i++) {
        if (node.inputs[i] == REE_VALUE_OMITTED) continue;
        bool agrees = ree_trace_value_agrees(p->a, p->b, d->step, node.inputs[i]);
        strbuf_printf(out, "  reads  %s  ", agrees ? "agrees " : "differs");
        append_value(out, p->a, node.inputs[i]);
        strbuf_printf(out, "\n");
    }
    for (uint32_t i = 0; i < node.n_outputs; i++) {
        if (node.omitted[i]) continue;
        bool agrees = ree_trace_value_agrees(p->a, p->b, d->step, (int32_t)(node.first_output + i));
        strbuf_printf(out, "  gives  %s  output %u\n", agrees ? "agrees " : "differs", i);
    }
}

// Calls `each` for every node that differs, from the first difference on.
static void visit_all(const struct diff_pair *p,
                      void (*each)(void *user, uint64_t step, uint32_t node), void *user) {
    for (uint64_t step = p->diff.step; step < p->diff.n_steps; step++)
        for (uint32_t i = 0; i < p->infos[0].n_nodes; i++)
            if (ree_trace_node_differs(p->a, p->b, step, i)) each(user, step, i);
}

struct listing {
    const struct diff_pair *p;
    struct strbuf *text;
    cJSON *array;
};

static void list_text(void *user, uint64_t step, uint32_t node) {
    const struct listing *l = user;
    bool is_new = ree_trace_inputs_agree(l->p->a, l->p->b, step, node);
    strbuf_printf(l->text, "  step %llu  %s  ", (unsigned long long)step, is_new ? "new" : "   ");
    append_node(l->text, l->p, node);
    strbuf_printf(l->text, "\n");
}

void diff_report_text(const struct diff_pair *p, struct strbuf *out) {
    const struct ree_diff *d = &p->diff;
    if (d->kind == REE_DIFF_OTHER_RUN) {
        strbuf_printf(out, "cannot be compared:\n");
        for (size_t i = 0; i < N_HEADER_FIELDS; i++)
            if (d->header & header_fields[i].bit)
                strbuf_printf(out, "  %s\n", header_fields[i].text);
        return;
    }
    if (d->kind == REE_DIFF_SAME) {
        strbuf_printf(out, "the same: %llu step%s of %u nodes, root %s\n",
                      (unsigned long long)d->n_steps, d->n_steps == 1 ? "" : "s",
                      p->infos[0].n_nodes, p->infos[0].root);
        return;
    }
    if (d->kind == REE_DIFF_INPUT) {
        strbuf_printf(out, "step %llu: input '", (unsigned long long)d->step);
        cli_append_name(out, ree_trace_input_name(p->a, d->input));
        strbuf_printf(out, "' differs: the runs had different inputs\n");
    } else if (d->kind == REE_DIFF_NODE) {
        text_of_node(p, out);
    } else {
        strbuf_printf(out,
                      "the first %llu steps are equal, but the runs have %llu and %llu steps\n",
                      (unsigned long long)d->n_steps, (unsigned long long)p->infos[0].n_steps,
                      (unsigned long long)p->infos[1].n_steps);
        return;
    }
    strbuf_printf(out, "before it, %llu steps and %llu node executions agree\n",
                  (unsigned long long)d->step, (unsigned long long)d->n_before);
    strbuf_printf(out, "after it, %llu node executions differ, %llu of these read equal inputs\n",
                  (unsigned long long)d->n_after, (unsigned long long)d->n_new);
    if (p->infos[0].n_steps != p->infos[1].n_steps)
        strbuf_printf(out, "the runs have %llu and %llu steps\n",
                      (unsigned long long)p->infos[0].n_steps,
                      (unsigned long long)p->infos[1].n_steps);
    struct listing l = {.p = p, .text = out};
    if (p->all) visit_all(p, list_text, &l);
}

// JSON. cJSON's add functions accept NULL. If memory runs out, diff_report_json finds at its end
// that an array is too short.
static cJSON *node_json(const struct diff_pair *p, uint64_t step, uint32_t node) {
    const struct ree_node_info n = node_of(p, node);
    cJSON *object = cJSON_CreateObject();
    cJSON_AddNumberToObject(object, "step", (double)step);
    cJSON_AddNumberToObject(object, "node", node);
    cJSON_AddStringToObject(object, "name", n.name);
    cJSON_AddStringToObject(object, "domain", n.domain);
    cJSON_AddStringToObject(object, "op_type", n.op_type);
    cJSON_AddBoolToObject(object, "inputs_agree", ree_trace_inputs_agree(p->a, p->b, step, node));
    return object;
}

static void list_json(void *user, uint64_t step, uint32_t node) {
    const struct listing *l = user;
    json_put(l->array, node_json(l->p, step, node));
}

static cJSON *first_json(const struct diff_pair *p) {
    const struct ree_diff *d = &p->diff;
    const struct ree_node_info node = node_of(p, d->node);
    cJSON *first = node_json(p, d->step, d->node);
    cJSON *inputs = cJSON_AddArrayToObject(first, "inputs");
    for (uint32_t i = 0; i < node.n_inputs; i++) {
        char *text = ree_trace_value_text(p->a, node.inputs[i]);
        cJSON *input = cJSON_CreateObject();
        cJSON_AddStringToObject(input, "value", text ? text : "");
        if (!text) cli_json_fail();
        free(text);
        cJSON_AddBoolToObject(input, "agrees",
                              ree_trace_value_agrees(p->a, p->b, d->step, node.inputs[i]));
        json_put(inputs, input);
    }
    cJSON *outputs = cJSON_AddArrayToObject(first, "outputs_agree");
    for (uint32_t i = 0; i < node.n_outputs; i++)
        json_put(outputs, cJSON_CreateBool(ree_trace_value_agrees(
                              p->a, p->b, d->step, (int32_t)(node.first_output + i))));
    return first;
}

cJSON *diff_report_json(const struct diff_pair *p) {
    const struct ree_diff *d = &p->diff;
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "result", ree_diff_kind_name(d->kind));
    cJSON *roots = cJSON_AddArrayToObject(object, "roots");
    cJSON *steps = cJSON_AddArrayToObject(object, "n_steps");
    for (int i = 0; i < 2; i++) {
        json_put(roots, cJSON_CreateString(p->infos[i].root));
        json_put(steps, cJSON_CreateNumber((double)p->infos[i].n_steps));
    }
    if (d->kind == REE_DIFF_OTHER_RUN) {
        cJSON *header = cJSON_AddArrayToObject(object, "header");
        for (size_t i = 0; i < N_HEADER_FIELDS; i++)
            if (d->header & header_fields[i].bit)
                json_put(header, cJSON_CreateString(header_fields[i].key));
    }
    if (d->kind == REE_DIFF_INPUT) {
        cJSON *first = cJSON_AddObjectToObject(object, "first");
        cJSON_AddNumberToObject(first, "step", (double)d->step);
        cJSON_AddStringToObject(first, "input", ree_trace_input_name(p->a, d->input));
    }
    if (d->kind == REE_DIFF_NODE) json_put_as(object, "first", first_json(p));
    if (d->kind == REE_DIFF_INPUT || d->kind == REE_DIFF_NODE) {
        cJSON_AddNumberToObject(object, "steps_before", (double)d->step);
        cJSON_AddNumberToObject(object, "nodes_before", (double)d->n_before);
        cJSON_AddNumberToObject(object, "nodes_after", (double)d->n_after);
        cJSON_AddNumberToObject(object, "new_after", (double)d->n_new);
        struct listing l = {.p = p};
        if (p->all) l.array = cJSON_AddArrayToObject(object, "all");
        if (p->all) visit_all(p, list_json, &l);
    }
    if (steps && cJSON_GetArraySize(steps) == 2) return object;
    cJSON_Delete(object);
    return NULL;
}
