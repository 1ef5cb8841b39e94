// Small cases with known results, each run on the host and as a program, fused and unfused.
#include "lower_data/rule.h"

int main(void) {
    CHECK_RULE("GridSample/20 mode=nearest",
               "float32[1,1,2,2] 1 2 3 4 | float32[1,1,4,2] -0.5 -0.5 0.5 -0.5 0.5 0.5 -3 0",
               "float32[1,1,1,4] 1 2 4 0");
    CHECK_RULE("GridSample/16 mode=bilinear padding_mode=border",
               "float32[1,1,1,2] 1 3 | float32[1,1,3,2] 0 0 -9 0 9 9", "float32[1,1,1,3] 2 1 3");
    // Elements outside are skipped, not multiplied by zero, so infinities inside do not spread.
    CHECK_RULE("GridSample/20 mode=nearest", "float32[1,1,1,1] inf | float32[1,1,2,2] 0 0 5 5",
               "float32[1,1,1,2] inf 0");
    CHECK_RULE("GridSample/20 padding_mode=zeros",
               "float32[1,1,1,1] 2 | float32[1,1,2,2] nan 0 -1 0", "float32[1,1,1,2] nan 1");
    CHECK_RULE("GridSample/20", "float32[1,1,2] 1 3 | float32[1,1,1] 0", "float32[1,1,1] 2");
    CHECK_RULE("GridSample/20", "float32[1,0,2,2] | float32[1,1,1,2] 0 0", "float32[1,0,1,1]");
    CHECK_RULE("AffineGrid/20 align_corners=1", "float32[1,2,3] 2 0 1 0 3 0 | int64[4] 1 1 1 3",
               "float32[1,1,3,2] -1 -3 1 -3 3 -3");
    CHECK_RULE("AffineGrid/20", "float32[1,2,3] 1 0 0 0 1 0 | int64[4] 1 1 2 2",
               "float32[1,2,2,2] -0.5 -0.5 0.5 -0.5 -0.5 0.5 0.5 0.5");
    CHECK_RULE("CenterCropPad/18", "int8[5] 1 2 3 4 5 | int64[1] 2", "int8[2] 2 3");
    CHECK_RULE("CenterCropPad/18", "float64[2] 1 2 | int64[1] 5", "float64[5] 0 1 2 0 0");
    CHECK_RULE("CenterCropPad/18 axes=[-1]", "bool[2,1] 1 1 | int64[1] 3", "bool[2,3] 0 1 0 0 1 0");
    CHECK_RULE("Col2Im/18 strides=[1]", "int32[1,2,3] 1 2 3 4 5 6 | int64[1] 4 | int64[1] 2",
               "int32[1,1,4] 1 6 8 6");
    CHECK_RULE("MaxUnpool/11 kernel_shape=[2] strides=[2]", "float32[1,1,2] 5 7 | int64[1,1,2] 1 2",
               "float32[1,1,4] 0 5 7 0");
    CHECK_RULE("Det/11", "float32[2,2,2] 4 2 2 3 0 1 1 0", "float32[2] 8 -1");
    CHECK_RULE("Det/22", "float32[2,2] 0 0 0 0", "float32[] 0");
    CHECK_RULE("Det/22", "float32[3,0,0]", "float32[3] 1 1 1");
    CHECK_RULE("Det/22", "float32[1,1] nan", "float32[] nan");
    CHECK_RULE("RoiAlign/16 output_height=1 output_width=2 sampling_ratio=1",
               "float32[1,1,1,4] 1 2 3 4 | float32[1,4] 0 0 4 1 | int64[1] 0",
               "float32[1,1,1,2] 1.5 3.5");
    // The second region requires more samples than the first.
    CHECK_RULE("RoiAlign/16 coordinate_transformation_mode=output_half_pixel",
               "float32[1,1,1,5] 1 2 3 4 5 | float32[2,4] 0 0 1 0 0 0 4 0 | int64[2] 0 0",
               "float32[2,1,1,1] 1.5 3");
    CHECK_RULE("RoiAlign/16", "float32[1,1,1,1] 1 | float32[1,4] 3 3 3 3 | int64[1] 0",
               "float32[1,1,1,1] 0");
    CHECK_RULE("RoiAlign/16 sampling_ratio=1",
               "float32[1,1,2,2] 1 2 3 4 | float32[1,4] 0 0 2 2 | int64[1] 1",
               "error: is out of range [-5, 4]");
    CHECK_RULE("RoiAlign/16 sampling_ratio=1",
               "float32[1,1,2,2] 1 2 3 4 | float32[1,4] 0 0 2 2 | int64[1] -1",
               "error: is out of range [-5, 4]");
    // A region outside of the plane does not hide that its batch index is out of range.
    CHECK_RULE("RoiAlign/16 sampling_ratio=1",
               "float32[1,1,2,2] 1 2 3 4 | float32[1,4] 9 9 12 12 | int64[1] 1",
               "error: is out of range [-5, 4]");
    CHECK_RULE("RoiAlign/16 sampling_ratio=1",
               "float32[1,1,2,2] inf 2 3 4 | float32[1,4] 9 9 12 12 | int64[1] 0",
               "float32[1,1,1,1] 0");
    CHECK_RULE("RoiAlign/16", "float32[1,2,2,2] 1 2 3 4 5 6 7 8 | float32[0,4] | int64[0]",
               "float32[0,2,1,1]");
    CHECK_RULE("MaxRoiPool/1 pooled_shape=[1,2]",
               "float32[1,1,2,4] 1 2 3 4 8 7 6 5 | float32[2,5] 0 0 0 3 1 0 9 9 9 9",
               "float32[2,1,1,2] 8 6 0 0");
    CHECK_RULE("DeformConv/19",
               "float32[1,1,2,2] 1 2 3 4 | float32[1,1,1,1] 10 | "
               "float32[1,2,2,2] 0.5 0 0 0 0 -0.5 0 2 | float32[1] 1",
               "float32[1,1,2,2] 21 16 31 1");
    CHECK_RULE("LpPool/18 p=1 kernel_shape=[2]", "float32[1,1,3] 1 -2 3", "float32[1,1,2] 3 5");
    CHECK_RULE("LpPool/18 p=3 kernel_shape=[2]", "float32[1,1,3] 0 -2 0", "float32[1,1,2] 2 2");
    CHECK_RULE("GlobalLpPool/2 p=3", "float32[1,1,3] 0 -2 0", "float32[1,1,1] 2");
    CHECK_RULE("NonMaxSuppression/10", "float32[1,1,4] 0 0 1 1 | float32[1,1,1] 1", "int64[0,3]");
    CHECK_RULE("NonMaxSuppression/11",
               "float32[1,2,4] 0 0 1 1 0 0 1 1 | float32[1,1,2] nan 1 | int64[] 2",
               "int64[1,3] 0 0 1");
    CHECK_RULE("Unique/11 outputs=4", "float32[5] 2 nan -0 0 nan",
               "float32[3] -0 2 nan | int64[3] 2 0 1 | int64[5] 1 2 0 0 2 | int64[3] 2 1 2");
    CHECK_RULE("Unique/11 sorted=0 axis=1", "int8[2,3] 2 1 2 3 3 3", "int8[2,2] 2 1 3 3");
    CHECK_RULE("Unique/11", "uint64[3] 18446744073709551615 1 1",
               "uint64[2] 1 18446744073709551615");
    CHECK_RULE("Unique/11 outputs=4", "int32[0]", "int32[0] | int64[0] | int64[0] | int64[0]");
    // Items without elements are equal, and their number costs nothing.
    CHECK_RULE("Unique/11 axis=1 outputs=4", "int8[0,3]",
               "int8[0,1] | int64[1] 0 | int64[3] 0 0 0 | int64[1] 3");
    CHECK_RULE("Unique/11 axis=0 sorted=0 outputs=4", "float32[0,0]",
               "float32[0,0] | int64[0] | int64[0] | int64[0]");
    CHECK_RULE("Unique/11 axis=0 outputs=2", "float32[2000000000,0]", "float32[1,0] | int64[1] 0");

    CHECK_RULE("DFT/20", "float32[1,4,1] 1 2 3 4", "float32[1,4,2] 10 0 -2 2 -2 0 -2 -2");
    CHECK_RULE("DFT/17 onesided=1", "float32[1,4,1] 1 2 3 4 | int64[] 2",
               "float32[1,2,2] 3 0 -1 0");
    CHECK_RULE("DFT/20 inverse=1", "float32[1,2,2] 3 0 -1 0", "float32[1,2,2] 1 0 2 0");
    CHECK_RULE("DFT/20 inverse=1 onesided=1", "float32[1,3,2] 10 0 -2 2 -2 0",
               "float32[1,4,1] 1 2 3 4");
    CHECK_RULE("DFT/20", "float32[2,2,1] 1 2 3 4 | - | int64[] 0",
               "float32[2,2,2] 4 0 6 0 -2 0 -2 0");
    CHECK_RULE("STFT/17", "float32[1,5,1] 1 2 3 4 5 | int64[] 2 | float32[2] 1 2",
               "float32[1,2,2,2] 5 0 -3 0 11 0 -5 0");
    CHECK_RULE("STFT/17 onesided=0", "float32[1,2,2] 1 1 2 0 | int64[] 1",
               "float32[1,1,2,2] 3 1 -1 1");
    CHECK_RULE("DFT/20", "float64[1,4,1] 1 2 3 4", "float64[1,4,2] 10 0 -2 2 -2 0 -2 -2");
    CHECK_RULE("DFT/20 inverse=1 onesided=1", "float64[1,3,2] 10 0 -2 2 -2 0",
               "float64[1,4,1] 1 2 3 4");
    CHECK_RULE("STFT/17", "float64[1,2,1] 1 2 | int64[] 1 | float64[2] 1 2",
               "float64[1,1,2,2] 5 0 -3 0");
    CHECK_RULE("HannWindow/17", "int32[] 4", "float32[4] 0 0.5 1 0.5");
    CHECK_RULE("HannWindow/17 output_datatype=10", "int64[] 4", "float16[4] 0 14336 15360 14336");
    CHECK_RULE("BlackmanWindow/17", "int64[] 0", "float32[0]");
    return test_finish();
}
