// What the rules for shapes, movement, reductions and resampling share. The rules themselves are
// found through ops.def; each is named after its operator.
#ifndef REE_GRAPH_LOWER_DATA_H
#define REE_GRAPH_LOWER_DATA_H

#include "graph/lower/rules.h"

// A list of integers that later opsets take as an input and earlier ones as an attribute of the
// same name: from in[input] when it is there, else from the attribute. *out_given tells an empty
// list from none. REE_DATA_ATTR_ONLY as input: only the attribute.
#define REE_DATA_ATTR_ONLY UINT32_MAX
enum ree_status ree_data_ints(struct ree_lower *lower, struct ree_tval *const *in, uint32_t input,
                              const char *name, const int64_t **out, size_t *out_n,
                              bool *out_given);
// One integer (int32 or int64) in a tensor of one element.
enum ree_status ree_data_int(struct ree_lower *lower, struct ree_tval *t, const char *what,
                             int64_t *out);

// Axes in [-rank, rank) as a bit mask; refuses repetitions.
enum ree_status ree_data_axes_mask(struct ree_lower *lower, size_t n, const int64_t *axes,
                                   uint32_t rank, uint32_t *out_mask);
// "[4,-1]" into a buffer of the caller; returns it.
const char *ree_data_list_text(size_t n, const int64_t *values, char *out, size_t size);

// t as another type of the same size, no dispatch.
enum ree_status ree_data_reinterpret(struct ree_lower *lower, struct ree_tval *t,
                                     enum ree_dtype dtype, struct ree_tval **out);
// The type through which an expression may move the bits of `dtype` unchanged: itself, or u64 for
// float64 and strings, which expressions do not know.
enum ree_dtype ree_data_carrier(enum ree_dtype dtype);
// The type a RepOp computes in for values of `dtype`: float32 for float16 and bfloat16, 32-bit
// integers for 16-bit ones, else itself. Every value of the one is a value of the other.
enum ree_dtype ree_data_wide(enum ree_dtype dtype);
// Whether `reduce` and `topk` know the type.
bool ree_data_is_ordered(enum ree_dtype dtype);

// Emits a gather whose strides and components (over `rank` dims) are filled in, into a new tensor
// of t's type. Merges dimensions where it can. `index` must be dense.
enum ree_status ree_data_emit_gather(struct ree_lower *lower, struct ree_tval *data,
                                     struct ree_tval *index, struct ree_gather_params *params,
                                     uint32_t rank, const int64_t *dims, struct ree_tval **out);
// Dense strides of dims, as a gather's index strides.
void ree_data_dense_strides(uint32_t rank, const int64_t *dims, int32_t *out_strides);

// Selection per axis: out[i0, i1, ...] = t[axes[0].index[i0], axes[1].index[i1], ...]; index NULL
// keeps the axis. Regular selections (slices, steps, repetitions) become views and at most one
// copy, the others a gather each. Indices must be in range.
struct ree_axis_table {
    const int32_t *index; // n entries
    int64_t n;
};
enum ree_status ree_data_select(struct ree_lower *lower, struct ree_tval *t,
                                const struct ree_axis_table *axes, struct ree_tval **out);

// resize_table.c: where each output position of a resized axis reads, NUMERICS.md "Resize".
enum ree_resize_mode { REE_RESIZE_NEAREST, REE_RESIZE_LINEAR, REE_RESIZE_CUBIC };
enum ree_resize_coordinates {
    REE_COORD_HALF_PIXEL,
    REE_COORD_HALF_PIXEL_SYMMETRIC,
    REE_COORD_PYTORCH_HALF_PIXEL,
    REE_COORD_ALIGN_CORNERS,
    REE_COORD_ASYMMETRIC,
    REE_COORD_TF_HALF_PIXEL_FOR_NN,
    REE_COORD_TF_CROP_AND_RESIZE,
};
enum ree_resize_rounding {
    REE_ROUND_PREFER_FLOOR,
    REE_ROUND_PREFER_CEIL,
    REE_ROUND_FLOOR,
    REE_ROUND_CEIL,
};
struct ree_resize_axis {
    enum ree_resize_mode mode;
    enum ree_resize_coordinates coordinates;
    enum ree_resize_rounding rounding; // nearest
    double cubic_a;
    bool antialias, exclude_outside;
    int64_t n_in, n_out; // n_in > 0
    double scale;
    double roi_start, roi_end; // tf_crop_and_resize
};
// Taps per output position: 1, 2, 4, or more for a shrinking antialiased filter.
int64_t ree_resize_taps(const struct ree_resize_axis *axis);
// index (n_out, taps), weights (n_out, taps; NULL for nearest). An output position outside the
// input (tf_crop_and_resize) has index -1 in its first tap. Returns whether there is one.
bool ree_resize_fill(const struct ree_resize_axis *axis, int64_t taps, int32_t *index,
                     float *weights);

#endif
