// Reductions: axes in both forms, empty sets, integers, and special values.
#include "lower_data/rule.h"

static void axes(void) {
    CHECK_RULE("ReduceSum/11 axes=[-1] keepdims=0", "float32[2,2] 1 2 3 4", "float32[2] 3 7");
    CHECK_RULE("ReduceSum/13", "float32[2,2] 1 2 3 4 | int64[1] 0", "float32[1,2] 4 6");
    CHECK_RULE("ReduceSum/13", "float32[2,2] 1 2 3 4", "float32[1,1] 10");
    CHECK_RULE("ReduceSum/13 noop_with_empty_axes=1", "float32[2] -0 2 | int64[0]",
               "float32[2] -0 2");
    CHECK_RULE("ReduceSum/13", "float32[2] -0 -0 | int64[0]", "float32[1] 0");
    CHECK_RULE("ReduceSumSquare/18 noop_with_empty_axes=1", "float32[2] -3 2", "float32[2] 9 4");
    CHECK_RULE("ReduceL1/18 noop_with_empty_axes=1", "float32[2] -3 2", "float32[2] 3 2");
    CHECK_RULE("ReduceMax/18 keepdims=0", "float32[] 5", "float32[] 5");
}

static void values(void) {
    CHECK_RULE("ReduceMax/13", "float32[3] 1 nan 3", "float32[1] nan");
    CHECK_RULE("ReduceMax/13", "float32[2] -0 0", "float32[1] 0");
    CHECK_RULE("ReduceMin/13", "float32[2] 0 -0", "float32[1] -0");
    CHECK_RULE("ReduceMax/20", "bool[2,2] 0 1 0 0 | int64[1] 1", "bool[2,1] 1 0");
    CHECK_RULE("ReduceMin/20", "int8[3] 4 -128 9", "int8[1] -128");
    CHECK_RULE("ReduceMax/20", "uint16[3] 4 65535 9", "uint16[1] 65535");
    CHECK_RULE("ReduceSum/13", "int32[2] 2147483647 1", "int32[1] -2147483648");
    CHECK_RULE("ReduceMean/18", "float32[3] 1 0 0", "float32[1] 0.333333343");
    CHECK_RULE("ReduceMean/18", "int32[2] -3 0", "int32[1] -1"); // towards zero
    CHECK_RULE("ReduceMean/18", "uint32[2] 4294967295 0", "uint32[1] 2147483647");
    CHECK_RULE("ReduceMean/18", "int64[2] -3 0", "int64[1] -1");
    CHECK_RULE("ReduceProd/18", "int64[3] -3 5 7", "int64[1] -105");
    CHECK_RULE("ReduceL2/18", "float32[2] 3 4", "float32[1] 5");
    CHECK_RULE("ReduceL2/18", "int32[2] 3 5", "int32[1] 5"); // sqrt(34), truncated
    CHECK_RULE("ReduceL1/18", "int32[2] -3 5", "int32[1] 8");
    CHECK_RULE("ReduceLogSum/18", "float32[2] 0.25 0.75", "float32[1] 0");
    CHECK_RULE("ReduceLogSumExp/18 keepdims=0", "float32[2] 1000 1000", "float32[] 1000.69318");
    // For integers: computed in float32 and truncated, in every opset.
    CHECK_RULE("ReduceLogSum/13", "int32[2] 10 11", "int32[1] 3");
    CHECK_RULE("ReduceLogSum/18", "int64[2] 1 0", "int64[1] 0");
    CHECK_RULE("ReduceLogSumExp/13", "int64[2] 7 7", "int64[1] 7");
    CHECK_RULE("ReduceLogSumExp/18 keepdims=0", "int32[3] -5 -5 -5", "int32[] -3");
    CHECK_RULE("ReduceLogSumExp/18", "int32[3] 1000 1000 1000", "int32[1] 1001");
    // Shrink's lambd and bias are first cast to the type.
    CHECK_RULE("Shrink/9 lambd=1.5 bias=1.5", "int64[5] -3 -1 0 1 3", "int64[5] -2 0 0 0 2");
    CHECK_RULE("Shrink/9 lambd=1.5 bias=-1.0", "int8[3] -128 127 2", "int8[3] 127 -128 3");
    CHECK_RULE("Shrink/9 lambd=2.0 bias=3.0", "uint8[4] 0 2 3 255", "uint8[4] 0 0 0 252");
    CHECK_RULE("Shrink/9 lambd=2.0 bias=3.0", "int32[2] -7 7", "int32[2] -4 4");
    CHECK_RULE("ReduceLogSumExp/18", "float32[2] -inf -inf", "float32[1] -inf");
    CHECK_RULE("ReduceLogSumExp/18", "float32[2] inf 1", "float32[1] inf");
    CHECK_RULE("ReduceLogSumExp/18", "float32[2] nan 1", "float32[1] nan");
    // float16 (as bits): 1 + 2^-11 + 2^-11 is summed before it is rounded.
    CHECK_RULE("ReduceSum/13", "float16[3] 0x3c00 0x1000 0x1000", "float16[1] 15361");
}

static void empty_sets(void) {
    CHECK_RULE("ReduceSum/13", "float32[2,0] | int64[1] 1", "float32[2,1] 0 0");
    CHECK_RULE("ReduceProd/18", "int32[0]", "int32[1] 1");
    CHECK_RULE("ReduceMax/18", "float32[0]", "float32[1] -inf");
    CHECK_RULE("ReduceMin/18", "int8[0]", "int8[1] 127");
    CHECK_RULE("ReduceMax/20", "bool[0]", "bool[1] 0");
    CHECK_RULE("ReduceMean/18", "float32[0]", "float32[1] nan");
    CHECK_RULE("ReduceMean/18", "int32[0]", "int32[1] 0");
    CHECK_RULE("ReduceLogSumExp/18", "float32[0]", "float32[1] -inf");
    CHECK_RULE("ReduceSum/13", "float32[0,2] | int64[1] 1", "float32[0,1]");
}

int main(void) {
    axes();
    values();
    empty_sets();
    return test_finish();
}
