// Declares the scan of float64 values. float64.c also implements float64 reductions (reduce.h) and
// products (matmul.h).
#ifndef REE_DEVICE_CPU_FLOAT64_H
#define REE_DEVICE_CPU_FLOAT64_H

#include "device/cpu/cpu_internal.h"

void ree_cpu_scan_f64(const struct ree_cpu_context *ctx, const struct ree_scan_params *p,
                      const double *x, double *out);

#endif
