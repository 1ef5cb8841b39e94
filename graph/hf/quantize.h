// Weights in blocks of 4 or 8 bits, as com.microsoft's MatMulNBits has them, without zero points.
//
// Each row of (out, in) is cut into blocks of `block` numbers. Of a block, m is the number of
// largest magnitude, the first of equal ones; in binary32, every step rounded once,
//
//     scale = m / -2^(bits - 1)
//     q     = min(max(round(w / scale) + 2^(bits - 1), 0), 2^bits - 1)      round: ties to even
//
// and where the scale is 0, every q is 2^(bits - 1). So m itself becomes exactly 0 and is kept
// exactly; its opposite saturates one step short. What lies behind a row's end is q = 2^(bits - 1),
// which is 0.
#ifndef REE_GRAPH_HF_QUANTIZE_H
#define REE_GRAPH_HF_QUANTIZE_H

#include "base/status.h"

// A matrix of float32, float16 or bfloat16, mapped: element (i, j) is number i * row + j * column.
struct ree_matrix {
    const unsigned char *data;
    enum ree_dtype dtype;
    int64_t rows, columns; // of the product: out, in
    int64_t row_stride, column_stride;
};

// Bytes of one quantised row.
uint64_t ree_quantized_row_size(int64_t columns, uint32_t bits, uint32_t block);
// Quantises row `i`: ree_quantized_row_size bytes, the first number of a byte in its low bits, and
// a scale for each block. `room` is for `columns` floats. A number that is not finite is an error.
enum ree_status ree_quantize_row(const struct ree_matrix *matrix, int64_t i, uint32_t bits,
                                 uint32_t block, float *room, unsigned char *out, float *out_scales,
                                 struct ree_error *err);

#endif
