// Sparse conditional constant propagation (Wegman and Zadeck, "Constant Propagation with
// Conditional Branches", 1991) over 32-bit integers and Booleans, then the choice of the blocks and
// values that stay: those that are reached and used.
#include "device/vulkan/spirv_fold_internal.h"
#include "device/vulkan/spirv_ops.h"

static bool ends_block(uint32_t opcode) {
    return opcode == REE_SPV_BRANCH || opcode == REE_SPV_BRANCH_CONDITIONAL ||
           opcode == REE_SPV_SWITCH || opcode == REE_SPV_RETURN || opcode == REE_SPV_RETURN_VALUE ||
           opcode == REE_SPV_UNREACHABLE;
}

static enum ree_status read_instruction(struct ree_fold *f, size_t at, struct ree_error *err) {
    struct ree_spirv_layout layout;
    if (!ree_spirv_layout(f->words + at, &layout))
        return ree_fold_unsupported(err, "an instruction");
    if (!layout.has_result) return REE_OK;
    struct ree_fold_value *v = &f->values[f->words[at + 2]];
    *v = (struct ree_fold_value){.at = at, .known = REE_FOLD_VARYING};
    if (ree_fold_is_int32_or_bool(f, f->words[at + 1])) v->known = REE_FOLD_UNDETERMINED;
    return REE_OK;
}

static uint32_t type_of(const struct ree_fold *f, uint32_t id) {
    return f->words[f->values[id].at + 1];
}

static enum ree_status read_blocks(struct ree_fold *f, const struct ree_fold_function *function,
                                   struct ree_error *err) {
    struct ree_fold_block *block = NULL;
    f->n_blocks = 0;
    for (size_t at = function->at; at < function->end; at += ree_fold_length(f, at)) {
        const uint32_t opcode = ree_fold_opcode(f, at);
        if (opcode == REE_SPV_FUNCTION_PARAMETER)
            f->values[f->words[at + 2]] =
                (struct ree_fold_value){.at = at, .known = REE_FOLD_VARYING, .emitted = true};
        if (opcode == REE_SPV_LABEL) {
            if (f->n_blocks == f->blocks_capacity)
                return ree_fold_unsupported(err, "too many blocks");
            block = &f->blocks[f->n_blocks++];
            *block = (struct ree_fold_block){.label = at, .body = at + 2};
            f->values[f->words[at + 1]] =
                (struct ree_fold_value){.at = at, .known = REE_FOLD_VARYING, .block = f->n_blocks};
        }
        if (!block || opcode == REE_SPV_LABEL || opcode == REE_SPV_FUNCTION_END) continue;
        if (opcode == REE_SPV_NOP || opcode == REE_SPV_LINE || opcode == REE_SPV_NO_LINE) continue;
        if (opcode == REE_SPV_SWITCH && !ree_fold_is_int32_or_bool(f, type_of(f, f->words[at + 1])))
            return ree_fold_unsupported(err, "a switch over an integer that has not 32 bits");
        if (opcode == REE_SPV_SELECTION_MERGE || opcode == REE_SPV_LOOP_MERGE)
            block->merge = at;
        else if (ends_block(opcode))
            block->terminator = at;
        else
            REE_TRY(read_instruction(f, at, err));
    }
    for (uint32_t b = 0; b < f->n_blocks; b++)
        if (!f->blocks[b].terminator) return ree_fold_unsupported(err, "a block without an end");
    return f->n_blocks ? REE_OK : ree_fold_unsupported(err, "a function without a body");
}

struct ree_fold_block *ree_fold_block_of(const struct ree_fold *f, uint32_t label) {
    const uint32_t index = f->values[label].block;
    return index ? &f->blocks[index - 1] : NULL;
}

uint32_t ree_fold_target(const struct ree_fold *f, const struct ree_fold_block *block, uint32_t k) {
    const uint32_t *i = f->words + block->terminator, n = i[0] >> 16;
    const uint32_t opcode = i[0] & 0xFFFF;
    if (opcode == REE_SPV_BRANCH) return k == 0 ? i[1] : 0;
    if (opcode != REE_SPV_BRANCH_CONDITIONAL && opcode != REE_SPV_SWITCH) return 0;
    const struct ree_fold_value *v = &f->values[i[1]];
    if (v->known == REE_FOLD_UNDETERMINED) return 0;
    if (v->known == REE_FOLD_CONSTANT) {
        if (k > 0) return 0;
        if (opcode == REE_SPV_BRANCH_CONDITIONAL) return v->bits ? i[2] : i[3];
        for (uint32_t w = 3; w + 1 < n; w += 2)
            if (i[w] == v->bits) return i[w + 1];
        return i[2];
    }
    if (opcode == REE_SPV_BRANCH_CONDITIONAL) return k < 2 ? i[2 + k] : 0;
    return 2 + 2 * k < n ? i[2 + 2 * k] : 0; // the default, then every second word
}

static bool leads_to(const struct ree_fold *f, const struct ree_fold_block *from, uint32_t label) {
    uint32_t to;
    for (uint32_t k = 0; from->reached && (to = ree_fold_target(f, from, k)); k++)
        if (to == label) return true;
    return false;
}

static enum ree_fold_knowledge compute_phi(const struct ree_fold *f, size_t at, uint32_t label,
                                           uint32_t *bits) {
    const uint32_t *i = f->words + at;
    enum ree_fold_knowledge known = REE_FOLD_UNDETERMINED;
    for (uint32_t w = 3; w + 1 < i[0] >> 16; w += 2) {
        const struct ree_fold_block *from = ree_fold_block_of(f, i[w + 1]);
        const struct ree_fold_value *v = &f->values[i[w]];
        if (!from || !leads_to(f, from, label) || v->known == REE_FOLD_UNDETERMINED) continue;
        if (v->known == REE_FOLD_VARYING || (known == REE_FOLD_CONSTANT && v->bits != *bits))
            return REE_FOLD_VARYING;
        known = REE_FOLD_CONSTANT;
        *bits = v->bits;
    }
    return known;
}

static bool update(struct ree_fold *f, size_t at, uint32_t label) {
    const uint32_t *i = f->words + at;
    struct ree_fold_value *v = &f->values[i[2]];
    uint32_t bits = 0;
    enum ree_fold_knowledge known = REE_FOLD_VARYING;
    struct ree_spirv_layout layout;
    ree_spirv_layout(i, &layout);
    if (ree_fold_opcode(f, at) == REE_SPV_PHI) {
        known = compute_phi(f, at, label, &bits);
    } else if (ree_fold_opcode(f, at) == REE_SPV_COMPOSITE_EXTRACT) {
        const uint32_t id = ree_fold_extract(f, i[3], i + 4, ree_fold_length(f, at) - 4);
        if (id && f->values[id].known == REE_FOLD_CONSTANT) {
            known = REE_FOLD_CONSTANT;
            bits = f->values[id].bits;
        }
    } else if (!layout.has_effect && layout.literal == 0 && layout.end == ree_fold_length(f, at)) {
        known = ree_fold_compute(f, ree_fold_opcode(f, at), i + 3, layout.end - 3, &bits);
    }
    // A value moves only from REE_FOLD_UNDETERMINED to REE_FOLD_CONSTANT to REE_FOLD_VARYING, so
    // propagate() ends.
    if (v->known == REE_FOLD_CONSTANT && known == REE_FOLD_CONSTANT && bits != v->bits)
        known = REE_FOLD_VARYING;
    if (known <= v->known) return false;
    v->known = known;
    v->bits = bits;
    return true;
}

static void propagate(struct ree_fold *f) {
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = 0; b < f->n_blocks; b++) {
            struct ree_fold_block *block = &f->blocks[b];
            if (!block->reached) continue;
            for (size_t at = block->body; at < block->terminator; at += ree_fold_length(f, at)) {
                struct ree_spirv_layout layout;
                if (at == block->merge || !ree_spirv_layout(f->words + at, &layout)) continue;
                if (layout.has_result && f->values[f->words[at + 2]].known != REE_FOLD_VARYING &&
                    update(f, at, f->words[block->label + 1]))
                    changed = true;
            }
            uint32_t to;
            for (uint32_t k = 0; (to = ree_fold_target(f, block, k)); k++) {
                struct ree_fold_block *next = ree_fold_block_of(f, to);
                if (next && !next->reached) changed = next->reached = true;
            }
        }
    }
}

// In a valid module propagation determines the condition of every branch that it reaches.
static bool is_determined(const struct ree_fold *f) {
    for (uint32_t b = 0; b < f->n_blocks; b++) {
        const uint32_t *i = f->words + f->blocks[b].terminator, opcode = i[0] & 0xFFFF;
        if (f->blocks[b].reached &&
            (opcode == REE_SPV_BRANCH_CONDITIONAL || opcode == REE_SPV_SWITCH) &&
            f->values[i[1]].known == REE_FOLD_UNDETERMINED)
            return false;
    }
    return true;
}

// What stays

static void keep_blocks(struct ree_fold *f) {
    for (uint32_t b = 0; b < f->n_blocks; b++)
        f->blocks[b].kept = f->blocks[b].reached;
    for (uint32_t b = 0; b < f->n_blocks; b++) {
        const struct ree_fold_block *block = &f->blocks[b];
        if (!block->reached || !block->merge) continue;
        const uint32_t *i = f->words + block->merge;
        struct ree_fold_block *merge = ree_fold_block_of(f, i[1]);
        if (merge) merge->kept = true;
        if ((i[0] & 0xFFFF) != REE_SPV_LOOP_MERGE) continue;
        struct ree_fold_block *next = ree_fold_block_of(f, i[2]);
        if (!next) continue;
        next->kept = true;
        if (!next->reached) next->loop = f->words[block->label + 1];
    }
}

// Marks a value and, through a stack, everything that it depends on.
static void use(struct ree_fold *f, uint32_t id) {
    uint32_t n = 0;
    if (f->values[id].used) return;
    f->values[id].used = true;
    f->stack[n++] = id;
    while (n) {
        const struct ree_fold_value *v = &f->values[f->stack[--n]];
        struct ree_spirv_layout layout;
        if (v->at < f->functions_at || v->known == REE_FOLD_CONSTANT || v->block) continue;
        if (!ree_spirv_layout(f->words + v->at, &layout)) continue;
        for (uint32_t w = layout.first; w < layout.end; w++) {
            const uint32_t operand = f->words[v->at + w];
            if (w == layout.literal || f->values[operand].used) continue;
            f->values[operand].used = true;
            f->stack[n++] = operand;
        }
    }
}

static void mark_used(struct ree_fold *f) {
    for (uint32_t b = 0; b < f->n_blocks; b++) {
        const struct ree_fold_block *block = &f->blocks[b];
        if (!block->reached) continue;
        for (size_t at = block->body; at <= block->terminator; at += ree_fold_length(f, at)) {
            const uint32_t *i = f->words + at;
            const uint32_t opcode = i[0] & 0xFFFF;
            struct ree_spirv_layout layout;
            if (opcode == REE_SPV_BRANCH_CONDITIONAL || opcode == REE_SPV_SWITCH) use(f, i[1]);
            if (!ree_spirv_layout(i, &layout) || !layout.has_effect) continue;
            if (layout.has_result) use(f, i[2]);
            for (uint32_t w = layout.first; w < layout.end; w++)
                if (w != layout.literal) use(f, i[w]);
        }
    }
}

enum ree_status ree_fold_analyze(struct ree_fold *f, const struct ree_fold_function *function,
                                 struct ree_error *err) {
    REE_TRY(read_blocks(f, function, err));
    f->blocks[0].reached = true;
    propagate(f);
    if (!is_determined(f)) return ree_fold_unsupported(err, "a condition without a value");
    keep_blocks(f);
    mark_used(f);
    return REE_OK;
}
