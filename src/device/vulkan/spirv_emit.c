// Writes the module that ree_spirv_fold returns: the parts that stay, with constants in place of
// the values that became constant.
//
// Structured control flow stays valid in the simplest way: a construct keeps its merge and continue
// blocks, even if nothing reaches them, and a branch that is never taken leads to an empty block.
#include "device/vulkan/spirv_fold_internal.h"

#include <string.h>

#include "base/memory.h"
#include "device/vulkan/spirv_ops.h"

static void put(struct ree_fold_words *out, const uint32_t *list, size_t n) {
    if (out->n + n > out->capacity && !out->failed) {
        size_t capacity = (out->n + n) * 2 + 256;
        uint32_t *grown = ree_realloc(out->list, capacity * sizeof *grown);
        if (grown) {
            out->list = grown;
            out->capacity = capacity;
        } else {
            out->failed = true;
        }
    }
    if (out->failed) return;
    memcpy(out->list + out->n, list, n * sizeof *list);
    out->n += n;
}

#define PUT(out, opcode, ...)                                                                      \
    do {                                                                                           \
        const uint32_t operands_[] = {__VA_ARGS__};                                                \
        const uint32_t n_ = sizeof operands_ / sizeof *operands_;                                  \
        const uint32_t first_ = (n_ + 1) << 16 | (uint32_t)(opcode);                               \
        put((out), &first_, 1);                                                                    \
        put((out), operands_, n_);                                                                 \
    } while (0)

// Returns the id to write for a value. If the value became constant, this is the id of a constant.
static uint32_t renamed(struct ree_fold *f, uint32_t id) {
    struct ree_fold_value *v = &f->values[id];
    if (v->known != REE_FOLD_CONSTANT || v->at < f->functions_at) return id;
    if (v->replaced) return v->replaced;
    const uint32_t type = f->words[v->at + 1];
    v->replaced = f->next_id++;
    if (type == f->bool_type)
        PUT(&f->new_constants, v->bits ? REE_SPV_CONSTANT_TRUE : REE_SPV_CONSTANT_FALSE, type,
            v->replaced);
    else
        PUT(&f->new_constants, REE_SPV_CONSTANT, type, v->replaced, v->bits);
    return v->replaced;
}

static uint32_t undefined(struct ree_fold *f, uint32_t type) {
    const uint32_t id = f->next_id++;
    PUT(&f->new_constants, REE_SPV_UNDEF, type, id);
    return id;
}

// Returns whether a constant branch of `block` must keep both targets: a loop must have its back
// edge, even if it is never taken.
static bool keeps_back_edge(const struct ree_fold *f, const struct ree_fold_block *block) {
    const uint32_t *i = f->words + block->terminator;
    if ((i[0] & 0xFFFF) != REE_SPV_BRANCH_CONDITIONAL || f->values[i[1]].known != REE_FOLD_CONSTANT)
        return false;
    const struct ree_fold_block *to = ree_fold_block_of(f, f->values[i[1]].bits ? i[3] : i[2]);
    // A block comes after all blocks that dominate it, so only a back edge leads to a loop's header
    // from a later block.
    return to && to <= block && to->merge && ree_fold_opcode(f, to->merge) == REE_SPV_LOOP_MERGE;
}

// Returns the label of the k-th target (from 0) of the branch that put_branch writes; 0: there are
// no more targets.
static uint32_t successor(const struct ree_fold *f, const struct ree_fold_block *block,
                          uint32_t k) {
    if (!block->kept) return 0;
    if (!block->reached) return k == 0 ? block->loop : 0;
    if (keeps_back_edge(f, block)) return k < 2 ? f->words[block->terminator + 2 + k] : 0;
    return ree_fold_target(f, block, k);
}

// Fills the list of each block's predecessors. A block may occur in a list several times,
// next to each other.
static enum ree_status find_predecessors(struct ree_fold *f, struct ree_error *err) {
    uint32_t n = 0, to;
    for (uint32_t b = 0; b < f->n_blocks; b++)
        for (uint32_t k = 0; (to = successor(f, &f->blocks[b], k)); k++)
            if (ree_fold_block_of(f, to)) ree_fold_block_of(f, to)->n_predecessors++, n++;
    ree_free(f->predecessors);
    f->predecessors = ree_alloc_zeroed((size_t)n + 1, sizeof *f->predecessors);
    if (!f->predecessors) return ree_no_memory(err);
    n = 0;
    for (uint32_t b = 0; b < f->n_blocks; b++) {
        f->blocks[b].first_predecessor = n;
        n += f->blocks[b].n_predecessors;
        f->blocks[b].n_predecessors = 0;
    }
    for (uint32_t b = 0; b < f->n_blocks; b++)
        for (uint32_t k = 0; (to = successor(f, &f->blocks[b], k)); k++) {
            struct ree_fold_block *next = ree_fold_block_of(f, to);
            if (next) f->predecessors[next->first_predecessor + next->n_predecessors++] = b;
        }
    return REE_OK;
}

static void put_phi(struct ree_fold *f, size_t at, const struct ree_fold_block *block) {
    const uint32_t *i = f->words + at, n = i[0] >> 16;
    const size_t begin = f->code.n;
    PUT(&f->code, REE_SPV_PHI, i[1], i[2]);
    for (uint32_t p = 0; p < block->n_predecessors; p++) {
        const uint32_t *list = f->predecessors + block->first_predecessor;
        if (p && list[p] == list[p - 1]) continue;
        const struct ree_fold_block *from = &f->blocks[list[p]];
        const uint32_t id = f->words[from->label + 1];
        uint32_t w = 3;
        while (w + 1 < n && i[w + 1] != id)
            w += 2;
        const bool is_defined = w + 1 < n && from->reached;
        const uint32_t pair[2] = {is_defined ? renamed(f, i[w]) : undefined(f, i[1]), id};
        put(&f->code, pair, 2);
    }
    if (!f->code.failed) f->code.list[begin] = (uint32_t)(f->code.n - begin) << 16 | REE_SPV_PHI;
    f->values[i[2]].emitted = true;
}

static void put_instruction(struct ree_fold *f, size_t at, const struct ree_fold_block *block) {
    const uint32_t *i = f->words + at;
    struct ree_spirv_layout layout;
    if (!ree_spirv_layout(i, &layout)) return;
    if (layout.has_result) {
        const struct ree_fold_value *v = &f->values[i[2]];
        if (!layout.has_effect && (!v->used || v->known == REE_FOLD_CONSTANT)) return;
    }
    if (ree_fold_opcode(f, at) == REE_SPV_PHI) {
        put_phi(f, at, block);
        return;
    }
    const size_t begin = f->code.n;
    if (layout.has_result) f->values[i[2]].emitted = true;
    put(&f->code, i, i[0] >> 16);
    for (uint32_t w = layout.first; w < layout.end; w++) {
        if (w == layout.literal) continue;
        const uint32_t id = renamed(f, i[w]);
        if (!f->code.failed) f->code.list[begin + w] = id;
    }
    if (ree_fold_opcode(f, at) == REE_SPV_FUNCTION_CALL && f->function_of[i[3]])
        f->functions[f->function_of[i[3]] - 1].n_calls++;
}

// Writes a block that nothing reaches.
static void put_unreachable(struct ree_fold *f, uint32_t label) {
    const uint32_t unreachable = 1 << 16 | REE_SPV_UNREACHABLE;
    PUT(&f->code, REE_SPV_LABEL, label);
    put(&f->code, &unreachable, 1);
}

// Writes the end of a reached block: its merge instruction and its branch. A constant branch keeps
// its construct, because blocks inside may branch to the merge block.
static void put_branch(struct ree_fold *f, const struct ree_fold_block *block) {
    const uint32_t *i = f->words + block->terminator, opcode = i[0] & 0xFFFF;
    const bool is_choice = opcode == REE_SPV_BRANCH_CONDITIONAL || opcode == REE_SPV_SWITCH;
    const bool is_constant = is_choice && f->values[i[1]].known == REE_FOLD_CONSTANT;
    const uint32_t *merge = block->merge ? f->words + block->merge : NULL;
    const bool selects = merge && (merge[0] & 0xFFFF) == REE_SPV_SELECTION_MERGE;
    const uint32_t taken = is_constant ? ree_fold_target(f, block, 0) : 0;
    // If the branch goes directly to the merge block, this block reaches nothing inside the
    // construct.
    const bool is_empty = selects && is_constant && taken == merge[1];
    if (merge && !is_empty) put(&f->code, merge, merge[0] >> 16);
    if (!is_constant) {
        put(&f->code, i, i[0] >> 16);
        if (opcode == REE_SPV_RETURN_VALUE && !f->code.failed)
            f->code.list[f->code.n - 1] = renamed(f, i[1]);
    } else if (keeps_back_edge(f, block)) {
        PUT(&f->code, REE_SPV_BRANCH_CONDITIONAL, renamed(f, i[1]), i[2], i[3]);
    } else if (!selects || is_empty) {
        PUT(&f->code, REE_SPV_BRANCH, taken);
    } else if (opcode == REE_SPV_SWITCH) {
        PUT(&f->code, REE_SPV_SWITCH, renamed(f, i[1]), taken);
    } else {
        // The other target is a block of its own and not the merge block, because the taken side
        // may have to dominate the merge block.
        const uint32_t nowhere = f->next_id++, condition = renamed(f, i[1]);
        const bool is_first = taken == i[2];
        PUT(&f->code, REE_SPV_BRANCH_CONDITIONAL, condition, is_first ? taken : nowhere,
            is_first ? nowhere : taken);
        put_unreachable(f, nowhere);
    }
}

enum ree_status ree_fold_put_function(struct ree_fold *f, const struct ree_fold_function *function,
                                      struct ree_error *err) {
    REE_TRY(find_predecessors(f, err));
    // Leave out OpLine: the string that it refers to does not stay.
    for (size_t at = function->at; at < f->blocks[0].label; at += ree_fold_length(f, at))
        if (ree_fold_opcode(f, at) == REE_SPV_FUNCTION ||
            ree_fold_opcode(f, at) == REE_SPV_FUNCTION_PARAMETER)
            put(&f->code, f->words + at, ree_fold_length(f, at));
    for (uint32_t b = 0; b < f->n_blocks; b++) {
        const struct ree_fold_block *block = &f->blocks[b];
        if (!block->kept) continue;
        const uint32_t label = f->words[block->label + 1];
        if (!block->reached && !block->loop) {
            put_unreachable(f, label);
            continue;
        }
        PUT(&f->code, REE_SPV_LABEL, label);
        if (block->reached) {
            for (size_t at = block->body; at < block->terminator; at += ree_fold_length(f, at))
                if (at != block->merge) put_instruction(f, at, block);
            put_branch(f, block);
        } else {
            PUT(&f->code, REE_SPV_BRANCH, block->loop);
        }
    }
    const uint32_t end = 1 << 16 | REE_SPV_FUNCTION_END;
    put(&f->code, &end, 1);
    return REE_OK;
}

// Returns whether the output defines the id, so that its decorations stay.
static bool is_present(const struct ree_fold *f, uint32_t id) {
    const struct ree_fold_value *v = &f->values[id];
    return v->at < f->functions_at ? v->at != 0 : v->emitted;
}

static void put_global(struct ree_fold *f, struct ree_fold_words *out, size_t at) {
    const uint32_t *i = f->words + at, n = i[0] >> 16;
    switch (ree_fold_opcode(f, at)) {
    case REE_SPV_SOURCE_CONTINUED:
    case REE_SPV_SOURCE:
    case REE_SPV_SOURCE_EXTENSION:
    case REE_SPV_NAME:
    case REE_SPV_MEMBER_NAME:
    case REE_SPV_STRING:
    case REE_SPV_LINE:
    case REE_SPV_NO_LINE:
    case REE_SPV_MODULE_PROCESSED: return;
    case REE_SPV_DECORATE:
        if (i[2] == REE_SPV_DECORATION_SPEC_ID || !is_present(f, i[1])) return;
        break;
    case REE_SPV_SPEC_CONSTANT_COMPOSITE:
        PUT(out, REE_SPV_CONSTANT_COMPOSITE, i[1], i[2]);
        put(out, i + 3, n - 3);
        if (!out->failed) out->list[out->n - n] = n << 16 | REE_SPV_CONSTANT_COMPOSITE;
        return;
    case REE_SPV_SPEC_CONSTANT_TRUE:
    case REE_SPV_SPEC_CONSTANT_FALSE:
    case REE_SPV_SPEC_CONSTANT:
    case REE_SPV_SPEC_CONSTANT_OP:
        if (i[1] == f->bool_type)
            PUT(out, f->values[i[2]].bits ? REE_SPV_CONSTANT_TRUE : REE_SPV_CONSTANT_FALSE, i[1],
                i[2]);
        else
            PUT(out, REE_SPV_CONSTANT, i[1], i[2], f->values[i[2]].bits);
        return;
    default: break;
    }
    put(out, i, n);
}

enum ree_status ree_fold_put_module(struct ree_fold *f, struct ree_fold_words *out,
                                    struct ree_error *err) {
    put(out, f->words, REE_FOLD_HEADER);
    for (size_t at = REE_FOLD_HEADER; at < f->functions_at; at += ree_fold_length(f, at))
        put_global(f, out, at);
    if (f->new_constants.n) put(out, f->new_constants.list, f->new_constants.n);
    put(out, f->code.list, f->code.n);
    if (out->failed || f->new_constants.failed || f->code.failed) return ree_no_memory(err);
    out->list[3] = f->next_id;
    return REE_OK;
}
