// ree_dispatch_check: checks that the parameters of a dispatch are consistent and stay inside its
// operands. One function per RepOp, in the order of repop.h.
#include "repops/repop.h"

#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>

struct check {
    const struct ree_dispatch *dispatch;
    struct ree_error *err;
};

__attribute__((format(printf, 2, 3))) static enum ree_status fail(const struct check *c,
                                                                  const char *format, ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return ree_fail(c->err, REE_INTERNAL, "dispatch %s: %s", ree_repop_name(c->dispatch->op), text);
}

// Range of the element indices that a strided access reaches, `low` to `high` inclusive. empty: a
// dimension is 0. overflow: an index does not fit in 64 bits.
struct reach {
    int64_t low, high;
    bool empty, overflow;
};

static struct reach reach_from(int64_t offset) {
    return (struct reach){.low = offset, .high = offset};
}
static void reach_along(struct reach *r, uint32_t dim, int32_t stride) {
    if (dim == 0) {
        r->empty = true;
        return;
    }
    int64_t *end = stride < 0 ? &r->low : &r->high;
    if (__builtin_add_overflow(*end, (int64_t)(dim - 1) * stride, end)) r->overflow = true;
}
static void reach_over(struct reach *r, uint32_t rank, const uint32_t *dims,
                       const int32_t *strides) {
    for (uint32_t i = 0; i < rank; i++)
        reach_along(r, dims[i], strides[i]);
}

static enum ree_status check_reach(const struct check *c, uint32_t operand, const char *what,
                                   const struct reach *r, size_t elem_size) {
    if (r->empty) return REE_OK;
    uint64_t size = c->dispatch->operands[operand].size;
    uint64_t count = size / elem_size;
    if (r->overflow || r->low < 0 || (uint64_t)r->high >= count)
        return fail(c,
                    "operand %u (%s) has %llu elements of %zu bytes, but the parameters reach "
                    "elements %lld to %lld",
                    operand, what, (unsigned long long)count, elem_size, (long long)r->low,
                    (long long)r->high);
    return REE_OK;
}

// Computes the product of n counts. Fails if it is 2^31 or more.
static enum ree_status check_product(const struct check *c, const char *what, uint32_t n,
                                     const uint32_t *dims, uint64_t *out) {
    uint64_t p = 1;
    for (uint32_t i = 0; i < n; i++)
        if (dims[i] == 0) p = 0;
    for (uint32_t i = 0; i < n && p != 0; i++) {
        p *= dims[i];
        if (p >= UINT64_C(1) << 31) return fail(c, "%s has 2^31 elements or more", what);
    }
    *out = p;
    return REE_OK;
}

static enum ree_status check_dense(const struct check *c, uint32_t operand, const char *what,
                                   uint32_t n, const uint32_t *dims, size_t elem_size) {
    uint64_t count = 0;
    REE_TRY(check_product(c, what, n, dims, &count));
    uint64_t size = c->dispatch->operands[operand].size;
    if (size / elem_size < count)
        return fail(c, "operand %u (%s) has %llu bytes, expected %llu elements of %zu bytes",
                    operand, what, (unsigned long long)size, (unsigned long long)count, elem_size);
    return REE_OK;
}

static enum ree_status check_count(const struct check *c, const char *what, uint32_t value,
                                   uint32_t rank, const uint32_t *dims) {
    uint64_t count = 0;
    if (rank > REE_MAX_RANK)
        return fail(c, "rank %u of %s is larger than %d", rank, what, REE_MAX_RANK);
    REE_TRY(check_product(c, what, rank, dims, &count));
    if (count != value)
        return fail(c, "%s is %u, but the product of its dimensions is %llu", what, value,
                    (unsigned long long)count);
    return REE_OK;
}

static enum ree_status check_operands(const struct check *c, uint32_t n_operands,
                                      uint32_t n_outputs) {
    const struct ree_dispatch *d = c->dispatch;
    if (d->n_operands != n_operands)
        return fail(c, "%u operands, expected %u", d->n_operands, n_operands);
    if (d->n_outputs != n_outputs)
        return fail(c, "%u outputs, expected %u", d->n_outputs, n_outputs);
    return REE_OK;
}

static enum ree_status check_dtype(const struct check *c, const char *what, uint32_t dtype,
                                   const enum ree_dtype *allowed, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (dtype == (uint32_t)allowed[i]) return REE_OK;
    return fail(c, "%s is %s", what, ree_dtype_name((enum ree_dtype)dtype));
}
#define CHECK_DTYPE(c, what, dtype, ...)                                                           \
    check_dtype(c, what, dtype, (const enum ree_dtype[]){__VA_ARGS__},                             \
                sizeof((const enum ree_dtype[]){__VA_ARGS__}) / sizeof(enum ree_dtype))

static enum ree_status check_elem_size(const struct check *c, uint32_t size) {
    if (size != 1 && size != 2 && size != 4 && size != 8) return fail(c, "element size %u", size);
    return REE_OK;
}

// Fails if one of the n values is 0: kernels divide by them or use them as a step.
static enum ree_status check_positive(const struct check *c, const char *what, const uint32_t *v,
                                      uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (v[i] == 0) return fail(c, "%s is 0", what);
    return REE_OK;
}

static enum ree_status check_copy(const struct check *c) {
    const struct ree_copy_params *p = &c->dispatch->params.copy;
    REE_TRY(check_operands(c, 2, 1));
    REE_TRY(check_elem_size(c, p->elem_size));
    if (p->rank == 0) return fail(c, "rank 0");
    REE_TRY(check_count(c, "n_elements", p->n_elements, p->rank, p->dims));
    struct reach src = reach_from(p->src_offset), dst = reach_from(p->dst_offset);
    reach_over(&src, p->rank, p->dims, p->src_strides);
    reach_over(&dst, p->rank, p->dims, p->dst_strides);
    for (uint32_t i = 0; i < p->rank; i++)
        if (p->dims[i] > 1 && p->dst_strides[i] <= 0)
            return fail(c, "stride %d of the destination along dimension %u", p->dst_strides[i], i);
    REE_TRY(check_reach(c, 0, "source", &src, p->elem_size));
    return check_reach(c, 1, "destination", &dst, p->elem_size);
}

static enum ree_status check_instrs(const struct check *c, const struct ree_expr *expr,
                                    enum ree_class *classes, uint32_t n_values) {
    for (uint32_t i = 0; i < expr->n_instrs; i++) {
        const struct ree_expr_instr *instr = &expr->instrs[i];
        if (instr->op >= REE_N_MAP_OPS)
            return fail(c, "instruction %u has no operation %u", i, instr->op);
        const struct ree_map_op_info *info = &ree_map_op_infos[instr->op];
        for (uint32_t j = 0; j < info->n_args; j++) {
            if (instr->args[j] >= n_values)
                return fail(c, "instruction %u (%s) uses value %u of %u", i, info->name,
                            instr->args[j], n_values);
            if (classes[instr->args[j]] != info->args[j])
                return fail(c, "instruction %u (%s): argument %u has %s bits", i, info->name, j,
                            classes[instr->args[j]] == REE_CLASS_D ? "64" : "32");
        }
        classes[n_values++] = info->result;
    }
    enum ree_class result = classes[expr->n_instrs != 0 ? n_values - 1 : 0];
    enum ree_class out = ree_dtype_class((enum ree_dtype)expr->out_dtype);
    if (out == REE_CLASS_NONE || out != result)
        return fail(c, "the expression's value has %s bits, but out_dtype is %s",
                    result == REE_CLASS_D ? "64" : "32",
                    ree_dtype_name((enum ree_dtype)expr->out_dtype));
    return REE_OK;
}

// Checks an expression and counts its tensors, which are the operands from first_tensor on. If
// `epilogue`, value 0 of the expression is the finished sum of a product.
static enum ree_status check_expr(const struct check *c, const struct ree_expr *expr, bool epilogue,
                                  uint32_t first_tensor, uint32_t *out_n_tensors) {
    enum ree_class classes[1 + REE_EXPR_MAX_OPERANDS + REE_EXPR_MAX_INSTRS];
    uint32_t n_values = 0, n_tensors = 0;
    if (expr->rank == 0) return fail(c, "the expression has rank 0");
    REE_TRY(check_count(c, "n_elements", expr->n_elements, expr->rank, expr->dims));
    if (expr->n_operands > REE_EXPR_MAX_OPERANDS || expr->n_instrs > REE_EXPR_MAX_INSTRS)
        return fail(c, "%u expression operands and %u instructions; the maximum is %d and %d",
                    expr->n_operands, expr->n_instrs, REE_EXPR_MAX_OPERANDS, REE_EXPR_MAX_INSTRS);
    if (epilogue) classes[n_values++] = REE_CLASS_W;
    for (uint32_t i = 0; i < expr->n_operands; i++) {
        const struct ree_expr_operand *o = &expr->operands[i];
        enum ree_dtype dtype = (enum ree_dtype)o->dtype;
        enum ree_class class = ree_dtype_class(dtype);
        if (o->kind == REE_EXPR_IOTA) {
            REE_TRY(CHECK_DTYPE(c, "an iota operand", o->dtype, REE_I32, REE_I64));
        } else if (o->kind == REE_EXPR_TENSOR) {
            if (class == REE_CLASS_NONE)
                return fail(c, "expression operand %u is %s", i, ree_dtype_name(dtype));
            uint32_t operand = first_tensor + n_tensors++;
            if (operand >= c->dispatch->n_operands)
                return fail(c, "expression operand %u has no tensor", i);
            struct reach r = reach_from(o->offset);
            reach_over(&r, expr->rank, expr->dims, o->strides);
            REE_TRY(check_reach(c, operand, "of the expression", &r, ree_dtype_size(dtype)));
        } else {
            return fail(c, "expression operand %u has kind %u", i, o->kind);
        }
        classes[n_values++] = class;
    }
    if (n_values == 0 && expr->n_instrs == 0) return fail(c, "the expression has no value");
    *out_n_tensors = n_tensors;
    return check_instrs(c, expr, classes, n_values);
}

// Checks the epilogue of a product whose result has dimensions `dims`. The epilogue's tensors are
// the operands from first_tensor on. Without an epilogue *out_dtype stays unchanged.
static enum ree_status check_epilogue(const struct check *c, uint32_t has_epilogue,
                                      const struct ree_expr *expr, uint32_t rank,
                                      const uint32_t *dims, uint32_t *out_n_tensors,
                                      uint32_t first_tensor, uint32_t *out_dtype) {
    *out_n_tensors = 0;
    if (!has_epilogue) return REE_OK;
    if (expr->rank != rank)
        return fail(c, "the epilogue has rank %u, expected %u", expr->rank, rank);
    for (uint32_t i = 0; i < rank; i++)
        if (expr->dims[i] != dims[i])
            return fail(c, "dimension %u of the epilogue is %u, expected %u", i, expr->dims[i],
                        dims[i]);
    *out_dtype = expr->out_dtype;
    return check_expr(c, expr, true, first_tensor, out_n_tensors);
}

static enum ree_status check_map(const struct check *c) {
    const struct ree_expr *expr = &c->dispatch->params.map.expr;
    uint32_t n_tensors;
    REE_TRY(check_expr(c, expr, false, 0, &n_tensors));
    REE_TRY(check_operands(c, n_tensors + 1, 1));
    return check_dense(c, n_tensors, "output", expr->rank, expr->dims,
                       ree_dtype_size((enum ree_dtype)expr->out_dtype));
}

static enum ree_status check_reduce(const struct check *c) {
    const struct ree_reduce_params *p = &c->dispatch->params.reduce;
    REE_TRY(check_operands(c, 2, 1));
    if (p->kind > REE_REDUCE_ARGMIN) return fail(c, "kind %u", p->kind);
    REE_TRY(CHECK_DTYPE(c, "dtype", p->dtype, REE_F32, REE_F64, REE_I32, REE_U32, REE_I64, REE_U64,
                        REE_I8, REE_U8, REE_BOOL));
    REE_TRY(check_count(c, "n_outer", p->n_outer, p->outer_rank, p->outer_dims));
    REE_TRY(check_count(c, "n_reduce", p->n_reduce, p->reduce_rank, p->reduce_dims));
    size_t size = ree_dtype_size((enum ree_dtype)p->dtype);
    struct reach r = reach_from(p->offset);
    reach_over(&r, p->outer_rank, p->outer_dims, p->outer_strides);
    reach_over(&r, p->reduce_rank, p->reduce_dims, p->reduce_strides);
    REE_TRY(check_reach(c, 0, "input", &r, size));
    bool index = p->kind == REE_REDUCE_ARGMAX || p->kind == REE_REDUCE_ARGMIN;
    if (index && p->n_reduce == 0 && p->n_outer != 0)
        return fail(c, "the index of the extremum of no elements");
    return check_dense(c, 1, "output", 1, &p->n_outer, index ? 8 : size);
}

static bool is_byte(uint32_t dtype) {
    return dtype == REE_I8 || dtype == REE_U8;
}

static enum ree_status check_factor(const struct check *c, const char *what, uint32_t dtype,
                                    uint32_t sum_dtype) {
    if (dtype == sum_dtype || (sum_dtype == REE_I32 && is_byte(dtype))) return REE_OK;
    if (sum_dtype == REE_F32) return CHECK_DTYPE(c, what, dtype, REE_F16, REE_BF16, REE_I8, REE_U8);
    return fail(c, "%s is %s, but the sum is %s", what, ree_dtype_name((enum ree_dtype)dtype),
                ree_dtype_name((enum ree_dtype)sum_dtype));
}

// Returns whether blocks may have n numbers.
static bool is_block(uint32_t n) {
    return n >= 16 && n <= REE_CHUNK && (n & (n - 1)) == 0;
}

// Checks blockwise weights: B, its scales and its zero points.
static enum ree_status check_blocks(const struct check *c, const struct ree_matmul_params *p) {
    if (p->dtype != REE_F32 || p->b_dtype != REE_U8)
        return fail(c, "blocks of a type other than bytes");
    if (p->b_bits != 4 && p->b_bits != 8) return fail(c, "blocks of %u bits", p->b_bits);
    if (!is_block(p->b_block)) return fail(c, "blocks of %u numbers", p->b_block);
    bool strided = p->b_offset != 0 || p->b_stride_k != 0 || p->b_stride_n != 0;
    for (uint32_t i = 0; i < p->batch_rank; i++)
        strided = strided || p->b_batch_strides[i] != 0;
    if (strided) return fail(c, "strides of blocks");
    uint32_t n_blocks = p->k / p->b_block + (p->k % p->b_block != 0);
    const uint32_t b[] = {p->n, n_blocks, p->b_block * p->b_bits / 8}, scales[] = {p->n, n_blocks};
    const uint32_t numbers[] = {p->n, n_blocks, p->b_block};
    uint64_t count;
    REE_TRY(check_product(c, "B", 3, numbers, &count));
    REE_TRY(check_dense(c, 1, "B", 3, b, 1));
    REE_TRY(check_dense(c, 2, "scales", 2, scales, 4));
    return p->has_zero_points ? check_dense(c, 3, "zero points", 2, scales, 1) : REE_OK;
}
static enum ree_status check_activation_blocks(const struct check *c,
                                               const struct ree_matmul_params *p) {
    if (!p->b_block) return fail(c, "blocks of A without blocks of B");
    if (p->a_dtype != REE_I8)
        return fail(c, "blocks of %s in A", ree_dtype_name((enum ree_dtype)p->a_dtype));
    if (!is_block(p->a_block)) return fail(c, "blocks of %u numbers in A", p->a_block);
    if (p->n_batch != 1) return fail(c, "a batch of blocks in A");
    const uint32_t scales[] = {p->m, p->k / p->a_block + (p->k % p->a_block != 0)};
    return check_dense(c, ree_matmul_n_operands(p) - 1, "scales of A", 2, scales, 4);
}

static enum ree_status check_matmul(const struct check *c) {
    const struct ree_matmul_params *p = &c->dispatch->params.matmul;
    uint32_t n_factors = ree_matmul_n_operands(p);
    REE_TRY(
        CHECK_DTYPE(c, "dtype", p->dtype, REE_F32, REE_F64, REE_I32, REE_U32, REE_I64, REE_U64));
    REE_TRY(check_factor(c, "a_dtype", p->a_dtype, p->dtype));
    REE_TRY(check_factor(c, "b_dtype", p->b_dtype, p->dtype));
    if (p->dtype == REE_I32 && is_byte(p->a_dtype) != is_byte(p->b_dtype))
        return fail(c, "a product of bytes and words");
    if (p->batch_rank > REE_MAX_RANK - 2)
        return fail(c, "batch rank %u; the maximum is %d", p->batch_rank, REE_MAX_RANK - 2);
    REE_TRY(check_count(c, "n_batch", p->n_batch, p->batch_rank, p->batch_dims));
    if (p->has_epilogue && p->dtype != REE_F32 && p->dtype != REE_I32)
        return fail(c, "an epilogue on %s", ree_dtype_name((enum ree_dtype)p->dtype));
    uint32_t dims[REE_MAX_RANK], n_tensors, out_dtype = p->dtype;
    for (uint32_t i = 0; i < p->batch_rank; i++)
        dims[i] = p->batch_dims[i];
    dims[p->batch_rank] = p->m;
    dims[p->batch_rank + 1] = p->n;
    if (c->dispatch->n_operands < n_factors + 1)
        return fail(c, "%u operands, expected at least %u", c->dispatch->n_operands, n_factors + 1);
    REE_TRY(check_epilogue(c, p->has_epilogue, &p->epilogue, p->batch_rank + 2, dims, &n_tensors,
                           n_factors, &out_dtype));
    REE_TRY(check_operands(c, n_factors + 1 + n_tensors, 1));
    struct reach a = reach_from(p->a_offset), b = reach_from(p->b_offset);
    reach_over(&a, p->batch_rank, p->batch_dims, p->a_batch_strides);
    reach_along(&a, p->m, p->a_stride_m);
    reach_along(&a, p->k, p->a_stride_k);
    reach_over(&b, p->batch_rank, p->batch_dims, p->b_batch_strides);
    reach_along(&b, p->k, p->b_stride_k);
    reach_along(&b, p->n, p->b_stride_n);
    REE_TRY(check_reach(c, 0, "A", &a, ree_dtype_size((enum ree_dtype)p->a_dtype)));
    if (p->b_block)
        REE_TRY(check_blocks(c, p));
    else
        REE_TRY(check_reach(c, 1, "B", &b, ree_dtype_size((enum ree_dtype)p->b_dtype)));
    if (p->a_block) REE_TRY(check_activation_blocks(c, p));
    return check_dense(c, n_factors + n_tensors, "output", p->batch_rank + 2, dims,
                       ree_dtype_size((enum ree_dtype)out_dtype));
}

static enum ree_status check_conv(const struct check *c) {
    const struct ree_conv_params *p = &c->dispatch->params.conv;
    REE_TRY(check_positive(c, "stride", p->stride, 3));
    REE_TRY(check_positive(c, "dilation", p->dilation, 3));
    uint32_t n_factors = ree_conv_n_operands(p);
    bool integer = ree_conv_sum_dtype(p) == REE_I32;
    if (integer ? !is_byte(p->x_dtype) || !is_byte(p->w_dtype)
                : p->x_dtype != REE_F32 || p->w_dtype != REE_F32)
        return fail(c, "x is %s, w is %s", ree_dtype_name((enum ree_dtype)p->x_dtype),
                    ree_dtype_name((enum ree_dtype)p->w_dtype));
    if (integer && p->transposed) return fail(c, "a transposed convolution of integers");
    if (!integer && p->has_pad_value) return fail(c, "a pad value, but no integers");
    if (c->dispatch->n_operands < n_factors + 1)
        return fail(c, "%u operands, expected at least %u", c->dispatch->n_operands, n_factors + 1);
    uint64_t channels = (uint64_t)p->groups * p->m;
    if (channels > UINT32_MAX) return fail(c, "%llu channels", (unsigned long long)channels);
    uint32_t dims[5] = {p->n, (uint32_t)channels, p->out[0], p->out[1], p->out[2]};
    uint32_t n_tensors, out_dtype = ree_conv_sum_dtype(p);
    REE_TRY(check_epilogue(c, p->has_epilogue, &p->epilogue, 5, dims, &n_tensors, n_factors,
                           &out_dtype));
    REE_TRY(check_operands(c, n_factors + 1 + n_tensors, 1));
    const uint32_t x[] = {p->n, p->groups, p->c, p->in[0], p->in[1], p->in[2]};
    const uint32_t w[] = {p->groups, p->m, p->c, p->kernel[0], p->kernel[1], p->kernel[2]};
    const uint32_t one = 1;
    size_t size = integer ? 1 : 4;
    REE_TRY(check_dense(c, 0, "x", 6, x, size));
    REE_TRY(check_dense(c, 1, "w", 6, w, size));
    if (p->has_pad_value) REE_TRY(check_dense(c, 2, "pad value", 1, &one, size));
    return check_dense(c, n_factors + n_tensors, "output", 5, dims,
                       ree_dtype_size((enum ree_dtype)out_dtype));
}

static enum ree_status check_pool(const struct check *c) {
    const struct ree_pool_params *p = &c->dispatch->params.pool;
    bool max = p->kind == REE_POOL_MAX;
    REE_TRY(check_operands(c, p->has_indices ? 3 : 2, p->has_indices ? 2 : 1));
    if (p->kind > REE_POOL_SUM_SQ) return fail(c, "kind %u", p->kind);
    if (p->has_indices && !max) return fail(c, "indices without a maximum");
    if (max)
        REE_TRY(CHECK_DTYPE(c, "dtype", p->dtype, REE_F32, REE_I8, REE_U8));
    else
        REE_TRY(CHECK_DTYPE(c, "dtype", p->dtype, REE_F32));
    REE_TRY(check_positive(c, "kernel", p->kernel, 3));
    REE_TRY(check_positive(c, "stride", p->stride, 3));
    REE_TRY(check_positive(c, "dilation", p->dilation, 3));
    if (p->storage_order > 1) return fail(c, "storage_order %u", p->storage_order);
    size_t size = ree_dtype_size((enum ree_dtype)p->dtype);
    const uint32_t x[] = {p->planes, p->in[0], p->in[1], p->in[2]};
    const uint32_t y[] = {p->planes, p->out[0], p->out[1], p->out[2]};
    REE_TRY(check_dense(c, 0, "input", 4, x, size));
    REE_TRY(check_dense(c, 1, "output", 4, y, size));
    return p->has_indices ? check_dense(c, 2, "indices", 4, y, 8) : REE_OK;
}

static enum ree_status check_softmax(const struct check *c) {
    const struct ree_softmax_params *p = &c->dispatch->params.softmax;
    const uint32_t dims[] = {p->outer, p->k, p->inner};
    REE_TRY(check_operands(c, 2, 1));
    REE_TRY(check_dense(c, 0, "input", 3, dims, 4));
    return check_dense(c, 1, "output", 3, dims, 4);
}

static enum ree_status check_norm(const struct check *c) {
    const struct ree_norm_params *p = &c->dispatch->params.norm;
    const uint32_t dims[] = {p->rows, p->cols};
    uint32_t n_affine = (p->has_scale ? 1u : 0u) + (p->has_bias ? 1u : 0u);
    REE_TRY(check_operands(c, 2 + n_affine, 1));
    REE_TRY(check_dense(c, 0, "input", 2, dims, 4));
    REE_TRY(check_dense(c, 1 + n_affine, "output", 2, dims, 4));
    if (n_affine == 0 || p->rows == 0 || p->cols == 0) return REE_OK;
    REE_TRY(check_positive(c, "scale_row_div", &p->scale_row_div, 1));
    REE_TRY(check_positive(c, "scale_row_mod", &p->scale_row_mod, 1));
    uint64_t row = (p->rows - 1) / p->scale_row_div;
    if (row >= p->scale_row_mod) row = p->scale_row_mod - 1;
    uint64_t last = row * p->scale_row_stride + (uint64_t)(p->cols - 1) * p->scale_col_stride;
    for (uint32_t i = 1; i <= n_affine; i++)
        if (c->dispatch->operands[i].size / 4 <= last)
            return fail(c, "operand %u (%s) has %llu elements, but the parameters reach %llu", i,
                        i == 1 && p->has_scale ? "scale" : "bias",
                        (unsigned long long)(c->dispatch->operands[i].size / 4),
                        (unsigned long long)last);
    return REE_OK;
}

// Shared by gather and scatter: checks the index operand, and extends the range `data` by the
// elements that indices can select.
static enum ree_status check_indexed(const struct check *c, uint32_t index_dtype, uint32_t rank,
                                     const uint32_t *dims, const int32_t *index_strides,
                                     uint32_t n_components, int32_t component_stride,
                                     const uint32_t *sizes, const int32_t *strides,
                                     struct reach *data) {
    REE_TRY(CHECK_DTYPE(c, "index dtype", index_dtype, REE_I32, REE_I64));
    if (rank == 0 || rank > REE_MAX_RANK) return fail(c, "rank %u", rank);
    if (n_components > REE_MAX_RANK)
        return fail(c, "%u index components; the maximum is %d", n_components, REE_MAX_RANK);
    struct reach index = reach_from(0);
    reach_over(&index, rank, dims, index_strides);
    reach_along(&index, n_components, component_stride);
    REE_TRY(check_reach(c, 1, "index", &index, ree_dtype_size((enum ree_dtype)index_dtype)));
    reach_over(data, n_components, sizes, strides);
    return REE_OK;
}

static enum ree_status check_gather(const struct check *c) {
    const struct ree_gather_params *p = &c->dispatch->params.gather;
    REE_TRY(check_operands(c, 3, 1));
    REE_TRY(check_elem_size(c, p->elem_size));
    REE_TRY(check_count(c, "n_elements", p->n_elements, p->rank, p->dims));
    struct reach data = reach_from(p->data_offset);
    REE_TRY(check_indexed(c, p->index_dtype, p->rank, p->dims, p->index_strides, p->n_components,
                          p->component_stride, p->component_sizes, p->component_strides, &data));
    reach_over(&data, p->rank, p->dims, p->data_strides);
    REE_TRY(check_reach(c, 0, "data", &data, p->elem_size));
    return check_dense(c, 2, "output", p->rank, p->dims, p->elem_size);
}

static enum ree_status check_scatter(const struct check *c) {
    const struct ree_scatter_params *p = &c->dispatch->params.scatter;
    REE_TRY(check_operands(c, 3, 0));
    if (p->kind > REE_SCATTER_MAX) return fail(c, "kind %u", p->kind);
    size_t size = ree_dtype_size((enum ree_dtype)p->dtype);
    if (size == 0) return fail(c, "dtype is %s", ree_dtype_name((enum ree_dtype)p->dtype));
    if (p->kind != REE_SCATTER_SET)
        REE_TRY(CHECK_DTYPE(c, "dtype", p->dtype, REE_F32, REE_F64, REE_I32, REE_U32, REE_I64,
                            REE_U64, REE_I8, REE_U8));
    struct reach data = reach_from(0), updates = reach_from(0);
    REE_TRY(check_indexed(c, p->index_dtype, p->rank, p->dims, p->index_strides, p->n_components,
                          p->component_stride, p->component_sizes, p->component_strides, &data));
    if (p->n_step_dims > p->rank)
        return fail(c, "%u step dimensions of rank %u", p->n_step_dims, p->rank);
    uint32_t n_vector_dims = p->rank - p->n_step_dims;
    REE_TRY(check_count(c, "n_vectors", p->n_vectors, n_vector_dims, p->dims));
    REE_TRY(check_count(c, "n_steps", p->n_steps, p->n_step_dims, p->dims + n_vector_dims));
    reach_over(&data, p->rank, p->dims, p->data_strides);
    reach_over(&updates, p->rank, p->dims, p->update_strides);
    REE_TRY(check_reach(c, 0, "data", &data, size));
    return check_reach(c, 2, "updates", &updates, size);
}

static enum ree_status check_topk(const struct check *c) {
    const struct ree_topk_params *p = &c->dispatch->params.topk;
    REE_TRY(check_operands(c, 3, 2));
    REE_TRY(CHECK_DTYPE(c, "dtype", p->dtype, REE_F32, REE_F64, REE_I32, REE_U32, REE_I64, REE_U64,
                        REE_I8, REE_U8));
    if (p->k > p->n) return fail(c, "the first %u of %u", p->k, p->n);
    const uint32_t x[] = {p->outer, p->n, p->inner}, y[] = {p->outer, p->k, p->inner};
    size_t size = ree_dtype_size((enum ree_dtype)p->dtype);
    REE_TRY(check_dense(c, 0, "input", 3, x, size));
    REE_TRY(check_dense(c, 1, "values", 3, y, size));
    return check_dense(c, 2, "indices", 3, y, 8);
}

static enum ree_status check_scan(const struct check *c) {
    const struct ree_scan_params *p = &c->dispatch->params.scan;
    REE_TRY(check_operands(c, 2, 1));
    REE_TRY(
        CHECK_DTYPE(c, "dtype", p->dtype, REE_F32, REE_F64, REE_I32, REE_U32, REE_I64, REE_U64));
    const uint32_t dims[] = {p->outer, p->k, p->inner};
    size_t size = ree_dtype_size((enum ree_dtype)p->dtype);
    REE_TRY(check_dense(c, 0, "input", 3, dims, size));
    return check_dense(c, 1, "output", 3, dims, size);
}

static enum ree_status check_resize(const struct check *c) {
    const struct ree_resize_params *p = &c->dispatch->params.resize;
    REE_TRY(check_operands(c, 4, 1));
    const uint32_t x[] = {p->outer, p->k_in, p->inner}, y[] = {p->outer, p->k_out, p->inner};
    const uint32_t taps[] = {p->k_out, p->taps};
    REE_TRY(check_dense(c, 0, "input", 3, x, 4));
    REE_TRY(check_dense(c, 1, "index", 2, taps, 4));
    REE_TRY(check_dense(c, 2, "weights", 2, taps, 4));
    return check_dense(c, 3, "output", 3, y, 4);
}

// Checks a tensor of rank 4 or less that is read through strides.
static enum ree_status check_view(const struct check *c, uint32_t operand, const char *what,
                                  int32_t offset, uint32_t rank, const uint32_t *dims,
                                  const int32_t *strides, uint32_t dtype) {
    struct reach r = reach_from(offset);
    reach_over(&r, rank, dims, strides);
    return check_reach(c, operand, what, &r, ree_dtype_size((enum ree_dtype)dtype));
}

static enum ree_status check_attention_numbers(const struct check *c,
                                               const struct ree_attention_params *p) {
    REE_TRY(CHECK_DTYPE(c, "k_dtype", p->k_dtype, REE_F32, REE_F16, REE_BF16));
    REE_TRY(CHECK_DTYPE(c, "v_dtype", p->v_dtype, REE_F32, REE_F16, REE_BF16));
    REE_TRY(CHECK_DTYPE(c, "starts_dtype", p->starts_dtype, REE_DTYPE_NONE, REE_I32, REE_I64));
    REE_TRY(CHECK_DTYPE(c, "n_keys_dtype", p->n_keys_dtype, REE_DTYPE_NONE, REE_I32, REE_I64));
    if (p->n_kv_heads == 0 || p->n_heads % p->n_kv_heads != 0)
        return fail(c, "%u heads is not a multiple of %u kv heads", p->n_heads, p->n_kv_heads);
    if (p->q_len > REE_ATTENTION_MAX_LEN || p->kv_len > REE_ATTENTION_MAX_LEN ||
        p->start > REE_ATTENTION_MAX_LEN || p->start < -REE_ATTENTION_MAX_LEN)
        return fail(c, "%u queries from %d on, %u keys: too long", p->q_len, p->start, p->kv_len);
    const int32_t bounds[2] = {p->left, p->right};
    for (uint32_t i = 0; i < 2; i++)
        if (bounds[i] < REE_ATTENTION_UNBOUNDED || bounds[i] > REE_ATTENTION_FAR)
            return fail(c, "a window of %d", bounds[i]);
    if (p->page_bits == 0) return REE_OK;
    if (p->page_bits < REE_ATTENTION_MIN_PAGE_BITS || p->page_bits > REE_ATTENTION_MAX_PAGE_BITS)
        return fail(c, "pages of 2^%u keys", p->page_bits);
    if (p->k_strides[0] != 0 || p->v_strides[0] != 0)
        return fail(c, "a pool of pages with strides %d and %d of the batch", p->k_strides[0],
                    p->v_strides[0]);
    if (p->pool_len > REE_ATTENTION_MAX_LEN) return fail(c, "a pool of %u keys", p->pool_len);
    return REE_OK;
}

// Checks that the page table lies inside its operand. The entries of the table are data, which
// cannot be checked here: the caller must ensure that they are numbers of pages in the pool.
static enum ree_status check_pages(const struct check *c, const struct ree_attention_params *p,
                                   uint32_t operand) {
    const uint32_t dims[2] = {p->batch, (p->kv_len + (1u << p->page_bits) - 1) >> p->page_bits};
    const int32_t strides[2] = {p->pages_stride, 1};
    if (p->page_bits == 0) return REE_OK;
    return check_view(c, operand, "page table", p->pages_offset, 2, dims, strides, REE_I32);
}

static enum ree_status check_attention(const struct check *c) {
    const struct ree_attention_params *p = &c->dispatch->params.attention;
    const struct ree_attention_operands at = ree_attention_operands(p);
    REE_TRY(check_operands(c, at.out + 1, 1));
    REE_TRY(check_attention_numbers(c, p));
    const uint32_t q[4] = {p->batch, p->n_heads, p->q_len, p->head_dim};
    const uint32_t n_keys = p->page_bits ? p->pool_len : p->kv_len;
    const uint32_t k[4] = {p->batch, p->n_kv_heads, n_keys, p->head_dim};
    const uint32_t v[4] = {p->batch, p->n_kv_heads, n_keys, p->v_head_dim};
    const uint32_t scores[4] = {p->batch, p->n_heads, p->q_len, p->kv_len};
    const uint32_t out[4] = {p->batch, p->n_heads, p->q_len, p->v_head_dim};
    uint64_t count;
    REE_TRY(check_product(c, "the query", 4, q, &count));
    REE_TRY(check_product(c, "the key", 4, k, &count));
    REE_TRY(check_product(c, "the value", 4, v, &count));
    REE_TRY(check_view(c, 0, "query", p->q_offset, 4, q, p->q_strides, REE_F32));
    REE_TRY(check_view(c, 1, "key", p->k_offset, 4, k, p->k_strides, p->k_dtype));
    REE_TRY(check_view(c, 2, "value", p->v_offset, 4, v, p->v_strides, p->v_dtype));
    if (p->starts_dtype != REE_DTYPE_NONE)
        REE_TRY(check_view(c, at.starts, "starts", p->starts_offset, 1, &p->batch,
                           &p->starts_stride, p->starts_dtype));
    if (p->n_keys_dtype != REE_DTYPE_NONE)
        REE_TRY(check_view(c, at.n_keys, "numbers of keys", p->n_keys_offset, 1, &p->batch,
                           &p->n_keys_stride, p->n_keys_dtype));
    if (p->has_allowed)
        REE_TRY(check_view(c, at.allowed, "mask", p->allowed_offset, 4, scores, p->allowed_strides,
                           REE_BOOL));
    if (p->has_bias)
        REE_TRY(
            check_view(c, at.bias, "bias", p->bias_offset, 4, scores, p->bias_strides, REE_F32));
    if (p->has_sink)
        REE_TRY(
            check_view(c, at.sink, "sink", p->sink_offset, 3, scores, p->sink_strides, REE_F32));
    REE_TRY(check_pages(c, p, at.pages));
    const int32_t strides[4] = {p->out_strides[0], p->out_strides[1], p->out_strides[2], 1};
    REE_TRY(check_dense(c, at.out, "output", 4, out, 4));
    return check_view(c, at.out, "output", 0, 4, out, strides, REE_F32);
}

enum ree_status ree_dispatch_check(const struct ree_dispatch *dispatch, struct ree_error *err) {
    const struct check c = {.dispatch = dispatch, .err = err};
    if (dispatch->n_operands > REE_MAX_OPERANDS)
        return fail(&c, "%u operands; the maximum is %d", dispatch->n_operands, REE_MAX_OPERANDS);
    for (uint32_t i = 0; i < dispatch->n_operands; i++)
        if (dispatch->operands[i].offset % 4 != 0)
            return fail(&c, "operand %u starts at byte %llu, not a multiple of 4", i,
                        (unsigned long long)dispatch->operands[i].offset);
    switch (dispatch->op) {
    case REE_REPOP_COPY: return check_copy(&c);
    case REE_REPOP_MAP: return check_map(&c);
    case REE_REPOP_REDUCE: return check_reduce(&c);
    case REE_REPOP_MATMUL: return check_matmul(&c);
    case REE_REPOP_CONV: return check_conv(&c);
    case REE_REPOP_POOL: return check_pool(&c);
    case REE_REPOP_SOFTMAX: return check_softmax(&c);
    case REE_REPOP_NORM: return check_norm(&c);
    case REE_REPOP_GATHER: return check_gather(&c);
    case REE_REPOP_SCATTER: return check_scatter(&c);
    case REE_REPOP_TOPK: return check_topk(&c);
    case REE_REPOP_SCAN: return check_scan(&c);
    case REE_REPOP_RESIZE: return check_resize(&c);
    case REE_REPOP_ATTENTION: return check_attention(&c);
    case REE_N_REPOPS: break;
    }
    return ree_fail(err, REE_INTERNAL, "dispatch: RepOp %d does not exist", (int)dispatch->op);
}
