// Col2Im: adds overlapping blocks to an image. For each axis a table gives, for each element of a
// block and each image position, the block that has this element at that position. The sums are
// computed one axis after another.
#include "graph/lower/ops/spatial/spatial.h"

#include <string.h>

#define MAX_AXES 3

struct axis {
    int64_t image, block, blocks; // sizes of image and block; number of blocks
    int64_t stride, dilation, begin, end;
};

static enum ree_status read_list(struct ree_lower *lower, const char *name, size_t wanted,
                                 int64_t low, const int64_t **out) {
    size_t n;
    bool given;
    REE_TRY(ree_data_ints(lower, NULL, REE_DATA_ATTR_ONLY, name, out, &n, &given));
    if (!given) return REE_OK;
    if (n != wanted)
        return ree_lower_fail(lower, REE_INVALID, "%s has %zu entries, expected %zu", name, n,
                              wanted);
    for (size_t i = 0; i < n; i++)
        if ((*out)[i] < low || (*out)[i] > INT32_MAX)
            return ree_lower_fail(lower, REE_INVALID, "%s[%zu] is %lld, expected %lld or more",
                                  name, i, (long long)(*out)[i], (long long)low);
    return REE_OK;
}

static enum ree_status read_axes(struct ree_lower *lower, struct ree_view *const *in,
                                 struct axis *axes, uint32_t *out_n) {
    const int64_t *image, *block, *strides, *dilations, *pads;
    size_t n, n_block;
    REE_TRY(ree_lower_host_ints(lower, in[1], "image_shape", &image, &n));
    REE_TRY(ree_lower_host_ints(lower, in[2], "block_shape", &block, &n_block));
    if (n < 1 || n_block != n)
        return ree_lower_fail(
            lower, REE_INVALID,
            "image_shape has %zu sizes, but block_shape has %zu; expected equal numbers", n,
            n_block);
    if (n > MAX_AXES)
        return ree_lower_fail(lower, REE_UNSUPPORTED,
                              "an image of %zu axes; at most %d are supported", n, MAX_AXES);
    REE_TRY(read_list(lower, "strides", n, 1, &strides));
    REE_TRY(read_list(lower, "dilations", n, 1, &dilations));
    REE_TRY(read_list(lower, "pads", 2 * n, 0, &pads));
    for (size_t i = 0; i < n; i++) {
        bool sane =
            image[i] >= 1 && image[i] <= INT32_MAX && block[i] >= 1 && block[i] <= INT32_MAX;
        if (!sane)
            return ree_lower_fail(lower, REE_INVALID,
                                  "image_shape[%zu] is %lld and block_shape[%zu] %lld, expected 1 "
                                  "or more",
                                  i, (long long)image[i], i, (long long)block[i]);
        struct axis *a = &axes[i];
        *a = (struct axis){.image = image[i], .block = block[i], .stride = 1, .dilation = 1};
        if (strides) a->stride = strides[i];
        if (dilations) a->dilation = dilations[i];
        if (pads) {
            a->begin = pads[i];
            a->end = pads[n + i];
        }
        int64_t capacity = a->image + a->begin + a->end - (a->dilation * (a->block - 1) + 1);
        if (capacity < 0)
            return ree_lower_fail(lower, REE_INVALID,
                                  "the block spans %lld along axis %zu of an image of %lld with "
                                  "its padding",
                                  (long long)(a->dilation * (a->block - 1) + 1), i,
                                  (long long)(a->image + a->begin + a->end));
        a->blocks = capacity / a->stride + 1;
    }
    *out_n = (uint32_t)n;
    return REE_OK;
}

// Makes the table (block, image): entry [k, i] is the index of the block whose element k is at
// position i of the image, or `blocks`, one past the last, if no block has it there.
static enum ree_status block_table(struct ree_lower *lower, const struct axis *a,
                                   struct ree_view **out) {
    int64_t dims[2] = {a->block, a->image}, count;
    if (!ree_count_elements(2, dims, &count) || count >= INT64_C(1) << 31)
        return ree_lower_fail(lower, REE_UNSUPPORTED,
                              "a block of %lld elements over an image of %lld is too large",
                              (long long)a->block, (long long)a->image);
    int32_t *table = ree_arena_alloc_array(lower->arena, (size_t)count, sizeof *table);
    if (!table) return ree_lower_no_memory(lower);
    for (int64_t k = 0; k < a->block; k++)
        for (int64_t i = 0; i < a->image; i++) {
            int64_t from = i + a->begin - k * a->dilation, block = from / a->stride;
            bool there = from >= 0 && from % a->stride == 0 && block < a->blocks;
            table[k * a->image + i] = (int32_t)(there ? block : a->blocks);
        }
    return ree_lower_literal(lower, REE_I32, 2, dims, table, out);
}

// In t (..., block elements at `k_axis`, ..., blocks at `l_axis`, ...), replaces the blocks by
// image positions. Each position is the sum over the block's elements, so `k_axis` gets size 1.
static enum ree_status fold_axis(struct ree_lower *lower, const struct axis *a, struct ree_view *t,
                                 uint32_t k_axis, uint32_t l_axis, struct ree_view **out) {
    int64_t none[REE_MAX_RANK] = {0}, one[REE_MAX_RANK] = {0}, dims[REE_MAX_RANK];
    struct ree_view *table;
    one[l_axis] = 1;
    REE_TRY(block_table(lower, a, &table));
    REE_TRY(ree_spatial_border(lower, t, none, one, &t));
    struct ree_gather_params p = {.n_components = 1};
    for (uint32_t i = 0; i < t->rank; i++) {
        dims[i] = t->dims[i];
        p.data_strides[i] = (int32_t)t->strides[i];
    }
    dims[l_axis] = a->image;
    p.data_strides[l_axis] = 0;
    p.index_strides[k_axis] = (int32_t)a->image;
    p.index_strides[l_axis] = 1;
    p.component_sizes[0] = (uint32_t)t->dims[l_axis];
    p.component_strides[0] = (int32_t)t->strides[l_axis];
    REE_TRY(ree_data_emit_gather(lower, t, table, &p, t->rank, dims, &t));
    return ree_lower_reduce(lower, t, REE_REDUCE_SUM, UINT32_C(1) << k_axis, true, false, out);
}

enum ree_status ree_lower_op_col2im(struct ree_lower *lower, struct ree_view *const *in,
                                    struct ree_view **out) {
    struct ree_view *t = in[0];
    struct axis axes[MAX_AXES];
    uint32_t n;
    char text[128];
    if (t->dtype != REE_F32 && t->dtype != REE_I32 && t->dtype != REE_U32 && t->dtype != REE_I64 &&
        t->dtype != REE_U64 && t->dtype != REE_I8 && t->dtype != REE_U8)
        return ree_rule_unsupported(lower, t->dtype);
    REE_TRY(read_axes(lower, in, axes, &n));
    int64_t elements = 1, blocks = 1;
    bool fits = t->rank == 3;
    for (uint32_t i = 0; fits && i < n; i++)
        fits = !__builtin_mul_overflow(elements, axes[i].block, &elements) &&
               !__builtin_mul_overflow(blocks, axes[i].blocks, &blocks);
    if (!fits || t->dims[1] % elements || t->dims[2] != blocks)
        return ree_lower_fail(
            lower, REE_INVALID, "the input is %s, expected (N, C * %lld, %lld) for these blocks",
            ree_view_text(t, text, sizeof text), (long long)elements, (long long)blocks);
    // (N * C, sizes of a block..., numbers of blocks...).
    int64_t dims[REE_MAX_RANK] = {t->dims[0] * (t->dims[1] / elements)};
    int64_t result[REE_MAX_RANK] = {t->dims[0], t->dims[1] / elements};
    for (uint32_t i = 0; i < n; i++) {
        dims[1 + i] = axes[i].block;
        dims[1 + n + i] = axes[i].blocks;
        result[2 + i] = axes[i].image;
    }
    REE_TRY(ree_lower_reshape(lower, t, 1 + 2 * n, dims, &t));
    for (uint32_t i = n; i-- > 0;)
        REE_TRY(fold_axis(lower, &axes[i], t, 1 + i, 1 + n + i, &t));
    return ree_lower_reshape(lower, t, 2 + n, result, &out[0]);
}
