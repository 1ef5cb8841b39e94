// Adds dispatches to the program, or runs them at once on the host.
#include "graph/lower/core/lower_internal.h"

#include <stddef.h>
#include <string.h>

#include "base/dtype.h"

// Returns whether the parameters have an offset field for operand i. The operand is then passed
// from the start of its storage.
static bool params_carry_offset(enum ree_repop op, uint32_t i, uint32_t n_operands) {
    switch (op) {
    case REE_REPOP_COPY: return true;
    case REE_REPOP_MAP:
    case REE_REPOP_ATTENTION: return i + 1 < n_operands; // all but the result
    case REE_REPOP_MATMUL: return i < 2;
    case REE_REPOP_REDUCE:
    case REE_REPOP_GATHER: return i == 0;
    default: return false;
    }
}

// Returns whether operand i is both read and written.
static bool is_in_out(enum ree_repop op, uint32_t i) {
    return (op == REE_REPOP_COPY && i == 1) || (op == REE_REPOP_SCATTER && i == 0);
}

// Kernels on the host receive its address for an operand without elements.
static const max_align_t no_elements;

// Returns whether the dispatch may run on the host now. The contents of each input must be
// host-known. Each output and in-out operand must be new, or have writable contents on the host.
static bool can_run_on_host(const struct ree_lower *lower, enum ree_repop op,
                            struct ree_view *const *operands, uint32_t n_operands,
                            uint32_t n_outputs) {
    uint64_t out_bytes = 0;
    for (uint32_t i = 0; i < n_operands; i++) {
        const struct ree_storage *s = operands[i]->storage;
        bool output = i + n_outputs >= n_operands || is_in_out(op, i);
        if (output) {
            out_bytes += s->nbytes;
            if (s->device_written || (s->host && !s->host_writable)) return false;
            if (!lower->fold && ree_dtype_is_float(operands[i]->dtype)) return false;
        } else if (!s->host && s->nbytes) {
            return false;
        }
    }
    return out_bytes <= lower->fold_limit;
}

static uint32_t answering_node(const struct ree_lower *lower) {
    const struct ree_node *node = lower->outer_node ? lower->outer_node : lower->node;
    return node ? node->id : 0;
}

static enum ree_status append_dispatch(struct ree_lower *lower,
                                       const struct ree_dispatch *dispatch) {
    if (lower->n_dispatches == lower->dispatches_capacity) {
        size_t capacity = lower->dispatches_capacity ? lower->dispatches_capacity * 2 : 32;
        struct ree_dispatch *grown = ree_arena_alloc_array(lower->arena, capacity, sizeof *grown);
        if (!grown) return ree_lower_no_memory(lower);
        if (lower->n_dispatches)
            memcpy(grown, lower->dispatches, lower->n_dispatches * sizeof *grown);
        lower->dispatches = grown;
        lower->dispatches_capacity = capacity;
    }
    lower->dispatches[lower->n_dispatches++] = *dispatch;
    return REE_OK;
}

// Moves a storage that the host has begun to fill to the device, which must write it now. The host
// contents become a literal, and a copy from the literal is emitted first. Earlier dispatches that
// read the storage read the literal instead.
static enum ree_status move_to_device(struct ree_lower *lower, struct ree_storage *storage) {
    struct ree_storage *literal =
        ree_lower_add_storage(lower, REE_STORAGE_LITERAL, storage->nbytes);
    if (!literal) return ree_lower_no_memory(lower);
    literal->host = storage->host;
    storage->kind = REE_STORAGE_TEMP;
    storage->host = storage->host_writable = NULL;
    storage->device_written = true;
    for (size_t i = 0; i < lower->n_dispatches; i++)
        for (uint32_t k = 0; k < lower->dispatches[i].n_operands; k++)
            if (lower->dispatches[i].operands[k].slot == storage->id)
                lower->dispatches[i].operands[k].slot = literal->id;
    // Copy whole words; the padding up to the last word belongs to the storage.
    struct ree_dispatch d = {.op = REE_REPOP_COPY, .n_operands = 2, .n_outputs = 1};
    d.node = answering_node(lower);
    uint32_t words = (uint32_t)((storage->nbytes + 3) / 4);
    d.params.copy = (struct ree_copy_params){.elem_size = 4, .rank = 1, .n_elements = words};
    d.params.copy.dims[0] = words;
    d.params.copy.src_strides[0] = d.params.copy.dst_strides[0] = 1;
    d.operands[0] = (struct ree_operand){literal->id, 0, (uint64_t)words * 4};
    d.operands[1] = (struct ree_operand){storage->id, 0, (uint64_t)words * 4};
    return append_dispatch(lower, &d);
}

enum ree_status ree_lower_emit(struct ree_lower *lower, enum ree_repop op,
                               const union ree_params *params, struct ree_view *const *operands,
                               uint32_t n_operands, uint32_t n_outputs) {
    if (n_operands > REE_MAX_OPERANDS)
        return ree_lower_fail(lower, REE_INTERNAL, "%s with %u operands", ree_repop_name(op),
                              n_operands);
    bool writes_nothing = true;
    for (uint32_t i = n_operands - n_outputs; i < n_operands; i++)
        if (operands[i]->storage->nbytes) writes_nothing = false;
    if (writes_nothing && n_outputs) return REE_OK;
    // In a bind, strings are numbers. Only RepOps that move data may process them.
    bool moves = op == REE_REPOP_COPY || op == REE_REPOP_GATHER || op == REE_REPOP_MAP ||
                 op == REE_REPOP_SCATTER;
    for (uint32_t i = 0; i < n_operands && !moves; i++)
        if (operands[i]->dtype == REE_STRING)
            return ree_lower_fail(lower, REE_UNSUPPORTED, "%s of strings is not supported",
                                  lower->node ? lower->node->op_type : ree_repop_name(op));
    if (op == REE_REPOP_SCATTER && operands[0]->storage->nbytes == 0) return REE_OK;

    struct ree_dispatch d = {.op = op, .n_operands = n_operands, .n_outputs = n_outputs};
    d.node = answering_node(lower);
    memcpy(&d.params, params, ree_repop_params_size(op));
    for (uint32_t i = 0; i < n_operands; i++) {
        const struct ree_view *t = operands[i];
        uint64_t skip = params_carry_offset(op, i, n_operands)
                            ? 0
                            : (uint64_t)t->offset * ree_dtype_size(t->dtype);
        d.operands[i] = (struct ree_operand){t->storage->id, skip, t->storage->nbytes - skip};
    }

    if (can_run_on_host(lower, op, operands, n_operands, n_outputs)) {
        void *pointers[REE_MAX_OPERANDS];
        bool is_new[REE_MAX_OPERANDS] = {false}; // this dispatch gave the storage its host memory
        for (uint32_t i = 0; i < n_operands; i++) {
            struct ree_storage *s = operands[i]->storage;
            bool output = i + n_outputs >= n_operands || is_in_out(op, i);
            if (output && !s->host_writable) {
                is_new[i] = true;
                s->host_writable = ree_lower_host_memory(lower, s->nbytes);
                if (!s->host_writable) return ree_lower_no_memory(lower);
                s->host = s->host_writable;
                s->kind = REE_STORAGE_LITERAL;
            }
            // Kernels receive their inputs in the same array, but do not write to them. An input
            // without elements has no memory: it gets an address that nothing is read from.
            pointers[i] = s->nbytes ? (char *)(uintptr_t)s->host + d.operands[i].offset
                                    : (void *)(uintptr_t)&no_elements;
        }
#ifdef REE_CHECK_DISPATCHES
        REE_TRY(ree_dispatch_check(&d, lower->err));
#endif
        enum ree_status status = lower->host_execute(&d, pointers, lower->err);
        // An index is out of range. The device must fail instead: a run must not depend on whether
        // the host knows the index, and a dispatch that nothing reads does not fail.
        bool has_index = op == REE_REPOP_GATHER || op == REE_REPOP_SCATTER;
        if (status != REE_INVALID || !has_index) return status;
        ree_error_clear(lower->err);
        for (uint32_t i = 0; i < n_operands; i++) {
            struct ree_storage *s = operands[i]->storage;
            if (!is_new[i]) continue;
            s->host = s->host_writable = NULL;
            s->kind = REE_STORAGE_TEMP;
        }
    }
    for (uint32_t i = 0; i < n_operands; i++) {
        struct ree_storage *s = operands[i]->storage;
        if (i + n_outputs < n_operands && !is_in_out(op, i)) continue;
        if (s->host) REE_TRY(move_to_device(lower, s));
        s->device_written = true;
    }
    return append_dispatch(lower, &d);
}
