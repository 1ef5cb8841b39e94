// `ree-run bench ceilings`: what limits every RepOp on a device. Memory: copies on the device, and
// between it and the host. Arithmetic: fma in registers, a lower bound.
#include "bench/bench_internal.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>

// Creates a program that copies n words on the device: at best each byte is read once and written
// once.
static enum ree_status create_copy(struct ree_benchmark *bench, uint32_t n,
                                   struct ree_bench_program *program, struct ree_error *err) {
    const uint64_t sizes[] = {4ull * n, 4ull * n};
    union ree_params params;
    memset(&params, 0, sizeof params);
    params.copy = (struct ree_copy_params){.elem_size = 4,
                                           .rank = 1,
                                           .n_elements = n,
                                           .dims = {n},
                                           .src_strides = {1},
                                           .dst_strides = {1}};
    return ree_bench_program_create(program, bench->device, REE_REPOP_COPY, &params, 2, sizes, NULL,
                                    0, err);
}

#define N_FMA (REE_EXPR_MAX_INSTRS - 1)

// Creates a program with a map over n elements: x = i, then x = fma(x, a, b) N_FMA times, the
// longest chain that an expression can have. It reads only two numbers from memory, a and b, and
// writes one byte per element. So it has 62 flops per byte. The rate is a lower bound of the
// device's: some GPUs can do more flops in the time in which memory takes a byte, and indices and
// conversions take time too. Elements do not depend on each other.
static enum ree_status create_fma(struct ree_benchmark *bench, uint32_t n,
                                  struct ree_bench_program *program, struct ree_error *err) {
    const uint64_t sizes[] = {4, 4, n};
    union ree_params params;
    memset(&params, 0, sizeof params);
    struct ree_expr *e = &params.map.expr;
    e->rank = 1;
    e->dims[0] = e->n_elements = n;
    e->out_dtype = REE_U8;
    e->n_operands = 3;
    e->operands[0] = e->operands[1] = (struct ree_expr_operand){REE_EXPR_TENSOR, REE_F32, 0, {0}};
    e->operands[2] = (struct ree_expr_operand){REE_EXPR_IOTA, REE_I32, 0, {1}};
    e->n_instrs = 1 + N_FMA;
    e->instrs[0] = (struct ree_expr_instr){REE_MAP_i32_to_f32, {2, 0, 0}, {0, 0}};
    for (uint32_t i = 0; i < N_FMA; i++)
        e->instrs[1 + i] = (struct ree_expr_instr){REE_MAP_fma_f32, {3 + i, 0, 1}, {0, 0}};
    return ree_bench_program_create(program, bench->device, REE_REPOP_MAP, &params, 3, sizes, NULL,
                                    0, err);
}

// Writes host memory to the device and reads it back.
static enum ree_status transfer(struct ree_bench_program *copy, void *host, uint64_t size,
                                struct ree_bench_measured *to, struct ree_bench_measured *from,
                                struct ree_error *err) {
    const struct ree_device_vtable *vtable = copy->device->vtable;
    double before = ree_clock();
    REE_TRY(vtable->buffer_write(copy->device, copy->slots[0], 0, host, size, err));
    ree_bench_times_add(&to->times, ree_clock() - before);
    before = ree_clock();
    REE_TRY(vtable->buffer_read(copy->device, copy->slots[0], 0, host, size, err));
    ree_bench_times_add(&from->times, ree_clock() - before);
    return REE_OK;
}

enum ree_status ree_bench_ceilings(struct ree_benchmark *bench, struct ree_error *err) {
    static struct ree_bench_program copy, fma;
    static struct ree_bench_measured to, from;
    struct ree_bench_measured result = {0};
    uint32_t n = 64 << 20;
    if (bench->size) REE_TRY(ree_bench_parse_size(bench->size, 1, &n, "a number of elements", err));
    // Some Vulkan drivers only support small buffers.
    const uint64_t max_elements = bench->device->max_buffer_size / 4;
    if (n > max_elements) n = (uint32_t)max_elements;
    const uint64_t bytes = 4ull * n;
    to = (struct ree_bench_measured){
        .name = "host to device", .unit = "GB/s", .amount = (double)bytes};
    from = (struct ree_bench_measured){
        .name = "device to host", .unit = "GB/s", .amount = (double)bytes};
    void *host = ree_bench_floats(n);
    enum ree_status status = host ? create_copy(bench, n, &copy, err) : ree_no_memory(err);
    if (status == REE_OK) status = create_fma(bench, n, &fma, err);
    for (uint64_t i = 0; i < bench->n_runs && status == REE_OK; i++) {
        status = ree_progress_report(&bench->progress, "ceilings", i, bench->n_runs, err);
        if (status == REE_OK) status = ree_bench_program_run_warm(&copy, err);
        if (status == REE_OK) status = ree_bench_program_run_warm(&fma, err);
        if (status == REE_OK) status = transfer(&copy, host, bytes, &to, &from, err);
    }
    if (status == REE_OK) {
        result.unit = "GB/s";
        result.amount = 2.0 * (double)bytes;
        result.times = copy.times;
        snprintf(result.name, sizeof result.name, "copy on the device, read and written");
        ree_bench_report(bench, &result);
        ree_bench_report(bench, &to);
        ree_bench_report(bench, &from);
        result.unit = "GFLOP/s";
        result.amount = 2.0 * N_FMA * n;
        result.times = fma.times;
        snprintf(result.name, sizeof result.name, "fma in registers, lower bound");
        ree_bench_report(bench, &result);
    }
    ree_bench_program_destroy(&copy);
    ree_bench_program_destroy(&fma);
    ree_free_aligned(host);
    return status;
}
