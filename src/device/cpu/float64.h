// The float64 paths of reduce, matmul and scan (float64.c).
#ifndef REE_DEVICE_CPU_FLOAT64_H
#define REE_DEVICE_CPU_FLOAT64_H

#include "device/cpu/cpu_internal.h"

struct ree_cpu_reduce_plan;
enum ree_status ree_cpu_reduce_f64(const struct ree_cpu_context *ctx,
                                   const struct ree_cpu_reduce_plan *plan, struct ree_error *err);
// Computes a product without an epilogue. `a` and `b` point to the start of the operands.
void ree_cpu_matmul_f64(const struct ree_cpu_context *ctx, const struct ree_matmul_params *p,
                        const double *a, const double *b, double *out);
void ree_cpu_scan_f64(const struct ree_cpu_context *ctx, const struct ree_scan_params *p,
                      const double *x, double *out);

#endif
