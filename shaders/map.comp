#version 460
// map: out[i] = expr(i), NUMERICS.md sections 1 and 4. The host inserts the expression into the
// module.
//
// A thread computes PER_THREAD elements. If an element has a word or more, they are one workgroup
// size apart (neighbouring threads access neighbouring words). If several elements share a word,
// they are consecutive.
#include "ree.glsl"
#include "expr.glsl"

#define PER_THREAD 4u

void main() {
    ReeExpr e = ReeExpr(ree_params());
    uint n = e.n_elements;
    const uint size = ree_dtype_size(EXPR_OUT_DTYPE);
    const bool words = size >= 4u;
    uint first = words ? ree_group() * gl_WorkGroupSize.x * PER_THREAD + ree_local()
                       : ree_thread() * PER_THREAD;
    uint n_tensors = 0u;
    [[unroll]] for (uint i = 0u; i < EXPR_N_OPERANDS; i++)
        n_tensors += ree_expr_dtype(i) < EXPR_IOTA ? 1u : 0u;
    ReeWords result = ree_operand(n_tensors);
    ReeExprState s = ree_expr_begin(e, 0u);
    if (first >= n) return;
    uvec2 packed = uvec2(0u);
    [[dont_unroll]] for (uint k = 0u; k < PER_THREAD; k++) {
        uint index = first + (words ? k * gl_WorkGroupSize.x : k);
        if (index >= n) break;
        uvec2 value = ree_expr_result(ree_expr_map(s, index));
        if (size == 8u)
            ree_store64(result, index, value);
        else if (size == 4u)
            result.w[index] = value.x;
        else if (size == 2u)
            packed[k >> 1u] |= (value.x & 0xFFFFu) << ((k & 1u) * 16u);
        else
            packed.x |= (value.x & 0xFFu) << (k * 8u);
    }
    // The last word may extend past the tensor, as repop.h allows.
    if (size == 1u) result.w[first / 4u] = packed.x;
    if (size == 2u) {
        result.w[first / 2u] = packed.x;
        if (first + 2u < n) result.w[first / 2u + 1u] = packed.y;
    }
}
