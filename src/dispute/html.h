// Pages that show where two runs start to differ. They are self-contained (inline SVG and CSS) and
// need no network and no scripts. Everything that comes from files is escaped.
#ifndef REE_DISPUTE_HTML_H
#define REE_DISPUTE_HTML_H

#include "dispute/compare.h"
#include "trace/trace.h"
#include "base/strbuf.h"

struct ree_html_compare {
    const char *model; // the model's path, as the user gave it
    const char *devices[2];
    const struct ree_graph *graph;
    const struct ree_compare_result *result;
};
// Appends a page: the largest relative error over depth, one line for each step, and a table of
// nodes.
void ree_html_compare(const struct ree_html_compare *page, struct ree_strbuf *out);

struct ree_html_diff {
    const char *names[2]; // names of the trace files
    const struct ree_trace *traces[2];
    const struct ree_diff *diff;
};
// Appends a page: a strip for each step that shows which nodes agree, which differ, and which
// differ although everything that they read agrees.
void ree_html_diff(const struct ree_html_diff *page, struct ree_strbuf *out);

// Appends text escaped for HTML and XML, also within quotes. Control characters and bytes that are
// not UTF-8 become U+FFFD.
void ree_html_escape(struct ree_strbuf *out, const char *text);

#endif
