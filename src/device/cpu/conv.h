// What the files of conv share.
#ifndef REE_DEVICE_CPU_CONV_H
#define REE_DEVICE_CPU_CONV_H

#include "device/cpu/conv_layout.h"
#include "device/cpu/expr.h"

struct ree_conv_output {
    const struct ree_cpu_expr_plan *epilogue; // NULL: none
    void *out;
    size_t elem_size; // of out
};

// Writes elements [first, first + count) of the output from finished sums (float32, or int32 by the
// same bits); values may be the output's own memory.
static inline void ree_conv_write(const struct ree_conv_output *output, const float *values,
                                  uint32_t first, uint32_t count) {
    if (output->epilogue)
        ree_cpu_expr_row(output->epilogue, values, first, count, output->out);
    else if (values != (float *)output->out + first)
        memcpy((float *)output->out + first, values, count * sizeof(float));
}

// conv over 8-bit integers (conv_integer.c).
enum ree_status ree_conv_integer(const struct ree_cpu_context *ctx, const struct ree_conv_params *p,
                                 void *const *operands, const struct ree_conv_output *output,
                                 struct ree_error *err);

#endif
