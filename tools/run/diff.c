// ree-run diff: the first operator in which two runs differ.
#include <cjson/cJSON.h>
#include <string.h>

#include "audit/diff.h"
#include "audit/html.h"
#include "base/file.h"
#include "cli.h"

#define CLI_DIFFERS 1
#define CLI_CANNOT 2

static const char help[] =
    "ree-run diff A.trace B.trace [--json] [--all] [--html FILE]: the first operator in which two "
    "runs differ\n"
    "\n"
    "The traces were written by --trace of 'run' or 'generate', over the same model, cut in the\n"
    "same way; on which devices does not matter. What differs first, in the order in which nodes\n"
    "run, is printed with its step and what it read: where all of that agrees, this node is where\n"
    "the runs parted.\n"
    "\n"
    "  --all       every node that differs, in every step, and not just the first: 'new' where\n"
    "              all that it read agrees\n"
    "  --json      one JSON object instead of text\n"
    "  --html FILE a page with a picture: which nodes of which steps differ\n"
    "\n"
    "exit status: 0 the same, 1 they differ, 2 they cannot be compared (or wrong usage)\n";

static const struct {
    uint32_t bit;
    const char *key, *text;
} parts[] = {
    {REE_DIFF_GRAPH, "graph", "they are of different models (the graph's SHA-256)"},
    {REE_DIFF_WEIGHTS, "weights", "the models' weights differ (SHA-256)"},
    {REE_DIFF_NUMERICS, "numerics", "they follow different numerics"},
    {REE_DIFF_OPERATION_SET, "operation_set", "they were made with different operation sets"},
    {REE_DIFF_CHUNK, "prefill_chunk", "their prompts were cut differently (--prefill-chunk)"},
    {REE_DIFF_PORTS, "inputs", "the models take different inputs"},
    {REE_DIFF_CONSTANTS, "constants", "the constants of the graph differ"},
    {REE_DIFF_NODES, "nodes", "the nodes differ: another version of ree, or --no-fold"},
};
#define N_PARTS (sizeof parts / sizeof *parts)

static const char *kind_name(enum ree_diff_kind kind) {
    static const char *const names[] = {"same", "other_run", "input", "node", "length"};
    return names[kind];
}

// Names come from files.
static void append_node(struct ree_strbuf *out, const struct ree_trace *t, uint32_t node) {
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    ree_trace_node_text(&t->header, node, &text);
    cli_append_name(out, text.data ? text.data : "?");
    ree_strbuf_finish(&text);
}

static void append_value(struct ree_strbuf *out, const struct ree_trace *t, int32_t value) {
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    ree_trace_value_text(&t->header, value, &text);
    cli_append_name(out, text.data ? text.data : "?");
    ree_strbuf_finish(&text);
}

struct pair {
    const struct ree_trace *a, *b;
    struct ree_diff diff;
    bool all;
};

static void text_of_node(const struct pair *p, struct ree_strbuf *out) {
    const struct ree_diff *d = &p->diff;
    const struct ree_trace_node *node = &p->a->header.nodes[d->node];
    ree_strbuf_printf(out, "step %llu: ", (unsigned long long)d->step);
    append_node(out, p->a, d->node);
    ree_strbuf_printf(out, " differs\n");
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        if (node->inputs[i] == REE_TRACE_OMITTED) continue;
        bool agrees = ree_trace_value_agrees(p->a, p->b, d->step, node->inputs[i]);
        ree_strbuf_printf(out, "  reads  %s  ", agrees ? "agrees " : "differs");
        append_value(out, p->a, node->inputs[i]);
        ree_strbuf_printf(out, "\n");
    }
    for (uint32_t i = 0; i < node->n_outputs; i++) {
        if (node->omitted[i]) continue;
        bool agrees =
            ree_trace_value_agrees(p->a, p->b, d->step, (int32_t)(node->first_output + i));
        ree_strbuf_printf(out, "  gives  %s  output %u\n", agrees ? "agrees " : "differs", i);
    }
}

// Calls each for every node that differs from the first on.
static void visit_all(const struct pair *p, void (*each)(void *user, uint64_t step, uint32_t node),
                      void *user) {
    for (uint64_t step = p->diff.step; step < p->diff.n_steps; step++)
        for (uint32_t i = 0; i < p->a->header.n_nodes; i++)
            if (ree_trace_node_differs(p->a, p->b, step, i)) each(user, step, i);
}

struct listing {
    const struct pair *p;
    struct ree_strbuf *text;
    cJSON *array;
};

static void list_text(void *user, uint64_t step, uint32_t node) {
    const struct listing *l = user;
    bool is_new = ree_trace_inputs_agree(l->p->a, l->p->b, step, node);
    ree_strbuf_printf(l->text, "  step %llu  %s  ", (unsigned long long)step,
                      is_new ? "new" : "   ");
    append_node(l->text, l->p->a, node);
    ree_strbuf_printf(l->text, "\n");
}

static void report_text(const struct pair *p, struct ree_strbuf *out) {
    const struct ree_diff *d = &p->diff;
    if (d->kind == REE_DIFF_OTHER_RUN) {
        ree_strbuf_printf(out, "cannot be compared:\n");
        for (size_t i = 0; i < N_PARTS; i++)
            if (d->header & parts[i].bit) ree_strbuf_printf(out, "  %s\n", parts[i].text);
        return;
    }
    if (d->kind == REE_DIFF_SAME) {
        char root[65];
        ree_hex(p->a->root, root);
        ree_strbuf_printf(out, "the same: %llu step%s of %u nodes, root %s\n",
                          (unsigned long long)d->n_steps, d->n_steps == 1 ? "" : "s",
                          p->a->header.n_nodes, root);
        return;
    }
    if (d->kind == REE_DIFF_INPUT) {
        ree_strbuf_printf(out, "step %llu: input '", (unsigned long long)d->step);
        cli_append_name(out, p->a->header.inputs[d->input].name);
        ree_strbuf_printf(out, "' differs: the runs were given different things\n");
    } else if (d->kind == REE_DIFF_NODE) {
        text_of_node(p, out);
    } else {
        ree_strbuf_printf(out, "equal as far as both go: %llu steps, but there are %llu and %llu\n",
                          (unsigned long long)d->n_steps, (unsigned long long)p->a->n_steps,
                          (unsigned long long)p->b->n_steps);
        return;
    }
    ree_strbuf_printf(out, "before it agree %llu steps and %llu runs of nodes\n",
                      (unsigned long long)d->step, (unsigned long long)d->n_before);
    ree_strbuf_printf(out, "after it differ %llu runs of nodes, of which %llu read what agrees\n",
                      (unsigned long long)d->n_after, (unsigned long long)d->n_new);
    if (p->a->n_steps != p->b->n_steps)
        ree_strbuf_printf(out, "there are %llu and %llu steps\n", (unsigned long long)p->a->n_steps,
                          (unsigned long long)p->b->n_steps);
    struct listing l = {.p = p, .text = out};
    if (p->all) visit_all(p, list_text, &l);
}

// JSON. cJSON's add functions accept NULL; what is lost shows in the arrays' lengths.
static cJSON *node_json(const struct pair *p, uint64_t step, uint32_t node) {
    const struct ree_trace_node *n = &p->a->header.nodes[node];
    cJSON *object = cJSON_CreateObject();
    cJSON_AddNumberToObject(object, "step", (double)step);
    cJSON_AddNumberToObject(object, "node", node);
    cJSON_AddStringToObject(object, "name", n->name);
    cJSON_AddStringToObject(object, "domain", n->domain);
    cJSON_AddStringToObject(object, "op_type", n->op_type);
    cJSON_AddBoolToObject(object, "inputs_agree", ree_trace_inputs_agree(p->a, p->b, step, node));
    return object;
}

static void list_json(void *user, uint64_t step, uint32_t node) {
    const struct listing *l = user;
    cJSON_AddItemToArray(l->array, node_json(l->p, step, node));
}

static cJSON *first_json(const struct pair *p) {
    const struct ree_diff *d = &p->diff;
    const struct ree_trace_node *node = &p->a->header.nodes[d->node];
    cJSON *first = node_json(p, d->step, d->node);
    cJSON *inputs = cJSON_AddArrayToObject(first, "inputs");
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        struct ree_strbuf text;
        ree_strbuf_init(&text);
        ree_trace_value_text(&p->a->header, node->inputs[i], &text);
        cJSON *input = cJSON_CreateObject();
        cJSON_AddStringToObject(input, "value", text.data ? text.data : "");
        cJSON_AddBoolToObject(input, "agrees",
                              ree_trace_value_agrees(p->a, p->b, d->step, node->inputs[i]));
        cJSON_AddItemToArray(inputs, input);
        ree_strbuf_finish(&text);
    }
    cJSON *outputs = cJSON_AddArrayToObject(first, "outputs_agree");
    for (uint32_t i = 0; i < node->n_outputs; i++)
        cJSON_AddItemToArray(outputs, cJSON_CreateBool(ree_trace_value_agrees(
                                          p->a, p->b, d->step, (int32_t)(node->first_output + i))));
    return first;
}

static void report_json(const struct pair *p, struct ree_strbuf *out) {
    const struct ree_diff *d = &p->diff;
    char root[65];
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "result", kind_name(d->kind));
    cJSON *roots = cJSON_AddArrayToObject(object, "roots");
    cJSON *steps = cJSON_AddArrayToObject(object, "n_steps");
    for (int i = 0; i < 2; i++) {
        ree_hex((i ? p->b : p->a)->root, root);
        cJSON_AddItemToArray(roots, cJSON_CreateString(root));
        cJSON_AddItemToArray(steps, cJSON_CreateNumber((double)(i ? p->b : p->a)->n_steps));
    }
    if (d->kind == REE_DIFF_OTHER_RUN) {
        cJSON *header = cJSON_AddArrayToObject(object, "header");
        for (size_t i = 0; i < N_PARTS; i++)
            if (d->header & parts[i].bit)
                cJSON_AddItemToArray(header, cJSON_CreateString(parts[i].key));
    }
    if (d->kind == REE_DIFF_INPUT) {
        cJSON *first = cJSON_AddObjectToObject(object, "first");
        cJSON_AddNumberToObject(first, "step", (double)d->step);
        cJSON_AddStringToObject(first, "input", p->a->header.inputs[d->input].name);
    }
    if (d->kind == REE_DIFF_NODE) cJSON_AddItemToObject(object, "first", first_json(p));
    if (d->kind == REE_DIFF_INPUT || d->kind == REE_DIFF_NODE) {
        cJSON_AddNumberToObject(object, "steps_before", (double)d->step);
        cJSON_AddNumberToObject(object, "nodes_before", (double)d->n_before);
        cJSON_AddNumberToObject(object, "nodes_after", (double)d->n_after);
        cJSON_AddNumberToObject(object, "new_after", (double)d->n_new);
        struct listing l = {.p = p};
        if (p->all) l.array = cJSON_AddArrayToObject(object, "all");
        if (p->all) visit_all(p, list_json, &l);
    }
    char *text = cJSON_PrintUnformatted(object);
    if (text && steps && cJSON_GetArraySize(steps) == 2)
        ree_strbuf_printf(out, "%s\n", text);
    else
        out->failed = true;
    cJSON_free(text);
    cJSON_Delete(object);
}

static bool save_page(const struct pair *p, const char *const paths[2], const char *path,
                      struct ree_error *err) {
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    struct ree_html_diff page = {{paths[0], paths[1]}, {p->a, p->b}, &p->diff};
    ree_html_diff(&page, &text);
    bool ok = !text.failed && ree_file_write(path, text.data, text.size, err) == REE_OK;
    if (text.failed)
        cli_error("out of memory");
    else if (!ok)
        cli_fail(err);
    ree_strbuf_finish(&text);
    return ok;
}

static int compare(const char *const paths[2], const char *html, bool json, bool all) {
    struct ree_error err;
    struct ree_strbuf text;
    struct ree_trace *a = NULL, *b = NULL;
    ree_strbuf_init(&text);
    int code = CLI_CANNOT;
    if (ree_trace_load(paths[0], &a, &err) != REE_OK ||
        ree_trace_load(paths[1], &b, &err) != REE_OK) {
        cli_fail(&err);
    } else {
        struct pair p = {.a = a, .b = b, .all = all};
        ree_trace_diff(a, b, &p.diff);
        if (json)
            report_json(&p, &text);
        else
            report_text(&p, &text);
        code = p.diff.kind == REE_DIFF_SAME        ? 0
               : p.diff.kind == REE_DIFF_OTHER_RUN ? CLI_CANNOT
                                                   : CLI_DIFFERS;
        if (html && !save_page(&p, paths, html, &err)) code = CLI_CANNOT;
        if (cli_print(&text)) code = CLI_CANNOT;
    }
    ree_trace_destroy(a);
    ree_trace_destroy(b);
    return code;
}

int ree_run_diff(int argc, char **argv) {
    struct cli cli;
    const char *paths[2] = {NULL, NULL}, *html = NULL;
    bool json = false, all = false;
    cli_init(&cli, argc, argv);
    while (cli_next(&cli)) {
        if (cli_flag(&cli, "--help")) {
            struct ree_strbuf text;
            ree_strbuf_init(&text);
            ree_strbuf_printf(&text, "%s", help);
            return cli_print(&text);
        }
        if (cli_flag(&cli, "--json"))
            json = true;
        else if (cli_flag(&cli, "--all"))
            all = true;
        else if (!cli_option(&cli, "--html", &html) && !cli_positional(&cli, &paths[0]) &&
                 !cli_positional(&cli, &paths[1]))
            cli_unknown(&cli);
    }
    if (!cli.failed && !paths[1]) cli_usage(&cli, "two traces are compared");
    if (cli.failed) return CLI_USAGE;
    return compare(paths, html, json, all);
}
