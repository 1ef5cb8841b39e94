// Queries on dispatches, shared by several backends.
#ifndef REE_REPOPS_DISPATCH_H
#define REE_REPOPS_DISPATCH_H

#include "repops/repop.h"

// The dispatch's expression: that of a map, or the epilogue of a product. NULL: none.
const struct ree_expr *ree_dispatch_expr(const struct ree_dispatch *dispatch);

// Fails if the dispatch uses float64 functions that only the CPU implements. `name` is the device's
// name, for the message.
enum ree_status ree_dispatch_check_device(const struct ree_dispatch *dispatch, const char *name,
                                          struct ree_error *err);

#endif
