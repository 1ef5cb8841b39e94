// Questions about a dispatch that several backends ask.
#ifndef REE_REPOPS_DISPATCH_H
#define REE_REPOPS_DISPATCH_H

#include "repops/repop.h"

// Its expression: a map's, or the epilogue of a product; NULL: none.
const struct ree_expr *ree_dispatch_expr(const struct ree_dispatch *dispatch);

// Refuses, for the device called `name`, functions of float64 numbers that only the CPU has.
enum ree_status ree_dispatch_check_device(const struct ree_dispatch *dispatch, const char *name,
                                          struct ree_error *err);

#endif
