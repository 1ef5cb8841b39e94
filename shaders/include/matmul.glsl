// struct ree_matmul_params of repop.h, and the matrices of a batch, for the matmul shaders.
#ifndef REE_GLSL_MATMUL
#define REE_GLSL_MATMUL

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Params {
    uint dtype;
    uint a_dtype, b_dtype;
    uint m, n, k;
    int a_offset, b_offset;
    int a_stride_m, a_stride_k;
    int b_stride_k, b_stride_n;
    uint batch_rank;
    uint n_batch;
    uint batch_dims[REE_MAX_RANK];
    int a_batch_strides[REE_MAX_RANK];
    int b_batch_strides[REE_MAX_RANK];
    uint b_block, b_bits, has_zero_points;
    uint a_block;
    uint has_epilogue;
};
#define EPILOGUE_OFFSET 172u

// Computes where the matrices of batch number `batch` begin: a and b are the indices of their first
// elements in the operands A and B.
void matmul_batch(const Params p, const uint batch_rank, const uint batch, out uint a, out uint b) {
    a = uint(p.a_offset);
    b = uint(p.b_offset);
    uint rest = batch;
    [[unroll]] for (uint k = 1u; k <= batch_rank; k++) {
        uint d = batch_rank - k;
        uint c = rest % p.batch_dims[d];
        rest /= p.batch_dims[d];
        a += c * uint(p.a_batch_strides[d]);
        b += c * uint(p.b_batch_strides[d]);
    }
}

#endif
