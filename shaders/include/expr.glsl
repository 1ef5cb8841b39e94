// The expression of a map or an epilogue. The host replaces the body of ree_expr by the calls of
// the expression (src/device/vulkan/spirv_stitch.c). The body below calls every scalar function
// once, so that the compiler keeps them all; it never runs.
//
// Values are pairs of words; a value of class W is in x, and y is 0. v0, v1, ... are the operands.
// In an epilogue v0 is the accumulator and v1, v2, ... are the operands.
#ifndef REE_GLSL_EXPR
#define REE_GLSL_EXPR

#include "primitives.glsl"

#define REE_ARG_W(v) v.x
#define REE_ARG_D(v) v
#define REE_RESULT_W(x) uvec2(x, 0u)
#define REE_RESULT_D(x) x
#define REE_CALL_1(name, a, b, c) ree_op_##name(REE_ARG_##a(v0))
#define REE_CALL_2(name, a, b, c) ree_op_##name(REE_ARG_##a(v0), REE_ARG_##b(v1))
#define REE_CALL_3(name, a, b, c)                                                                  \
    ree_op_##name(REE_ARG_##a(v0), REE_ARG_##b(v1), REE_ARG_##c(v2))

uvec2 ree_expr(const uvec2 v0, const uvec2 v1, const uvec2 v2, const uvec2 v3, const uvec2 v4,
               const uvec2 v5, const uvec2 v6, const uvec2 v7, const uvec2 v8) {
    uvec2 r = v0;
#define MAP_OP(name, n, result, a, b, c) r ^= REE_RESULT_##result(REE_CALL_##n(name, a, b, c));
#include "repops/map_ops.def"
    return r;
}

// Specialization constants 16 to 26 describe the expression; a shader's own constants begin at 27.
layout(constant_id = 16) const uint EXPR_RANK = 1;
layout(constant_id = 17) const uint EXPR_N_OPERANDS = 0;
layout(constant_id = 18) const uint EXPR_OUT_DTYPE = 1;
layout(constant_id = 19) const uint EXPR_OPERAND_0 = 0; // dtype, plus 256 for an iota
layout(constant_id = 20) const uint EXPR_OPERAND_1 = 0;
layout(constant_id = 21) const uint EXPR_OPERAND_2 = 0;
layout(constant_id = 22) const uint EXPR_OPERAND_3 = 0;
layout(constant_id = 23) const uint EXPR_OPERAND_4 = 0;
layout(constant_id = 24) const uint EXPR_OPERAND_5 = 0;
layout(constant_id = 25) const uint EXPR_OPERAND_6 = 0;
layout(constant_id = 26) const uint EXPR_OPERAND_7 = 0;
#define EXPR_IOTA 256u

struct ReeExprOperand {
    uint kind, dtype;
    int offset;
    int strides[REE_MAX_RANK];
};
// struct ree_expr, without the instructions
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer ReeExpr {
    uint rank;
    uint dims[REE_MAX_RANK];
    uint n_elements;
    uint out_dtype;
    uint n_operands;
    uint n_instrs;
    ReeExprOperand operands[REE_EXPR_MAX_OPERANDS];
};

// Offsets and strides, read once and kept in registers.
struct ReeExprState {
    uint dims[REE_MAX_RANK];
    uint offsets[REE_EXPR_MAX_OPERANDS];
    uint strides[REE_EXPR_MAX_OPERANDS * REE_MAX_RANK];
    uvec2 tensors[REE_EXPR_MAX_OPERANDS]; // addresses: SwiftShader supports no arrays of pointers
};

uint ree_expr_dtype(uint i) {
    switch (i) {
    case 0u: return EXPR_OPERAND_0;
    case 1u: return EXPR_OPERAND_1;
    case 2u: return EXPR_OPERAND_2;
    case 3u: return EXPR_OPERAND_3;
    case 4u: return EXPR_OPERAND_4;
    case 5u: return EXPR_OPERAND_5;
    case 6u: return EXPR_OPERAND_6;
    default: return EXPR_OPERAND_7;
    }
}

// Reads offsets, strides and addresses. first: index, among the dispatch's operands, of the
// expression's first tensor.
ReeExprState ree_expr_begin(ReeExpr e, uint first) {
    ReeExprState s;
    [[unroll]] for (uint d = 0u; d < EXPR_RANK; d++) s.dims[d] = e.dims[d];
    [[unroll]] for (uint i = 0u; i < EXPR_N_OPERANDS; i++) {
        s.offsets[i] = uint(e.operands[i].offset);
        [[unroll]] for (uint d = 0u; d < EXPR_RANK; d++)
            s.strides[i * REE_MAX_RANK + d] = uint(e.operands[i].strides[d]);
        if (ree_expr_dtype(i) < EXPR_IOTA) s.tensors[i] = ree_block().operands[first++];
    }
    return s;
}

// Returns the value of operand i at these coordinates; 0 if the expression has no operand i.
uvec2 ree_expr_operand(const ReeExprState s, const uint i, const uint coordinates[REE_MAX_RANK]) {
    if (i >= EXPR_N_OPERANDS) return uvec2(0u);
    uint dtype = ree_expr_dtype(i);
    if (dtype == (EXPR_IOTA | REE_DT_I64)) { // the sum may need 64 bits
        uvec2 value = uvec2(s.offsets[i], uint(int(s.offsets[i]) >> 31));
        [[unroll]] for (uint d = 0u; d < EXPR_RANK; d++) {
            int high, low;
            imulExtended(int(coordinates[d]), int(s.strides[i * REE_MAX_RANK + d]), high, low);
            value = u64_add(value, uvec2(uint(low), uint(high)));
        }
        return value;
    }
    uint at = s.offsets[i];
    [[unroll]] for (uint d = 0u; d < EXPR_RANK; d++)
        at += coordinates[d] * s.strides[i * REE_MAX_RANK + d];
    if (dtype >= EXPR_IOTA) return uvec2(at, 0u);
    return ree_load(ReeWords(s.tensors[i]), dtype, at);
}

void ree_expr_coordinates(const ReeExprState s, uint index, out uint coordinates[REE_MAX_RANK]) {
    [[unroll]] for (uint k = 1u; k < EXPR_RANK; k++) { // ascending: Mesa unrolls no other loops
        uint d = EXPR_RANK - k;
        coordinates[d] = index % s.dims[d];
        index /= s.dims[d];
    }
    coordinates[0] = index;
}

// Returns the value of a map at element `index`.
uvec2 ree_expr_map(const ReeExprState s, uint index) {
    uint c[REE_MAX_RANK];
    ree_expr_coordinates(s, index, c);
    return ree_expr(ree_expr_operand(s, 0u, c), ree_expr_operand(s, 1u, c),
                    ree_expr_operand(s, 2u, c), ree_expr_operand(s, 3u, c),
                    ree_expr_operand(s, 4u, c), ree_expr_operand(s, 5u, c),
                    ree_expr_operand(s, 6u, c), ree_expr_operand(s, 7u, c), uvec2(0u));
}
// Returns the value of an epilogue at element `index`; `accumulator` is its value 0, as bits.
uvec2 ree_expr_epilogue(const ReeExprState s, uint index, uint accumulator) {
    uint c[REE_MAX_RANK];
    ree_expr_coordinates(s, index, c);
    return ree_expr(uvec2(accumulator, 0u), ree_expr_operand(s, 0u, c),
                    ree_expr_operand(s, 1u, c), ree_expr_operand(s, 2u, c),
                    ree_expr_operand(s, 3u, c), ree_expr_operand(s, 4u, c),
                    ree_expr_operand(s, 5u, c), ree_expr_operand(s, 6u, c),
                    ree_expr_operand(s, 7u, c));
}
// Returns the value to store: float32 and float64 results have their NaN canonicalised.
uvec2 ree_expr_result(uvec2 value) {
    if (EXPR_OUT_DTYPE == REE_DT_F32) value.x = ree_canon(value.x);
    if (EXPR_OUT_DTYPE == REE_DT_F64) value = ree_f64_canon(value);
    return value;
}

#endif
