// Runs one scalar operation on a device, for every element of arrays of 32-bit words.
#ifndef REE_TESTS_DEVICE_DEVICE_MAP_H
#define REE_TESTS_DEVICE_DEVICE_MAP_H

#include "device/device.h"

// Computes out[i] = op(args[0][i], args[1][i], ...) for i < n on the device. args has one array of
// n words for each argument of op. The result and the arguments of op must be 32-bit words (class W
// in repops/map_ops.def). Fails if a call of the device fails.
static inline enum ree_status run_device_map(struct ree_device *device, enum ree_map_op op,
                                             uint32_t n, const uint32_t *const *args, uint32_t *out,
                                             struct ree_error *err) {
    const struct ree_device_vtable *vt = device->vtable;
    uint32_t n_args = ree_map_op_infos[op].n_args;
    struct ree_dispatch dispatch = {.op = REE_REPOP_MAP, .n_operands = n_args + 1, .n_outputs = 1};
    struct ree_expr *expr = &dispatch.params.map.expr;
    *expr = (struct ree_expr){.rank = 1,
                              .dims = {n},
                              .n_elements = n,
                              .out_dtype = REE_U32,
                              .n_operands = n_args,
                              .n_instrs = 1,
                              .instrs = {{.op = op, .args = {0, 1, 2}}}};
    struct ree_device_buffer *buffers[4] = {0};
    struct ree_device_program *program = NULL;
    enum ree_status status = REE_OK;
    for (uint32_t i = 0; i <= n_args && status == REE_OK; i++) {
        if (i < n_args)
            expr->operands[i] =
                (struct ree_expr_operand){REE_EXPR_TENSOR, REE_U32, 0, .strides = {1}};
        dispatch.operands[i] = (struct ree_operand){i, 0, (uint64_t)n * 4};
        status = vt->buffer_create(device, (uint64_t)n * 4, &buffers[i], err);
        if (status == REE_OK && i < n_args)
            status = vt->buffer_write(device, buffers[i], 0, args[i], (uint64_t)n * 4, err);
    }
    struct ree_program source = {&dispatch, 1, n_args + 1, NULL, 0};
    if (status == REE_OK) status = vt->program_create(device, &source, NULL, NULL, &program, err);
    if (status == REE_OK) status = vt->program_run(device, program, buffers, NULL, err);
    if (status == REE_OK)
        status = vt->buffer_read(device, buffers[n_args], 0, out, (uint64_t)n * 4, err);
    vt->program_destroy(device, program);
    for (uint32_t i = 0; i <= n_args; i++)
        vt->buffer_destroy(device, buffers[i]);
    return status;
}

#endif
