// The graphs that compute chunks of a sum.
#include "graph/share/builder.h"

#define CHUNK 256

static enum ree_status end_graph(struct ree_share_builder *b, struct ree_value *results) {
    size_t slot = 0;
    if (!results) return ree_no_memory(b->err);
    return ree_builder_write_slot(b, b->part, results, &slot);
}

static enum ree_status products(struct ree_share_builder *b) {
    const int64_t dims[3] = {-1, CHUNK, -1}, order[3] = {0, 2, 1};
    struct ree_value *left, *right;
    REE_TRY(ree_builder_begin(b, &b->share->products));
    REE_TRY(ree_builder_input(b, "left", REE_F32, 3, dims, &left));
    REE_TRY(ree_builder_input(b, "right", REE_F32, 3, dims, &right));
    struct ree_value *turned = ree_builder_add(b, "Transpose", &left, 1);
    if (!ree_builder_ints(b, turned, "perm", order, 3)) return ree_no_memory(b->err);
    struct ree_value *both[2] = {turned, right};
    return end_graph(b, ree_builder_add(b, "MatMul", both, 2));
}

static enum ree_status rows(struct ree_share_builder *b) {
    const int64_t dims[3] = {-1, CHUNK, -1}, axis = 1;
    struct ree_value *in[2];
    REE_TRY(ree_builder_begin(b, &b->share->rows));
    REE_TRY(ree_builder_input(b, "left", REE_F32, 3, dims, &in[0]));
    in[1] = ree_builder_list(b, &axis, 1);
    struct ree_value *made = ree_builder_add(b, "ReduceSum", in, 2);
    if (!ree_builder_int(b, made, "keepdims", 0)) return ree_no_memory(b->err);
    return end_graph(b, made);
}

enum ree_status ree_builder_chunks(struct ree_share_builder *b) {
    REE_TRY(products(b));
    return rows(b);
}
