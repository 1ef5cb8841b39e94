#include "device/vulkan/spirv_ops.h"

#include <string.h>

// Returns whether an access has no memory operands (word `at`) other than Volatile and Aligned.
// Others may have ids, which ree_spirv_layout would miss, or belong to Vulkan's memory model.
static bool is_plain_access(const uint32_t *words, uint32_t at) {
    const uint32_t volatile_aligned = 3;
    return (words[0] >> 16) <= at || (words[at] & ~volatile_aligned) == 0;
}

static bool in(uint32_t opcode, uint32_t first, uint32_t last) {
    return opcode >= first && opcode <= last;
}

// Returns whether all operands of the operation are ids.
static bool has_only_ids(uint32_t opcode) {
    return opcode == REE_SPV_COMPOSITE_CONSTRUCT || in(opcode, 77, 78) || // vectors, dynamic index
           opcode == 83 || opcode == REE_SPV_ACCESS_CHAIN ||              // OpCopyObject
           in(opcode, 109, 124) || in(opcode, 126, 152) ||                // conversions, arithmetic
           in(opcode, 154, 191) || in(opcode, 194, 205) ||                // comparisons, bits
           in(opcode, 333, 341) || in(opcode, 343, 348) ||                // subgroups
           opcode == REE_SPV_PHI;
}

bool ree_spirv_layout(const uint32_t *words, struct ree_spirv_layout *out) {
    const uint32_t opcode = words[0] & 0xFFFF, n = words[0] >> 16;
    *out = (struct ree_spirv_layout){.has_result = true, .first = 3, .end = n};
    if (has_only_ids(opcode)) return true;
    if (in(opcode, REE_SPV_ATOMIC_LOAD, REE_SPV_ATOMIC_LAST)) {
        out->has_effect = true;
        out->has_result = opcode != REE_SPV_ATOMIC_STORE;
        out->first = out->has_result ? 3 : 1;
        return true;
    }
    if (in(opcode, 349, 364)) { // OpGroupNonUniformIAdd and others, with a group operation
        out->literal = 4;
        return true;
    }
    if (in(opcode, 4450, 4452)) { // dot products, with a vector format
        out->end = n < 5 ? n : 5;
        return true;
    }
    switch (opcode) {
    case REE_SPV_UNDEF:
    case REE_SPV_FUNCTION_PARAMETER: out->end = 3; return true;
    case REE_SPV_EXT_INST: // Modf and Frexp of GLSL.std.450 write through a pointer
        out->literal = 4;
        out->has_effect = words[4] == 35 || words[4] == 51;
        return true;
    case REE_SPV_VARIABLE: out->first = 4; return true;
    case REE_SPV_LOAD:
        out->end = 4;
        out->has_effect = n > 4 && words[4] & 1; // volatile
        return is_plain_access(words, 4);
    case REE_SPV_VECTOR_SHUFFLE:
    case REE_SPV_COMPOSITE_INSERT: out->end = 5; return true;
    case REE_SPV_COMPOSITE_EXTRACT: out->end = 4; return true;
    case REE_SPV_FUNCTION_CALL: out->has_effect = true; return true;
    case REE_SPV_STORE:
        *out = (struct ree_spirv_layout){.has_effect = true, .first = 1, .end = 3};
        return is_plain_access(words, 3);
    case REE_SPV_CONTROL_BARRIER:
    case REE_SPV_MEMORY_BARRIER:
    case REE_SPV_RETURN:
    case REE_SPV_RETURN_VALUE:
    case REE_SPV_UNREACHABLE:
        *out = (struct ree_spirv_layout){.has_effect = true, .first = 1, .end = n};
        return true;
    default: return false;
    }
}

bool ree_spirv_is_global(const uint32_t *words) {
    switch (words[0] & 0xFFFF) {
    case REE_SPV_EXT_INST_IMPORT: // ree_spirv_layout knows only this set of instructions
        return words[0] >> 16 == 6 && memcmp(words + 2, "GLSL.std.450\0\0\0", 16) == 0;
    case REE_SPV_UNDEF:
    case REE_SPV_SOURCE_CONTINUED:
    case REE_SPV_SOURCE:
    case REE_SPV_SOURCE_EXTENSION:
    case REE_SPV_NAME:
    case REE_SPV_MEMBER_NAME:
    case REE_SPV_STRING:
    case REE_SPV_LINE:
    case REE_SPV_EXTENSION:
    case REE_SPV_MEMORY_MODEL:
    case REE_SPV_ENTRY_POINT:
    case REE_SPV_EXECUTION_MODE:
    case REE_SPV_CAPABILITY:
    case REE_SPV_TYPE_VOID:
    case REE_SPV_TYPE_BOOL:
    case REE_SPV_TYPE_INT:
    case REE_SPV_TYPE_FLOAT:
    case REE_SPV_TYPE_VECTOR:
    case REE_SPV_TYPE_MATRIX:
    case REE_SPV_TYPE_ARRAY:
    case REE_SPV_TYPE_RUNTIME_ARRAY:
    case REE_SPV_TYPE_STRUCT:
    case REE_SPV_TYPE_POINTER:
    case REE_SPV_TYPE_FUNCTION:
    case REE_SPV_TYPE_FORWARD_POINTER:
    case REE_SPV_CONSTANT_TRUE:
    case REE_SPV_CONSTANT_FALSE:
    case REE_SPV_CONSTANT:
    case REE_SPV_CONSTANT_COMPOSITE:
    case REE_SPV_CONSTANT_NULL:
    case REE_SPV_SPEC_CONSTANT_TRUE:
    case REE_SPV_SPEC_CONSTANT_FALSE:
    case REE_SPV_SPEC_CONSTANT:
    case REE_SPV_SPEC_CONSTANT_COMPOSITE:
    case REE_SPV_SPEC_CONSTANT_OP:
    case REE_SPV_VARIABLE:
    case REE_SPV_DECORATE:
    case REE_SPV_MEMBER_DECORATE:
    case REE_SPV_NO_LINE:
    case REE_SPV_MODULE_PROCESSED: return true;
    default: return false;
    }
}

static bool evaluate_1(uint32_t opcode, uint32_t a, uint32_t *out) {
    switch (opcode) {
    case REE_SPV_BITCAST: *out = a; return true;
    case REE_SPV_S_NEGATE: *out = 0 - a; return true;
    case REE_SPV_NOT: *out = ~a; return true;
    case REE_SPV_LOGICAL_NOT: *out = !a; return true;
    default: return false;
    }
}

static bool evaluate_2(uint32_t opcode, uint32_t a, uint32_t b, uint32_t *out) {
    // If this bit is flipped in both words, an unsigned comparison compares them as signed numbers.
    const uint32_t sign = 0x80000000;
    switch (opcode) {
    case REE_SPV_I_ADD: *out = a + b; return true;
    case REE_SPV_I_SUB: *out = a - b; return true;
    case REE_SPV_I_MUL: *out = a * b; return true;
    case REE_SPV_U_DIV: *out = b ? a / b : 0; return b != 0;
    case REE_SPV_U_MOD: *out = b ? a % b : 0; return b != 0;
    case REE_SPV_SHIFT_RIGHT_LOGICAL: *out = b < 32 ? a >> b : 0; return b < 32;
    case REE_SPV_SHIFT_LEFT_LOGICAL: *out = b < 32 ? a << b : 0; return b < 32;
    case REE_SPV_BITWISE_OR: *out = a | b; return true;
    case REE_SPV_BITWISE_XOR: *out = a ^ b; return true;
    case REE_SPV_BITWISE_AND: *out = a & b; return true;
    case REE_SPV_LOGICAL_OR: *out = a || b; return true;
    case REE_SPV_LOGICAL_AND: *out = a && b; return true;
    case REE_SPV_LOGICAL_EQUAL:
    case REE_SPV_I_EQUAL: *out = a == b; return true;
    case REE_SPV_LOGICAL_NOT_EQUAL:
    case REE_SPV_I_NOT_EQUAL: *out = a != b; return true;
    case REE_SPV_U_GREATER_THAN: *out = a > b; return true;
    case REE_SPV_U_GREATER_THAN_EQUAL: *out = a >= b; return true;
    case REE_SPV_U_LESS_THAN: *out = a < b; return true;
    case REE_SPV_U_LESS_THAN_EQUAL: *out = a <= b; return true;
    case REE_SPV_S_GREATER_THAN: *out = (a ^ sign) > (b ^ sign); return true;
    case REE_SPV_S_GREATER_THAN_EQUAL: *out = (a ^ sign) >= (b ^ sign); return true;
    case REE_SPV_S_LESS_THAN: *out = (a ^ sign) < (b ^ sign); return true;
    case REE_SPV_S_LESS_THAN_EQUAL: *out = (a ^ sign) <= (b ^ sign); return true;
    default: return false;
    }
}

bool ree_spirv_evaluate(uint32_t opcode, const uint32_t *operands, uint32_t n, uint32_t *out) {
    if (n == 1) return evaluate_1(opcode, operands[0], out);
    if (n == 2) return evaluate_2(opcode, operands[0], operands[1], out);
    if (n != 3 || opcode != REE_SPV_SELECT) return false;
    *out = operands[0] ? operands[1] : operands[2];
    return true;
}
