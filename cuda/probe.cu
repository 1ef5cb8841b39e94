// The probe: applies primitives to given bits, with the functions that every other kernel uses. The
// host compares the results (src/device/cuda/probe.c). NUMERICS.md sections 1, 2 and 5.
#include "kernel.h"

// Computes an operation of enum ree_probe_operation (src/device/probe_vectors.h).
REE_DEVICE u32 probe_word(u32 operation, u32 a, u32 b, u32 c) {
    switch (operation) {
    case 0: return ree_op_add_f32(a, b);
    case 1: return ree_op_sub_f32(a, b);
    case 2: return ree_op_mul_f32(a, b);
    case 3: return ree_op_div_f32(a, b);
    case 4: return ree_op_sqrt_f32(a);
    case 5: return ree_op_fma_f32(a, b, c);
    case 6: return ree_op_i32_to_f32(a);
    case 7: return ree_op_u32_to_f32(a);
    case 8: return ree_op_f32_to_i32(a);
    case 9: return ree_op_f32_to_u32(a);
    case 10: return ree_op_i32_to_f32(ree_op_f32_to_i32(a));
    case 11: return ree_op_min_f32(a, b);
    case 12: return ree_op_max_f32(a, b);
    case 13: return ree_op_eq_f32(a, b);
    case 14: return ree_op_lt_f32(a, b);
    case 15: return ree_op_le_f32(a, b);
    case 16: return ree_op_floor_f32(a);
    case 17: return ree_op_ceil_f32(a);
    case 18: return ree_op_trunc_f32(a);
    case 19: return ree_op_round_f32(a);
    default: return 0u;
    }
}

// Computes an operation of enum operation in src/device/cuda/probe.c: float64 operations of which
// the elementary functions consist, and which float64 tensors use.
REE_DEVICE u64 probe_double(u32 operation, u64 a, u64 b, u64 c) {
    switch (operation) {
    case 0: return ree_op_add_f64(a, b);
    case 1: return ree_op_sub_f64(a, b);
    case 2: return ree_op_mul_f64(a, b);
    case 3: return ree_op_div_f64(a, b);
    case 4: return ree_op_sqrt_f64(a);
    case 5: return ree_op_fma_f64(a, b, c);
    case 6: return ree_result((float)ree_from_double_bits(a));
    case 7: return ree_double_result((double)ree_float((u32)a));
    default: return 0u;
    }
}

// Returns whether result i must be falsified: every seventh result of the operations that
// --break-primitive selects.
REE_DEVICE bool probe_is_broken(const struct ree_cuda_probe_params &p, u32 operation, u32 i) {
    return operation - p.broken < p.n_broken && i % 7u == 3u;
}

REE_KERNEL(probe_words, struct ree_cuda_probe_params, 128) {
    const u32 i = ree_thread();
    if (i >= p.n) return;
    auto vectors = ree_in<u32>(h, 0);
    const u32 operation = vectors[i * 4u];
    u32 r = probe_word(operation, vectors[i * 4u + 1u], vectors[i * 4u + 2u], vectors[i * 4u + 3u]);
    ree_out<u32>(h, 1)[i] = probe_is_broken(p, operation, i) ? r ^ 1u : r;
}

REE_KERNEL(probe_doubles, struct ree_cuda_probe_params, 128) {
    const u32 i = ree_thread();
    if (i >= p.n) return;
    auto vectors = ree_in<uint64_t>(h, 0);
    const u32 operation = (u32)vectors[i * 4u];
    const u64 a = vectors[i * 4u + 1u], b = vectors[i * 4u + 2u], c = vectors[i * 4u + 3u];
    u64 r = probe_double(operation, a, b, c);
    ree_out<uint64_t>(h, 1)[i] = probe_is_broken(p, operation, i) ? r ^ 1u : r;
}
