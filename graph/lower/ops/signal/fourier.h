// The discrete Fourier transform along one dimension, for DFT and STFT.
#ifndef REE_GRAPH_LOWER_OPS_SIGNAL_FOURIER_H
#define REE_GRAPH_LOWER_OPS_SIGNAL_FOURIER_H

#include "graph/lower/ops/data.h"

#define REE_FOURIER_MAX_LENGTH (INT64_C(1) << 27)

// Transforms x (rows, samples, parts), float32 or float64; parts is 1 (real) or 2 (real,
// imaginary). The transform has length n (1 to REE_FOURIER_MAX_LENGTH). Its input is the first n
// samples, padded with zeros if there are fewer. `inverse` selects the sign of the exponent;
// nothing is divided by n. *out is (rows, n_out, 2): the first n_out <= n results, not necessarily
// dense.
enum ree_status ree_fourier(struct ree_lower *lower, struct ree_view *x, int64_t n, bool inverse,
                            int64_t n_out, struct ree_view **out);

#endif
