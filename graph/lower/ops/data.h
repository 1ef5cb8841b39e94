// Shared by the rules for shapes, movement, reductions and resampling. The rules themselves are
// found through ops.def; each is named after its operator.
#ifndef REE_GRAPH_LOWER_OPS_DATA_H
#define REE_GRAPH_LOWER_OPS_DATA_H

#include "graph/lower/ops/rules.h"

// Reads a list of integers that newer opsets take as an input and older ones as an attribute of the
// same name: in[input] if it is present, else the attribute `name`. If `input` is
// REE_DATA_ATTR_ONLY, reads only the attribute. *out_given is false if there is neither, and true
// for an empty list.
#define REE_DATA_ATTR_ONLY UINT32_MAX
enum ree_status ree_data_ints(struct ree_lower *lower, struct ree_view *const *in, uint32_t input,
                              const char *name, const int64_t **out, size_t *out_n,
                              bool *out_given);
// As ree_data_ints, for a list that no opset takes as an attribute. `what` names it in messages.
enum ree_status ree_data_input_ints(struct ree_lower *lower, struct ree_view *const *in,
                                    uint32_t input, const char *what, const int64_t **out,
                                    size_t *out_n, bool *out_given);
// Reads the element of an int32 or int64 tensor of one element. `what` names the tensor in
// messages.
enum ree_status ree_data_int(struct ree_lower *lower, struct ree_view *t, const char *what,
                             int64_t *out);

// Converts n axes in [-rank, rank) to a bit mask. Fails if an axis is out of range or repeated.
enum ree_status ree_data_axes_mask(struct ree_lower *lower, size_t n, const int64_t *axes,
                                   uint32_t rank, uint32_t *out_mask);
// Writes text such as "[4,-1]" into the caller's buffer and returns the buffer.
const char *ree_data_list_text(size_t n, const int64_t *values, char *out, size_t size);

// Views t as another type with the same element size; no dispatch.
enum ree_status ree_data_reinterpret(struct ree_lower *lower, struct ree_view *t,
                                     enum ree_dtype dtype, struct ree_view **out);
// Returns the type as which an expression moves elements of `dtype` without changing their bits:
// uint64 for float64 and strings, else dtype itself.
enum ree_dtype ree_data_carrier(enum ree_dtype dtype);
// Returns the type in which a RepOp computes with values of `dtype`: float32 for float16 and
// bfloat16, int32 or uint32 for 16-bit integers, else dtype itself. It represents every value of
// `dtype`.
enum ree_dtype ree_data_wide(enum ree_dtype dtype);
// Returns whether the RepOps reduce and topk support the type.
bool ree_data_is_ordered(enum ree_dtype dtype);

// ONNX Gather: replaces the axis `axis` of `data` by the dimensions of `index`, whose elements
// select slices of `data` along the axis.
enum ree_status ree_data_gather(struct ree_lower *lower, struct ree_view *data,
                                struct ree_view *index, uint32_t axis, struct ree_view **out);
// Emits a gather into a new tensor with `dims` and the type of `data`. The caller has filled in the
// components of `params`, and its data_strides and index_strides, one for each of `dims`. The
// function fills in the rest, and merges dimensions if possible. `index` must be dense.
enum ree_status ree_data_emit_gather(struct ree_lower *lower, struct ree_view *data,
                                     struct ree_view *index, struct ree_gather_params *params,
                                     uint32_t rank, const int64_t *dims, struct ree_view **out);
// Computes the strides of a dense tensor with these dims, as the index strides of a gather.
void ree_data_dense_strides(uint32_t rank, const int64_t *dims, int32_t *out_strides);

// ree_data_select selects elements along each axis: out[i0, i1, ...] = t[axes[0].index[i0],
// axes[1].index[i1], ...]. If `index` is NULL, the whole axis is kept. Regular selections (slices,
// steps, repetitions) become views and at most one copy; each other selection becomes a gather. All
// indices must be in range.
struct ree_axis_table {
    const int32_t *index; // n entries
    int64_t n;
};
enum ree_status ree_data_select(struct ree_lower *lower, struct ree_view *t,
                                const struct ree_axis_table *axes, struct ree_view **out);

// resize_table.c: which input positions each output position of a resized axis reads, and with
// which weights (NUMERICS.md, "Resize").
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
    enum ree_resize_rounding rounding; // only for REE_RESIZE_NEAREST
    double cubic_a;
    bool antialias, exclude_outside;
    int64_t n_in, n_out; // n_in > 0
    double scale;
    double roi_start, roi_end; // region of interest; only for REE_COORD_TF_CROP_AND_RESIZE
};
// Returns the number of input positions (taps) that an output position reads: 1 (nearest), 2
// (linear), 4 (cubic), or more for an antialiased filter that shrinks.
int64_t ree_resize_taps(const struct ree_resize_axis *axis);
// Fills the tables index (n_out, taps) and weights (n_out, taps; NULL for nearest). With
// tf_crop_and_resize, an output position may lie outside the input; the index of its first tap is
// then -1. Returns whether there is such a position.
bool ree_resize_fill(const struct ree_resize_axis *axis, int64_t taps, int32_t *index,
                     float *weights);

#endif
