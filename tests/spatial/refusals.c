// Error messages for invalid nodes.
#include "lower_data/rule.h"

int main(void) {
    CHECK_RULE(
        "GridSample/20", "float32[1,1,2,2] 1 2 3 4 | float32[2,1,1,2] 0 0 0 0",
        "error: grid is float32[2,1,1,2] and X float32[1,1,2,2], expected grid (1, sizes..., "
        "2)");
    CHECK_RULE("GridSample/20 mode=cubical", "float32[1,1,1] 1 | float32[1,1,1] 0",
               "error: mode is 'cubical', expected linear, nearest or cubic");
    CHECK_RULE("GridSample/20 padding_mode=wrap", "float32[1,1,1] 1 | float32[1,1,1] 0",
               "error: padding_mode is 'wrap', expected zeros, border or reflection");
    CHECK_RULE("GridSample/20", "float32[1,1,0] | float32[1,1,1] 0",
               "error: X has size 0 along axis 2");
    CHECK_RULE("GridSample/20", "float32[1,1] 1 | float32[1,1] 0", "error: input X has rank 2");
    CHECK_RULE("GridSample/20", "int32[1,1,1] 1 | float32[1,1,1] 0",
               "error: GridSample of int32 is not supported");
    CHECK_RULE("AffineGrid/20", "float32[1,2,3] 1 0 0 0 1 0 | int64[4] 2 1 2 2",
               "error: theta is float32[1,2,3], expected float32[2,2,3]");
    CHECK_RULE("AffineGrid/20", "float32[1,2,3] 1 0 0 0 1 0 | int64[3] 1 2 2",
               "error: size is int64[3], expected 4 or 5 sizes");
    CHECK_RULE("AffineGrid/20", "float32[1,2,3] 1 0 0 0 1 0 | int64[4] 1 1 0 2",
               "error: size[2] is 0, expected 1 or more");
    CHECK_RULE("CenterCropPad/18", "int8[5] 1 2 3 4 5 | int64[2] 2 2",
               "error: shape has 2 sizes, expected one for each of 1 axes");
    CHECK_RULE("CenterCropPad/18", "int8[1] 1 | int64[1] -2", "error: shape[0] is -2");
    CHECK_RULE("CenterCropPad/18 axes=[0,0]", "int8[1] 1 | int64[2] 1 1",
               "error: axes contains axis 0 twice");
    CHECK_RULE("Col2Im/18", "float32[1,2,2] 1 2 3 4 | int64[1] 4 | int64[1] 2",
               "error: the input is float32[1,2,2], expected (N, C * 2, 3) for these blocks");
    CHECK_RULE("Col2Im/18", "float32[1,2,2] 1 2 3 4 | int64[1] 4 | int64[2] 2 2",
               "error: image_shape has 1 sizes, but block_shape has 2; expected equal numbers");
    CHECK_RULE("Col2Im/18", "float32[1,2,2] 1 2 3 4 | int64[1] 2 | int64[1] 3",
               "error: the block spans 3 along axis 0 of an image of 2");
    CHECK_RULE("Col2Im/18 strides=[0]", "float32[1,1,1] 1 | int64[1] 1 | int64[1] 1",
               "error: strides[0] is 0, expected 1 or more");
    CHECK_RULE("Col2Im/18", "float32[1,1,1] 1 | int64[4] 1 1 1 1 | int64[4] 1 1 1 1",
               "error: an image of 4 axes; at most 3 are supported");
    CHECK_RULE("MaxUnpool/11 kernel_shape=[2]", "float32[1,1,1] 1 | int64[1,1,2] 0 0",
               "error: input I is int64[1,1,2], expected int64 of the shape of X, float32[1,1,1]");
    CHECK_RULE("MaxUnpool/11 kernel_shape=[2]", "float32[1,1,1] 1 | int64[1,1,1] 2",
               "error: index 2 is out of range [-2, 1]");
    CHECK_RULE("MaxUnpool/11 kernel_shape=[2]",
               "float32[1,1,1] 1 | int64[1,1,1] 0 | int64[3] 1 1 1",
               "error: output_shape is [1,1,1], expected at least [1,1,2]");
    CHECK_RULE("Det/11", "float32[2,3] 1 2 3 4 5 6",
               "error: input X is float32[2,3], expected square matrices");
    CHECK_RULE("RoiAlign/16", "float32[1,1,1,1] 1 | float32[1,5] 0 0 1 1 1 | int64[1] 0",
               "error: input rois is float32[1,5], expected (regions, 4)");
    CHECK_RULE("RoiAlign/16", "float32[1,1,1,1] 1 | float32[1,4] 0 0 1 1 | int64[2] 0 0",
               "error: input batch_indices is int64[2], expected int64[1]");
    CHECK_RULE("RoiAlign/16 mode=sum", "float32[1,1,1,1] 1 | float32[1,4] 0 0 1 1 | int64[1] 0",
               "error: mode is 'sum', expected avg or max");
    CHECK_RULE("RoiAlign/16 output_height=0",
               "float32[1,1,1,1] 1 | float32[1,4] 0 0 1 1 | int64[1] 0",
               "error: output_height is 0, expected 1 or more");
    CHECK_RULE("RoiAlign/16", "float32[1,1,1,1] 1 | float32[1,4] 0 0 1e9 1e9 | int64[1] 0",
               "error: region 0 requires 1000000000 x 1000000000 samples in each bin");
    CHECK_RULE("RoiAlign/16", "float32[1,1,0,1] | float32[1,4] 0 0 1 1 | int64[1] 0",
               "error: X has size 0 along axis 2, expected 1 to 16777216");
    CHECK_RULE("MaxRoiPool/1", "float32[1,1,1,1] 1 | float32[1,5] 0 0 0 1 1",
               "error: pooled_shape is not two sizes of 1 or more");
    CHECK_RULE("MaxRoiPool/1 pooled_shape=[1,1]", "float32[1,1,1,1] 1 | float32[1,5] 2 0 0 1 1",
               "error: region 0 refers to sample 2, but X has 1 samples");
    CHECK_RULE("DeformConv/19",
               "float32[1,1,2,2] 1 2 3 4 | float32[1,1,1,1] 1 | float32[1,2,1,2] 0 0 "
               "0 0",
               "error: input offset is float32[1,2,1,2], expected float32[1,2,2,2]");
    CHECK_RULE("DeformConv/19 offset_group=2",
               "float32[1,1,1,1] 1 | float32[1,1,1,1] 1 | float32[1,4,1,1] 0 0 0 0",
               "error: offset_group is 2, expected a divisor of the 1 channels of X");
    CHECK_RULE("LpPool/18 p=0 kernel_shape=[1]", "float32[1,1,1] 1",
               "error: p is 0, expected 1 or more");
    CHECK_RULE("NonMaxSuppression/11", "float32[1,1,4] 0 0 1 1 | float32[1,1,2] 1 1",
               "error: boxes are float32[1,1,4] and scores float32[1,1,2], expected "
               "float32[N,n,4] and float32[N,classes,n]");
    CHECK_RULE("NonMaxSuppression/11 center_point_box=2",
               "float32[1,1,4] 0 0 1 1 | float32[1,1,1] 1",
               "error: center_point_box is 2, expected 0 or 1");
    CHECK_RULE("Unique/11 axis=1", "int8[1] 1", "error: axis 1 is out of range for rank 1");

    CHECK_RULE("DFT/20", "float32[2,3] 1 2 3 4 5 6",
               "error: the input is float32[2,3], expected real or complex numbers along the last "
               "axis, of size 1 or 2");
    CHECK_RULE("DFT/20", "float32[1,2,1] 1 2 | - | int64[] 2",
               "error: axis is 2, which contains the real and imaginary parts");
    CHECK_RULE("DFT/20", "float32[1,2,1] 1 2 | int64[] 0",
               "error: a transform of length 0 over 2 samples, expected 1 to");
    CHECK_RULE("DFT/20 onesided=1", "float32[1,1,2] 1 2",
               "error: onesided is not defined for complex input");
    CHECK_RULE("DFT/20", "int32[1,1,1] 1", "error: DFT of int32 is not supported");
    CHECK_RULE("STFT/17", "float32[1,2,1] 1 2 | int64[] 0", "error: frame_step is 0");
    CHECK_RULE("STFT/17", "float32[1,2,1] 1 2 | int64[] 1 | - | int64[] 3",
               "error: frame_length is 3, expected 1 to the signal's 2 samples");
    CHECK_RULE("STFT/17", "float32[1,2,1] 1 2 | int64[] 1 | float32[1] 1 | int64[] 2",
               "error: window is float32[1], expected float32[2]");
    CHECK_RULE("HannWindow/17", "int64[] -1", "error: size is -1, expected 0 or more");
    CHECK_RULE("HannWindow/17", "int64[2] 1 2", "error: size is int64[2], expected one integer");
    CHECK_RULE("MelWeightMatrix/17",
               "int64[] 2 | int64[] 16 | int64[] 8000 | float32[] 0 | float32[] 90000",
               "error: upper_edge_hertz is 90000, which is above the 9 bins");
    CHECK_RULE("MelWeightMatrix/17",
               "int64[] 2000000000 | int64[] 1 | int64[] 8000 | float32[] 0 | float32[] 0",
               "error: a table of 1 x 2000000000 weights; at most 67108864 are supported");
    CHECK_RULE("MelWeightMatrix/17",
               "int64[] 0 | int64[] 16 | int64[] 8000 | float32[] 0 | float32[] 900",
               "error: num_mel_bins is 0, expected 1 or more");
    return test_finish();
}
