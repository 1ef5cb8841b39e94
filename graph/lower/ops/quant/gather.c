// GatherBlockQuantized: rows of a table of 2-, 4- or 8-bit numbers that share a scale per block,
// converted to floats. Only the numbers that were looked up are converted.
#include <string.h>

#include "graph/lower/ops/data.h"
#include "graph/lower/ops/quant/quant.h"

struct table {
    int64_t bits, block;
    uint32_t gather_axis, quantize_axis;
    uint32_t per_byte; // numbers in one element of data
    int32_t zero;      // zero point if none is given
};

static enum ree_status read_table(struct ree_lower *lower, const struct ree_view *data,
                                  struct table *out) {
    char text[128];
    struct table t = {.bits = 4, .per_byte = 1, .block = ree_rule_int(lower, "block_size", 128)};
    if (data->dtype != REE_U8 && data->dtype != REE_I4 && data->dtype != REE_U4)
        return ree_lower_fail(lower, REE_INVALID, "input data is %s, expected uint8, int4 or uint4",
                              ree_view_text(data, text, sizeof text));
    if (data->rank == 0)
        return ree_lower_fail(lower, REE_INVALID, "input data is a scalar, expected a table");
    REE_TRY(
        ree_lower_axis(lower, ree_rule_int(lower, "gather_axis", 0), data->rank, &t.gather_axis));
    REE_TRY(ree_lower_axis(lower, ree_rule_int(lower, "quantize_axis", 1), data->rank,
                           &t.quantize_axis));
    if (t.block < 16 || t.block > INT32_MAX || (t.block & (t.block - 1)))
        return ree_lower_fail(lower, REE_UNSUPPORTED,
                              "block_size is %lld, expected a power of two from 16 to 2^30",
                              (long long)t.block);
    if (t.gather_axis == t.quantize_axis)
        return ree_lower_fail(lower, REE_INVALID,
                              "gather_axis and quantize_axis are both %u, expected two axes",
                              t.gather_axis);
    if (data->dtype == REE_U8) {
        t.bits = ree_rule_int(lower, "bits", 4);
        if (t.bits != 2 && t.bits != 4 && t.bits != 8)
            return ree_lower_fail(lower, REE_INVALID, "bits is %lld, expected 2, 4 or 8",
                                  (long long)t.bits);
        t.per_byte = (uint32_t)(8 / t.bits);
        t.zero = 1 << (t.bits - 1);
        if (t.per_byte > 1 && t.quantize_axis != data->rank - 1)
            return ree_lower_fail(lower, REE_UNSUPPORTED,
                                  "quantize_axis is %u, expected the last axis, %u, because bytes "
                                  "hold several numbers",
                                  t.quantize_axis, data->rank - 1);
    }
    *out = t;
    return REE_OK;
}

// Unpacks the last axis: `size` numbers of each row, lowest bits first.
static enum ree_status unpack(struct ree_lower *lower, struct ree_view *packed,
                              const struct table *table, int64_t size, struct ree_view **out) {
    if (table->per_byte == 1) {
        *out = packed;
        return REE_OK;
    }
    int64_t dims[REE_MAX_RANK], steps[REE_MAX_RANK] = {0};
    uint32_t rank = packed->rank;
    if (rank == REE_MAX_RANK)
        return ree_lower_fail(lower, REE_UNSUPPORTED, "a result of rank %u is not supported", rank);
    memcpy(dims, packed->dims, sizeof dims);
    dims[rank] = 1;
    REE_TRY(ree_lower_reshape(lower, packed, rank + 1, dims, &packed));
    dims[rank] = table->per_byte;
    steps[rank] = table->bits;
    struct ree_expr_builder e;
    ree_expr_init(&e, lower, rank + 1, dims);
    int shift = ree_expr_iota(&e, REE_I32, 0, steps);
    int number = ree_expr_op2(&e, REE_MAP_shr_b32, ree_expr_tensor(&e, packed), shift);
    number = ree_expr_op2(&e, REE_MAP_and_b32, number, ree_expr_i32(&e, (1 << table->bits) - 1));
    REE_TRY(ree_lower_map(&e, number, REE_U8, out));
    dims[rank - 1] *= table->per_byte;
    REE_TRY(ree_lower_reshape(lower, *out, rank, dims, out));
    return ree_lower_slice(lower, *out, rank - 1, 0, 1, size, out);
}

// Views the axis as blocks: (..., n * block, ...) as (..., n, block, ...).
static enum ree_status split_axis(struct ree_lower *lower, struct ree_view *t, uint32_t axis,
                                  int64_t block, struct ree_view **out) {
    int64_t dims[REE_MAX_RANK];
    for (uint32_t i = 0; i < t->rank; i++)
        dims[i < axis ? i : i + 1] = t->dims[i];
    dims[axis] = t->dims[axis] / block;
    dims[axis + 1] = block;
    return ree_lower_reshape(lower, t, t->rank + 1, dims, out);
}

// Views or copies the numbers, scales and zero points (NULL: none) so that they broadcast together.
// If the last block is whole, nothing has to be copied.
static enum ree_status align(struct ree_lower *lower, uint32_t axis, int64_t block,
                             struct ree_view **numbers, struct ree_view **scales,
                             struct ree_view **zeros) {
    if ((*numbers)->dims[axis] % block == 0 && (*numbers)->rank < REE_MAX_RANK) {
        REE_TRY(split_axis(lower, *numbers, axis, block, numbers));
        if (*zeros) REE_TRY(split_axis(lower, *zeros, axis, 1, zeros));
        return split_axis(lower, *scales, axis, 1, scales);
    }
    if (*zeros)
        REE_TRY(ree_quant_along_blocks(lower, *zeros, "zero_points", *numbers, axis, block, zeros));
    return ree_quant_along_blocks(lower, *scales, "scales", *numbers, axis, block, scales);
}

// Inputs: data, indices, scales, zero_points.
RULE(gather_block_quantized) {
    struct ree_view *data = in[0], *index = in[1], *scales = in[2];
    struct ree_view *zeros = ree_rule_input(lower, in, 3), *numbers;
    enum ree_dtype dtype = scales->dtype;
    struct table table;
    char text[128];
    REE_TRY(read_table(lower, data, &table));
    if (dtype != REE_F32 && dtype != REE_F16 && dtype != REE_BF16)
        return ree_lower_fail(lower, REE_INVALID,
                              "input scales is %s, expected float32, float16 or bfloat16",
                              ree_view_text(scales, text, sizeof text));
    if (zeros) REE_TRY(ree_rule_same_type(lower, zeros, "zero_points", data, "data"));

    // Check the shapes of scales and zero points before anything is looked up.
    uint32_t last = data->rank - 1, axis = table.quantize_axis;
    int64_t size = data->dims[axis] * (axis == last ? table.per_byte : 1);
    if (size > INT32_MAX)
        return ree_lower_fail(lower, REE_INVALID, "input data has rows of %lld numbers",
                              (long long)size);
    int64_t n_blocks = size / table.block + (size % table.block != 0);
    bool fits = scales->rank == data->rank;
    for (uint32_t i = 0; fits && i < data->rank; i++)
        fits = scales->dims[i] == (i == axis ? n_blocks : data->dims[i]);
    if (!fits)
        return ree_lower_fail(lower, REE_INVALID,
                              "input scales is %s, expected the shape of data with %lld blocks "
                              "along axis %u",
                              ree_view_text(scales, text, sizeof text), (long long)n_blocks, axis);
    fits = !zeros || zeros->rank == data->rank;
    for (uint32_t i = 0; zeros && fits && i < data->rank; i++) {
        int64_t packed = (n_blocks + table.per_byte - 1) / table.per_byte;
        fits = zeros->dims[i] == (i == axis ? packed : data->dims[i]);
    }
    if (!fits)
        return ree_lower_fail(lower, REE_INVALID,
                              "input zero_points is %s, expected one number per block",
                              ree_view_text(zeros, text, sizeof text));

    uint32_t gathered_axis = axis < table.gather_axis ? axis : axis + index->rank - 1;
    REE_TRY(ree_data_gather(lower, data, index, table.gather_axis, &numbers));
    REE_TRY(ree_data_gather(lower, scales, index, table.gather_axis, &scales));
    REE_TRY(ree_quant_scale(lower, scales, "scales", &scales));
    if (zeros) {
        REE_TRY(ree_data_gather(lower, zeros, index, table.gather_axis, &zeros));
        REE_TRY(unpack(lower, zeros, &table, n_blocks, &zeros));
    }
    REE_TRY(unpack(lower, numbers, &table, size, &numbers));
    uint32_t rank = numbers->rank;
    int64_t dims[REE_MAX_RANK];
    memcpy(dims, numbers->dims, sizeof dims);
    REE_TRY(align(lower, gathered_axis, table.block, &numbers, &scales, &zeros));

    struct ree_expr_builder e;
    ree_expr_init(&e, lower, numbers->rank, numbers->dims);
    int q = ree_expr_tensor(&e, numbers), z = REE_QUANT_NO_ZERO;
    if (zeros)
        z = ree_quant_expr_zero(&e, zeros);
    else if (table.zero)
        z = ree_expr_i32(&e, table.zero);
    int value = ree_quant_expr_real(&e, q, numbers->dtype, z, ree_expr_tensor(&e, scales));
    REE_TRY(ree_lower_map(&e, ree_expr_cast(&e, value, REE_F32, dtype), dtype, &out[0]));
    return ree_lower_reshape(lower, out[0], rank, dims, &out[0]);
}
