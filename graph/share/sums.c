// Sums over all samples: what a part computes for them, and what the next part makes of the result.
//
// Each operand becomes a matrix with a row for each term, so that the caller can cut it anywhere.
#include "graph/share/builder.h"

#include <string.h>

// A convolution with more kernel positions would need too much memory: each is a copy.
#define MAX_POSITIONS 1024

static struct ree_value *reshaped(struct ree_share_builder *b, struct ree_value *value,
                                  const int64_t *dims, size_t rank) {
    struct ree_value *in[2] = {value, ree_builder_list(b, dims, rank)};
    struct ree_value *made = ree_builder_add(b, "Reshape", in, 2);
    return ree_builder_int(b, made, "allowzero", 1) ? made : NULL;
}

static struct ree_value *transposed(struct ree_share_builder *b, struct ree_value *value,
                                    const int64_t *order, size_t rank) {
    size_t n_same = 0;
    while (n_same < rank && order[n_same] == (int64_t)n_same)
        n_same++;
    if (n_same == rank) return value;
    struct ree_value *made = ree_builder_add(b, "Transpose", &value, 1);
    return ree_builder_ints(b, made, "perm", order, rank) ? made : NULL;
}

// Numbers of ONNX's types.
#define ONNX_FLOAT 1
#define ONNX_FLOAT16 10
#define ONNX_BFLOAT16 16

static struct ree_value *cast(struct ree_share_builder *b, struct ree_value *value,
                              enum ree_dtype from, enum ree_dtype to) {
    if (from == to) return value;
    struct ree_value *made = ree_builder_add(b, "Cast", &value, 1);
    int64_t number = to == REE_F32 ? ONNX_FLOAT : to == REE_F16 ? ONNX_FLOAT16 : ONNX_BFLOAT16;
    return ree_builder_int(b, made, "to", number) ? made : NULL;
}

// Makes rows of terms an output of the part. The value may be an input of it.
static enum ree_status write_terms(struct ree_share_builder *b, struct ree_value *rows,
                                   enum ree_dtype dtype, size_t *out_slot) {
    size_t slot = 0;
    rows = cast(b, rows, dtype, dtype == REE_F16 || dtype == REE_BF16 ? REE_F32 : dtype);
    rows = ree_builder_add(b, "Identity", &rows, 1);
    if (!rows) return ree_no_memory(b->err);
    REE_TRY(ree_builder_write_slot(b, b->part, rows, &slot));
    *out_slot = slot - 1;
    return REE_OK;
}

// Finds input i of the node in the form in which the node reads it.
static enum ree_status find_input(struct ree_share_builder *b, const struct ree_node *node,
                                  size_t i, struct ree_value **out) {
    return ree_builder_find(b, node->inputs[i], b->d->own[node->id]->needs[i], out);
}

// Operand i as a matrix with a row for each term and `width` columns.
static enum ree_status rows_of_operand(struct ree_share_builder *b, const struct ree_node *node,
                                       size_t i, int64_t width, size_t *out_slot) {
    const struct ree_sum_node *how = b->d->sums[node->id];
    const struct ree_value *value = node->inputs[i];
    const int64_t dims[2] = {(int64_t)how->n_per_sample * ree_share_own(b->d), width};
    struct ree_value *rows;
    REE_TRY(find_input(b, node, i, &rows));
    rows = transposed(b, rows, how->order[i], value->rank);
    if (rows) rows = reshaped(b, rows, dims, 2);
    return rows ? write_terms(b, rows, value->dtype, out_slot) : ree_no_memory(b->err);
}

// Convolutions: the row of a term has the elements of the input that it multiplies, one for each
// channel and position of the kernel.

// Adds zeros around the input.
static struct ree_value *padded(struct ree_share_builder *b, const struct ree_node *node,
                                struct ree_value *value) {
    int64_t list[2 * REE_MAX_RANK] = {0};
    size_t n;
    const int64_t *pads = ree_node_ints(node, "pads", &n);
    bool is_padded = false;
    for (size_t i = 0; i < n; i++) {
        is_padded |= pads[i] != 0;
        list[i < n / 2 ? 2 + i : 4 + i] = pads[i];
    }
    if (!is_padded) return value;
    struct ree_value *in[2] = {value, ree_builder_list(b, list, n + 4)};
    return ree_builder_add(b, "Pad", in, 2);
}

static bool are_steps(const int64_t *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (list[i] < 1 || list[i] > INT32_MAX) return false;
    return true;
}

static enum ree_status rows_of_conv(struct ree_share_builder *b, const struct ree_node *node,
                                    struct ree_share_sum *sum) {
    const struct ree_sum_node *how = b->d->sums[node->id];
    const struct ree_value *x = node->inputs[0], *kernel = node->inputs[1],
                           *made = node->outputs[0];
    const uint32_t n = x->rank - 2;
    const int64_t n_rows = (int64_t)how->n_per_sample * ree_share_own(b->d);
    size_t n_strides, n_dilations, n_pads;
    const int64_t *strides = ree_node_ints(node, "strides", &n_strides);
    const int64_t *dilations = ree_node_ints(node, "dilations", &n_dilations);
    ree_node_ints(node, "pads", &n_pads);
    char label[256];
    ree_node_label(node, label, sizeof label);
    if (!are_steps(strides, n_strides) || !are_steps(dilations, n_dilations) ||
        (strides && n_strides != n) || (dilations && n_dilations != n) ||
        (n_pads && n_pads != 2 * n))
        return ree_fail(b->err, REE_INVALID, "%s: its strides, dilations or pads are invalid",
                        label);
    if (how->n_positions > MAX_POSITIONS || n + 4 > REE_MAX_RANK)
        return ree_fail(b->err, REE_UNSUPPORTED,
                        "the samples of a batch cannot be divided among ranks: %s: it has more "
                        "than %d positions or %d axes",
                        label, MAX_POSITIONS, REE_MAX_RANK - 2);
    struct ree_value *image, *small;
    REE_TRY(find_input(b, node, 0, &image));
    REE_TRY(find_input(b, node, 1, &small));
    image = padded(b, node, image);
    struct ree_value **shifted =
        ree_arena_alloc_array(&b->d->arena, (size_t)how->n_positions, sizeof(struct ree_value *));
    if (!image || !shifted) return ree_no_memory(b->err);
    // [channels, groups, samples, kernel..., 1]
    int64_t axes[REE_MAX_RANK], dims[REE_MAX_RANK], steps[REE_MAX_RANK];
    dims[0] = x->dims[0];
    dims[1] = how->groups;
    dims[2] = ree_share_own(b->d);
    for (uint32_t i = 0; i < n; i++) {
        axes[i] = 2 + (int64_t)i;
        steps[i] = dilations ? dilations[i] : 1;
        dims[3 + i] = kernel->dims[2 + i];
    }
    dims[3 + n] = 1;
    struct ree_value *axis_list = ree_builder_list(b, axes, n);
    struct ree_value *step_list = ree_builder_list(b, steps, n);
    for (int64_t p = 0; p < how->n_positions; p++) {
        int64_t starts[REE_MAX_RANK], ends[REE_MAX_RANK], rest = p;
        for (uint32_t i = n; i-- > 0;) {
            int64_t at = rest % made->dims[2 + i];
            rest /= made->dims[2 + i];
            starts[i] = at * (strides ? strides[i] : 1);
            ends[i] = starts[i] + (kernel->dims[2 + i] - 1) * steps[i] + 1;
        }
        struct ree_value *in[] = {image, ree_builder_list(b, starts, n),
                                  ree_builder_list(b, ends, n), axis_list, step_list};
        shifted[p] = ree_builder_add(b, "Slice", in, 5);
        if (shifted[p]) shifted[p] = reshaped(b, shifted[p], dims, n + 4);
        if (!shifted[p]) return ree_no_memory(b->err);
    }
    struct ree_value *left = ree_builder_add(b, "Concat", shifted, (size_t)how->n_positions);
    // [samples, kernel..., groups, channels, positions] and [samples, kernel..., groups * n]
    int64_t order[REE_MAX_RANK], small_order[REE_MAX_RANK];
    for (uint32_t i = 0; i <= n; i++) {
        order[i] = 2 + (int64_t)i;
        small_order[i] = 1 + (int64_t)i;
    }
    order[n + 1] = 1;
    order[n + 2] = small_order[n + 1] = 0;
    order[n + 3] = 3 + (int64_t)n;
    const int64_t left_dims[2] = {n_rows, how->groups * how->m};
    const int64_t right_dims[2] = {n_rows, how->groups * how->n};
    if (!ree_builder_int(b, left, "axis", 3 + (int64_t)n)) return ree_no_memory(b->err);
    left = transposed(b, left, order, n + 4);
    if (left) left = reshaped(b, left, left_dims, 2);
    struct ree_value *right = transposed(b, small, small_order, n + 2);
    if (right) right = reshaped(b, right, right_dims, 2);
    if (!left || !right) return ree_no_memory(b->err);
    REE_TRY(write_terms(b, left, x->dtype, &sum->left));
    return write_terms(b, right, kernel->dtype, &sum->right);
}

// Makes the graph that adds own updates to a tensor.
static enum ree_status steps_of_indices(struct ree_share_builder *b, const struct ree_node *node,
                                        struct ree_share_sum *sum) {
    const struct ree_own_node *own = b->d->own[node->id];
    struct ree_share_part *part = b->part;
    struct ree_value *in[3], *out;
    size_t slots[3];
    for (size_t i = 0; i < 3; i++) {
        REE_TRY(find_input(b, node, i, &in[i]));
        // Types stay: they are those of the node.
        size_t slot = 0;
        in[i] = ree_builder_add(b, "Identity", &in[i], 1);
        if (!in[i]) return ree_no_memory(b->err);
        REE_TRY(ree_builder_write_slot(b, part, in[i], &slot));
        slots[i] = slot - 1;
    }
    sum->initial = slots[0];
    sum->steps = ree_arena_alloc(&b->share->arena, sizeof *sum->steps);
    if (!sum->steps) return ree_no_memory(b->err);
    REE_TRY(ree_builder_begin(b, sum->steps));
    for (size_t i = 0; i < 3; i++) {
        const struct ree_value *value = node->inputs[i];
        int64_t dims[REE_MAX_RANK];
        memcpy(dims, value->dims, sizeof dims);
        if (own->needs[i].is_divided)
            dims[own->needs[i].axis] = ree_share_own(b->d) * own->needs[i].per;
        REE_TRY(ree_builder_read_slot(b, slots[i], value->dtype, value->rank, dims, &in[i]));
    }
    out = ree_builder_value(b, NULL);
    if (!out) return ree_no_memory(b->err);
    REE_TRY(ree_builder_copy(b, node, in, &out));
    size_t slot = 0;
    REE_TRY(ree_builder_write_slot(b, sum->steps, out, &slot));
    sum->result = slot - 1;
    b->part = part;
    return REE_OK;
}

static enum ree_status sum_of_integers(struct ree_share_builder *b, const struct ree_node *node,
                                       struct ree_share_sum *sum) {
    struct ree_value **in =
        ree_arena_alloc_array(&b->d->arena, node->n_inputs + 1, sizeof(struct ree_value *));
    struct ree_value *out = ree_builder_value(b, NULL);
    size_t slot = 0;
    if (!in || !out) return ree_no_memory(b->err);
    for (size_t i = 0; i < node->n_inputs; i++)
        if (node->inputs[i]) REE_TRY(find_input(b, node, i, &in[i]));
    REE_TRY(ree_builder_copy(b, node, in, &out));
    REE_TRY(ree_builder_write_slot(b, b->part, out, &slot));
    sum->left = slot - 1;
    return REE_OK;
}

enum ree_status ree_builder_terms(struct ree_share_builder *b, const struct ree_node *node) {
    const struct ree_sum_node *how = b->d->sums[node->id];
    struct ree_share_part *part = b->part;
    if (part->n_sums == part->sums_capacity) {
        size_t capacity = part->n_sums ? 2 * part->n_sums : 8;
        struct ree_share_sum *grown =
            ree_arena_alloc_array(&b->share->arena, capacity, sizeof *grown);
        if (!grown) return ree_no_memory(b->err);
        if (part->n_sums) memcpy(grown, part->sums, part->n_sums * sizeof *grown);
        part->sums = grown;
        part->sums_capacity = capacity;
    }
    struct ree_share_sum *sum = &part->sums[part->n_sums++];
    *sum = (struct ree_share_sum){.kind = how->kind,
                                  .n_per_sample = how->n_per_sample,
                                  .groups = how->groups,
                                  .m = how->m,
                                  .n = how->n};
    sum->name = ree_arena_strdup(&b->share->arena, node->outputs[0]->name);
    if (!sum->name) return ree_no_memory(b->err);
    if (how->kind == REE_SUM_BY_INDICES) return steps_of_indices(b, node, sum);
    size_t slot = 0;
    REE_TRY(ree_builder_write_slot(b, NULL, NULL, &slot));
    sum->result = slot - 1;
    if (how->kind == REE_SUM_OF_INTEGERS) return sum_of_integers(b, node, sum);
    if (how->is_conv) return rows_of_conv(b, node, sum);
    REE_TRY(rows_of_operand(b, node, 0, how->groups * how->m, &sum->left));
    if (how->kind == REE_SUM_OF_ROWS) return REE_OK;
    return rows_of_operand(b, node, 1, how->groups * how->n, &sum->right);
}

// Results

enum ree_status ree_builder_result(struct ree_share_builder *b, const struct ree_node *node,
                                   const struct ree_share_sum *sum) {
    const struct ree_sum_node *how = b->d->sums[node->id];
    const struct ree_value *made = node->outputs[0];
    bool keeps_type = sum->kind == REE_SUM_OF_INTEGERS || sum->kind == REE_SUM_BY_INDICES;
    bool is_product = sum->kind == REE_SUM_OF_PRODUCTS;
    const int64_t product_dims[3] = {sum->groups, sum->m, sum->n}, row_dims[1] = {sum->m};
    struct ree_value *value;
    if (keeps_type)
        REE_TRY(ree_builder_read_slot(b, sum->result, made->dtype, made->rank, made->dims, &value));
    else
        REE_TRY(ree_builder_read_slot(b, sum->result, REE_F32, is_product ? 3 : 1,
                                      is_product ? product_dims : row_dims, &value));
    if (how->is_mean) {
        struct ree_value *in[2] = {
            value, ree_builder_constant(b, REE_F32, 0, NULL, &how->divisor, sizeof how->divisor)};
        value = ree_builder_add(b, "Div", in, 2);
        if (!value) return ree_no_memory(b->err);
    }
    if (!keeps_type) value = cast(b, value, REE_F32, made->dtype);
    if (value && how->result_rank) {
        value = reshaped(b, value, how->result_dims, how->result_rank);
        if (value) value = transposed(b, value, how->result_order, how->result_rank);
    }
    // Also if the shape is the same: an input of the graph cannot be its output.
    if (value) value = reshaped(b, value, made->dims, made->rank);
    if (!value) return ree_no_memory(b->err);
    ree_builder_place(b, made, REE_FORM_ALL, value);
    return ree_builder_select(b, node);
}
