#version 460
// Evaluates the device's own functions, for information only (src/device/vulkan/observe.c): no
// RepOp uses them. The host requests no mode for subnormals, signed zeros or rounding for this
// shader.
#include "ree.glsl"

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Params {
    uint n;
};

void main() {
    uint i = ree_thread();
    if (i >= Params(ree_params()).n) return;
    float x = uintBitsToFloat(ree_operand(0).w[i]), r;
    switch (i >> 10u) { // enum ree_vk_observed: 1024 arguments for each function
    case 0u: r = exp(x); break;
    case 1u: r = tanh(x); break;
    case 2u: r = inversesqrt(x); break;
    default: r = float(int(x)); break;
    }
    ree_operand(1).w[i] = floatBitsToUint(r);
}
