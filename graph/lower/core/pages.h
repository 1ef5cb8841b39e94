// Appends new positions to a kv cache in pages; used by kv_cache.c.
#ifndef REE_GRAPH_LOWER_PAGES_H
#define REE_GRAPH_LOWER_PAGES_H

#include "graph/lower/core/lower.h"

// As ree_lower_append, for `past`, the dense copy of a kv cache in pages: writes t into the pool.
// *out is a new copy, made after that.
enum ree_status ree_lower_append_to_pages(struct ree_lower *lower, struct ree_view *past,
                                          struct ree_view *t, struct ree_view **out);

#endif
