#include "device/selftest/twin_shrink.h"

#include "base/dtype.h"
#include "device/selftest/twin_views.h"

void ree_twin_add(struct ree_twin_shrinking *s, enum ree_hard_role role, uint32_t dtype, uint64_t n,
                  uint64_t run) {
    s->operands[s->n_operands++].values =
        (struct ree_hard_values){.role = role, .dtype = dtype, .n = n, .run = run};
}
void ree_twin_add_bounded(struct ree_twin_shrinking *s, uint32_t dtype, uint64_t n, int64_t low,
                          int64_t high) {
    ree_twin_add(s, REE_HARD_BOUNDED, dtype, n, 1);
    s->operands[s->n_operands - 1].values.low = low;
    s->operands[s->n_operands - 1].values.high = high;
}
// The initial contents of an output must not matter, so they are not zero.
void ree_twin_add_output(struct ree_twin_shrinking *s, uint32_t dtype, uint64_t n) {
    ree_twin_add_bounded(s, dtype, n, 0, dtype == REE_BOOL ? 1 : 100);
    s->operands[s->n_operands - 1].is_written = true;
}

uint64_t ree_twin_product(uint32_t rank, const uint32_t *dims) {
    uint64_t n = 1;
    for (uint32_t d = 0; d < rank; d++)
        n *= dims[d];
    return n;
}

uint32_t ree_twin_at_most(uint32_t value, uint32_t limit) {
    return value < limit ? value : limit;
}

bool ree_twin_grows_ones(const struct ree_twin_size *size) {
    return !size->alignment && !size->keeps_ones;
}

void ree_twin_shrink_expr(struct ree_twin_shrinking *s, struct ree_expr *expr, const uint32_t *to) {
    for (uint32_t i = 0; i < expr->n_operands; i++) {
        struct ree_expr_operand *o = &expr->operands[i];
        bool tensor = o->kind == REE_EXPR_TENSOR;
        uint64_t n = ree_twin_view(s->size, expr->rank, expr->dims, to, o->strides,
                                   tensor ? &o->offset : NULL);
        if (tensor) ree_twin_add(s, REE_HARD_ANY, o->dtype, n, 1);
    }
    for (uint32_t d = 0; d < expr->rank; d++)
        expr->dims[d] = to[d];
    expr->n_elements = (uint32_t)ree_twin_product(expr->rank, to);
}

uint32_t ree_twin_shrink_row(const struct ree_twin_shrinking *s, uint32_t n) {
    if (s->size->alignment) return ree_twin_row_length(s->size, n);
    if (ree_twin_grows_ones(s->size)) return s->size->long_length;
    return n >= s->size->long_from ? s->size->long_length : s->size->length;
}
