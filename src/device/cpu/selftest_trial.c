#include "device/cpu/selftest_trial.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sha256.h"
#include "device/cpu/execute.h"

struct ree_cpu_trial ree_cpu_trial_once(const struct ree_cpu_trial *t) {
    struct ree_cpu_trial first = *t;
    first.rounds = 1;
    return first;
}

static enum ree_status no_memory(struct ree_error *err) {
    return ree_fail(err, REE_NO_MEMORY, "no memory for a self-test");
}

// Packed copies of one dispatch's weights, by operand number; NULL: none.
struct copies {
    void *packed[REE_CPU_MAX_PACKED];
};

static void copies_finish(struct copies *copies) {
    for (uint32_t i = 0; i < REE_CPU_MAX_PACKED; i++)
        ree_free_aligned(copies->packed[i]);
}

// Packs all weights of a dispatch that can be packed. *out_any: whether there are any. The caller
// releases the copies, even on failure.
static enum ree_status pack(struct ree_cpu_context *ctx, const struct ree_dispatch *d,
                            void *const *operands, struct copies *copies, bool *out_any,
                            struct ree_error *err) {
    *out_any = false;
    for (uint32_t i = 1; i < REE_CPU_MAX_PACKED; i++) {
        struct ree_cpu_pack_key key;
        size_t nbytes = 0;
        void *packed = NULL;
        if (d->op == REE_REPOP_MATMUL)
            nbytes = ree_cpu_matmul_pack_size(ctx, &d->params.matmul, i, &key);
        else if (d->op == REE_REPOP_CONV && i == 1)
            nbytes = ree_cpu_conv_pack_size(ctx, &d->params.conv, &key);
        if (nbytes == 0) continue;
        packed = ree_alloc_aligned(64, nbytes);
        if (!packed) return no_memory(err);
        if (d->op == REE_REPOP_MATMUL)
            ree_cpu_matmul_pack(ctx, &d->params.matmul, i, operands[i], packed);
        else
            ree_cpu_conv_pack(ctx, &d->params.conv, operands[i], packed);
        ctx->packed[i] = copies->packed[i] = packed;
        *out_any = true;
    }
    return REE_OK;
}

static enum ree_status run_packed(const struct ree_cpu_trial *t, struct ree_cpu_context *ctx,
                                  const struct ree_dispatch *d, void *const *memory) {
    const uint32_t last = d->n_operands - 1;
    const size_t nbytes = d->operands[last].size;
    void *before = ree_alloc(nbytes + 1);
    if (!before) return no_memory(t->err);
    memcpy(before, memory[last], nbytes);
    enum ree_status status = ree_cpu_run_dispatch(ctx, d, memory, t->err);
    if (status == REE_OK && memcmp(before, memory[last], nbytes) != 0)
        ree_hasher_update(t->hasher, "packed", 6); // makes the digest differ from the recorded one
    ree_free(before);
    return status;
}

// Returns whether the first values of a are those of b.
static bool has_prefix(const struct ree_hard_values *a, const struct ree_hard_values *b) {
    return a->n >= b->n && a->role == b->role && a->dtype == b->dtype && a->run == b->run &&
           a->low == b->low && a->high == b->high;
}

static void fill(const struct ree_cpu_trial *t, const struct ree_hard_values *values,
                 uint32_t round, uint32_t operand, void *memory, size_t nbytes) {
    struct ree_cpu_trial_kept *kept = &t->kept[operand][round];
    const size_t n_copies = REE_CPU_TRIAL_COPIES;
    for (size_t i = 0; i < n_copies && kept->copies[i].bytes; i++)
        if (has_prefix(&kept->copies[i].values, values)) {
            memcpy(memory, kept->copies[i].bytes, nbytes);
            return;
        }
    ree_hard_values_fill(values, round, operand, memory);
    void *bytes = ree_alloc(nbytes + 1);
    if (!bytes) return; // nothing is kept
    memcpy(bytes, memory, nbytes);
    ree_free(kept->copies[n_copies - 1].bytes);
    memmove(&kept->copies[1], &kept->copies[0], (n_copies - 1) * sizeof *kept->copies);
    kept->copies[0].values = *values;
    kept->copies[0].bytes = bytes;
}

static enum ree_status run_round(const struct ree_cpu_trial *t, const struct ree_dispatch *d,
                                 const struct ree_twin_operand *operands, void *const *memory,
                                 uint32_t round) {
    for (uint32_t i = 0; i < d->n_operands; i++)
        fill(t, &operands[i].values, round, i, memory[i], d->operands[i].size);
    REE_TRY(ree_cpu_run_dispatch(t->ctx, d, memory, t->err));
    for (uint32_t i = 0; i < d->n_operands; i++)
        if (operands[i].is_written) ree_hasher_update(t->hasher, memory[i], d->operands[i].size);
    // Run again with packed weights, if they can be packed: the result must be the same.
    struct ree_cpu_context packed = *t->ctx;
    bool any;
    struct copies copies = {0};
    enum ree_status status = pack(&packed, d, memory, &copies, &any, t->err);
    if (status == REE_OK && any) status = run_packed(t, &packed, d, memory);
    copies_finish(&copies);
    return status;
}

enum ree_status ree_cpu_trial_run_whole(const struct ree_cpu_trial *t, struct ree_dispatch *d,
                                        const struct ree_twin_operand *operands) {
    void *memory[REE_MAX_OPERANDS] = {NULL};
    enum ree_status status = REE_OK;
    d->n_outputs = d->op == REE_REPOP_SCATTER ? 0 : 1;
    for (uint32_t i = 0; i < d->n_operands; i++) {
        const struct ree_hard_values *v = &operands[i].values;
        d->operands[i].size = v->n * ree_dtype_size((enum ree_dtype)v->dtype);
        memory[i] = ree_alloc_aligned(64, (d->operands[i].size / 64 + 1) * 64);
        if (!memory[i]) status = no_memory(t->err);
    }
    for (uint32_t round = 0; round < t->rounds && status == REE_OK; round++)
        status = run_round(t, d, operands, memory, round);
    for (uint32_t i = 0; i < d->n_operands; i++)
        ree_free_aligned(memory[i]);
    return status;
}

enum ree_status ree_cpu_trial_run(const struct ree_cpu_trial *t, struct ree_dispatch *d) {
    struct ree_twin_operand operands[REE_MAX_OPERANDS] = {0};
    d->n_operands = ree_twin_shrink(d, &t->size, operands);
    return ree_cpu_trial_run_whole(t, d, operands);
}

void ree_cpu_trial_add_operand(struct ree_dispatch *d, struct ree_twin_operand *operands,
                               uint32_t dtype, uint64_t n, bool is_written) {
    operands[d->n_operands++] = (struct ree_twin_operand){
        .values = {.role = REE_HARD_ANY, .dtype = dtype, .n = n, .run = 100},
        .is_written = is_written};
}
