#include "repops/merge.h"

uint32_t ree_merge_dims(uint32_t rank, uint32_t *dims, uint32_t n_sets, int32_t *const *strides) {
    uint32_t n = 0;
    for (uint32_t d = 0; d < rank; d++) {
        if (dims[d] == 1) continue;
        bool merges = n > 0;
        for (uint32_t s = 0; s < n_sets && merges; s++)
            merges = (int64_t)strides[s][n - 1] == (int64_t)strides[s][d] * dims[d];
        uint32_t to = merges ? n - 1 : n++;
        dims[to] = merges ? dims[to] * dims[d] : dims[d];
        for (uint32_t s = 0; s < n_sets; s++)
            strides[s][to] = strides[s][d];
    }
    if (n == 0) { // a single element
        dims[0] = 1;
        for (uint32_t s = 0; s < n_sets; s++)
            strides[s][0] = 0;
        n = 1;
    }
    return n;
}

void ree_merge_expr(struct ree_expr *expr) {
    int32_t *sets[REE_EXPR_MAX_OPERANDS];
    for (uint32_t i = 0; i < expr->n_operands; i++)
        sets[i] = expr->operands[i].strides;
    if (expr->n_elements > 0)
        expr->rank = ree_merge_dims(expr->rank, expr->dims, expr->n_operands, sets);
}
