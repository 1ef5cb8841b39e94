#include "coverage.h"

#include "graph/ir/ir.h"
#include "graph/load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_line(struct coverage *c, const char *line) {
    if (c->n == c->capacity) {
        c->capacity = c->capacity ? 2 * c->capacity : 1024;
        c->lines = realloc(c->lines, c->capacity * sizeof *c->lines);
        if (!c->lines) abort();
    }
    c->lines[c->n] = strdup(line);
    if (!c->lines[c->n++]) abort();
}

void coverage_add(struct coverage *c, const char *path) {
    struct ree_graph *graph;
    struct ree_error err;
    if (ree_graph_load(path, NULL, &graph, &err) != REE_OK) return;
    if (graph->n_nodes == 1) {
        const struct ree_node *node = graph->nodes[0];
        const struct ree_value *value = NULL;
        for (size_t i = 0; !value && i < node->n_inputs; i++)
            value = node->inputs[i];
        for (size_t i = 0; !value && i < node->n_outputs; i++)
            value = node->outputs[i];
        char line[256];
        bool tensor = value && value->dtype != REE_DTYPE_NONE;
        snprintf(line, sizeof line, "%s %s %lld %s", *node->domain ? node->domain : "ai.onnx",
                 node->op_type, (long long)node->opset,
                 tensor ? ree_onnx_type_name((int64_t)value->dtype) : "none");
        add_line(c, line);
    }
    ree_graph_destroy(graph);
}

void coverage_finish(struct coverage *c) {
    for (size_t i = 0; i < c->n; i++)
        free(c->lines[i]);
    free(c->lines);
    memset(c, 0, sizeof *c);
}

static int compare_lines(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort_once(struct coverage *c) {
    size_t n = 0;
    if (c->n) qsort(c->lines, c->n, sizeof *c->lines, compare_lines);
    for (size_t i = 0; i < c->n; i++) {
        if (n && strcmp(c->lines[n - 1], c->lines[i]) == 0)
            free(c->lines[i]);
        else
            c->lines[n++] = c->lines[i];
    }
    c->n = n;
}

bool coverage_write(struct coverage *c, const char *file) {
    FILE *f = fopen(file, "w");
    if (!f) {
        printf("%s: %s\n", file, strerror(errno));
        return false;
    }
    sort_once(c);
    fputs(
        "# What ONNX's operator tests of several releases show to work, on every backend: domain,\n"
        "# operator, opset, type of the first input. Written by onnx_cases --write-coverage; the\n"
        "# suite checks it.\n",
        f);
    for (size_t i = 0; i < c->n; i++)
        fprintf(f, "%s\n", c->lines[i]);
    return fclose(f) == 0;
}

static bool read_lines(struct coverage *c, const char *file) {
    FILE *f = fopen(file, "r");
    if (!f) {
        printf("%s: %s\n", file, strerror(errno));
        return false;
    }
    char line[512];
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        if (line[0] && line[0] != '#') add_line(c, line);
    }
    fclose(f);
    sort_once(c);
    return true;
}

static bool has(const struct coverage *c, char *line) {
    return c->n && bsearch(&line, c->lines, c->n, sizeof *c->lines, compare_lines);
}

bool coverage_check(struct coverage *passed, struct coverage *run, const char *file) {
    struct coverage listed = {0};
    if (!read_lines(&listed, file)) return false;
    sort_once(passed);
    if (run) sort_once(run);
    size_t n_wrong = 0, n_other = 0;
    for (size_t i = 0; i < passed->n; i++)
        if (!has(&listed, passed->lines[i])) {
            n_wrong++;
            printf("FAILED    %s passes, %s lacks it\n", passed->lines[i], file);
        }
    for (size_t i = 0; run && i < listed.n; i++) {
        if (has(passed, listed.lines[i])) continue;
        bool is_wrong = has(run, listed.lines[i]);
        n_wrong += is_wrong;
        n_other += !is_wrong;
        if (is_wrong) printf("FAILED    %s does not pass, %s has it\n", listed.lines[i], file);
    }
    if (n_other) printf("%zu of %zu lines of %s have no case here\n", n_other, listed.n, file);
    coverage_finish(&listed);
    if (n_wrong) printf("after a change: onnx_cases --write-coverage, tools/support.py --write\n");
    return n_wrong == 0;
}
