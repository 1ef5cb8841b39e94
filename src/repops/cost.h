// The nominal cost of a dispatch, in operations and bytes, computed only from its parameters and
// the sizes of its operands. Profiles divide it by the measured time to report rates.
#ifndef REE_REPOPS_COST_H
#define REE_REPOPS_COST_H

#include "repops/repop.h"

struct ree_cost {
    // Floating-point operations of a product (matmul, conv, attention); a multiply-add counts as
    // two. 0 for other RepOps.
    double flops;
    double bytes; // sum of the operands' sizes in bytes, as if each were read or written once
};
struct ree_cost ree_dispatch_cost(const struct ree_dispatch *dispatch);

#endif
