#include "device/selftest/twin.h"

#include "base/memory.h"
#include "base/status.h"
#include "device/device.h"
#include "device/selftest/hard_values.h"
#include "device/selftest/twin_shapes.h"

#include <stdlib.h>
#include <string.h>

static uint64_t rounded_size(const struct ree_twin *twin, uint32_t i) {
    return (twin->dispatch.operands[i].size / 64 + 1) * 64;
}

static enum ree_status allocate(struct ree_twin *twin, struct ree_error *err) {
    for (uint32_t i = 0; i < twin->dispatch.n_operands; i++) {
        uint64_t size = rounded_size(twin, i);
        twin->contents[i] = ree_alloc_aligned(64, size);
        if (twin->operands[i].is_written) twin->expected[i] = ree_alloc_aligned(64, size);
        if (!twin->contents[i] || (twin->operands[i].is_written && !twin->expected[i]))
            return ree_fail(err, REE_NO_MEMORY, "no memory for a self-test");
        memset(twin->contents[i], 0, size);
    }
    return REE_OK;
}

static enum ree_status shrink(struct ree_dispatch *d, const struct ree_dispatch *like,
                              const struct ree_twin_size *size, struct ree_twin_operand *operands,
                              struct ree_error *err) {
    *d = *like;
    d->node = 0;
    memset(d->operands, 0, sizeof d->operands);
    d->n_operands = ree_twin_shrink(d, size, operands);
    if (d->n_operands == 0) return ree_fail(err, REE_UNSUPPORTED, "a dispatch without elements");
    for (uint32_t i = 0; i < d->n_operands; i++) {
        const struct ree_hard_values *v = &operands[i].values;
        d->operands[i] = (struct ree_operand){
            .slot = i,
            .offset = size->alignment ? like->operands[i].offset % 16 : 0,
            .size = v->n * ree_dtype_size((enum ree_dtype)v->dtype),
        };
    }
    return REE_OK;
}

enum ree_status ree_twin_dispatch(const struct ree_dispatch *like, const struct ree_twin_size *size,
                                  struct ree_dispatch *out, struct ree_error *err) {
    struct ree_twin_operand operands[REE_MAX_OPERANDS];
    return shrink(out, like, size, operands, err);
}

enum ree_status ree_twin_init(struct ree_twin *twin, const struct ree_dispatch *like,
                              const struct ree_twin_size *size, struct ree_error *err) {
    memset(twin, 0, sizeof *twin);
    twin->operands = ree_alloc_zeroed(REE_MAX_OPERANDS, sizeof *twin->operands);
    if (!twin->operands) return ree_fail(err, REE_NO_MEMORY, "no memory for a self-test");
    REE_TRY(shrink(&twin->dispatch, like, size, twin->operands, err));
    REE_TRY(ree_dispatch_check(&twin->dispatch, err));
    return allocate(twin, err);
}

// Copies the expected bytes of the round from twin->kept. Returns false if they were not kept.
static bool restore(struct ree_twin *twin, uint32_t round) {
    bool is_kept = false;
    for (uint32_t i = 0; i < twin->dispatch.n_operands; i++) {
        if (!twin->kept[round][i]) continue;
        memcpy(twin->expected[i], twin->kept[round][i], rounded_size(twin, i));
        is_kept = true;
    }
    return is_kept;
}

// Keeps the expected bytes of the round: of all operands, or of none if memory is exhausted.
static void keep(struct ree_twin *twin, uint32_t round) {
    bool failed = false;
    for (uint32_t i = 0; i < twin->dispatch.n_operands; i++) {
        if (!twin->expected[i]) continue;
        uint8_t *copy = ree_alloc_aligned(64, rounded_size(twin, i));
        if (copy) memcpy(copy, twin->expected[i], rounded_size(twin, i));
        twin->kept[round][i] = copy;
        failed = failed || !copy;
    }
    for (uint32_t i = 0; i < REE_MAX_OPERANDS && failed; i++) {
        ree_free_aligned(twin->kept[round][i]);
        twin->kept[round][i] = NULL;
    }
}

enum ree_status ree_twin_fill(struct ree_twin *twin, uint32_t round, uint32_t n_threads,
                              struct ree_error *err) {
    void *operands[REE_MAX_OPERANDS];
    for (uint32_t i = 0; i < twin->dispatch.n_operands; i++) {
        ree_hard_values_fill(&twin->operands[i].values, round, i, twin->contents[i]);
        operands[i] = twin->contents[i];
        if (!twin->expected[i]) continue;
        memcpy(twin->expected[i], twin->contents[i], rounded_size(twin, i));
        operands[i] = twin->expected[i];
    }
    if (restore(twin, round)) return REE_OK;
    REE_TRY(ree_cpu_execute_threads(&twin->dispatch, operands, n_threads, err));
    keep(twin, round);
    return REE_OK;
}

bool ree_twin_matches(const struct ree_twin *twin, void *const *results,
                      struct ree_twin_difference *out) {
    for (uint32_t i = 0; i < twin->dispatch.n_operands; i++) {
        uint64_t size = twin->dispatch.operands[i].size, at = 0;
        if (!twin->expected[i]) continue;
        const uint8_t *is = results[i], *should_be = twin->expected[i];
        if (memcmp(is, should_be, size) == 0) continue;
        while (is[at] == should_be[at])
            at++;
        at -= at % 4;
        *out = (struct ree_twin_difference){.operand = i, .byte = at};
        size_t n = size - at < 4 ? (size_t)(size - at) : 4;
        memcpy(&out->is, is + at, n);
        memcpy(&out->should_be, should_be + at, n);
        return false;
    }
    return true;
}

void ree_twin_finish(struct ree_twin *twin) {
    for (uint32_t i = 0; i < REE_MAX_OPERANDS; i++) {
        ree_free_aligned(twin->contents[i]);
        ree_free_aligned(twin->expected[i]);
        for (uint32_t round = 0; round < REE_HARD_ROUNDS; round++)
            ree_free_aligned(twin->kept[round][i]);
    }
    ree_free(twin->operands);
    memset(twin, 0, sizeof *twin);
}
