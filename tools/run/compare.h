// What ree-run compare found, as text, JSON and HTML.
#ifndef REE_TOOLS_RUN_COMPARE_H
#define REE_TOOLS_RUN_COMPARE_H

#include "audit/compare.h"
#include "base/strbuf.h"

#define COMPARE_MAX_SUSPECTS 32

struct compare_suspect {
    unsigned side;
    char name[48], verdict[200];
};

struct compare_report {
    const char *model;      // as it was named
    const char *devices[2]; // their names
    enum ree_operation_set sets[2];
    const struct ree_graph *graph;
    struct ree_compare_result result;
    bool is_text;
    const int32_t *ids; // tokens that were made
    size_t n_ids;
    // Of the first node that differs.
    size_t n_suspects;
    struct compare_suspect suspects[COMPARE_MAX_SUSPECTS];
};

// `all`: nodes that do not differ are in the table, too.
void compare_report_text(const struct compare_report *report, bool all, struct ree_strbuf *out);
void compare_report_json(const struct compare_report *report, struct ree_strbuf *out);

#endif
