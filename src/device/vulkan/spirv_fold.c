// Sparse conditional constant propagation (Wegman and Zadeck, "Constant Propagation with
// Conditional Branches", 1991) over 32-bit integers and Booleans, then removal of what is not
// reached or used.
//
// Structured control flow stays valid in the simplest way: a construct keeps its merge and continue
// blocks, even if nothing reaches them, and a branch that is never taken leads to an empty block.
#include "device/vulkan/spirv_fold.h"

#include <string.h>

#include "base/memory.h"
#include "device/vulkan/spirv_ops.h"

#define HEADER 5

// What is known about a value: nothing yet, that it is always `bits`, or that it may differ. Only
// integers of 32 bits and Booleans become CONSTANT.
enum knowledge { UNDETERMINED, CONSTANT, VARYING };

struct value {
    size_t at; // word offset of its instruction; 0: none
    enum knowledge known;
    uint32_t bits;     // if CONSTANT
    uint32_t block;    // of a label: index of its block, plus 1
    bool used;         // by an instruction that stays
    bool emitted;      // written to the output; only of results inside functions
    uint32_t replaced; // id of the constant that replaces it; 0: not yet made
};

struct block {
    size_t label, body; // word offsets: OpLabel, the next instruction
    size_t merge;       // word offset of its OpSelectionMerge or OpLoopMerge; 0: none
    size_t terminator;  // word offset of its branch or return
    bool reached;
    bool kept;
    uint32_t first_predecessor, n_predecessors; // range in fold.predecessors
    uint32_t loop; // if kept only as a loop's continue block: label of the loop's header
};

struct function {
    size_t at, end;   // word offsets
    uint32_t n_calls; // from code that stays
};

struct words {
    uint32_t *list;
    size_t n, capacity;
    bool failed;
};

struct fold {
    const uint32_t *words;
    size_t n_words;
    uint32_t bound, next_id;
    const struct ree_spirv_constant *constants;
    uint32_t n_constants;
    struct value *values;  // [bound]
    uint32_t *spec_ids;    // [bound], SpecId plus 1
    uint32_t *function_of; // [bound], index plus 1
    struct function *functions;
    uint32_t n_functions, entry;
    size_t functions_at; // word offset of the first OpFunction
    uint32_t bool_type;
    // the function that is folded
    struct block *blocks;
    uint32_t n_blocks, blocks_capacity;
    uint32_t *predecessors; // indices of blocks
    uint32_t *stack;        // [bound], a stack of ids
    struct words new_constants, code;
};

static uint32_t opcode_at(const struct fold *f, size_t at) {
    return f->words[at] & 0xFFFF;
}
static uint32_t length_at(const struct fold *f, size_t at) {
    return f->words[at] >> 16;
}

static enum ree_status unsupported(struct ree_error *err, const char *what) {
    return ree_fail(err, REE_UNSUPPORTED, "a shader is not specialized: %s", what);
}

static void put(struct words *out, const uint32_t *list, size_t n) {
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

// The types and constants of the module

static bool is_int32_or_bool(const struct fold *f, uint32_t type) {
    const size_t at = f->values[type].at;
    return at && ((opcode_at(f, at) == REE_SPV_TYPE_INT && f->words[at + 2] == 32) ||
                  opcode_at(f, at) == REE_SPV_TYPE_BOOL);
}

static void set_constant(struct fold *f, uint32_t id, uint32_t bits) {
    f->values[id].known = CONSTANT;
    f->values[id].bits = bits;
}

static uint32_t spec_value(const struct fold *f, uint32_t id, uint32_t otherwise) {
    for (uint32_t i = 0; f->spec_ids[id] && i < f->n_constants; i++)
        if (f->constants[i].id == f->spec_ids[id] - 1) return f->constants[i].value;
    return otherwise;
}

// Returns the id that the literals of an OpCompositeExtract select from constants; 0: not constant.
static uint32_t extract(const struct fold *f, uint32_t id, const uint32_t *literals, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        const size_t at = f->values[id].at;
        const uint32_t opcode = at ? opcode_at(f, at) : 0;
        if ((opcode != REE_SPV_CONSTANT_COMPOSITE && opcode != REE_SPV_SPEC_CONSTANT_COMPOSITE) ||
            literals[i] + 3 >= length_at(f, at))
            return 0;
        id = f->words[at + 3 + literals[i]];
    }
    return id;
}

// Computes an operation of constants; `args` are ids. Returns VARYING if it cannot be computed, and
// UNDETERMINED if an operand is not known yet.
static enum knowledge compute(const struct fold *f, uint32_t opcode, const uint32_t *args,
                              uint32_t n, uint32_t *bits) {
    uint32_t values[3];
    enum knowledge known = CONSTANT;
    if (n == 0 || n > 3) return VARYING;
    for (uint32_t i = 0; i < n; i++) {
        const struct value *v = &f->values[args[i]];
        values[i] = v->bits;
        if (v->known == VARYING) known = VARYING;
        if (v->known == UNDETERMINED && known == CONSTANT) known = UNDETERMINED;
        // One operand may decide.
        const bool decides = (opcode == REE_SPV_LOGICAL_AND && !v->bits) ||
                             (opcode == REE_SPV_LOGICAL_OR && v->bits) ||
                             (opcode == REE_SPV_BITWISE_AND && !v->bits);
        if (v->known == CONSTANT && decides) {
            *bits = opcode == REE_SPV_LOGICAL_OR;
            return CONSTANT;
        }
    }
    if (known != CONSTANT) return known;
    return ree_spirv_evaluate(opcode, values, n, bits) ? CONSTANT : VARYING;
}

static enum ree_status read_constant(struct fold *f, size_t at, struct ree_error *err) {
    const uint32_t *i = f->words + at;
    uint32_t bits;
    switch (opcode_at(f, at)) {
    case REE_SPV_CONSTANT_TRUE: set_constant(f, i[2], 1); break;
    case REE_SPV_CONSTANT_FALSE: set_constant(f, i[2], 0); break;
    case REE_SPV_CONSTANT:
        if (is_int32_or_bool(f, i[1])) set_constant(f, i[2], i[3]);
        break;
    case REE_SPV_SPEC_CONSTANT_TRUE: set_constant(f, i[2], spec_value(f, i[2], 1) != 0); break;
    case REE_SPV_SPEC_CONSTANT_FALSE: set_constant(f, i[2], spec_value(f, i[2], 0) != 0); break;
    case REE_SPV_SPEC_CONSTANT:
        if (!is_int32_or_bool(f, i[1]))
            return unsupported(err, "a specialization constant that is not a 32-bit integer");
        set_constant(f, i[2], spec_value(f, i[2], i[3]));
        break;
    case REE_SPV_SPEC_CONSTANT_OP: {
        const uint32_t n = length_at(f, at) - 4;
        const bool extracts = i[3] == REE_SPV_COMPOSITE_EXTRACT;
        const uint32_t id = extracts ? extract(f, i[4], i + 5, n - 1) : 0;
        bool ok = is_int32_or_bool(f, i[1]);
        if (extracts) {
            ok = ok && id && f->values[id].known == CONSTANT;
            bits = ok ? f->values[id].bits : 0;
        } else {
            ok = ok && compute(f, i[3], i + 4, n, &bits) == CONSTANT;
        }
        if (!ok) return unsupported(err, "an operation of constants");
        set_constant(f, i[2], bits);
        break;
    }
    default: break;
    }
    return REE_OK;
}

// Returns the result id of an instruction outside functions; 0: it has none that matters here.
static uint32_t global_result(const struct fold *f, size_t at) {
    const uint32_t opcode = opcode_at(f, at);
    if (opcode >= 19 && opcode <= 38) return f->words[at + 1]; // types
    if (opcode == REE_SPV_UNDEF || (opcode >= 41 && opcode <= 52) || opcode == REE_SPV_VARIABLE)
        return f->words[at + 2];
    return 0;
}

static enum ree_status read_module(struct fold *f, struct ree_error *err) {
    size_t at = HEADER;
    for (; at < f->n_words && opcode_at(f, at) != REE_SPV_FUNCTION; at += length_at(f, at)) {
        const uint32_t *i = f->words + at;
        if (length_at(f, at) == 0 || length_at(f, at) > f->n_words - at)
            return unsupported(err, "an instruction's length");
        const uint32_t result = global_result(f, at);
        if (result) {
            f->values[result].at = at;
            f->values[result].known = VARYING;
        }
        if (opcode_at(f, at) == REE_SPV_ENTRY_POINT) f->entry = i[2];
        if (opcode_at(f, at) == REE_SPV_TYPE_BOOL) f->bool_type = i[1];
        if (opcode_at(f, at) == REE_SPV_DECORATE && i[2] == REE_SPV_DECORATION_SPEC_ID)
            f->spec_ids[i[1]] = i[3] + 1;
        REE_TRY(read_constant(f, at, err));
    }
    f->functions_at = at;
    for (; at < f->n_words; at += length_at(f, at)) {
        if (length_at(f, at) == 0 || length_at(f, at) > f->n_words - at)
            return unsupported(err, "an instruction's length");
        if (opcode_at(f, at) == REE_SPV_FUNCTION) {
            f->functions[f->n_functions++] = (struct function){.at = at};
            f->function_of[f->words[at + 2]] = f->n_functions;
        }
        f->functions[f->n_functions - 1].end = at + length_at(f, at);
    }
    if (!f->entry || !f->function_of[f->entry]) return unsupported(err, "no entry point");
    return REE_OK;
}

// The blocks of a function

static bool ends_block(uint32_t opcode) {
    return opcode == REE_SPV_BRANCH || opcode == REE_SPV_BRANCH_CONDITIONAL ||
           opcode == REE_SPV_SWITCH || opcode == REE_SPV_RETURN || opcode == REE_SPV_RETURN_VALUE ||
           opcode == REE_SPV_UNREACHABLE;
}

static enum ree_status read_instruction(struct fold *f, size_t at, struct ree_error *err) {
    struct ree_spirv_layout layout;
    if (!ree_spirv_layout(f->words + at, &layout)) return unsupported(err, "an instruction");
    if (!layout.has_result) return REE_OK;
    struct value *v = &f->values[f->words[at + 2]];
    *v = (struct value){.at = at, .known = VARYING};
    if (is_int32_or_bool(f, f->words[at + 1])) v->known = UNDETERMINED;
    return REE_OK;
}

static uint32_t type_of(const struct fold *f, uint32_t id) {
    return f->words[f->values[id].at + 1];
}

static enum ree_status read_blocks(struct fold *f, const struct function *function,
                                   struct ree_error *err) {
    struct block *block = NULL;
    f->n_blocks = 0;
    for (size_t at = function->at; at < function->end; at += length_at(f, at)) {
        const uint32_t opcode = opcode_at(f, at);
        if (opcode == REE_SPV_FUNCTION_PARAMETER)
            f->values[f->words[at + 2]] =
                (struct value){.at = at, .known = VARYING, .emitted = true};
        if (opcode == REE_SPV_LABEL) {
            if (f->n_blocks == f->blocks_capacity) return unsupported(err, "too many blocks");
            block = &f->blocks[f->n_blocks++];
            *block = (struct block){.label = at, .body = at + 2};
            f->values[f->words[at + 1]] =
                (struct value){.at = at, .known = VARYING, .block = f->n_blocks};
        }
        if (!block || opcode == REE_SPV_LABEL || opcode == REE_SPV_FUNCTION_END) continue;
        if (opcode == REE_SPV_NOP || opcode == REE_SPV_LINE || opcode == REE_SPV_NO_LINE) continue;
        if (opcode == REE_SPV_SWITCH && !is_int32_or_bool(f, type_of(f, f->words[at + 1])))
            return unsupported(err, "a switch over an integer that has not 32 bits");
        if (opcode == REE_SPV_SELECTION_MERGE || opcode == REE_SPV_LOOP_MERGE)
            block->merge = at;
        else if (ends_block(opcode))
            block->terminator = at;
        else
            REE_TRY(read_instruction(f, at, err));
    }
    for (uint32_t b = 0; b < f->n_blocks; b++)
        if (!f->blocks[b].terminator) return unsupported(err, "a block without an end");
    return f->n_blocks ? REE_OK : unsupported(err, "a function without a body");
}

static struct block *block_of(const struct fold *f, uint32_t label) {
    const uint32_t index = f->values[label].block;
    return index ? &f->blocks[index - 1] : NULL;
}

// Returns the target number k of a block's branch that may be taken, as far as is known; 0: there
// are no more.
static uint32_t target(const struct fold *f, const struct block *block, uint32_t k) {
    const uint32_t *i = f->words + block->terminator, n = i[0] >> 16;
    const uint32_t opcode = i[0] & 0xFFFF;
    if (opcode == REE_SPV_BRANCH) return k == 0 ? i[1] : 0;
    if (opcode != REE_SPV_BRANCH_CONDITIONAL && opcode != REE_SPV_SWITCH) return 0;
    const struct value *v = &f->values[i[1]];
    if (v->known == UNDETERMINED) return 0;
    if (v->known == CONSTANT) {
        if (k > 0) return 0;
        if (opcode == REE_SPV_BRANCH_CONDITIONAL) return v->bits ? i[2] : i[3];
        for (uint32_t w = 3; w + 1 < n; w += 2)
            if (i[w] == v->bits) return i[w + 1];
        return i[2];
    }
    if (opcode == REE_SPV_BRANCH_CONDITIONAL) return k < 2 ? i[2 + k] : 0;
    return 2 + 2 * k < n ? i[2 + 2 * k] : 0; // the default, then every second word
}

static bool leads_to(const struct fold *f, const struct block *from, uint32_t label) {
    uint32_t to;
    for (uint32_t k = 0; from->reached && (to = target(f, from, k)); k++)
        if (to == label) return true;
    return false;
}

// Propagation

static enum knowledge compute_phi(const struct fold *f, size_t at, uint32_t label, uint32_t *bits) {
    const uint32_t *i = f->words + at;
    enum knowledge known = UNDETERMINED;
    for (uint32_t w = 3; w + 1 < i[0] >> 16; w += 2) {
        const struct block *from = block_of(f, i[w + 1]);
        const struct value *v = &f->values[i[w]];
        if (!from || !leads_to(f, from, label) || v->known == UNDETERMINED) continue;
        if (v->known == VARYING || (known == CONSTANT && v->bits != *bits)) return VARYING;
        known = CONSTANT;
        *bits = v->bits;
    }
    return known;
}

static bool update(struct fold *f, size_t at, uint32_t label) {
    const uint32_t *i = f->words + at;
    struct value *v = &f->values[i[2]];
    uint32_t bits = 0;
    enum knowledge known = VARYING;
    struct ree_spirv_layout layout;
    ree_spirv_layout(i, &layout);
    if (opcode_at(f, at) == REE_SPV_PHI) {
        known = compute_phi(f, at, label, &bits);
    } else if (opcode_at(f, at) == REE_SPV_COMPOSITE_EXTRACT) {
        const uint32_t id = extract(f, i[3], i + 4, length_at(f, at) - 4);
        if (id && f->values[id].known == CONSTANT) {
            known = CONSTANT;
            bits = f->values[id].bits;
        }
    } else if (!layout.has_effect && layout.literal == 0 && layout.end == length_at(f, at)) {
        known = compute(f, opcode_at(f, at), i + 3, layout.end - 3, &bits);
    }
    // A value moves only from UNDETERMINED to CONSTANT to VARYING, so this ends.
    if (v->known == CONSTANT && known == CONSTANT && bits != v->bits) known = VARYING;
    if (known <= v->known) return false;
    v->known = known;
    v->bits = bits;
    return true;
}

static void propagate(struct fold *f) {
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = 0; b < f->n_blocks; b++) {
            struct block *block = &f->blocks[b];
            if (!block->reached) continue;
            for (size_t at = block->body; at < block->terminator; at += length_at(f, at)) {
                struct ree_spirv_layout layout;
                if (at == block->merge || !ree_spirv_layout(f->words + at, &layout)) continue;
                if (layout.has_result && f->values[f->words[at + 2]].known != VARYING &&
                    update(f, at, f->words[block->label + 1]))
                    changed = true;
            }
            uint32_t to;
            for (uint32_t k = 0; (to = target(f, block, k)); k++) {
                struct block *next = block_of(f, to);
                if (next && !next->reached) changed = next->reached = true;
            }
        }
    }
}

// In a valid module propagation determines the condition of every branch that it reaches.
static bool is_determined(const struct fold *f) {
    for (uint32_t b = 0; b < f->n_blocks; b++) {
        const uint32_t *i = f->words + f->blocks[b].terminator, opcode = i[0] & 0xFFFF;
        if (f->blocks[b].reached &&
            (opcode == REE_SPV_BRANCH_CONDITIONAL || opcode == REE_SPV_SWITCH) &&
            f->values[i[1]].known == UNDETERMINED)
            return false;
    }
    return true;
}

// What stays

static void keep_blocks(struct fold *f) {
    for (uint32_t b = 0; b < f->n_blocks; b++)
        f->blocks[b].kept = f->blocks[b].reached;
    for (uint32_t b = 0; b < f->n_blocks; b++) {
        const struct block *block = &f->blocks[b];
        if (!block->reached || !block->merge) continue;
        const uint32_t *i = f->words + block->merge;
        struct block *merge = block_of(f, i[1]);
        if (merge) merge->kept = true;
        if ((i[0] & 0xFFFF) != REE_SPV_LOOP_MERGE) continue;
        struct block *next = block_of(f, i[2]);
        if (!next) continue;
        next->kept = true;
        if (!next->reached) next->loop = f->words[block->label + 1];
    }
}

// Marks a value and, through a stack, everything that it depends on.
static void use(struct fold *f, uint32_t id) {
    uint32_t n = 0;
    if (f->values[id].used) return;
    f->values[id].used = true;
    f->stack[n++] = id;
    while (n) {
        const struct value *v = &f->values[f->stack[--n]];
        struct ree_spirv_layout layout;
        if (v->at < f->functions_at || v->known == CONSTANT || v->block) continue;
        if (!ree_spirv_layout(f->words + v->at, &layout)) continue;
        for (uint32_t w = layout.first; w < layout.end; w++) {
            const uint32_t operand = f->words[v->at + w];
            if (w == layout.literal || f->values[operand].used) continue;
            f->values[operand].used = true;
            f->stack[n++] = operand;
        }
    }
}

static void mark_used(struct fold *f) {
    for (uint32_t b = 0; b < f->n_blocks; b++) {
        const struct block *block = &f->blocks[b];
        if (!block->reached) continue;
        for (size_t at = block->body; at <= block->terminator; at += length_at(f, at)) {
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

// Output

// Returns the id to write for a value: that of a constant, if it became one.
static uint32_t renamed(struct fold *f, uint32_t id) {
    struct value *v = &f->values[id];
    if (v->known != CONSTANT || v->at < f->functions_at) return id;
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

static uint32_t undefined(struct fold *f, uint32_t type) {
    const uint32_t id = f->next_id++;
    PUT(&f->new_constants, REE_SPV_UNDEF, type, id);
    return id;
}

// Returns whether a constant branch of `block` must keep both targets: a loop must have its back
// edge, even if it is never taken.
static bool keeps_back_edge(const struct fold *f, const struct block *block) {
    const uint32_t *i = f->words + block->terminator;
    if ((i[0] & 0xFFFF) != REE_SPV_BRANCH_CONDITIONAL || f->values[i[1]].known != CONSTANT)
        return false;
    const struct block *to = block_of(f, f->values[i[1]].bits ? i[3] : i[2]);
    // A block comes after all blocks that dominate it, so only a back edge leads to a loop's header
    // from a later block.
    return to && to <= block && to->merge && opcode_at(f, to->merge) == REE_SPV_LOOP_MERGE;
}

// Returns the target number k of the branch that put_branch writes; 0: there are no more.
static uint32_t successor(const struct fold *f, const struct block *block, uint32_t k) {
    if (!block->kept) return 0;
    if (!block->reached) return k == 0 ? block->loop : 0;
    if (keeps_back_edge(f, block)) return k < 2 ? f->words[block->terminator + 2 + k] : 0;
    return target(f, block, k);
}

// Fills the list of each block's predecessors. A block may occur in a list several times,
// next to each other.
static enum ree_status find_predecessors(struct fold *f, struct ree_error *err) {
    uint32_t n = 0, to;
    for (uint32_t b = 0; b < f->n_blocks; b++)
        for (uint32_t k = 0; (to = successor(f, &f->blocks[b], k)); k++)
            if (block_of(f, to)) block_of(f, to)->n_predecessors++, n++;
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
            struct block *next = block_of(f, to);
            if (next) f->predecessors[next->first_predecessor + next->n_predecessors++] = b;
        }
    return REE_OK;
}

static void put_phi(struct fold *f, size_t at, const struct block *block) {
    const uint32_t *i = f->words + at, n = i[0] >> 16;
    const size_t begin = f->code.n;
    PUT(&f->code, REE_SPV_PHI, i[1], i[2]);
    for (uint32_t p = 0; p < block->n_predecessors; p++) {
        const uint32_t *list = f->predecessors + block->first_predecessor;
        if (p && list[p] == list[p - 1]) continue;
        const struct block *from = &f->blocks[list[p]];
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

static void put_instruction(struct fold *f, size_t at, const struct block *block) {
    const uint32_t *i = f->words + at;
    struct ree_spirv_layout layout;
    if (!ree_spirv_layout(i, &layout)) return;
    if (layout.has_result) {
        const struct value *v = &f->values[i[2]];
        if (!layout.has_effect && (!v->used || v->known == CONSTANT)) return;
    }
    if (opcode_at(f, at) == REE_SPV_PHI) {
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
    if (opcode_at(f, at) == REE_SPV_FUNCTION_CALL && f->function_of[i[3]])
        f->functions[f->function_of[i[3]] - 1].n_calls++;
}

// Writes a block that nothing reaches.
static void put_unreachable(struct fold *f, uint32_t label) {
    const uint32_t unreachable = 1 << 16 | REE_SPV_UNREACHABLE;
    PUT(&f->code, REE_SPV_LABEL, label);
    put(&f->code, &unreachable, 1);
}

// Writes the end of a reached block. A constant branch keeps its construct, because blocks inside
// may branch to the merge block.
static void put_branch(struct fold *f, const struct block *block) {
    const uint32_t *i = f->words + block->terminator, opcode = i[0] & 0xFFFF;
    const bool is_choice = opcode == REE_SPV_BRANCH_CONDITIONAL || opcode == REE_SPV_SWITCH;
    const bool is_constant = is_choice && f->values[i[1]].known == CONSTANT;
    const uint32_t *merge = block->merge ? f->words + block->merge : NULL;
    const bool selects = merge && (merge[0] & 0xFFFF) == REE_SPV_SELECTION_MERGE;
    const uint32_t taken = is_constant ? target(f, block, 0) : 0;
    // From here nothing inside the construct can be reached.
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
        // Not to the merge block: the taken side may have to dominate it.
        const uint32_t nowhere = f->next_id++, condition = renamed(f, i[1]);
        const bool is_first = taken == i[2];
        PUT(&f->code, REE_SPV_BRANCH_CONDITIONAL, condition, is_first ? taken : nowhere,
            is_first ? nowhere : taken);
        put_unreachable(f, nowhere);
    }
}

static enum ree_status fold_function(struct fold *f, const struct function *function,
                                     struct ree_error *err) {
    REE_TRY(read_blocks(f, function, err));
    f->blocks[0].reached = true;
    propagate(f);
    if (!is_determined(f)) return unsupported(err, "a condition without a value");
    keep_blocks(f);
    REE_TRY(find_predecessors(f, err));
    mark_used(f);
    put(&f->code, f->words + function->at, f->blocks[0].label - function->at);
    for (uint32_t b = 0; b < f->n_blocks; b++) {
        const struct block *block = &f->blocks[b];
        if (!block->kept) continue;
        const uint32_t label = f->words[block->label + 1];
        if (!block->reached && !block->loop) {
            put_unreachable(f, label);
            continue;
        }
        PUT(&f->code, REE_SPV_LABEL, label);
        if (block->reached) {
            for (size_t at = block->body; at < block->terminator; at += length_at(f, at))
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

// Whether names and decorations of an id stay.
static bool is_present(const struct fold *f, uint32_t id) {
    const struct value *v = &f->values[id];
    return v->at < f->functions_at ? v->at != 0 : v->emitted;
}

static void put_global(struct fold *f, struct words *out, size_t at) {
    const uint32_t *i = f->words + at, n = i[0] >> 16;
    switch (opcode_at(f, at)) {
    case REE_SPV_SOURCE_CONTINUED:
    case REE_SPV_SOURCE:
    case REE_SPV_SOURCE_EXTENSION:
    case REE_SPV_NAME:
    case REE_SPV_MEMBER_NAME:
    case REE_SPV_STRING:
    case REE_SPV_LINE:
    case REE_SPV_NO_LINE: return;
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

static enum ree_status fold_module(struct fold *f, struct words *out, struct ree_error *err) {
    REE_TRY(read_module(f, err));
    // Each round folds the functions that the code of earlier rounds calls.
    bool *done = ree_alloc_zeroed(f->n_functions, sizeof *done);
    if (!done) return ree_no_memory(err);
    f->functions[f->function_of[f->entry] - 1].n_calls = 1;
    enum ree_status status = REE_OK;
    for (bool changed = true; changed && status == REE_OK;) {
        changed = false;
        for (uint32_t k = 0; k < f->n_functions && status == REE_OK; k++) {
            if (done[k] || !f->functions[k].n_calls) continue;
            done[k] = changed = true;
            status = fold_function(f, &f->functions[k], err);
        }
    }
    ree_free(done);
    REE_TRY(status);
    put(out, f->words, HEADER);
    for (size_t at = HEADER; at < f->functions_at; at += length_at(f, at))
        put_global(f, out, at);
    if (f->new_constants.n) put(out, f->new_constants.list, f->new_constants.n);
    put(out, f->code.list, f->code.n);
    if (out->failed || f->new_constants.failed || f->code.failed) return ree_no_memory(err);
    out->list[3] = f->next_id;
    return REE_OK;
}

static enum ree_status allocate(struct fold *f, struct ree_error *err) {
    size_t n_functions = 0, n_labels = 0;
    for (size_t at = HEADER; at < f->n_words && length_at(f, at); at += length_at(f, at)) {
        n_functions += opcode_at(f, at) == REE_SPV_FUNCTION;
        n_labels += opcode_at(f, at) == REE_SPV_LABEL;
    }
    f->blocks_capacity = (uint32_t)n_labels;
    f->values = ree_alloc_zeroed(f->bound, sizeof *f->values);
    f->spec_ids = ree_alloc_zeroed(f->bound, sizeof *f->spec_ids);
    f->function_of = ree_alloc_zeroed(f->bound, sizeof *f->function_of);
    f->stack = ree_alloc_zeroed(f->bound, sizeof *f->stack);
    f->functions = ree_alloc_zeroed(n_functions + 1, sizeof *f->functions);
    f->blocks = ree_alloc_zeroed(n_labels + 1, sizeof *f->blocks);
    if (!f->values || !f->spec_ids || !f->function_of || !f->stack || !f->functions || !f->blocks)
        return ree_no_memory(err);
    return REE_OK;
}

enum ree_status ree_spirv_fold(const uint32_t *words, size_t n_words,
                               const struct ree_spirv_constant *constants, uint32_t n_constants,
                               uint32_t **out, size_t *out_n_words, struct ree_error *err) {
    *out = NULL;
    if (n_words < HEADER || words[0] != 0x07230203) return unsupported(err, "it is not SPIR-V");
    struct fold f = {.words = words,
                     .n_words = n_words,
                     .bound = words[3],
                     .next_id = words[3],
                     .constants = constants,
                     .n_constants = n_constants};
    struct words result = {0};
    enum ree_status status = allocate(&f, err);
    if (status == REE_OK) status = fold_module(&f, &result, err);
    ree_free(f.values);
    ree_free(f.spec_ids);
    ree_free(f.function_of);
    ree_free(f.stack);
    ree_free(f.functions);
    ree_free(f.blocks);
    ree_free(f.predecessors);
    ree_free(f.new_constants.list);
    ree_free(f.code.list);
    if (status != REE_OK) {
        ree_free(result.list);
        return status;
    }
    *out = result.list;
    *out_n_words = result.n;
    return REE_OK;
}
