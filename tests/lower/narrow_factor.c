// A product reads the narrow tensor instead of its widened copy only if nothing writes the narrow
// tensor between the map that widens it and the product.
#include "graph/lower/core/lower.h"
#include "test.h"

#include <string.h>

#define M 4
#define K 8
#define N 3

enum slot { NARROW, WIDE, OTHER, RESULT, ROW, N_SLOTS };

static struct ree_operand operand(enum slot slot, uint64_t size) {
    return (struct ree_operand){.slot = slot, .size = size};
}

static struct ree_dispatch widening(void) {
    struct ree_dispatch d = {.op = REE_REPOP_MAP, .n_operands = 2, .n_outputs = 1};
    struct ree_expr *e = &d.params.map.expr;
    e->rank = 1;
    e->dims[0] = e->n_elements = M * K;
    e->out_dtype = REE_F32;
    e->n_operands = e->n_instrs = 1;
    e->operands[0].kind = REE_EXPR_TENSOR;
    e->operands[0].dtype = REE_BF16;
    e->operands[0].strides[0] = 1;
    e->instrs[0].op = REE_MAP_bf16_to_f32;
    d.operands[0] = operand(NARROW, M * K * 2);
    d.operands[1] = operand(WIDE, M * K * 4);
    return d;
}

// Overwrites a row of `to`.
static struct ree_dispatch copy_row(enum slot to) {
    struct ree_dispatch d = {.op = REE_REPOP_COPY, .n_operands = 2, .n_outputs = 1};
    struct ree_copy_params *p = &d.params.copy;
    p->elem_size = 2;
    p->rank = 1;
    p->n_elements = p->dims[0] = K;
    p->src_strides[0] = p->dst_strides[0] = 1;
    d.operands[0] = operand(ROW, K * 2);
    d.operands[1] = operand(to, M * K * 2);
    return d;
}

static struct ree_dispatch product(void) {
    struct ree_dispatch d = {.op = REE_REPOP_MATMUL, .n_operands = 3, .n_outputs = 1};
    struct ree_matmul_params *p = &d.params.matmul;
    p->dtype = p->a_dtype = p->b_dtype = REE_F32;
    p->m = M;
    p->n = N;
    p->k = K;
    p->n_batch = 1;
    p->a_stride_m = K;
    p->a_stride_k = p->b_stride_n = 1;
    p->b_stride_k = N;
    d.operands[0] = operand(WIDE, M * K * 4);
    d.operands[1] = operand(OTHER, K * N * 4);
    d.operands[2] = operand(RESULT, M * N * 4);
    return d;
}

// Fuses the program; returns the type of the product's first operand.
static enum ree_dtype fused_type(struct ree_dispatch *dispatches, size_t n) {
    static const uint64_t sizes[N_SLOTS] = {M * K * 2, M * K * 4, K * N * 4, M * N * 4, K * 2};
    struct ree_storage storages[N_SLOTS], *pointers[N_SLOTS + 1];
    bool keep[N_SLOTS] = {[NARROW] = true, [RESULT] = true};
    struct ree_arena arena;
    ree_arena_init(&arena);
    for (uint32_t i = 0; i < N_SLOTS; i++) {
        storages[i] = (struct ree_storage){.kind = REE_STORAGE_TEMP, .id = i, .nbytes = sizes[i]};
        pointers[i] = &storages[i];
    }
    struct ree_error err = {.message = ""};
    struct ree_lower lower = {.arena = &arena,
                              .err = &err,
                              .dispatches = dispatches,
                              .n_dispatches = n,
                              .storages = pointers,
                              .n_storages = N_SLOTS};
    CHECK_MSG(ree_fuse_program(&lower, keep) == REE_OK, "%s", err.message);
    const struct ree_dispatch *last = &dispatches[lower.n_dispatches - 1];
    CHECK(last->op == REE_REPOP_MATMUL);
    ree_arena_finish(&arena);
    return (enum ree_dtype)last->params.matmul.a_dtype;
}

int main(void) {
    CHECK(fused_type((struct ree_dispatch[]){widening(), product()}, 2) == REE_BF16);
    CHECK(fused_type((struct ree_dispatch[]){widening(), copy_row(NARROW), product()}, 3) ==
          REE_F32);
    CHECK(fused_type((struct ree_dispatch[]){copy_row(NARROW), widening(), product()}, 3) ==
          REE_BF16);
    return test_finish();
}
