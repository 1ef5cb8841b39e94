// Writes the HTML page of a comparison: a picture of the relative error by node, and a table.
#include "dispute/html_internal.h"

#include <math.h>

#define HEIGHT 320
#define MAX_LINES 12 // maximum number of steps in the picture

static void append_graph_node(struct ree_strbuf *out, const struct ree_node *node) {
    ree_page_node(out, node->id, node->name, node->domain, node->op_type);
}

// The picture of a comparison

// The range of the picture: exponents of powers of ten, and number of nodes.
struct scale {
    int low, high;
    size_t n_nodes;
};

static double x_of(const struct scale *s, size_t node) {
    return 50 +
           (REE_PAGE_WIDTH - 60) * ((double)node + 0.5) / (double)(s->n_nodes ? s->n_nodes : 1);
}

// Returns the y coordinate of a relative error. 0 (no difference) is at the bottom, infinity at the
// top.
static double y_of(const struct scale *s, double rel) {
    double bottom = HEIGHT - 30, top = 15;
    if (!(rel > 0)) return bottom;
    double at = isinf(rel) ? s->high : log10(rel);
    at = at < s->low ? s->low : at > s->high ? s->high : at;
    // Leave a gap between "no difference" and the smallest difference.
    return bottom - 12 - (bottom - 12 - top) * (at - s->low) / (s->high - s->low);
}

static struct scale find_scale(const struct ree_compare_result *r) {
    struct scale s = {0, -400, r->n_nodes};
    for (size_t i = 0; i < r->n_steps * r->n_nodes; i++) {
        if (!(r->rel[i] > 0) || isinf(r->rel[i])) continue;
        int below = (int)floor(log10(r->rel[i]));
        if (below < s.low) s.low = below;
        if (below + 1 > s.high) s.high = below + 1;
    }
    if (s.low < -45) s.low = -45;
    if (s.high <= s.low) s.high = s.low + 1;
    return s;
}

static void append_grid(struct ree_strbuf *out, const struct scale *s) {
    int every = 1 + (s->high - s->low) / 12;
    for (int p = s->low; p <= s->high; p += every) {
        double y = y_of(s, pow(10, p));
        ree_strbuf_printf(out,
                          "<line class=\"grid\" x1=\"50\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
                          "<text x=\"44\" y=\"%.1f\" text-anchor=\"end\">1e%d</text>\n",
                          REE_PAGE_WIDTH - 10, y, y, y + 4, p);
    }
    double y = y_of(s, 0);
    ree_strbuf_printf(out,
                      "<line class=\"grid\" x1=\"50\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
                      "<text x=\"44\" y=\"%.1f\" text-anchor=\"end\">0</text>\n",
                      REE_PAGE_WIDTH - 10, y, y, y + 4);
    for (int i = 0; i <= 4; i++) {
        size_t node = s->n_nodes ? (s->n_nodes - 1) * (size_t)i / 4 : 0;
        // Align the last label so that it ends where the picture ends.
        ree_strbuf_printf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">node %zu</text>\n",
                          x_of(s, node), HEIGHT - 10, i == 4 ? "end" : "middle", node);
    }
}

static int hue_of(size_t line) {
    return (int)(line * 137 % 360); // adjacent lines get very different hues
}

static bool step_differs(const struct ree_compare_result *r, uint64_t step) {
    for (size_t i = 0; i < r->n_nodes; i++)
        if (r->ulp[step * r->n_nodes + i] > 0 || r->rel[step * r->n_nodes + i] > 0) return true;
    return false;
}

static void append_line(struct ree_strbuf *out, const struct ree_compare_result *r,
                        const struct scale *s, uint64_t step, size_t line) {
    ree_strbuf_printf(out, "<polyline class=\"line\" stroke=\"hsl(%d,65%%,42%%)\" points=\"",
                      hue_of(line));
    const float *rel = r->rel + step * r->n_nodes;
    for (size_t i = 0; i < r->n_nodes; i++) {
        // Of a run of equal values, draw only the two ends.
        bool level = i > 0 && i + 1 < r->n_nodes && rel[i] == rel[i - 1] && rel[i] == rel[i + 1];
        if (!level) ree_strbuf_printf(out, "%.1f,%.1f ", x_of(s, i), y_of(s, rel[i]));
    }
    ree_strbuf_printf(out, "\"><title>step %llu</title></polyline>\n", (unsigned long long)step);
}

static void append_picture(struct ree_strbuf *out, const struct ree_compare_result *r) {
    struct scale scale = find_scale(r);
    uint64_t drawn[MAX_LINES];
    size_t n = 0;
    uint64_t left_out = 0;
    for (uint64_t step = 0; step < r->n_steps; step++) {
        if (!step_differs(r, step)) continue;
        if (n < MAX_LINES)
            drawn[n++] = step;
        else
            left_out++;
    }
    ree_strbuf_printf(out,
                      "<p>Largest relative error of each node's outputs, in the order in which "
                      "nodes run; infinite errors are at the top.</p>\n"
                      "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"relative error by "
                      "node\">\n",
                      REE_PAGE_WIDTH, HEIGHT);
    append_grid(out, &scale);
    for (size_t i = 0; i < n; i++)
        append_line(out, r, &scale, drawn[i], i);
    ree_strbuf_printf(out, "</svg>\n<p class=\"key\">");
    for (size_t i = 0; i < n; i++)
        ree_strbuf_printf(out,
                          "<span><span class=\"swatch\" style=\"background:hsl(%d,65%%,42%%)\">"
                          "</span>step %llu</span>",
                          hue_of(i), (unsigned long long)drawn[i]);
    if (left_out)
        ree_strbuf_printf(out, "<span>%llu more steps differ</span>", (unsigned long long)left_out);
    ree_strbuf_printf(out, "</p>\n");
}

static void append_drift(struct ree_strbuf *out, const struct ree_html_compare *page, size_t i) {
    const struct ree_drift *d = &page->result->drift[i];
    double share = d->ulp.n ? 100.0 * (double)d->ulp.n_differ / (double)d->ulp.n : 0;
    ree_strbuf_printf(out,
                      "<tr><td>%llu / %llu</td><td>%llu</td><td>%.3g %%</td><td>%.3g</td>"
                      "<td>%.3g</td><td>%llu</td><td>",
                      (unsigned long long)d->n_differ, (unsigned long long)d->n_runs,
                      (unsigned long long)d->n_new, share, d->ulp.max_abs, d->ulp.max_rel,
                      (unsigned long long)d->ulp.max_ulp);
    append_graph_node(out, page->graph->nodes[i]);
    ree_strbuf_printf(out, "</td></tr>\n");
}

void ree_html_compare(const struct ree_html_compare *page, struct ree_strbuf *out) {
    const struct ree_compare_result *r = page->result;
    ree_page_begin(out, "Where two devices differ");
    ree_strbuf_printf(out, "<p>");
    ree_html_escape(out, page->model);
    for (int k = 0; k < 2; k++) {
        ree_strbuf_printf(out, "<br/>%c: ", "AB"[k]);
        ree_html_escape(out, page->devices[k]);
    }
    ree_strbuf_printf(out, "</p>\n");
    if (!r->first.found) {
        ree_strbuf_printf(out, "<p>The same bytes: %llu steps of %zu nodes.</p>\n",
                          (unsigned long long)r->n_steps, r->n_nodes);
        ree_page_end(out);
        return;
    }
    ree_strbuf_printf(out, "<p>First difference: step %llu, node ",
                      (unsigned long long)r->first.step);
    append_graph_node(out, page->graph->nodes[r->first.node]);
    ree_strbuf_printf(out, "; its inputs %s.</p>\n", r->first.inputs_agree ? "agree" : "differ");
    append_picture(out, r);
    ree_strbuf_printf(out, "<table><tr><th>steps that differ</th><th>of which with equal "
                           "inputs</th><th>elements</th><th>max abs</th><th>max rel</th><th>max "
                           "ulp</th><th>node</th></tr>\n");
    size_t rows = 0;
    for (size_t i = 0; i < r->n_nodes && rows < REE_PAGE_MAX_ROWS; i++)
        if (r->drift[i].n_differ) {
            append_drift(out, page, i);
            rows++;
        }
    ree_strbuf_printf(out, "</table>\n");
    ree_page_end(out);
}
