#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "compare.h"

#include "json.h"

// Adds a number to a JSON object. JSON has no infinity and no NaN, so they become strings.
static void add_double(cJSON *object, const char *key, double x) {
    if (isfinite(x))
        cJSON_AddNumberToObject(object, key, x);
    else
        cJSON_AddStringToObject(object, key, isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
}

static struct ree_node_info node_of(const struct compare_report *r, size_t node) {
    struct ree_node_info info = {.size = sizeof info};
    ree_comparison_node(r->comparison, node, &info, NULL);
    return info;
}

static void append_node(struct strbuf *out, const struct compare_report *r, size_t number) {
    const struct ree_node_info node = node_of(r, number);
    strbuf_printf(out, "node %zu ", number);
    if (node.name[0]) {
        strbuf_append(out, "'", 1);
        cli_append_name(out, node.name);
        strbuf_append(out, "' ", 2);
    }
    strbuf_append(out, "(", 1);
    if (node.domain[0]) {
        cli_append_name(out, node.domain);
        strbuf_append(out, ".", 1);
    }
    cli_append_name(out, node.op_type);
    strbuf_append(out, ")", 1);
}

// Converts an element's position to an index, outermost dimension first.
static void index_of(uint64_t at, uint32_t rank, const int64_t *dims, int64_t *out) {
    for (uint32_t i = rank; i-- > 0;) {
        out[i] = (int64_t)(at % (uint64_t)dims[i]);
        at /= (uint64_t)dims[i];
    }
}

// Text

static void append_histogram(struct strbuf *out, const struct ree_ulp *u) {
    strbuf_printf(out, "  ulps         elements\n");
    for (uint32_t i = 0; i < REE_ULP_BUCKETS; i++) {
        uint64_t first, last;
        if (!u->histogram[i]) continue;
        ree_ulp_range(i, &first, &last);
        char range[48];
        if (first == last)
            snprintf(range, sizeof range, "%llu%s", (unsigned long long)first,
                     first ? "" : " (+0, -0)");
        else
            snprintf(range, sizeof range, "%llu-%llu", (unsigned long long)first,
                     (unsigned long long)last);
        strbuf_printf(out, "  %-12s %llu\n", range, (unsigned long long)u->histogram[i]);
    }
    if (u->n_sign)
        strbuf_printf(out, "  of these with another sign: %llu\n", (unsigned long long)u->n_sign);
    if (u->n_nan) strbuf_printf(out, "  %-12s %llu\n", "NaN on one", (unsigned long long)u->n_nan);
}

static void append_first(const struct compare_report *r, struct strbuf *out) {
    const struct ree_compare_first *f = &r->result->first;
    strbuf_printf(out, "step %llu: ", (unsigned long long)f->step);
    append_node(out, r, f->node);
    strbuf_printf(out, " is the first that differs; its inputs %s\n",
                  f->inputs_agree ? "agree" : "differ");
    strbuf_printf(out, "  output %zu '", f->output);
    cli_append_name(out, f->name);
    strbuf_printf(out, "' ");
    cli_append_shape(out, f->dtype, f->rank, f->dims);
    if (f->other_shape) {
        strbuf_printf(out, ": another type or shape on A\n");
    } else {
        int64_t index[REE_MAX_RANK];
        strbuf_printf(out, ": %llu of %llu elements differ\n", (unsigned long long)f->ulp.n_differ,
                      (unsigned long long)f->ulp.n);
        if (f->ulp.is_float) append_histogram(out, &f->ulp);
        index_of(f->ulp.worst, f->rank, f->dims, index);
        strbuf_printf(out, "  worst at [");
        for (uint32_t i = 0; i < f->rank; i++)
            strbuf_printf(out, "%s%lld", i ? "," : "", (long long)index[i]);
        strbuf_printf(out, "]: A %.17g, B %.17g", f->ulp.worst_a, f->ulp.worst_b);
        if (f->ulp.is_float) strbuf_printf(out, ", %llu ulp", (unsigned long long)f->ulp.worst_ulp);
        strbuf_printf(out, "\n");
    }
    for (size_t i = 0; i < r->result->n_suspects; i++)
        strbuf_printf(out, "  suspect: %s on %c: %s\n", r->result->suspects[i].name,
                      "AB"[r->result->suspects[i].side], r -> result -> suspects[i].verdict);
    if (!r->result->n_suspects)
        strbuf_printf(
            out,
            "  every primitive that it depends on is native on both devices, as far as known\n");
}

static void append_table(const struct compare_report *r, bool all, struct strbuf *out) {
    strbuf_printf(out, "%-6s %9s %9s %10s %9s %11s  %s\n", "runs", "share", "max abs", "max rel",
                  "max ulp", "new/differ", "node");
    for (size_t i = 0; i < r->result->n_nodes; i++) {
        const struct ree_drift *d = &r->result->drift[i];
        if (!all && !d->n_differ) continue;
        double share = d->ulp.n ? 100.0 * (double)d->ulp.n_differ / (double)d->ulp.n : 0;
        char differ[48];
        snprintf(differ, sizeof differ, "%llu/%llu", (unsigned long long)d->n_new,
                 (unsigned long long)d->n_differ);
        strbuf_printf(out, "%-6llu %8.3g%% %9.3g %10.3g %9llu %11s  ",
                      (unsigned long long)d->n_runs, share, d->ulp.max_abs, d->ulp.max_rel,
                      (unsigned long long)d->ulp.max_ulp, differ);
        append_node(out, r, i);
        if (d->other_shape) strbuf_printf(out, "  another type or shape");
        strbuf_printf(out, "\n");
    }
}

void compare_report_text(const struct compare_report *r, bool all, struct strbuf *out) {
    for (int k = 0; k < 2; k++)
        strbuf_printf(out, "%c  %s, %s\n", "AB"[k], r -> devices[k],
                      ree_operation_set_name(r->sets[k]));
    if (r->result->first.found) append_first(r, out);
    if (r->result->first.found || all) append_table(r, all, out);
    unsigned long long steps = r->result->n_steps, runs = steps * r->result->n_nodes;
    if (r->result->first.found)
        strbuf_printf(
            out,
            "%llu of %llu node executions differ, %llu of these read equal inputs; %llu step%s\n",
            (unsigned long long)r->result->n_differ, runs, (unsigned long long)r->result->n_new,
            steps, steps == 1 ? "" : "s");
    else
        strbuf_printf(out, "the same: %llu step%s of %zu nodes\n", steps, steps == 1 ? "" : "s",
                      r->result->n_nodes);
}

// JSON. cJSON's add functions accept NULL. If memory runs out, compare_report_json finds too few
// nodes at its end.

static cJSON *node_json(const struct compare_report *r, size_t number) {
    const struct ree_node_info node = node_of(r, number);
    cJSON *object = cJSON_CreateObject();
    cJSON_AddNumberToObject(object, "node", (double)number);
    cJSON_AddStringToObject(object, "name", node.name);
    cJSON_AddStringToObject(object, "domain", node.domain);
    cJSON_AddStringToObject(object, "op_type", node.op_type);
    return object;
}

static cJSON *first_json(const struct compare_report *r) {
    const struct ree_compare_first *f = &r->result->first;
    int64_t index[REE_MAX_RANK];
    cJSON *object = node_json(r, f->node);
    cJSON_AddNumberToObject(object, "step", (double)f->step);
    cJSON_AddNumberToObject(object, "output", (double)f->output);
    cJSON_AddBoolToObject(object, "inputs_agree", f->inputs_agree);
    cJSON_AddStringToObject(object, "type", ree_dtype_name(f->dtype));
    cJSON_AddBoolToObject(object, "other_shape", f->other_shape);
    cJSON_AddNumberToObject(object, "elements", (double)f->ulp.n);
    cJSON_AddNumberToObject(object, "differing", (double)f->ulp.n_differ);
    cJSON_AddNumberToObject(object, "nan", (double)f->ulp.n_nan);
    cJSON_AddNumberToObject(object, "other_sign", (double)f->ulp.n_sign);
    cJSON *histogram = cJSON_AddArrayToObject(object, "ulp_histogram");
    for (uint32_t i = 0; f->ulp.is_float && i < REE_ULP_BUCKETS; i++) {
        uint64_t first, last;
        if (!f->ulp.histogram[i]) continue;
        ree_ulp_range(i, &first, &last);
        cJSON *bucket = cJSON_CreateObject();
        cJSON_AddNumberToObject(bucket, "from", (double)first);
        cJSON_AddNumberToObject(bucket, "to", (double)last);
        cJSON_AddNumberToObject(bucket, "elements", (double)f->ulp.histogram[i]);
        json_put(histogram, bucket);
    }
    if (!f->other_shape) {
        cJSON *worst = cJSON_AddObjectToObject(object, "worst");
        cJSON *at = cJSON_AddArrayToObject(worst, "index");
        index_of(f->ulp.worst, f->rank, f->dims, index);
        for (uint32_t i = 0; i < f->rank; i++)
            json_put(at, cJSON_CreateNumber((double)index[i]));
        add_double(worst, "a", f->ulp.worst_a);
        add_double(worst, "b", f->ulp.worst_b);
        if (f->ulp.is_float) cJSON_AddNumberToObject(worst, "ulp", (double)f->ulp.worst_ulp);
    }
    cJSON *suspects = cJSON_AddArrayToObject(object, "suspects");
    for (size_t i = 0; i < r->result->n_suspects; i++) {
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "primitive", r->result->suspects[i].name);
        cJSON_AddStringToObject(item, "side", r->result->suspects[i].side ? "B" : "A");
        cJSON_AddStringToObject(item, "verdict", r->result->suspects[i].verdict);
        json_put(suspects, item);
    }
    return object;
}

static cJSON *drift_json(const struct compare_report *r, size_t i) {
    const struct ree_drift *d = &r->result->drift[i];
    cJSON *object = node_json(r, i);
    cJSON_AddNumberToObject(object, "runs", (double)d->n_runs);
    cJSON_AddNumberToObject(object, "runs_differ", (double)d->n_differ);
    cJSON_AddNumberToObject(object, "runs_new", (double)d->n_new);
    cJSON_AddNumberToObject(object, "elements", (double)d->ulp.n);
    cJSON_AddNumberToObject(object, "differing", (double)d->ulp.n_differ);
    cJSON_AddNumberToObject(object, "nan", (double)d->ulp.n_nan);
    cJSON_AddBoolToObject(object, "other_shape", d->other_shape);
    add_double(object, "max_abs", d->ulp.max_abs);
    add_double(object, "max_rel", d->ulp.max_rel);
    cJSON_AddNumberToObject(object, "max_ulp", (double)d->ulp.max_ulp);
    return object;
}

void compare_report_json(const struct compare_report *r, struct strbuf *out) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "result", r->result->first.found ? "differ" : "same");
    cJSON *devices = cJSON_AddArrayToObject(object, "devices");
    for (int k = 0; k < 2; k++) {
        cJSON *device = cJSON_CreateObject();
        cJSON_AddStringToObject(device, "device", r->devices[k]);
        cJSON_AddStringToObject(device, "operation_set", ree_operation_set_name(r->sets[k]));
        json_put(devices, device);
    }
    cJSON_AddNumberToObject(object, "n_steps", (double)r->result->n_steps);
    cJSON_AddNumberToObject(object, "nodes_differ", (double)r->result->n_differ);
    cJSON_AddNumberToObject(object, "nodes_new", (double)r->result->n_new);
    if (r->is_text) {
        cJSON *tokens = cJSON_AddArrayToObject(object, "tokens");
        for (size_t i = 0; i < r->result->n_ids; i++)
            json_put(tokens, cJSON_CreateNumber(r->result->ids[i]));
    }
    if (r->result->first.found) json_put_as(object, "first", first_json(r));
    cJSON *nodes = cJSON_AddArrayToObject(object, "nodes");
    for (size_t i = 0; i < r->result->n_nodes; i++)
        json_put(nodes, drift_json(r, i));
    if (!(nodes && (size_t)cJSON_GetArraySize(nodes) == r->result->n_nodes)) out->failed = true;
    cli_append_json(out, object, false);
}
