// Pages that show where two runs part: self-contained (inline SVG and CSS), readable without a
// network and without scripts. Everything that comes from files is escaped.
#ifndef REE_AUDIT_HTML_H
#define REE_AUDIT_HTML_H

#include "audit/compare.h"
#include "audit/diff.h"
#include "base/strbuf.h"

struct ree_html_compare {
    const char *model; // as it was named
    const char *devices[2];
    const struct ree_graph *graph;
    const struct ree_compare_result *result;
};
// The largest relative error over depth, a line for each step, and a table of nodes.
void ree_html_compare(const struct ree_html_compare *page, struct ree_strbuf *out);

struct ree_html_diff {
    const char *names[2]; // of the files
    const struct ree_trace *traces[2];
    const struct ree_diff *diff;
};
// A strip for each step: which nodes agree, differ, and differ although all that they read agrees.
void ree_html_diff(const struct ree_html_diff *page, struct ree_strbuf *out);

// Text as it stands in HTML and XML, also between quotes: what is special there is escaped, and
// control characters and bytes that are not UTF-8 become U+FFFD.
void ree_html_escape(struct ree_strbuf *out, const char *text);

#endif
