// Lower bounds of a dispatch's cost, computed only from its parameters; for the rates in benchmarks
// and profiles.
#ifndef REE_REPOPS_COST_H
#define REE_REPOPS_COST_H

#include "repops/repop.h"

struct ree_cost {
    // Floating-point operations of a product (matmul, conv, attention); a multiply-add counts as
    // two. 0 for other RepOps.
    double flops;
    double bytes; // bytes spanned by the operands, each read or written once
};
struct ree_cost ree_dispatch_cost(const struct ree_dispatch *dispatch);

#endif
