// Kv caches in pages: appending. For kv_cache.c.
#ifndef REE_GRAPH_LOWER_PAGES_H
#define REE_GRAPH_LOWER_PAGES_H

#include "graph/lower/core/lower.h"

// ree_lower_append for a copy of pages: writes t into the pool; *out is the copy made afterwards.
enum ree_status ree_lower_append_to_pages(struct ree_lower *lower, struct ree_view *past,
                                          struct ree_view *t, struct ree_view **out);

#endif
