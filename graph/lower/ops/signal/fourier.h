// Emits the discrete Fourier transform along one dimension, for the ONNX operators DFT and STFT.
#ifndef REE_GRAPH_LOWER_OPS_SIGNAL_FOURIER_H
#define REE_GRAPH_LOWER_OPS_SIGNAL_FOURIER_H

#include "graph/lower/ops/data.h"

#define REE_FOURIER_MAX_LENGTH (INT64_C(1) << 27)

// Transforms each row of x (rows, samples, parts), float32 or float64; parts is 1 (real) or 2
// (real, imaginary). The transform has length n (1 to REE_FOURIER_MAX_LENGTH):
//
//     X[j] = sum over s < n of x[s] * exp(-2 pi i s j / n)      `inverse`: exp(+2 pi i s j / n)
//
// If x has more than n samples, the others are ignored; missing samples count as zeros. The inverse
// does not divide by n. *out (rows, n_out, 2) is X[0 ... n_out - 1], n_out <= n, as real and
// imaginary parts; it may have any strides.
enum ree_status ree_fourier(struct ree_lower *lower, struct ree_view *x, int64_t n, bool inverse,
                            int64_t n_out, struct ree_view **out);

#endif
