// Elementary functions in IEEE double for tables that are made on the host. Each is a fixed
// sequence of additions, multiplications and divisions, so that every machine makes the same table
// (NUMERICS.md, "Tables"). The error is a few ulps of a double.
#ifndef REE_GRAPH_LOWER_OPS_SIGNAL_REAL_H
#define REE_GRAPH_LOWER_OPS_SIGNAL_REAL_H

#include <stdint.h>

// Sets *out_cos and *out_sin to cos and sin of 2 pi m / n, for 0 <= m < n < 2^59. Exact at
// multiples of a quarter turn.
void ree_real_turn(int64_t m, int64_t n, double *out_cos, double *out_sin);
double ree_real_log(double x); // natural logarithm; x must be normal and above 0
double ree_real_exp(double x); // e^x; |x| must be at most 700

#endif
