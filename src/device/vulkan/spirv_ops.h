// Describes SPIR-V instructions. Inside functions, ree_spirv_layout says which words of an
// instruction are ids, and ree_spirv_evaluate computes operations on 32-bit integers and Booleans.
// Outside functions, ree_spirv_is_global lists the instructions that are known. Khronos, "SPIR-V
// Specification", section 3.
#ifndef REE_DEVICE_VULKAN_SPIRV_OPS_H
#define REE_DEVICE_VULKAN_SPIRV_OPS_H

#include <stdbool.h>
#include <stdint.h>

enum ree_spirv_op {
    REE_SPV_NOP = 0,
    REE_SPV_UNDEF = 1,
    REE_SPV_SOURCE_CONTINUED = 2,
    REE_SPV_SOURCE = 3,
    REE_SPV_SOURCE_EXTENSION = 4,
    REE_SPV_NAME = 5,
    REE_SPV_MEMBER_NAME = 6,
    REE_SPV_STRING = 7,
    REE_SPV_LINE = 8,
    REE_SPV_EXTENSION = 10,
    REE_SPV_EXT_INST_IMPORT = 11,
    REE_SPV_EXT_INST = 12,
    REE_SPV_MEMORY_MODEL = 14,
    REE_SPV_ENTRY_POINT = 15,
    REE_SPV_EXECUTION_MODE = 16,
    REE_SPV_CAPABILITY = 17,
    REE_SPV_TYPE_VOID = 19,
    REE_SPV_TYPE_BOOL = 20,
    REE_SPV_TYPE_INT = 21,
    REE_SPV_TYPE_FLOAT = 22,
    REE_SPV_TYPE_VECTOR = 23,
    REE_SPV_TYPE_MATRIX = 24,
    REE_SPV_TYPE_ARRAY = 28,
    REE_SPV_TYPE_RUNTIME_ARRAY = 29,
    REE_SPV_TYPE_STRUCT = 30,
    REE_SPV_TYPE_POINTER = 32,
    REE_SPV_TYPE_FUNCTION = 33,
    REE_SPV_TYPE_FORWARD_POINTER = 39,
    REE_SPV_CONSTANT_TRUE = 41,
    REE_SPV_CONSTANT_FALSE = 42,
    REE_SPV_CONSTANT = 43,
    REE_SPV_CONSTANT_COMPOSITE = 44,
    REE_SPV_CONSTANT_NULL = 46,
    REE_SPV_SPEC_CONSTANT_TRUE = 48,
    REE_SPV_SPEC_CONSTANT_FALSE = 49,
    REE_SPV_SPEC_CONSTANT = 50,
    REE_SPV_SPEC_CONSTANT_COMPOSITE = 51,
    REE_SPV_SPEC_CONSTANT_OP = 52,
    REE_SPV_FUNCTION = 54,
    REE_SPV_FUNCTION_PARAMETER = 55,
    REE_SPV_FUNCTION_END = 56,
    REE_SPV_FUNCTION_CALL = 57,
    REE_SPV_VARIABLE = 59,
    REE_SPV_LOAD = 61,
    REE_SPV_STORE = 62,
    REE_SPV_ACCESS_CHAIN = 65,
    REE_SPV_DECORATE = 71,
    REE_SPV_MEMBER_DECORATE = 72,
    REE_SPV_VECTOR_SHUFFLE = 79,
    REE_SPV_COMPOSITE_CONSTRUCT = 80,
    REE_SPV_COMPOSITE_EXTRACT = 81,
    REE_SPV_COMPOSITE_INSERT = 82,
    REE_SPV_BITCAST = 124,
    REE_SPV_S_NEGATE = 126,
    REE_SPV_I_ADD = 128,
    REE_SPV_I_SUB = 130,
    REE_SPV_I_MUL = 132,
    REE_SPV_U_DIV = 134,
    REE_SPV_U_MOD = 137,
    REE_SPV_LOGICAL_EQUAL = 164,
    REE_SPV_LOGICAL_NOT_EQUAL = 165,
    REE_SPV_LOGICAL_OR = 166,
    REE_SPV_LOGICAL_AND = 167,
    REE_SPV_LOGICAL_NOT = 168,
    REE_SPV_SELECT = 169,
    REE_SPV_I_EQUAL = 170,
    REE_SPV_I_NOT_EQUAL = 171,
    REE_SPV_U_GREATER_THAN = 172,
    REE_SPV_S_GREATER_THAN = 173,
    REE_SPV_U_GREATER_THAN_EQUAL = 174,
    REE_SPV_S_GREATER_THAN_EQUAL = 175,
    REE_SPV_U_LESS_THAN = 176,
    REE_SPV_S_LESS_THAN = 177,
    REE_SPV_U_LESS_THAN_EQUAL = 178,
    REE_SPV_S_LESS_THAN_EQUAL = 179,
    REE_SPV_SHIFT_RIGHT_LOGICAL = 194,
    REE_SPV_SHIFT_LEFT_LOGICAL = 196,
    REE_SPV_BITWISE_OR = 197,
    REE_SPV_BITWISE_XOR = 198,
    REE_SPV_BITWISE_AND = 199,
    REE_SPV_NOT = 200,
    REE_SPV_CONTROL_BARRIER = 224,
    REE_SPV_MEMORY_BARRIER = 225,
    REE_SPV_ATOMIC_LOAD = 227,
    REE_SPV_ATOMIC_STORE = 228,
    REE_SPV_ATOMIC_LAST = 242,
    REE_SPV_PHI = 245,
    REE_SPV_LOOP_MERGE = 246,
    REE_SPV_SELECTION_MERGE = 247,
    REE_SPV_LABEL = 248,
    REE_SPV_BRANCH = 249,
    REE_SPV_BRANCH_CONDITIONAL = 250,
    REE_SPV_SWITCH = 251,
    REE_SPV_RETURN = 253,
    REE_SPV_RETURN_VALUE = 254,
    REE_SPV_UNREACHABLE = 255,
    REE_SPV_NO_LINE = 317,
    REE_SPV_MODULE_PROCESSED = 330,
};

enum {
    REE_SPV_DECORATION_SPEC_ID = 1,
};

// The layout of an instruction inside a function, merges and branches excepted.
struct ree_spirv_layout {
    bool has_result; // words 1 and 2 are the type and the id of the result
    bool has_effect; // the instruction must stay, even if nothing uses its result
    // Words that are ids of values: [first, end), except word `literal` (0: none)
    uint32_t first, end, literal;
};

// Describes the instruction that begins at `words`. Returns false if it is not a known instruction
// inside functions.
bool ree_spirv_layout(const uint32_t *words, struct ree_spirv_layout *out);

// Returns whether the instruction that begins at `words` is a known one outside functions. Unknown
// ones may refer to ids that spirv_fold.c removes or replaces, such as decoration groups and debug
// information.
bool ree_spirv_is_global(const uint32_t *words);

// Computes an operation whose n operands and result are 32-bit integers or Booleans (0 or 1).
// Returns false if the operation is not known, or has no defined result.
bool ree_spirv_evaluate(uint32_t opcode, const uint32_t *operands, uint32_t n, uint32_t *out);

#endif
