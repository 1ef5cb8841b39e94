// What a dispatch costs at least, from its numbers alone: for rates in benchmarks and profiles.
#ifndef REE_REPOPS_COST_H
#define REE_REPOPS_COST_H

#include "repops/repop.h"

struct ree_cost {
    double
        flops; // of a product (matmul, conv, attention), a multiply-add as two; 0 for other RepOps
    double bytes; // that its operands span: each read or written once
};
struct ree_cost ree_dispatch_cost(const struct ree_dispatch *dispatch);

#endif
