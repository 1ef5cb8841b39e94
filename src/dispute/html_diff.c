// Writes the HTML page that compares two traces: which nodes agree in which steps.
#include "dispute/html_internal.h"

#include "base/float_env.h"
#include "base/status.h"

#include <string.h>

#define MAX_STRIPS 200 // maximum number of steps in the picture

enum cell { AGREE, DIFFER, NEW, INPUT };
static const char *const classes[] = {"agree", "differ", "new", "input"};

// Place 0 stands for the inputs of the step, place 1 + i for node i.
static enum cell cell_of(const struct ree_html_diff *page, uint64_t step, uint32_t place) {
    const struct ree_trace *a = page->traces[0], *b = page->traces[1];
    if (place == 0)
        return memcmp(ree_trace_step(a, step), ree_trace_step(b, step),
                      a->header.n_inputs * sizeof(ree_digest))
                   ? INPUT
                   : AGREE;
    if (!ree_trace_node_differs(a, b, step, place - 1)) return AGREE;
    return ree_trace_inputs_agree(a, b, step, place - 1) ? NEW : DIFFER;
}

static void append_strip(struct ree_strbuf *out, const struct ree_html_diff *page, uint64_t step,
                         size_t row) {
    const struct ree_trace_header *h = &page->traces[0]->header;
    uint32_t n = h->n_nodes + 1;
    double width = (double)(REE_PAGE_WIDTH - 80) / n;
    ree_strbuf_printf(out, "<text x=\"64\" y=\"%zu\" text-anchor=\"end\">step %llu</text>",
                      row * 14 + 10, (unsigned long long)step);
    for (uint32_t from = 0, to; from < n; from = to) {
        enum cell cell = cell_of(page, step, from);
        to = from + 1;
        while (to < n && cell != NEW && cell_of(page, step, to) == cell)
            to++;
        ree_strbuf_printf(out,
                          "<rect class=\"%s\" x=\"%.2f\" y=\"%zu\" width=\"%.2f\" height=\"12\">",
                          classes[cell], 70 + from * width, row * 14, (to - from) * width);
        if (cell == NEW) {
            const struct ree_trace_node *node = &h->nodes[from - 1];
            ree_strbuf_printf(out, "<title>");
            ree_page_node(out, from - 1, node->name, node->domain, node->op_type);
            ree_strbuf_printf(out, "</title>");
        }
        ree_strbuf_printf(out, "</rect>");
    }
    ree_strbuf_printf(out, "\n");
}

static void append_strips(struct ree_strbuf *out, const struct ree_html_diff *page) {
    uint64_t n = page->diff->n_steps, first = 0;
    // Start a little before the first difference.
    if (n > MAX_STRIPS && page->diff->step > 10) first = page->diff->step - 10;
    uint64_t rows = n - first < MAX_STRIPS ? n - first : MAX_STRIPS;
    ree_strbuf_printf(out,
                      "<svg viewBox=\"0 0 %d %llu\" role=\"img\" aria-label=\"nodes by step\">\n",
                      REE_PAGE_WIDTH, (unsigned long long)(rows * 14 + 2));
    for (uint64_t i = 0; i < rows; i++)
        append_strip(out, page, first + i, (size_t)i);
    ree_strbuf_printf(out, "</svg>\n<p class=\"key\">");
    static const char *const meanings[] = {"agrees", "differs", "differs, but all its inputs agree",
                                           "the model's inputs differ"};
    for (int i = 0; i < 4; i++)
        ree_strbuf_printf(out,
                          "<span><svg style=\"width:1em;height:.7em;border:0\" viewBox=\"0 0 10 "
                          "7\"><rect class=\"%s\" width=\"10\" height=\"7\"/></svg> %s</span>",
                          classes[i], meanings[i]);
    ree_strbuf_printf(out, "</p>\n");
    if (rows < n)
        ree_strbuf_printf(out, "<p>Steps %llu to %llu of %llu.</p>\n", (unsigned long long)first,
                          (unsigned long long)(first + rows - 1), (unsigned long long)n);
}

// Lists, for all steps, the nodes that differ although everything that they read agrees.
static void append_new(struct ree_strbuf *out, const struct ree_html_diff *page) {
    const struct ree_trace_header *h = &page->traces[0]->header;
    size_t rows = 0;
    ree_strbuf_printf(out, "<table><tr><th>step</th><th>node</th></tr>\n");
    for (uint64_t step = page->diff->step; step < page->diff->n_steps; step++)
        for (uint32_t i = 0; i < h->n_nodes && rows < REE_PAGE_MAX_ROWS; i++) {
            if (cell_of(page, step, i + 1) != NEW) continue;
            ree_strbuf_printf(out, "<tr><td>%llu</td><td>", (unsigned long long)step);
            ree_page_node(out, i, h->nodes[i].name, h->nodes[i].domain, h->nodes[i].op_type);
            ree_strbuf_printf(out, "</td></tr>\n");
            rows++;
        }
    ree_strbuf_printf(out, "</table>\n");
}

void ree_html_diff(const struct ree_html_diff *page, struct ree_strbuf *out) {
    const struct ree_diff *d = page->diff;
    ree_page_begin(out, "Where two runs differ");
    ree_strbuf_printf(out, "<p>");
    for (int k = 0; k < 2; k++) {
        char root[65];
        ree_hex(page->traces[k]->root, root);
        ree_strbuf_printf(out, "%s%c: ", k ? "<br/>" : "", "AB"[k]);
        ree_html_escape(out, page->names[k]);
        ree_strbuf_printf(out, ", %llu steps, root <code>%s</code>",
                          (unsigned long long)page->traces[k]->n_steps, root);
    }
    ree_strbuf_printf(out, "</p>\n<p>");
    if (d->kind == REE_DIFF_NODE) {
        const struct ree_trace_node *node = &page->traces[0]->header.nodes[d->node];
        ree_strbuf_printf(out, "First difference: step %llu, node ", (unsigned long long)d->step);
        ree_page_node(out, d->node, node->name, node->domain, node->op_type);
    } else if (d->kind == REE_DIFF_INPUT) {
        ree_strbuf_printf(out, "First difference: step %llu, the model's input ",
                          (unsigned long long)d->step);
        ree_html_escape(out, page->traces[0]->header.inputs[d->input].name);
    } else {
        static const char *const texts[] = {
            [REE_DIFF_SAME] = "The same",
            [REE_DIFF_OTHER_RUN] = "The traces are of different runs and cannot be compared",
            [REE_DIFF_LENGTH] = "One run is the beginning of the other"};
        ree_strbuf_printf(out, "%s", texts[d->kind]);
    }
    ree_strbuf_printf(out, ".</p>\n");
    if (d->kind != REE_DIFF_OTHER_RUN) append_strips(out, page);
    if (d->kind == REE_DIFF_NODE || d->kind == REE_DIFF_INPUT) append_new(out, page);
    ree_page_end(out);
}

enum ree_status ree_trace_diff_html(const struct ree_trace *a, const struct ree_trace *b,
                                    const char *const names[2], char **out_html,
                                    struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_strbuf text;
    struct ree_diff diff = {.size = sizeof diff};
    const struct ree_html_diff page = {{names[0], names[1]}, {a, b}, &diff};
    *out_html = NULL;
    REE_TRY(ree_trace_diff(a, b, &diff, err));
    ree_strbuf_init(&text);
    ree_html_diff(&page, &text);
    *out_html = ree_strbuf_take(&text);
    return *out_html ? REE_OK : ree_no_memory(err);
}
