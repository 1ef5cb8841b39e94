// Queries on dispatches, shared by several backends.
#ifndef REE_REPOPS_DISPATCH_H
#define REE_REPOPS_DISPATCH_H

#include "repops/repop.h"

// Returns the expression of a map, or the epilogue of a matmul or conv; NULL if the dispatch has
// none. Borrowed from the dispatch.
const struct ree_expr *ree_dispatch_expr(const struct ree_dispatch *dispatch);

// Fails with REE_UNSUPPORTED if the dispatch uses float64 functions that only the CPU implements.
// `name` is the name of another device, for the message.
enum ree_status ree_dispatch_check_device(const struct ree_dispatch *dispatch, const char *name,
                                          struct ree_error *err);

#endif
