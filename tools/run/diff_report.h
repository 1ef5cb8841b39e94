// What two traces differ in, for people and for programs.
#ifndef REE_TOOLS_RUN_DIFF_REPORT_H
#define REE_TOOLS_RUN_DIFF_REPORT_H

#include <cjson/cJSON.h>

#include "audit/diff.h"

struct diff_pair {
    const struct ree_trace *a, *b;
    struct ree_diff diff;
    bool all; // every node that differs
};

void diff_report_text(const struct diff_pair *pair, struct ree_strbuf *out);
cJSON *diff_report_json(const struct diff_pair *pair); // NULL: out of memory

#endif
