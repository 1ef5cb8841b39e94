#version 460
// Measures how many iterations of a loop the driver runs: n, or fewer if it ends long loops. Each
// iteration stores its count in word 1 of the operand. Word 0 receives a value that every iteration
// changes, by which the host verifies the count.
#include "ree.glsl"

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Params {
    uint n;
};

void main() {
    if (ree_thread() != 0u) return;
    uint n = Params(ree_params()).n, value = 0u;
    ReeWords results = ree_operand(0);
    [[dont_unroll]] for (uint i = 0u; i < n; i++) {
        value = (value ^ i) * 1664525u + 1u;
        results.w[1] = i + 1u;
    }
    results.w[0] = value;
}
