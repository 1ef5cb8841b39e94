// Rules that select, write and order elements by index.
#include "lower_data/rule.h"

static void gathering(void) {
    CHECK_RULE("Gather/13", "int8[3,2] 1 2 3 4 5 6 | int64[2] -1 0", "int8[2,2] 5 6 1 2");
    CHECK_RULE("Gather/13 axis=1", "int8[3,2] 1 2 3 4 5 6 | int32[] -1", "int8[3] 2 4 6");
    CHECK_RULE("Gather/1 axis=1", "float64[1,2] 1 2 | int64[1,1] 0", "float64[1,1,1] 1");
    CHECK_RULE("Gather/13", "int64[4] 7 8 9 10 | int64[2,2] 3 2 1 0", "int64[2,2] 10 9 8 7");
    CHECK_RULE("Gather/13", "int8[0,2] | int64[0]", "int8[0,2]");
    CHECK_RULE("Gather/13", "int8[3] 1 2 3 | int64[] 3", "error: index 3 is out of range [-3, 2]");
    CHECK_RULE("Gather/13", "int8[3] 1 2 3 | int64[2] 0 -4",
               "error: index -4 is out of range [-3, 2]");
    CHECK_RULE("GatherElements/13 axis=1", "int16[2,2] 1 2 3 4 | int64[2,3] 0 0 -1 1 0 0",
               "int16[2,3] 1 1 2 4 3 3");
    CHECK_RULE("GatherElements/11", "int16[2,2] 1 2 3 4 | int32[1,1] 1", "int16[1,1] 3");
    CHECK_RULE("GatherND/13", "int32[2,2] 1 2 3 4 | int64[2,1] 1 0", "int32[2,2] 3 4 1 2");
    CHECK_RULE("GatherND/13", "int32[2,2] 1 2 3 4 | int64[2] -1 0", "int32[] 3");
    CHECK_RULE("GatherND/12 batch_dims=1", "int32[2,2,1] 1 2 3 4 | int64[2,1] 1 0",
               "int32[2,1] 2 3");
    CHECK_RULE("ReverseSequence/10", "int8[3,2] 1 2 3 4 5 6 | int64[2] 3 2",
               "int8[3,2] 5 4 3 2 1 6");
    CHECK_RULE("ReverseSequence/10 time_axis=1 batch_axis=0",
               "int8[2,3] 1 2 3 4 5 6 | "
               "int64[2] 1 3",
               "int8[2,3] 1 2 3 6 5 4");
    CHECK_RULE("Compress/11 axis=1", "int8[2,3] 1 2 3 4 5 6 | bool[2] 0 1", "int8[2,1] 2 5");
    CHECK_RULE("Compress/9", "int8[2,3] 1 2 3 4 5 6 | bool[5] 1 0 0 1 1", "int8[3] 1 4 5");
    CHECK_RULE("NonZero/13", "float32[2,2] 0 nan -0 1e-45", "int64[2,2] 0 1 1 1");
    CHECK_RULE("NonZero/13", "bool[] 1", "int64[0,1]");
}

static void scattering(void) {
    CHECK_RULE("ScatterElements/18", "int8[3] 1 2 3 | int64[2] -1 0 | int8[2] 8 9",
               "int8[3] 9 2 8");
    // The last of several updates to one element remains.
    CHECK_RULE("Scatter/9", "float64[2] 1 2 | int32[3] 0 0 0 | float64[3] 3 4 5", "float64[2] 5 2");
    CHECK_RULE("ScatterElements/18 axis=1 reduction=add",
               "int32[2,2] 1 2 3 4 | int64[1,3] 1 1 0 | int32[1,3] 10 20 30",
               "int32[2,2] 31 32 3 4");
    // Sequential additions, not a chunked sum: 2^24 + 1 stays 2^24, twice.
    CHECK_RULE("ScatterElements/18 reduction=add",
               "float32[1] 16777216 | int64[3] 0 0 0 | float32[3] 1 1 4", "float32[1] 16777220");
    CHECK_RULE("ScatterElements/18 reduction=max", "int8[2] -5 7 | int64[2] 0 1 | int8[2] 3 -1",
               "int8[2] 3 7");
    CHECK_RULE("ScatterElements/18 reduction=min",
               "float32[2] 1 nan | int64[2] 0 1 | float32[2] -0 1", "float32[2] -0 nan");
    CHECK_RULE("ScatterElements/18 reduction=mul", "int16[1] 300 | int64[1] 0 | int16[1] 300",
               "int16[1] 24464"); // wraps
    CHECK_RULE("ScatterElements/18", "int8[2] 1 2 | int64[0] | int8[0]", "int8[2] 1 2");
    CHECK_RULE("ScatterND/18", "int8[2,2] 1 2 3 4 | int64[1,1] -1 | int8[1,2] 8 9",
               "int8[2,2] 1 2 8 9");
    CHECK_RULE("ScatterND/16 reduction=add", "int64[2] 1 2 | int64[3,1] 1 1 1 | int64[3] 10 20 30",
               "int64[2] 1 62");
    CHECK_RULE("ScatterND/18 reduction=mul",
               "uint8[2,2] 1 2 3 4 | int64[2,2] 0 1 1 1 | uint8[2] 3 5", "uint8[2,2] 1 6 3 20");
    CHECK_RULE("ScatterND/11", "int8[2,1] 1 2 | int64[1] 0 | int8[1] 9", "int8[2,1] 9 2");
}

static void ordering(void) {
    CHECK_RULE("TopK/11 outputs=2", "float32[4] 1 3 nan 3 | int64[1] 3",
               "float32[3] nan 3 3 | int64[3] 2 1 3");
    CHECK_RULE("TopK/11 outputs=2 largest=0", "float32[4] 1 -inf nan 1 | int64[1] 4",
               "float32[4] -inf 1 1 nan | int64[4] 1 0 3 2");
    CHECK_RULE("TopK/1 outputs=2 k=1 axis=0", "float32[2,2] 1 4 3 2",
               "float32[1,2] 3 4 | int64[1,2] 1 0");
    CHECK_RULE("TopK/11 outputs=2 axis=0", "int16[3,1] 5 -7 6 | int64[1] 2",
               "int16[2,1] 6 5 | int64[2,1] 2 0");
    CHECK_RULE("TopK/10 outputs=2", "float32[2] 1 2 | int64[1] 0", "float32[0] | int64[0]");
    CHECK_RULE("ArgMax/13 axis=1", "float32[2,3] 1 2 2 nan 3 nan", "int64[2,1] 1 0");
    CHECK_RULE("ArgMax/12 axis=1 select_last_index=1 keepdims=0", "float32[2,3] 1 2 2 nan 3 nan",
               "int64[2] 2 0"); // the first NaN wins nevertheless
    CHECK_RULE("ArgMin/7", "int32[3] 2 -2 -2", "int64[1] 1");
    CHECK_RULE("ArgMax/13", "uint8[3] 1 255 0", "int64[1] 1");
}

static void running(void) {
    CHECK_RULE("CumSum/14", "int32[4] 1 2 3 4 | int64[] 0", "int32[4] 1 3 6 10");
    CHECK_RULE("CumSum/14 exclusive=1 reverse=1", "int64[4] 1 2 3 4 | int32[1] -1",
               "int64[4] 9 7 4 0");
    CHECK_RULE("CumSum/11", "float32[2,2] 1 2 3 4 | int64[] 0", "float32[2,2] 1 2 4 6");
    CHECK_RULE("CumProd/26 exclusive=1", "float32[3] 2 3 4 | int64[] 0", "float32[3] 1 2 6");
}

int main(void) {
    gathering();
    scattering();
    ordering();
    running();
    return test_finish();
}
