// Reports the differences of two traces as text or as JSON, for `ree-run diff`.
#ifndef REE_TOOLS_RUN_DIFF_REPORT_H
#define REE_TOOLS_RUN_DIFF_REPORT_H

#include <cjson/cJSON.h>

#include "ree.h"
#include "strbuf.h"

struct diff_pair {
    const struct ree_trace *a, *b;
    struct ree_trace_info infos[2];
    struct ree_diff diff;
    bool all; // list every node that differs, not only the first
};

void diff_report_text(const struct diff_pair *pair, struct strbuf *out);
cJSON *diff_report_json(const struct diff_pair *pair); // NULL: out of memory

#endif
