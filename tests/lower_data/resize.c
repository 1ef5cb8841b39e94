// Resize and Upsample: small cases with exact results.
#include "lower_data/rule.h"

static void nearest(void) {
    // Integer factors repeat elements; other factors use a gather table; both must match the
    // definition.
    CHECK_RULE("Upsample/9", "int8[1,2] 1 2 | float32[2] 2 3", "int8[2,6] 1 1 1 2 2 2 1 1 1 2 2 2");
    CHECK_RULE("Upsample/7 scales=[1.0,1.5]", "int64[1,2] 1 2", "int64[1,3] 1 1 2");
    CHECK_RULE("Upsample/1 height_scale=2.0 width_scale=1.0", "bool[1,1,1,2] 1 0",
               "bool[1,1,2,2] 1 0 1 0");
    // Before opset 11 the indices of a shrinking axis round up: positions 0 and 5/3.
    CHECK_RULE("Resize/10", "int8[4] 1 2 3 4 | float32[1] 0.6", "int8[2] 1 3");
    CHECK_RULE("Resize/10", "int8[2,4] 1 2 3 4 5 6 7 8 | float32[2] 2 0.6",
               "int8[4,2] 1 3 1 3 5 7 5 7");
    // 0.5 rounds down
    CHECK_RULE("Resize/13", "int8[4] 1 2 3 4 | - | float32[1] 0.5", "int8[2] 1 3");
    CHECK_RULE("Resize/13 nearest_mode=round_prefer_ceil", "int8[4] 1 2 3 4 | - | float32[1] 0.5",
               "int8[2] 2 4");
    CHECK_RULE("Resize/13 nearest_mode=ceil", "int8[2] 1 2 | - | - | int64[1] 4",
               "int8[4] 1 2 2 2");
    CHECK_RULE("Resize/13 nearest_mode=floor coordinate_transformation_mode=asymmetric",
               "int8[3] 1 2 3 | - | - | int64[1] 5", "int8[5] 1 1 2 2 3");
    CHECK_RULE("Resize/11 coordinate_transformation_mode=tf_half_pixel_for_nn nearest_mode=floor",
               "int8[3] 1 2 3 | float32[0] | float32[0] | int64[1] 2", "int8[2] 1 3");
    CHECK_RULE("Resize/18 axes=[1] keep_aspect_ratio_policy=not_larger",
               "int8[1,2] 1 2 | - | - | int64[1] 4", "int8[1,4] 1 1 2 2");
    CHECK_RULE("Resize/18 keep_aspect_ratio_policy=not_larger",
               "int8[2,2] 1 2 3 4 | - | - | int64[2] 2 8", "int8[2,2] 1 2 3 4");
    CHECK_RULE("Resize/13 coordinate_transformation_mode=tf_crop_and_resize "
               "extrapolation_value=9.0",
               "int64[3] 1 2 3 | float32[2] 0.5 1.5 | - | int64[1] 3", "int64[3] 2 3 9");
}

static void linear(void) {
    CHECK_RULE("Resize/13 mode=linear", "float32[2] 0 4 | - | - | int64[1] 4",
               "float32[4] 0 1 3 4");
    CHECK_RULE("Resize/13 mode=linear coordinate_transformation_mode=align_corners",
               "float32[2] 0 4 | - | - | int64[1] 5", "float32[5] 0 1 2 3 4");
    CHECK_RULE("Upsample/9 mode=linear", "float32[2] 0 4 | float32[1] 2", "float32[4] 0 2 4 4");
    CHECK_RULE("Resize/13 mode=linear coordinate_transformation_mode=pytorch_half_pixel",
               "float32[3] 5 6 7 | - | - | int64[1] 1", "float32[1] 5");
    CHECK_RULE("Resize/13 mode=linear coordinate_transformation_mode=half_pixel_symmetric",
               "float32[4] 0 4 8 12 | - | float32[1] 0.6", "float32[2] 2.66666675 9.33333302");
    CHECK_RULE("Resize/18 mode=linear antialias=1", "float32[4] 0 4 8 12 | - | - | int64[1] 2",
               "float32[2] 2.5 9.5");
    CHECK_RULE("Resize/13 mode=linear coordinate_transformation_mode=tf_crop_and_resize "
               "extrapolation_value=9.0",
               "float32[3] 1 2 3 | float32[2] 0.25 1.25 | - | int64[1] 3", "float32[3] 1.5 2.5 9");
    // Integers round to nearest, ties to even.
    CHECK_RULE("Resize/13 mode=linear coordinate_transformation_mode=align_corners",
               "uint8[2] 0 5 | - | - | int64[1] 3", "uint8[3] 0 2 5");
    CHECK_RULE("Resize/13 mode=linear", "float32[2,0] | - | - | int64[2] 4 0", "float32[4,0]");
}

static void cubic(void) {
    CHECK_RULE("Resize/13 mode=cubic coordinate_transformation_mode=align_corners",
               "float32[3] 1 2 3 | - | - | int64[1] 3", "float32[3] 1 2 3");
    // Halfway between elements with a = -0.5: -1/16, 9/16, 9/16, -1/16.
    CHECK_RULE("Resize/13 mode=cubic cubic_coeff_a=-0.5 "
               "coordinate_transformation_mode=align_corners",
               "float32[4] 0 16 32 64 | - | - | int64[1] 7", "float32[7] 0 7 16 23 32 49 64");
    CHECK_RULE("Resize/13 mode=cubic cubic_coeff_a=-0.5 exclude_outside=1 "
               "coordinate_transformation_mode=align_corners",
               "float32[2] 3 3 | - | - | int64[1] 3", "float32[3] 3 3 3");
    // An overshoot saturates.
    CHECK_RULE("Resize/13 mode=cubic coordinate_transformation_mode=align_corners",
               "uint8[4] 0 255 255 0 | - | - | int64[1] 7", "uint8[7] 0 128 255 255 255 128 0");
}

int main(void) {
    nearest();
    linear();
    cubic();
    return test_finish();
}
