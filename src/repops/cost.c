#include "repops/cost.h"

// Returns the operations for the keys that ree_attention_keys gives for each query. The contents of
// the operands `starts` and `n_keys` are unknown here; with one of them, all keys count.
static double attention_flops(const struct ree_attention_params *p) {
    double n_keys = 0;
    for (uint32_t row = 0; row < p->q_len; row++) {
        uint32_t first, end;
        ree_attention_keys(p, row, &first, &end);
        n_keys += end - first;
    }
    return 2.0 * n_keys * p->batch * p->n_heads * ((double)p->head_dim + p->v_head_dim);
}

struct ree_cost ree_dispatch_cost(const struct ree_dispatch *dispatch) {
    const union ree_params *p = &dispatch->params;
    struct ree_cost cost = {0};
    for (uint32_t i = 0; i < dispatch->n_operands; i++)
        cost.bytes += (double)dispatch->operands[i].size;
    switch (dispatch->op) {
    case REE_REPOP_MATMUL:
        cost.flops = 2.0 * p->matmul.m * p->matmul.n * p->matmul.k * p->matmul.n_batch;
        break;
    case REE_REPOP_CONV: {
        // A transposed convolution multiplies each input position by every kernel position; other
        // convolutions do so for each output position.
        const uint32_t *positions = p->conv.transposed ? p->conv.in : p->conv.out;
        cost.flops = 2.0 * p->conv.n * p->conv.groups * p->conv.m * p->conv.c;
        for (int d = 0; d < 3; d++)
            cost.flops *= (double)positions[d] * p->conv.kernel[d];
        break;
    }
    case REE_REPOP_ATTENTION: cost.flops = attention_flops(&p->attention); break;
    default: break;
    }
    return cost;
}
