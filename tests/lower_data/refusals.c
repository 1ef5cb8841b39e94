// What the rules refuse, and the reasons they give. No case may overflow or reach beyond a tensor.
#include "lower_data/rule.h"

static void shapes(void) {
    CHECK_RULE("Reshape/13", "float32[2,3] 0 0 0 0 0 0 | int64[2] 4 -1",
               "error: node 'n' (Reshape): cannot reshape float32[2,3] to [4,-1]");
    CHECK_RULE("Reshape/13", "float32[1] 0 | int64[2] -1 -1", "error: more than one -1");
    CHECK_RULE("Reshape/13", "float32[1] 0 | int64[1] -2", "error: a negative size");
    CHECK_RULE("Reshape/13", "float32[1] 0 | int64[2] 1 0", "error: copies a dimension");
    CHECK_RULE("Reshape/13", "float32[1] 0 | float32[1] 1", "error: shape is float32[1]");
    CHECK_RULE("Reshape/13", "float32[1] 0 | int64[1,1] 1", "error: expected a list of integers");
    CHECK_RULE("Reshape/13", "float32[0] | int64[3] 4611686018427387904 4 -1",
               "error: cannot reshape");
    CHECK_RULE("Reshape/14 allowzero=1", "float32[0] | int64[2] 0 -1", "error: cannot reshape");
    CHECK_RULE("Reshape/13", "float32[1] 0 | int64[9] 1 1 1 1 1 1 1 1 1", "error: 9 dimensions");
    CHECK_RULE("Flatten/13 axis=3", "float32[1,1] 0", "error: axis 3 is out of range for rank 2");
    CHECK_RULE("Squeeze/13", "float32[2] 0 0 | int64[1] 0", "error: cannot squeeze axis 0");
    CHECK_RULE("Squeeze/13", "float32[1] 0 | int64[1] 1", "error: axis 1 is out of range");
    CHECK_RULE("Unsqueeze/13", "float32[1] 0 | int64[2] 0 -3", "error: contains axis 0 twice");
    CHECK_RULE("Unsqueeze/13", "float32[1] 0 | int64[8] 0 1 2 3 4 5 6 7", "error: at most 8");
    CHECK_RULE("Unsqueeze/11", "float32[1] 0", "error: axes is missing");
    CHECK_RULE("Expand/13", "float32[2] 0 0 | int64[1] 3", "error: does not broadcast");
    CHECK_RULE("Expand/13", "float32[1] 0 | int64[2] 1099511627776 1", "error: 2^31 elements");
    CHECK_RULE("Expand/13", "float32[1] 0 | int64[1] -1", "error: negative size -1");
    CHECK_RULE("Transpose/13 perm=[0,0]", "float32[1,1] 0", "error: perm is not a permutation");
    CHECK_RULE("Transpose/13 perm=[0]", "float32[1,1] 0", "error: perm has 1 entries");
    CHECK_RULE("Concat/13 axis=0", "float32[1,1] 0 | float32[1,2] 0 0",
               "error: cannot concatenate input 1, float32[1,2], to float32[1,1] along axis 0");
    CHECK_RULE("Concat/13 axis=0", "float32[1] 0 | int32[1] 0", "error: cannot concatenate");
    CHECK_RULE("Concat/13", "float32[1] 0", "error: attribute 'axis' is missing");
    CHECK_RULE("Concat/13 axis=2", "float32[1,1] 0", "error: axis 2 is out of range for rank 2");
    CHECK_RULE("Split/13 outputs=2", "float32[3] 0 0 0", "error: 2 equal parts");
    CHECK_RULE("Split/13 outputs=2", "float32[3] 0 0 0 | int64[2] 1 1", "error: add up to 3");
    CHECK_RULE("Split/13 outputs=2",
               "float32[3] 0 0 0 | int64[2] 9223372036854775807 9223372036854775807",
               "error: add up to 3");
    CHECK_RULE("Split/18 outputs=2 num_outputs=3", "float32[3] 0 0 0", "error: num_outputs is 3");
    CHECK_RULE("Slice/13", "float32[3] 0 0 0 | int64[2] 0 0 | int64[1] 1",
               "error: starts has 2 elements, ends has 1");
    CHECK_RULE("Slice/13", "float32[3] 0 0 0 | int64[1] 0 | int64[1] 1 | int64[1] 0 | int64[1] 0",
               "error: steps has a 0");
    CHECK_RULE("Slice/13", "float32[3] 0 0 0 | int64[1] 0 | int64[1] 1 | int64[1] 5",
               "error: axis 5 is out of range for rank 1");
    CHECK_RULE("Slice/13", "float32[1,1] 0 | int64[2] 0 0 | int64[2] 1 1 | int64[2] 0 -2",
               "error: contains axis 0 twice");
    CHECK_RULE("Tile/13", "float32[3] 0 0 0 | int64[2] 1 1", "error: repeats has 2 elements");
    CHECK_RULE("Tile/13", "float32[3] 0 0 0 | int64[1] -1", "error: cannot repeat axis 0");
    CHECK_RULE("Tile/13", "float32[3] 0 0 0 | int64[1] 9223372036854775807",
               "error: cannot repeat axis 0");
    CHECK_RULE("Tile/13", "float32[3] 0 0 0 | int64[1] 1099511627776", "error: 2^31 elements");
    CHECK_RULE("Pad/13", "float32[1] 0 | int64[1] 1", "error: pads has 1 elements");
    CHECK_RULE("Pad/13", "float32[1] 0 | int64[2] -1 -1",
               "error: are not possible for axis 0 of size 1");
    CHECK_RULE("Pad/13", "float32[1] 0 | int64[2] 9223372036854775807 1",
               "error: are not possible for axis");
    CHECK_RULE("Pad/13 mode=edge", "float32[0] | int64[2] 1 1",
               "error: it has no elements to pad with");
    CHECK_RULE("Pad/13 mode=mirror", "float32[1] 0 | int64[2] 1 1", "error: mode is 'mirror'");
    CHECK_RULE("Pad/13", "float32[1] 0 | int64[2] 1 1 | int32[] 1",
               "error: constant_value is int32");
    CHECK_RULE("DepthToSpace/13 blocksize=2", "float32[1,3,1,1] 0 0 0", "error: 3 channels");
    CHECK_RULE("DepthToSpace/13 blocksize=0", "float32[1,1,1,1] 0", "error: blocksize is 0");
    CHECK_RULE("SpaceToDepth/13 blocksize=4611686018427387904", "float32[1,1,1,1] 0",
               "error: blocksize is 4611686018427387904");
}

static void generators(void) {
    CHECK_RULE("Constant/13 value_strings=[1]", "", "error: 'value_strings' is not supported");
    CHECK_RULE("ConstantOfShape/9", "int64[2] 1099511627776 1099511627776",
               "error: cannot make a tensor of shape [1099511627776,1099511627776]");
    CHECK_RULE("ConstantOfShape/9", "int64[1] -1", "error: none negative");
    CHECK_RULE("ConstantOfShape/9 value={float32[2] 1 2}", "int64[1] 1", "error: expected one");
    CHECK_RULE("EyeLike/9", "float32[1] 0", "error: expected rank 2");
    CHECK_RULE("Range/11", "int64[] 0 | int64[] 1 | int64[] 0", "error: delta is 0");
    CHECK_RULE("Range/11", "float32[] 0 | float32[] 1 | float32[] 0", "error: cannot make a range");
    CHECK_RULE("Range/11", "float32[] 0 | float32[] nan | float32[] 1",
               "error: cannot make a range");
    CHECK_RULE("Range/11", "int64[] 0 | int64[] 9223372036854775807 | int64[] 1", "error: 2^31");
    CHECK_RULE("Range/11", "int64[] 0 | int32[] 1 | int64[] 1", "error: limit is int32[]");
    CHECK_RULE("Trilu/14", "float32[1] 0", "error: expected rank 2 or more");
    CHECK_RULE("OneHot/11", "int64[1] 0 | int64[] -1 | float32[2] 0 1", "error: depth");
    CHECK_RULE("OneHot/11", "int64[1] 0 | int64[] 2 | float32[3] 0 1 2",
               "error: expected [off, on]");
    CHECK_RULE("OneHot/11 axis=2", "int64[1] 0 | int64[] 2 | float32[2] 0 1",
               "error: axis 2 is out of range for rank 2");
}

static void selection(void) {
    CHECK_RULE("Gather/13 axis=1", "float32[1] 0 | int64[1] 0", "error: axis 1 is out of range");
    CHECK_RULE("Gather/13", "float32[1] 0 | float32[1] 0", "error: indices are float32[1]");
    CHECK_RULE("Gather/13", "float32[0] | int64[1] 0", "error: index 0 into a dimension of size 0");
    CHECK_RULE("GatherElements/13", "float32[1,1] 0 | int64[1,2] 0 0", "error: do not match data");
    CHECK_RULE("GatherND/13", "float32[1] 0 | int64[1,2] 0 0", "error: do not match data");
    CHECK_RULE("GatherND/13 batch_dims=1", "float32[2,1] 0 0 | int64[1,1] 0",
               "error: do not match data");
    CHECK_RULE("GatherND/13 batch_dims=-1", "float32[1] 0 | int64[1,1] 0", "error: batch_dims -1");
    CHECK_RULE("ScatterElements/13", "float32[1,1] 0 | int64[1,2] 0 0 | float32[1,2] 0 0",
               "error: do not match data");
    CHECK_RULE("ScatterElements/13", "float32[1] 0 | int64[1] 0 | float32[2] 0 0",
               "error: must have the same shape");
    CHECK_RULE("ScatterElements/13", "float32[1] 0 | int64[1] 0 | int32[1] 0",
               "error: updates are");
    CHECK_RULE("ScatterElements/13", "float32[1] 0 | int64[1] 1 | float32[1] 0",
               "error: index 1 is out of range [-1, 0]");
    CHECK_RULE("ScatterElements/18 reduction=sum", "float32[1] 0 | int64[1] 0 | float32[1] 0",
               "error: reduction is 'sum'");
    CHECK_RULE("ScatterElements/18 reduction=add", "bool[1] 0 | int64[1] 0 | bool[1] 0",
               "error: reductions of bool");
    CHECK_RULE("ScatterND/13", "float32[2,2] 0 0 0 0 | int64[1,1] 0 | float32[1] 0",
               "error: do not match data");
    CHECK_RULE("ReverseSequence/10", "float32[2,2] 0 0 0 0 | int64[1] 1",
               "error: sequence_lens is int64[1], expected int64[2]");
    CHECK_RULE("ReverseSequence/10", "float32[2,1] 0 0 | int64[1] 9",
               "error: index 8 is out of range [-2, 1]");
    CHECK_RULE("Compress/11 axis=0", "float32[1] 0 | bool[2] 1 1", "error: condition has 2");
    CHECK_RULE("TopK/11 outputs=2", "float32[2] 0 0 | int64[1] 3", "error: k is 3, but axis 0");
    CHECK_RULE("TopK/11 outputs=2", "float32[2] 0 0 | int64[1] -1", "error: k is -1");
    CHECK_RULE("CumSum/14", "float32[2] 0 0 | int64[] 1", "error: axis 1 is out of range");
    CHECK_RULE("CumSum/14", "bool[2] 0 0 | int64[] 0", "error: bool is not supported");
}

static void reductions(void) {
    CHECK_RULE("ReduceSum/13", "float32[2] 0 0 | int64[2] 0 0", "error: contains axis 0 twice");
    CHECK_RULE("ReduceSum/11 axes=[1]", "float32[2] 0 0", "error: axis 1 is out of range");
    CHECK_RULE("ReduceSum/13", "bool[1] 0", "error: bool is not supported");
    CHECK_RULE("ReduceLogSum/13", "int8[1] 0", "error: int8 is not supported");
    CHECK_RULE("ReduceLogSumExp/13", "uint8[1] 0", "error: uint8 is not supported");
    CHECK_RULE("ArgMax/13", "float32[0]", "error: no elements");
    CHECK_RULE("ArgMax/13 axis=-2", "float32[1] 0", "error: axis -2 is out of range");
}

static void resizing(void) {
    CHECK_RULE("Resize/13", "float32[1] 0", "error: neither scales and sizes");
    CHECK_RULE("Resize/13", "float32[1] 0 | - | float32[1] 1 | int64[1] 1", "error: both scales");
    CHECK_RULE("Resize/13", "float32[1] 0 | - | float32[2] 1 1", "error: scales is float32[2]");
    CHECK_RULE("Resize/13", "float32[1] 0 | - | - | int64[2] 1 1", "error: sizes has 2 elements");
    CHECK_RULE("Resize/13", "float32[1] 0 | - | float32[1] -1", "error: scale -1 of axis 0");
    CHECK_RULE("Resize/13", "float32[1] 0 | - | float32[1] nan", "error: scale nan of axis 0");
    CHECK_RULE("Resize/13", "float32[1] 0 | - | float32[1] 1e30", "error: scale 1e+30 of axis 0");
    CHECK_RULE("Resize/13", "float32[1] 0 | - | - | int64[1] -5", "error: from 1 to -5");
    CHECK_RULE("Resize/13", "float32[0] | - | - | int64[1] 5", "error: from 0 to 5");
    CHECK_RULE("Resize/13 coordinate_transformation_mode=tf_crop_and_resize",
               "float32[1] 0 | - | - | int64[1] 5", "error: requires roi");
    CHECK_RULE("Resize/13 mode=area", "float32[1] 0 | - | - | int64[1] 5",
               "error: mode 'area' is not supported");
    CHECK_RULE("Resize/13 mode=linear", "bool[1] 0 | - | - | int64[1] 5", "error: bool");
    CHECK_RULE("Upsample/9", "float32[1,1] 0 | float32[1] 2", "error: expected float32[2]");
    CHECK_RULE("Upsample/7", "float32[1,1] 0", "error: expected a scale for each of the 2 axes");
}

int main(void) {
    shapes();
    generators();
    selection();
    reductions();
    resizing();
    return test_finish();
}
