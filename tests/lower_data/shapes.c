// Rules that reshape, slice, concatenate and repeat.
#include "lower_data/rule.h"

static void reshaping(void) {
    CHECK_RULE("Reshape/13", "int64[2,3] 1 2 3 4 5 6 | int64[2] 3 -1", "int64[3,2] 1 2 3 4 5 6");
    CHECK_RULE("Reshape/13", "int8[2,3] 1 2 3 4 5 6 | int64[3] 0 1 -1", "int8[2,1,3] 1 2 3 4 5 6");
    CHECK_RULE("Reshape/1 shape=[3,2]", "bool[2,3] 1 0 1 0 1 0", "bool[3,2] 1 0 1 0 1 0");
    // An empty kv cache: zeros copy the dimensions, and -1 is inferred although no elements are
    // left.
    CHECK_RULE("Reshape/14", "float32[2,0,6] | int64[4] 0 0 2 -1", "float32[2,0,2,3]");
    CHECK_RULE("Reshape/14 allowzero=1", "float32[2,0] | int64[2] 0 7", "float32[0,7]");
    CHECK_RULE("Flatten/13 axis=-1", "uint8[1,2,2] 1 2 3 4", "uint8[2,2] 1 2 3 4");
    CHECK_RULE("Flatten/9 axis=0", "uint8[2,2] 1 2 3 4", "uint8[1,4] 1 2 3 4");
    CHECK_RULE("Squeeze/13", "int32[1,2,1] 5 6", "int32[2] 5 6");
    CHECK_RULE("Squeeze/13", "int32[1,2,1] 5 6 | int64[1] -1", "int32[1,2] 5 6");
    CHECK_RULE("Squeeze/11 axes=[0]", "int32[1,2,1] 5 6", "int32[2,1] 5 6");
    // An empty list of axes does not mean all axes.
    CHECK_RULE("Squeeze/13", "int32[1,2] 5 6 | int64[0]", "int32[1,2] 5 6");
    CHECK_RULE("Unsqueeze/13", "int32[2] 5 6 | int64[2] -1 0", "int32[1,2,1] 5 6");
    CHECK_RULE("Unsqueeze/1 axes=[0,2]", "int32[2] 5 6", "int32[1,2,1] 5 6");
    CHECK_RULE("Expand/13", "float32[2,1] 1 2 | int64[3] 2 1 2", "float32[2,2,2] 1 1 2 2 1 1 2 2");
    CHECK_RULE("Expand/13", "float32[2] 1 2 | int64[1] 1", "float32[2] 1 2");
    CHECK_RULE("Shape/15 start=-2", "float32[2,0,4]", "int64[2] 0 4");
    CHECK_RULE("Shape/15 start=1 end=-1", "float32[2,0,4]", "int64[1] 0");
    CHECK_RULE("Shape/15 start=2 end=1", "float32[2,0,4]", "int64[0]");
    CHECK_RULE("Size/13", "float32[2,3] 1 2 3 4 5 6", "int64[] 6");
}

static void cutting(void) {
    const char *backwards = "int16[4] 1 2 3 4 | int64[1] 9223372036854775807 | "
                            "int64[1] -9223372036854775808 | int64[1] 0 | int64[1] -1";
    CHECK_RULE("Slice/13", backwards, "int16[4] 4 3 2 1");
    CHECK_RULE("Slice/13",
               "int32[4] 1 2 3 4 | int64[1] -1 | int64[1] -9223372036854775808 | int64[1] 0 | "
               "int64[1] -9223372036854775808",
               "int32[1] 4");
    CHECK_RULE("Slice/13",
               "int32[4] 1 2 3 4 | int32[1] 1 | int32[1] 2147483647 | int32[1] -1 | int32[1] 2",
               "int32[2] 2 4");
    CHECK_RULE("Slice/13", "int32[4] 1 2 3 4 | int64[1] 4 | int64[1] 2", "int32[0]");
    CHECK_RULE("Slice/13", "int32[4] 1 2 3 4 | int64[1] 4 | int64[1] 9 | int64[1] 0 | int64[1] -1",
               "int32[0]");
    CHECK_RULE("Slice/9 starts=[0,-2] ends=[1,9] axes=[0,1]", "int32[2,3] 1 2 3 4 5 6",
               "int32[1,2] 2 3");
    CHECK_RULE("Slice/7 starts=[1] ends=[2]", "int32[2,3] 1 2 3 4 5 6", "int32[1,3] 4 5 6");
    CHECK_RULE("Split/13 outputs=2 axis=-1", "int8[1,3] 1 2 3 | int64[2] 1 2",
               "int8[1,1] 1 | int8[1,2] 2 3");
    CHECK_RULE("Split/11 outputs=2 split=[3,0]", "int8[3] 1 2 3", "int8[3] 1 2 3 | int8[0]");
    CHECK_RULE("Split/2 outputs=2", "int8[4] 1 2 3 4", "int8[2] 1 2 | int8[2] 3 4");
    CHECK_RULE("Split/18 outputs=3 num_outputs=3", "int8[7] 1 2 3 4 5 6 7",
               "int8[3] 1 2 3 | int8[3] 4 5 6 | int8[1] 7");
    CHECK_RULE("Split/18 outputs=4 num_outputs=4", "int8[5] 1 2 3 4 5",
               "int8[2] 1 2 | int8[2] 3 4 | int8[1] 5 | int8[0]");
}

static void joining(void) {
    CHECK_RULE("Concat/13 axis=-1", "int8[2,1] 1 2 | int8[2,0] | int8[2,2] 3 4 5 6",
               "int8[2,3] 1 3 4 2 5 6");
    CHECK_RULE("Concat/1", "int8[1,1] 1 | int8[1,1] 2", "int8[1,2] 1 2"); // axis 1 by default
    CHECK_RULE("Concat/13 axis=0", "float64[1] 0.1 | float64[1] 2",
               "float64[2] "
               "0.10000000000000001 2");
    CHECK_RULE("Tile/13", "int32[1,2] 1 2 | int64[2] 2 2", "int32[2,4] 1 2 1 2 1 2 1 2");
    CHECK_RULE("Tile/13", "int32[2,2] 1 2 3 4 | int64[2] 2 2",
               "int32[4,4] 1 2 1 2 3 4 3 4 1 2 1 2 3 4 3 4");
    CHECK_RULE("Tile/13", "int32[2] 1 2 | int64[1] 0", "int32[0]");
    CHECK_RULE("Tile/13", "int8[0,1,1,1,1,2,2,2] | int64[8] 1 1 1 1 1 2 2 2",
               "int8[0,1,1,1,1,4,4,4]");
    CHECK_RULE("Tile/1", "float32[2] 1 2 | float32[] 2 | float32[] 0", "float32[4] 1 2 1 2");
    // With rank 8 no dimension is left for the repetition.
    CHECK_RULE("Tile/13", "uint8[1,1,1,1,1,1,2,2] 1 2 3 4 | int64[8] 1 1 1 1 1 1 2 2",
               "uint8[1,1,1,1,1,1,4,4] 1 2 1 2 3 4 3 4 1 2 1 2 3 4 3 4");
    CHECK_RULE("DepthToSpace/13 blocksize=2", "int8[1,4,1,2] 0 1 2 3 4 5 6 7",
               "int8[1,1,2,4] 0 2 1 3 4 6 5 7");
    CHECK_RULE("DepthToSpace/13 blocksize=2 mode=CRD", "int8[1,8,1,1] 0 1 2 3 4 5 6 7",
               "int8[1,2,2,2] 0 1 2 3 4 5 6 7");
    CHECK_RULE("DepthToSpace/13 blocksize=2 mode=DCR", "int8[1,8,1,1] 0 1 2 3 4 5 6 7",
               "int8[1,2,2,2] 0 2 4 6 1 3 5 7");
    CHECK_RULE("SpaceToDepth/13 blocksize=2", "int8[1,1,2,4] 0 2 1 3 4 6 5 7",
               "int8[1,4,1,2] 0 1 2 3 4 5 6 7");
}

static void padding(void) {
    CHECK_RULE("Pad/13", "float32[2] 1 2 | int64[2] 1 2 | float32[] 9", "float32[5] 9 1 2 9 9");
    CHECK_RULE("Pad/13", "bool[2] 1 1 | int64[2] 1 0", "bool[3] 0 1 1");
    CHECK_RULE("Pad/10 pads=[0,1,0,0] value=-1.5", "float32[1,2] 1 2", "float32[1,3] -1.5 1 2");
    CHECK_RULE("Pad/1 paddings=[1,0]", "float32[2] 1 2", "float32[3] 0 1 2");
    CHECK_RULE("Pad/13", "int64[4] 1 2 3 4 | int64[2] -1 1", "int64[4] 2 3 4 0");
    CHECK_RULE("Pad/13", "int64[3] 1 2 3 | int64[2] -4 3 | int64[] 7", "int64[2] 7 7");
    CHECK_RULE("Pad/18", "int8[1,2] 1 2 | int64[2] 1 1 | - | int64[1] -1", "int8[1,4] 0 1 2 0");
    CHECK_RULE("Pad/18 mode=edge", "int8[2] 1 2 | int64[2] 2 1", "int8[5] 1 1 1 2 2");
    CHECK_RULE("Pad/18 mode=reflect", "int8[3] 1 2 3 | int64[2] 2 1", "int8[6] 3 2 1 2 3 2");
    CHECK_RULE("Pad/18 mode=reflect", "int8[2] 1 2 | int64[2] 3 2", "int8[7] 2 1 2 1 2 1 2");
    CHECK_RULE("Pad/18 mode=reflect", "int8[1] 4 | int64[2] 1 1", "int8[3] 4 4 4");
    CHECK_RULE("Pad/19 mode=wrap", "int8[3] 1 2 3 | int64[2] 1 4", "int8[8] 3 1 2 3 1 2 3 1");
    CHECK_RULE("Pad/18 mode=reflect", "int8[4] 1 2 3 4 | int64[2] -1 1", "int8[4] 2 3 4 3");
}

static void generating(void) {
    CHECK_RULE("Constant/13 value={int32[2] 1 2}", "", "int32[2] 1 2");
    CHECK_RULE("Constant/13 value_ints=[3,-4]", "", "int64[2] 3 -4");
    CHECK_RULE("Constant/13 value_float=1.5", "", "float32[] 1.5");
    CHECK_RULE("ConstantOfShape/9", "int64[2] 1 2", "float32[1,2] 0 0");
    CHECK_RULE("ConstantOfShape/9 value={bool[1] 1}", "int64[0]", "bool[] 1");
    CHECK_RULE("ConstantOfShape/9 value={int64[1] 7}", "int64[2] 0 3", "int64[0,3]");
    CHECK_RULE("EyeLike/9 k=-1 dtype=7", "float32[2,3] 0 0 0 0 0 0", "int64[2,3] 0 0 0 1 0 0");
    CHECK_RULE("EyeLike/9 dtype=11", "float32[2,2] 0 0 0 0", "float64[2,2] 1 0 0 1");
    CHECK_RULE("EyeLike/9 k=9223372036854775807", "bool[1,1] 1", "bool[1,1] 0");
    CHECK_RULE("Range/11", "int64[] 5 | int64[] -2 | int64[] -3", "int64[3] 5 2 -1");
    CHECK_RULE("Range/11", "int32[] 0 | int32[] 5 | int32[] -1", "int32[0]");
    CHECK_RULE("Range/11", "int16[] 1 | int16[] 4 | int16[] 2", "int16[2] 1 3");
    // In binary32, 0.3 / 0.1 is slightly more than 3.
    CHECK_RULE("Range/11", "float32[] 0 | float32[] 0.3 | float32[] 0.1",
               "float32[4] 0 0.100000001 0.200000003 0.300000012");
    CHECK_RULE("Range/11",
               "int64[] -9223372036854775808 | int64[] 9223372036854775807 | "
               "int64[] 9223372036854775807",
               "int64[3] -9223372036854775808 -1 9223372036854775806");
    CHECK_RULE("Trilu/14 upper=0", "int8[2,3] 1 2 3 4 5 6", "int8[2,3] 1 0 0 4 5 0");
    CHECK_RULE("Trilu/14", "float64[2,2] 1 2 3 4 | int64[] 1", "float64[2,2] 0 2 0 0");
    CHECK_RULE("Trilu/14", "int64[2,2] 1 2 3 4 | int64[] -9223372036854775808",
               "int64[2,2] 1 2 3 4");
    CHECK_RULE("OneHot/11", "int64[3] 0 -1 5 | int64[] 3 | float32[2] 0 2",
               "float32[3,3] 2 0 0 0 0 2 0 0 0");
    CHECK_RULE("OneHot/9", "int64[2] 0 -1 | int64[1] 2 | int64[2] 3 4", "int64[2,2] 4 3 3 3");
    CHECK_RULE("OneHot/11 axis=0", "float32[2] 1 0 | float32[] 2 | bool[2] 0 1",
               "bool[2,2] 0 1 1 0");
}

int main(void) {
    reshaping();
    cutting();
    joining();
    padding();
    generating();
    return test_finish();
}
