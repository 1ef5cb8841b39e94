// Parts that are common to the HTML pages of html_compare.c and html_diff.c.
#ifndef REE_DISPUTE_HTML_INTERNAL_H
#define REE_DISPUTE_HTML_INTERNAL_H

#include "dispute/html.h"

#define REE_PAGE_WIDTH 960     // width of pictures, in SVG units
#define REE_PAGE_MAX_ROWS 5000 // maximum rows of a table

void ree_page_begin(struct ree_strbuf *out, const char *title);
void ree_page_end(struct ree_strbuf *out);
// Appends "12 name (domain.op_type)"; `name` may be NULL.
void ree_page_node(struct ree_strbuf *out, uint32_t number, const char *name, const char *domain,
                   const char *op_type);

#endif
