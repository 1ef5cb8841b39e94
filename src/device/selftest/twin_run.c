#include "device/selftest/twin_run.h"

#include "base/status.h"
#include "device/selftest/hard_values.h"

#include <stdio.h>

static enum ree_status run_round(struct ree_device *device, struct ree_twin *twin, uint32_t round,
                                 struct ree_device_program *program,
                                 struct ree_device_buffer *const *buffers,
                                 char out_text[REE_TWIN_TEXT_SIZE], struct ree_error *err) {
    const struct ree_device_vtable *vt = device->vtable;
    void *results[REE_MAX_OPERANDS] = {NULL};
    const struct ree_dispatch *d = &twin->dispatch;
    REE_TRY(ree_twin_fill(twin, round, device->n_threads, err));
    for (uint32_t i = 0; i < d->n_operands; i++)
        REE_TRY(vt->buffer_write(device, buffers[i], d->operands[i].offset, twin->contents[i],
                                 d->operands[i].size, err));
    enum ree_status status = vt->program_run(device, program, buffers, NULL, err);
    if (status == REE_INVALID) { // an index out of range, although all are in range
        snprintf(out_text, REE_TWIN_TEXT_SIZE, "%s", err ? err->message : "a fault");
        return REE_OK;
    }
    REE_TRY(status);
    for (uint32_t i = 0; i < d->n_operands; i++) {
        if (!twin->expected[i]) continue;
        results[i] = twin->contents[i];
        REE_TRY(vt->buffer_read(device, buffers[i], d->operands[i].offset, results[i],
                                d->operands[i].size, err));
    }
    struct ree_twin_difference difference;
    if (!ree_twin_matches(twin, results, &difference))
        snprintf(out_text, REE_TWIN_TEXT_SIZE, "operand %u, byte %llu is %08x, not %08x (round %u)",
                 difference.operand, (unsigned long long)difference.byte, difference.is,
                 difference.should_be, round);
    return REE_OK;
}

enum ree_status ree_twin_run(struct ree_device *device, struct ree_twin *twin,
                             struct ree_device_program *program, char out_text[REE_TWIN_TEXT_SIZE],
                             struct ree_error *err) {
    const struct ree_dispatch *d = &twin->dispatch;
    struct ree_device_buffer *buffers[REE_MAX_OPERANDS] = {NULL};
    enum ree_status status = REE_OK;
    out_text[0] = '\0';
    for (uint32_t i = 0; i < d->n_operands && status == REE_OK; i++)
        status = device->vtable->buffer_create(device, d->operands[i].offset + d->operands[i].size,
                                               &buffers[i], err);
    for (uint32_t round = 0; round < REE_HARD_ROUNDS && status == REE_OK && !out_text[0]; round++)
        status = run_round(device, twin, round, program, buffers, out_text, err);
    for (uint32_t i = 0; i < d->n_operands; i++)
        device->vtable->buffer_destroy(device, buffers[i]);
    return status;
}
