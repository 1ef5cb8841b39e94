// What the files of ree_spirv_fold share.
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
    size_t at; // word offset of its instruction; 0: none
    enum ree_fold_knowledge known;
    uint32_t bits;     // if REE_FOLD_CONSTANT
    uint32_t block;    // of a label: index of its block, plus 1
    bool used;         // by an instruction that stays
    bool emitted;      // written to the output; only of results inside functions
    uint32_t replaced; // id of the constant that replaces it; 0: not yet made
};

struct ree_fold_block {
    size_t label, body; // word offsets: OpLabel, the next instruction
    size_t merge;       // word offset of its OpSelectionMerge or OpLoopMerge; 0: none
    size_t terminator;  // word offset of its branch or return
    bool reached;
    bool kept;
    uint32_t first_predecessor, n_predecessors; // range in fold.predecessors
    uint32_t loop; // if kept only as a loop's continue block: label of the loop's header
};

struct ree_fold_function {
    size_t at, end;   // word offsets
    uint32_t n_calls; // from code that stays
};

// Words that grow. If memory runs out, `failed` is set and no more words are added.
struct ree_fold_words {
    uint32_t *list;
    size_t n, capacity;
    bool failed;
};

// The state of one ree_spirv_fold.
struct ree_fold {
    const uint32_t *words; // the module
    size_t n_words;
    uint32_t bound;   // ids of the module are smaller
    uint32_t next_id; // smallest id that is not used yet
    const struct ree_spirv_constant *constants;
    uint32_t n_constants;
    // Per id, (bound):
    struct ree_fold_value *values;
    uint32_t *spec_ids;    // 1 + SpecId of the constant with this id; 0: none
    uint32_t *function_of; // 1 + index in functions of the function with this id; 0: none
    struct ree_fold_function *functions;
    uint32_t n_functions;
    uint32_t entry;      // id of the entry point's function
    size_t functions_at; // word offset of the first OpFunction
    uint32_t bool_type;  // id of OpTypeBool; 0: none
    // The function that is folded
    struct ree_fold_block *blocks;
    uint32_t n_blocks, blocks_capacity;
    uint32_t *predecessors; // indices of blocks
    uint32_t *stack;        // [bound], a stack of ids
    // The output
    struct ree_fold_words new_constants, code;
};

static inline uint32_t ree_fold_opcode(const struct ree_fold *f, size_t at) {
    return f->words[at] & 0xFFFF;
}
static inline uint32_t ree_fold_length(const struct ree_fold *f, size_t at) {
    return f->words[at] >> 16;
}

// spirv_fold.c

// Fails with REE_UNSUPPORTED. `what` is what the pass does not know.
enum ree_status ree_fold_unsupported(struct ree_error *err, const char *what);
bool ree_fold_is_int32_or_bool(const struct ree_fold *f, uint32_t type);
// Computes an operation of constants; `args` are n ids. Returns REE_FOLD_VARYING if it cannot be
// computed, and REE_FOLD_UNDETERMINED if an operand is not known yet.
enum ree_fold_knowledge ree_fold_compute(const struct ree_fold *f, uint32_t opcode,
                                         const uint32_t *args, uint32_t n, uint32_t *bits);
// Returns the id that the n literals of an OpCompositeExtract select from the constant `id`; 0: it
// is not constant.
uint32_t ree_fold_extract(const struct ree_fold *f, uint32_t id, const uint32_t *literals,
                          uint32_t n);

// spirv_propagate.c

// Reads the blocks of a function and decides what stays: `reached`, `kept` and `loop` of f->blocks,
// and `known`, `bits` and `used` of f->values.
enum ree_status ree_fold_analyze(struct ree_fold *f, const struct ree_fold_function *function,
                                 struct ree_error *err);
// Returns the block of a label of the function; NULL if there is none.
struct ree_fold_block *ree_fold_block_of(const struct ree_fold *f, uint32_t label);
// Lists the targets that the block's branch may take, as far as is known: returns the label of
// number k, or 0 if there are no more.
uint32_t ree_fold_target(const struct ree_fold *f, const struct ree_fold_block *block, uint32_t k);

// spirv_emit.c

// Appends what stays of a function to f->code and f->new_constants, after ree_fold_analyze. Counts
// the calls that stay in f->functions.
enum ree_status ree_fold_put_function(struct ree_fold *f, const struct ree_fold_function *function,
                                      struct ree_error *err);
// Writes the module, after ree_fold_put_function of all its functions.
enum ree_status ree_fold_put_module(struct ree_fold *f, struct ree_fold_words *out,
                                    struct ree_error *err);

#endif
