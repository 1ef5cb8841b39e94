#include "budget_device.h"

#include "base/container.h"
#include "base/status.h"
#include "repops/cost.h"

#include <stdio.h>
#include <stdlib.h>

// Elements of an iteration space, counted once for each instruction that visits them.
static double expr_work(const struct ree_expr *e) {
    return (double)e->n_elements * (1 + e->n_instrs);
}

// The cost of a dispatch, in elements visited and multiply-adds.
static double dispatch_work(const struct ree_dispatch *d) {
    const union ree_params *p = &d->params;
    struct ree_cost cost = ree_dispatch_cost(d);
    double work = cost.bytes / 4 + cost.flops / 2;
    switch (d->op) {
    case REE_REPOP_COPY: return work + p->copy.n_elements;
    case REE_REPOP_MAP: return work + expr_work(&p->map.expr);
    case REE_REPOP_REDUCE: return work + (double)p->reduce.n_outer * (1.0 + p->reduce.n_reduce);
    case REE_REPOP_MATMUL:
        return work + (p->matmul.has_epilogue ? expr_work(&p->matmul.epilogue) : 0);
    case REE_REPOP_CONV: return work + (p->conv.has_epilogue ? expr_work(&p->conv.epilogue) : 0);
    case REE_REPOP_POOL: {
        double n = p->pool.planes;
        for (int i = 0; i < 3; i++)
            n *= (double)p->pool.out[i] * p->pool.kernel[i];
        return work + n;
    }
    case REE_REPOP_GATHER: return work + (double)p->gather.n_elements * p->gather.n_components;
    case REE_REPOP_SCATTER:
        return work + (double)p->scatter.n_vectors * p->scatter.n_steps * p->scatter.n_components;
    case REE_REPOP_TOPK: return work + 16.0 * p->topk.outer * p->topk.n * p->topk.inner;
    case REE_REPOP_RESIZE:
        return work + (double)p->resize.outer * p->resize.k_out * p->resize.inner * p->resize.taps;
    default: return work;
    }
}

static struct budget_device *budget(struct ree_device *device) {
    return REE_CONTAINER_OF(device, struct budget_device, base);
}

static const struct ree_device_vtable *inner_table(struct ree_device *device) {
    return budget(device)->inner->vtable;
}

static enum ree_status refuse(struct budget_device *b, struct ree_error *err) {
    b->exceeded = true;
    return ree_fail(err, REE_NO_MEMORY, "beyond the budget of the fuzz target");
}

static void destroy(struct ree_device *device) {
    ree_device_destroy(budget(device)->inner);
}

static enum ree_status buffer_create(struct ree_device *device, uint64_t size,
                                     struct ree_device_buffer **out, struct ree_error *err) {
    struct budget_device *b = budget(device);
    *out = NULL;
    if (size > b->bytes_left) return refuse(b, err);
    b->bytes_left -= size;
    return b->inner->vtable->buffer_create(b->inner, size, out, err);
}

static enum ree_status buffer_wrap(struct ree_device *device, const void *data, uint64_t size,
                                   struct ree_device_buffer **out, struct ree_error *err) {
    return inner_table(device)->buffer_wrap(budget(device)->inner, data, size, out, err);
}

static void buffer_destroy(struct ree_device *device, struct ree_device_buffer *buffer) {
    inner_table(device)->buffer_destroy(budget(device)->inner, buffer);
}

static enum ree_status buffer_write(struct ree_device *device, struct ree_device_buffer *buffer,
                                    uint64_t offset, const void *data, uint64_t size,
                                    struct ree_error *err) {
    return inner_table(device)->buffer_write(budget(device)->inner, buffer, offset, data, size,
                                             err);
}

static enum ree_status buffer_read(struct ree_device *device, struct ree_device_buffer *buffer,
                                   uint64_t offset, void *data, uint64_t size,
                                   struct ree_error *err) {
    return inner_table(device)->buffer_read(budget(device)->inner, buffer, offset, data, size, err);
}

static enum ree_status program_create(struct ree_device *device, const struct ree_program *program,
                                      struct ree_device_buffer *const *constants,
                                      uint64_t *copies_capacity, struct ree_device_program **out,
                                      struct ree_error *err) {
    struct budget_device *b = budget(device);
    double work = 0;
    *out = NULL;
    for (uint32_t i = 0; i < program->n_dispatches; i++)
        work += dispatch_work(&program->dispatches[i]);
    if (work > (double)b->left) return refuse(b, err);
    b->left -= (uint64_t)work;
    return b->inner->vtable->program_create(b->inner, program, constants, copies_capacity, out,
                                            err);
}

static void program_destroy(struct ree_device *device, struct ree_device_program *program) {
    inner_table(device)->program_destroy(budget(device)->inner, program);
}

static enum ree_status program_run(struct ree_device *device, struct ree_device_program *program,
                                   struct ree_device_buffer *const *slots,
                                   const struct ree_program_run *options, struct ree_error *err) {
    return inner_table(device)->program_run(budget(device)->inner, program, slots, options, err);
}

static bool program_times(struct ree_device *device, struct ree_device_program *program,
                          double *out_seconds) {
    return inner_table(device)->program_times(budget(device)->inner, program, out_seconds);
}

static enum ree_status program_kernels(struct ree_device *device,
                                       const struct ree_device_program *program,
                                       const struct ree_kernel_sink *sink, struct ree_error *err) {
    return inner_table(device)->program_kernels(budget(device)->inner, program, sink, err);
}

static size_t facts(const struct ree_device *device, const struct ree_device_fact **out_facts) {
    const struct budget_device *b = REE_CONTAINER_OF(device, const struct budget_device, base);
    return ree_device_facts(b->inner, out_facts);
}

void budget_device_open(struct budget_device *device, const struct ree_device_options *options) {
    static const struct ree_device_vtable vtable = {
        .destroy = destroy,
        .buffer_create = buffer_create,
        .buffer_wrap = buffer_wrap,
        .buffer_destroy = buffer_destroy,
        .buffer_write = buffer_write,
        .buffer_read = buffer_read,
        .program_create = program_create,
        .program_destroy = program_destroy,
        .program_run = program_run,
        .program_times = program_times,
        .program_kernels = program_kernels,
        .facts = facts,
    };
    struct ree_error err;
    *device = (struct budget_device){0};
    if (ree_device_open("cpu", options, &device->inner, &err) != REE_OK) {
        fprintf(stderr, "%s\n", err.message);
        exit(1);
    }
    device->base = *device->inner;
    device->base.vtable = &vtable;
}

void budget_device_refill(struct budget_device *device, uint64_t work, uint64_t nbytes) {
    device->left = work;
    device->bytes_left = nbytes;
    device->exceeded = false;
}
