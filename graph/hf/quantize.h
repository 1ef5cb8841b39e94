// Weights in blocks of 4 or 8 bits, as com.microsoft's MatMulNBits defines them, without zero
// points.
//
// Each row of a matrix (out, in) is cut into blocks of `block` numbers w. m is the block's number
// of largest magnitude, the first one if several are equal. In binary32, every step rounded once:
//
//     scale = m / -2^(bits - 1)
//     q     = min(max(round(w / scale) + 2^(bits - 1), 0), 2^bits - 1)      round: ties to even
//
// If the scale is 0, every q is 2^(bits - 1). m itself becomes q = 0, and -m saturates at 2^bits -
// 1, one step short of its value. The padding after a row's end is q = 2^(bits - 1), which
// represents 0.
#ifndef REE_GRAPH_HF_QUANTIZE_H
#define REE_GRAPH_HF_QUANTIZE_H

#include "base/status.h"

// A matrix of float32, float16 or bfloat16 in mapped memory. Element (i, j) is element i *
// row_stride + j * column_stride of `data`.
struct ree_matrix {
    const unsigned char *data;
    enum ree_dtype dtype;
    int64_t rows, columns; // rows = outputs, columns = inputs of the product
    int64_t row_stride, column_stride;
};

// Size of one quantised row in bytes.
uint64_t ree_quantized_row_size(int64_t columns, uint32_t bits, uint32_t block);
// Quantises row `i` to ree_quantized_row_size bytes in `out` (the first number of a byte is in its
// low bits) and one scale per block in out_scales. `capacity` is scratch memory for matrix->columns
// floats. Fails with REE_INVALID if a number of the row is not finite.
enum ree_status ree_quantize_row(const struct ree_matrix *matrix, int64_t i, uint32_t bits,
                                 uint32_t block, float *capacity, unsigned char *out,
                                 float *out_scales, struct ree_error *err);

#endif
