#version 460
// The probe: applies primitives to given bits; the host compares the results
// (src/device/vulkan/probe.c). FORM is the form that a run tests. Conversions, comparisons and
// roundings have only a native and an integer form. This module tests their native form. The module
// compiled with CONVERSIONS tests their integer form; it is separate to keep this module short: a
// driver may compile a whole module, whatever its specialization constants are.
#include "ree.glsl"
#include "primitives.glsl"

layout(constant_id = 16) const uint FORM = REE_INTEGER;
// For tests: some results of the operations [BROKEN, BROKEN + N_BROKEN) are falsified.
layout(constant_id = 17) const uint BROKEN = 0;
layout(constant_id = 18) const uint N_BROKEN = 0;

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Params {
    uint n;
};

uint from_bool(bool b) { return b ? 1u : 0u; }

#ifdef REE_F64
double high_half(const double x) { // 26 bits
    precise double t = x * 134217729.0lf;
    precise double high = t - (t - x);
    return high;
}
// Returns whether the device rounds a quotient of float64 correctly, which fast.glsl and
// fast_trig.glsl require. The significands of both operands are made of the words. p + e = q * y
// holds exactly (Dekker's product). The quotient is right if x - q * y is at most half an ulp of q,
// times y.
bool is_quotient_right(const uint a, const uint b, const uint c) {
    double x = packDouble2x32(uvec2(a * 0x9E3779B1u, 0x3FF00000u | (b & 0xFFFFFu)));
    double y = packDouble2x32(uvec2(c * 0x85EBCA6Bu, 0x3FF00000u | (a & 0xFFFFFu)));
#if REE_PLANT == REE_PLANT_QUOTIENTS
    precise double inverse = 1.0lf / y;
    precise double q = x * inverse;
#else
    precise double q = x / y;
#endif
    double qh = high_half(q), yh = high_half(y);
    precise double ql = q - qh, yl = y - yh;
    precise double p = q * y;
    precise double e = ((qh * yh - p) + qh * yl + ql * yh) + ql * yl;
    precise double rest = (x - p) - e;
    precise double most = y * packDouble2x32(uvec2(0u, q < 1.0lf ? 0x3C900000u : 0x3CA00000u));
    return rest <= most && -rest <= most;
}
#endif

#ifdef CONVERSIONS
// Computes an operation of enum ree_probe_operation (src/device/probe_vectors.h). The code calls
// each function in one place only, because compilers inline every call.
uint compute_conversion(uint operation, uint a, uint b) {
    uint x = a;
    if (operation == 8u || operation == 10u) x = ree_op_f32_to_i32(a);
    switch (operation) {
    case 6:
    case 10: return ree_op_i32_to_f32(x);
    case 7: return ree_op_u32_to_f32(a);
    case 8: return x;
    case 9: return ree_op_f32_to_u32(a);
    case 11: return ree_op_min_f32(a, b);
    case 12: return ree_op_max_f32(a, b);
    case 13: return ree_op_eq_f32(a, b);
    case 14: return ree_op_lt_f32(a, b);
    case 15: return ree_op_le_f32(a, b);
    case 16: return ree_op_floor_f32(a);
    case 17: return ree_op_ceil_f32(a);
    case 18: return ree_op_trunc_f32(a);
    case 19: return ree_op_round_f32(a);
    }
    return 0u;
}
#else
// Computes an operation of enum ree_probe_operation (src/device/probe_vectors.h).
uint compute(uint operation, uint a, uint b, uint c) {
    switch (operation) {
    case 0: return ree_add(a, b);
    case 1: return ree_sub(a, b);
    case 2: return ree_mul(a, b);
    case 3: return ree_div(a, b);
    case 4: return ree_sqrt(a);
    case 5: {
        uint r = ree_fma(a, b, c);
#ifdef REE_F64
        if (FORM == REE_FLOAT64 && !is_quotient_right(a, b, c)) r ^= 1u;
#endif
        return r;
    }
    }
    if (FORM != REE_NATIVE) return 0u;
    float x = uintBitsToFloat(a), y = uintBitsToFloat(b);
    precise float r = 0.0;
    switch (operation) {
    case 6: r = float(int(a)); break;
    case 7: r = float(a); break;
    case 8: return uint(int(x));
    case 9: return uint(x);
    case 10: r = float(int(x)); break;
    case 11: r = min(x, y); break;
    case 12: r = max(x, y); break;
    case 13: return from_bool(x == y);
    case 14: return from_bool(x < y);
    case 15: return from_bool(x <= y);
    case 16: r = floor(x); break;
    case 17: r = ceil(x); break;
    case 18: r = trunc(x); break;
    case 19: r = roundEven(x); break;
    }
    return floatBitsToUint(r);
}
#endif

void main() {
    uint i = ree_thread();
    if (i >= Params(ree_params()).n) return;
    ReeWords vectors = ree_operand(0), results = ree_operand(1);
    uint operation = vectors.w[i * 4u];
    uint a = vectors.w[i * 4u + 1u], b = vectors.w[i * 4u + 2u];
#ifdef CONVERSIONS
    uint r = compute_conversion(operation, a, b);
#else
    uint r = compute(operation, a, b, vectors.w[i * 4u + 3u]);
#endif
    if (operation - BROKEN < N_BROKEN && i % 7u == 3u) r ^= 1u;
    results.w[i] = r;
}
