// float64, and types of at most 8 bits, in operators of every kind.
#include "lower_data/rule.h"

static void float64(void) {
    CHECK_RULE("Add/14", "float64[2] 0.1 1e300 | float64[1] 0.2",
               "float64[2] 0.30000000000000004 1.0000000000000001e+300");
    CHECK_RULE("Div/14", "float64[2] 1 0 | float64[] 3", "float64[2] 0.33333333333333331 0");
    CHECK_RULE("Mod/13 fmod=1", "float64[2] -5 5.5 | float64[] 3", "float64[2] -2 2.5");
    CHECK_RULE("Mean/13", "float64[1] 1 | float64[1] 2 | float64[1] 7",
               "float64[1] 3.3333333333333335");
    CHECK_RULE("Exp/13", "float64[2] 1 -746", "float64[2] 2.7182818284590451 0");
    CHECK_RULE("Tanh/13", "float64[1] 0.5", "float64[1] 0.46211715726000974");
    CHECK_RULE("Reciprocal/13", "float64[1] 10", "float64[1] 0.10000000000000001");
    CHECK_RULE("IsNaN/13", "float64[2] nan 1", "bool[2] 1 0");
    CHECK_RULE("Less/13", "float64[2] -0 1 | float64[] 0", "bool[2] 0 0");
    CHECK_RULE("Where/16", "bool[2] 1 0 | float64[] 0.1 | float64[] 0.2",
               "float64[2] 0.10000000000000001 0.20000000000000001");
    CHECK_RULE("Clip/13", "float64[3] -1 0.1 9 | float64[] 0 | float64[] 1",
               "float64[3] 0 0.10000000000000001 1");
    CHECK_RULE("Relu/14", "float64[2] -0 0.1", "float64[2] 0 0.10000000000000001");
    // An attribute is stored as a binary32 number in the model.
    CHECK_RULE("LeakyRelu/16", "float64[1] -1", "float64[1] -0.0099999997764825821");
    CHECK_RULE("Softmax/13", "float64[2] 3 3", "float64[2] 0.5 0.5");
    CHECK_RULE("Range/11", "float64[] 0 | float64[] 0.3 | float64[] 0.1",
               "float64[3] 0 0.10000000000000001 0.20000000000000001");
    CHECK_RULE("MatMul/13", "float64[1,2] 0.1 0.2 | float64[2,1] 1 1",
               "float64[1,1] 0.30000000000000004");
    CHECK_RULE("Gemm/13 transB=1", "float64[1,2] 1 2 | float64[1,2] 3 4 | float64[] 0.5",
               "float64[1,1] 11.5");
    CHECK_RULE("Cast/13 to=1", "float64[2] 1.00000005960464500 1e300", "float32[2] 1.00000012 inf");
    CHECK_RULE("Cast/13 to=6", "float64[3] -3.9 1e300 nan", "int32[3] -3 2147483647 0");
}

static void refused(void) {
    CHECK_RULE("Resize/13 mode=linear", "float64[1,2] 0 1 | - | float32[2] 1 2",
               "error: float64 supports only the mode nearest");
    CHECK_RULE("Add/14", "float8e5m2[1] 0 | float8e5m2[1] 0", "error: float8e5m2 is not supported");
    CHECK_RULE("Pow/15", "float8e5m2[1] 0 | float32[1] 0", "error: float8e5m2 is not supported");
    CHECK_RULE("Relu/14", "int4[1] 0", "error: int4 is not supported");
}

static void powers(void) {
    CHECK_RULE("Pow/15", "float64[2] 2 -8 | float64[2] 0.5 3",
               "float64[2] 1.4142135623730951 -512");
    CHECK_RULE("Pow/15", "float64[1] 3 | int32[1] 2", "float64[1] 9");
    CHECK_RULE("Pow/15", "float32[1] 2 | float64[1] 0.5", "float32[1] 1.41421354");
    CHECK_RULE("Pow/15", "int32[1] 3 | float64[1] 2", "int32[1] 9");
}

static void reductions(void) {
    CHECK_RULE("ReduceSum/13", "float64[3] 0.1 0.2 0.3", "float64[1] 0.60000000000000009");
    CHECK_RULE("ReduceMean/13", "float64[3] 1 2 7", "float64[1] 3.3333333333333335");
    CHECK_RULE("ReduceProd/13", "float64[0]", "float64[1] 1");
    CHECK_RULE("ReduceMax/13", "float64[3] -1 -0 -2", "float64[1] -0");
    CHECK_RULE("ReduceL2/13", "float64[2] 3 4", "float64[1] 5");
    CHECK_RULE("ReduceLogSumExp/13", "float64[2] 0 0", "float64[1] 0.69314718055994529");
    CHECK_RULE("ArgMax/13 axis=0", "float64[3] 1 nan 3", "int64[1] 1");
    CHECK_RULE("ArgMin/13 axis=0 select_last_index=1", "float64[3] 0 1 -0", "int64[1] 2");
    CHECK_RULE("CumSum/14", "float64[3] 0.1 0.2 0.3 | int64[] 0",
               "float64[3] 0.10000000000000001 0.30000000000000004 0.60000000000000009");
    CHECK_RULE("TopK/11 outputs=2", "float64[3] 1 nan 2 | int64[1] 2",
               "float64[2] nan 2 | int64[2] 1 2");
    CHECK_RULE("ScatterElements/18 reduction=add", "float64[1] 0.1 | int64[1] 0 | float64[1] 0.2",
               "float64[1] 0.30000000000000004");
    CHECK_RULE("GlobalAveragePool/1", "float64[1,1,2] 1 2", "float64[1,1,1] 1.5");
    CHECK_RULE("LpNormalization/1 axis=0", "float64[2] 3 4",
               "float64[2] 0.59999999999999998 0.80000000000000004");
}

static void small(void) {
    CHECK_RULE("Cast/25 to=22", "int32[4] 7 8 -9 16", "int4[4] 7 -8 7 0");
    CHECK_RULE("Cast/25 to=21", "float32[3] -1 15.9 16", "uint4[3] 15 15 0");
    CHECK_RULE("Cast/25 to=1", "int2[4] 1 -2 0 -1", "float32[4] 1 -2 0 -1");
    CHECK_RULE("Concat/13 axis=0", "int4[2] 1 -8 | int4[1] 7", "int4[3] 1 -8 7");
    CHECK_RULE("Gather/13", "uint2[3] 0 1 3 | int64[2] 2 0", "uint2[2] 3 0");
    CHECK_RULE("Where/16", "bool[2] 1 0 | int4[] -1 | int4[] 5", "int4[2] -1 5");
    CHECK_RULE("BitCast/26 to=21", "int4[2] -1 3", "uint4[2] 15 3");
    CHECK_RULE("BitCast/26 to=26", "uint2[2] 2 1", "int2[2] -2 1");
    CHECK_RULE("BitCast/26 to=7", "float64[1] 1", "int64[1] 4607182418800017408");
    // NaNs with a sign or a payload: their bits as integers are those of the canonical NaN.
    CHECK_RULE("BitCast/26 to=6", "float32[5] nan(0x1) -nan inf -inf -0",
               "int32[5] 2143289344 2143289344 2139095040 -8388608 -2147483648");
    CHECK_RULE("BitCast/26 to=7", "float64[3] nan(0x1) -nan -inf",
               "int64[3] 9221120237041090560 9221120237041090560 -4503599627370496");
    CHECK_RULE("BitCast/26 to=5", "float16[4] 0x7C01 0xFE00 0x7C00 0xFC00",
               "int16[4] 32256 32256 31744 -1024");
    CHECK_RULE("BitCast/26 to=4", "bfloat16[4] 0x7F81 0xFFC0 0x7F80 0xFF80",
               "uint16[4] 32704 32704 32640 65408");
    CHECK_RULE("BitCast/26 to=10", "bfloat16[2] 0xFF81 0x3F80", "float16[2] 32704 16256");
    CHECK_RULE("BitCast/26 to=2", "float8e4m3fn[3] 0xFF 0xFE 0x7F", "uint8[3] 127 254 127");
    CHECK_RULE("BitCast/26 to=2", "float8e5m2[4] 0x7D 0xFF 0x7C 0xFC", "uint8[4] 126 126 124 252");
    CHECK_RULE("BitCast/26 to=2", "float8e8m0[2] 0xFF 0x7F", "uint8[2] 255 127");
    // Rounds once, from the exact number: 2^30 + 2^22 + 1 is just above a tie of bfloat16.
    CHECK_RULE("Cast/25 to=16", "int32[1] 1077936129", "bfloat16[1] 20097");
}

int main(void) {
    float64();
    refused();
    powers();
    reductions();
    small();
    return test_finish();
}
