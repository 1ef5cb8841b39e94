#include "audit/html.h"

#include <math.h>
#include <string.h>

#define WIDTH 960
#define HEIGHT 320
#define MAX_LINES 12 // of steps, in the picture
#define MAX_ROWS 5000
#define MAX_STRIPS 200

// Text

// The length of the UTF-8 character at s, 0 where there is none that XML allows.
static size_t character(const unsigned char *s) {
    if (s[0] < 0x80) return s[0] >= 0x20 && s[0] != 0x7F;
    size_t n = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
    if (s[0] < 0xC2 || s[0] > 0xF4) return 0;
    uint32_t code = s[0] & (0xFFu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80) return 0;
        code = code << 6 | (s[i] & 0x3Fu);
    }
    bool too_long = (n == 3 && code < 0x800) || (n == 4 && code < 0x10000);
    bool no_text = (code >= 0xD800 && code < 0xE000) || code > 0x10FFFF || code == 0xFFFE ||
                   code == 0xFFFF || code < 0xA0;
    return too_long || no_text ? 0 : n;
}

void ree_html_escape(struct ree_strbuf *out, const char *text) {
    static const struct {
        char c;
        const char *name;
    } special[] = {{'<', "&lt;"}, {'>', "&gt;"}, {'&', "&amp;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        size_t n = character(s), k = 0;
        while (k < sizeof special / sizeof *special && special[k].c != (char)*s)
            k++;
        if (k < sizeof special / sizeof *special)
            ree_strbuf_append(out, special[k].name, strlen(special[k].name));
        else if (n)
            ree_strbuf_append(out, (const char *)s, n);
        else
            ree_strbuf_append(out, "\xEF\xBF\xBD", 3);
        s += n ? n : 1;
    }
}

static void begin(struct ree_strbuf *out, const char *title) {
    ree_strbuf_printf(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n<title>%s</title>\n"
        "<style>\n"
        "body{font:14px/1.5 system-ui,sans-serif;max-width:62em;margin:2em auto;padding:0 1em;"
        "color:#222;background:#fff}\n"
        "svg{width:100%%;height:auto;background:#fafafa;border:1px solid #ddd}\n"
        "svg text{font-size:11px;fill:#555}\n"
        ".grid{stroke:#e2e2e2;stroke-width:1}\n"
        ".line{fill:none;stroke-width:1.3}\n"
        ".agree{fill:#cfe3d2}.differ{fill:#e8a33d}.new{fill:#c22f2f}.input{fill:#5b6cc9}\n"
        "table{border-collapse:collapse;margin-top:1em}\n"
        "th,td{text-align:right;padding:.1em .8em;border-bottom:1px solid #eee}\n"
        "th:last-child,td:last-child{text-align:left}\n"
        ".key span{display:inline-block;margin-right:1.2em}\n"
        ".swatch{display:inline-block;width:1em;height:.7em;margin-right:.4em}\n"
        "</style></head><body>\n<h1>%s</h1>\n",
        title, title);
}

static void end(struct ree_strbuf *out) {
    ree_strbuf_printf(out, "</body></html>\n");
}

static void append_node(struct ree_strbuf *out, uint32_t number, const char *name,
                        const char *domain, const char *op_type) {
    ree_strbuf_printf(out, "%u ", number);
    ree_html_escape(out, name ? name : "");
    ree_strbuf_printf(out, " (");
    ree_html_escape(out, domain);
    if (domain[0]) ree_strbuf_printf(out, ".");
    ree_html_escape(out, op_type);
    ree_strbuf_printf(out, ")");
}

static void append_graph_node(struct ree_strbuf *out, const struct ree_node *node) {
    append_node(out, node->id, node->name, node->domain, node->op_type);
}

// The picture of a comparison

// Powers of ten that the picture spans.
struct scale {
    int low, high;
    size_t n_nodes;
};

static double x_of(const struct scale *s, size_t node) {
    return 50 + (WIDTH - 60) * ((double)node + 0.5) / (double)(s->n_nodes ? s->n_nodes : 1);
}

// No difference is at the bottom, an endless one at the top.
static double y_of(const struct scale *s, double rel) {
    double bottom = HEIGHT - 30, top = 15;
    if (!(rel > 0)) return bottom;
    double at = isinf(rel) ? s->high : log10(rel);
    at = at < s->low ? s->low : at > s->high ? s->high : at;
    // A gap between none and the smallest.
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
                          WIDTH - 10, y, y, y + 4, p);
    }
    double y = y_of(s, 0);
    ree_strbuf_printf(out,
                      "<line class=\"grid\" x1=\"50\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
                      "<text x=\"44\" y=\"%.1f\" text-anchor=\"end\">0</text>\n",
                      WIDTH - 10, y, y, y + 4);
    for (int i = 0; i <= 4; i++) {
        size_t node = s->n_nodes ? (s->n_nodes - 1) * (size_t)i / 4 : 0;
        ree_strbuf_printf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">node %zu</text>\n",
                          x_of(s, node), HEIGHT - 10, node);
    }
}

static int hue_of(size_t line) {
    return (int)(line * 137 % 360); // neighbours far apart
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
        // Of a level stretch its ends alone.
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
                      "<p>Largest relative error of what each node gave, in the order in "
                      "which nodes run; at the top also what is endless.</p>\n"
                      "<svg viewBox=\"0 0 %d %d\" role=\"img\" "
                      "aria-label=\"relative error by node\">\n",
                      WIDTH, HEIGHT);
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
    begin(out, "Where two devices part");
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
        end(out);
        return;
    }
    ree_strbuf_printf(out, "<p>The first that differs: step %llu, node ",
                      (unsigned long long)r->first.step);
    append_graph_node(out, page->graph->nodes[r->first.node]);
    ree_strbuf_printf(out, "; what it reads %s.</p>\n",
                      r->first.inputs_agree ? "agrees" : "differs");
    append_picture(out, r);
    ree_strbuf_printf(out, "<table><tr><th>runs that differ</th><th>of which new</th>"
                           "<th>elements</th><th>max abs</th><th>max rel</th><th>max ulp</th>"
                           "<th>node</th></tr>\n");
    size_t rows = 0;
    for (size_t i = 0; i < r->n_nodes && rows < MAX_ROWS; i++)
        if (r->drift[i].n_differ) {
            append_drift(out, page, i);
            rows++;
        }
    ree_strbuf_printf(out, "</table>\n");
    end(out);
}

// The strips of two traces

enum cell { AGREE, DIFFER, NEW, INPUT };
static const char *const classes[] = {"agree", "differ", "new", "input"};

// Place 0 is the step's inputs, then come the nodes.
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
    double width = (double)(WIDTH - 80) / n;
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
            append_node(out, from - 1, node->name, node->domain, node->op_type);
            ree_strbuf_printf(out, "</title>");
        }
        ree_strbuf_printf(out, "</rect>");
    }
    ree_strbuf_printf(out, "\n");
}

static void append_strips(struct ree_strbuf *out, const struct ree_html_diff *page) {
    uint64_t n = page->diff->n_steps, first = 0;
    // From a little before the first that differs.
    if (n > MAX_STRIPS && page->diff->step > 10) first = page->diff->step - 10;
    uint64_t rows = n - first < MAX_STRIPS ? n - first : MAX_STRIPS;
    ree_strbuf_printf(out,
                      "<svg viewBox=\"0 0 %d %llu\" role=\"img\" aria-label=\"nodes by step\">\n",
                      WIDTH, (unsigned long long)(rows * 14 + 2));
    for (uint64_t i = 0; i < rows; i++)
        append_strip(out, page, first + i, (size_t)i);
    ree_strbuf_printf(out, "</svg>\n<p class=\"key\">");
    static const char *const meanings[] = {"agrees", "differs",
                                           "differs, though all that it read agrees",
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

// Nodes that differ although all that they read agrees, in all steps.
static void append_new(struct ree_strbuf *out, const struct ree_html_diff *page) {
    const struct ree_trace_header *h = &page->traces[0]->header;
    size_t rows = 0;
    ree_strbuf_printf(out, "<table><tr><th>step</th><th>node</th></tr>\n");
    for (uint64_t step = page->diff->step; step < page->diff->n_steps; step++)
        for (uint32_t i = 0; i < h->n_nodes && rows < MAX_ROWS; i++) {
            if (cell_of(page, step, i + 1) != NEW) continue;
            ree_strbuf_printf(out, "<tr><td>%llu</td><td>", (unsigned long long)step);
            append_node(out, i, h->nodes[i].name, h->nodes[i].domain, h->nodes[i].op_type);
            ree_strbuf_printf(out, "</td></tr>\n");
            rows++;
        }
    ree_strbuf_printf(out, "</table>\n");
}

void ree_html_diff(const struct ree_html_diff *page, struct ree_strbuf *out) {
    const struct ree_diff *d = page->diff;
    begin(out, "Where two runs part");
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
        ree_strbuf_printf(out, "The first that differs: step %llu, node ",
                          (unsigned long long)d->step);
        append_node(out, d->node, node->name, node->domain, node->op_type);
    } else if (d->kind == REE_DIFF_INPUT) {
        ree_strbuf_printf(out, "The first that differs: step %llu, the model's input ",
                          (unsigned long long)d->step);
        ree_html_escape(out, page->traces[0]->header.inputs[d->input].name);
    } else {
        static const char *const texts[] = {
            [REE_DIFF_SAME] = "The same",
            [REE_DIFF_OTHER_RUN] = "They are of different runs, and cannot be compared",
            [REE_DIFF_LENGTH] = "Equal as far as both go"};
        ree_strbuf_printf(out, "%s", texts[d->kind]);
    }
    ree_strbuf_printf(out, ".</p>\n");
    if (d->kind != REE_DIFF_OTHER_RUN) append_strips(out, page);
    if (d->kind == REE_DIFF_NODE || d->kind == REE_DIFF_INPUT) append_new(out, page);
    end(out);
}
