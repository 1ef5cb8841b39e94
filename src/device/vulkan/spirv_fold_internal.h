// Internal interface of the files that implement ree_spirv_fold:
//
//     spirv_fold.c       reads types and constants, then folds one function after the other:
//     spirv_propagate.c    finds out which values are constant, and which blocks and values stay
//     spirv_emit.c         appends the function to fold.code; at the end, writes the module
//
// A module is a list of 32-bit words: a header of 5 words, then instructions. The first word of an
// instruction is (length in words << 16 | opcode). A word offset counts from the module's first
// word; 0 is in the header, so it means "none".
#ifndef REE_DEVICE_VULKAN_SPIRV_FOLD_INTERNAL_H
#define REE_DEVICE_VULKAN_SPIRV_FOLD_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "device/vulkan/spirv_fold.h"

#define REE_FOLD_HEADER 5

// What is known about a value: nothing yet, that it is always `bits`, or that it may differ. Only
// integers of 32 bits and Booleans become REE_FOLD_CONSTANT. A value moves only from left to right.
enum ree_fold_knowledge { REE_FOLD_UNDETERMINED, REE_FOLD_CONSTANT, REE_FOLD_VARYING };

// What an id stands for: the result of an instruction, a parameter of a function, or a label.
struct ree_fold_value {
    size_t at; // word offset of the instruction that defines it; 0: none
    enum ree_fold_knowledge known;
    uint32_t bits;     // the value, if `known` is REE_FOLD_CONSTANT
    uint32_t block;    // 1 + index of the block that this label begins; 0: not a label
    bool used;         // an instruction that stays uses the value
    bool emitted;      // the instruction at `at`, inside a function, is written to the output
    uint32_t replaced; // id of the constant that replaces the value; 0: not yet made
};

struct ree_fold_block {
    size_t label, body; // word offsets of the block's OpLabel and of the next instruction
    size_t merge;       // word offset of the block's OpSelectionMerge or OpLoopMerge; 0: none
    size_t terminator;  // word offset of the block's branch or return
    bool reached;
    bool kept;
    uint32_t first_predecessor, n_predecessors; // the block's range in ree_fold.predecessors
    // Label of the loop's header, if the block is kept only as the loop's continue block; or 0.
    uint32_t loop;
};

struct ree_fold_function {
    size_t at, end;   // word offsets
    uint32_t n_calls; // number of calls of the function in code that stays
};

// A growing list of 32-bit words. If memory runs out, `failed` is set and no more words are added.
struct ree_fold_words {
    uint32_t *list;
    size_t n, capacity;
    bool failed;
};

// The state of one call of ree_spirv_fold.
struct ree_fold {
    const uint32_t *words; // the module
    size_t n_words;
    uint32_t bound;   // all ids of the module are smaller than this number
    uint32_t next_id; // smallest id that is not used yet
    const struct ree_spirv_constant *constants;
    uint32_t n_constants;
    // Arrays with one element for each id, [bound]:
    struct ree_fold_value *values;
    uint32_t *spec_ids;    // 1 + SpecId of the constant with this id; 0: none
    uint32_t *function_of; // 1 + index in functions of the function with this id; 0: none
    struct ree_fold_function *functions;
    uint32_t n_functions;
    uint32_t entry;      // id of the entry point's function
    size_t functions_at; // word offset of the first OpFunction
    uint32_t bool_type;  // id of OpTypeBool; 0: none
    // State of the function that is being folded:
    struct ree_fold_block *blocks;
    uint32_t n_blocks, blocks_capacity;
    uint32_t *predecessors; // indices of the predecessors of all blocks, block after block
    uint32_t *stack;        // [bound]: scratch, a stack of ids of values to be marked as used
    // Output: constants that replace values, and the folded functions
    struct ree_fold_words new_constants, code;
};

static inline uint32_t ree_fold_opcode(const struct ree_fold *f, size_t at) {
    return f->words[at] & 0xFFFF;
}
static inline uint32_t ree_fold_length(const struct ree_fold *f, size_t at) {
    return f->words[at] >> 16;
}

// spirv_fold.c

// Fails with REE_UNSUPPORTED and a message that the pass does not know `what`.
enum ree_status ree_fold_unsupported(struct ree_error *err, const char *what);
bool ree_fold_is_int32_or_bool(const struct ree_fold *f, uint32_t type);
// Computes the operation `opcode` of the values with the n ids `args`. Returns REE_FOLD_CONSTANT
// and the result in *bits, REE_FOLD_VARYING if it cannot be computed, or REE_FOLD_UNDETERMINED if
// an operand is not known yet.
enum ree_fold_knowledge ree_fold_compute(const struct ree_fold *f, uint32_t opcode,
                                         const uint32_t *args, uint32_t n, uint32_t *bits);
// Returns the id of the component of the constant `id` that the n literals of an OpCompositeExtract
// select; 0 if `id` is not a constant composite.
uint32_t ree_fold_extract(const struct ree_fold *f, uint32_t id, const uint32_t *literals,
                          uint32_t n);

// spirv_propagate.c

// Reads the blocks of a function and decides what stays: `reached`, `kept` and `loop` of f->blocks,
// and `known`, `bits` and `used` of f->values.
enum ree_status ree_fold_analyze(struct ree_fold *f, const struct ree_fold_function *function,
                                 struct ree_error *err);
// Returns the block that begins at the label with this id; NULL if the id is not a label of the
// function that is being folded.
struct ree_fold_block *ree_fold_block_of(const struct ree_fold *f, uint32_t label);
// Returns the label of the k-th target (from 0) that the block's branch may take, as far as is
// known; 0 if it has no more targets.
uint32_t ree_fold_target(const struct ree_fold *f, const struct ree_fold_block *block, uint32_t k);

// spirv_emit.c

// Appends what stays of a function to f->code and f->new_constants; requires ree_fold_analyze of
// this function before. Counts the calls that stay in n_calls of f->functions.
enum ree_status ree_fold_put_function(struct ree_fold *f, const struct ree_fold_function *function,
                                      struct ree_error *err);
// Writes the whole module to *out. Requires ree_fold_put_function of all functions that stay.
enum ree_status ree_fold_put_module(struct ree_fold *f, struct ree_fold_words *out,
                                    struct ree_error *err);

#endif
