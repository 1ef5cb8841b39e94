// Implements ree_spirv_stitch: reads a module, makes the body of ree_expr, and writes the functions
// that the entry point reaches.
//
// SPIR-V consists of a header of 5 words, then instructions whose first word is (word count << 16 |
// opcode). Khronos, "SPIR-V Specification", sections 2.3 and 2.4 (physical and logical layout).
#include "device/vulkan/spirv_stitch.h"

#include <stdlib.h>
#include <string.h>
#include "base/memory.h"

enum {
    OP_NAME = 5,
    OP_MEMBER_NAME = 6,
    OP_EXT_INST_IMPORT = 11,
    OP_EXT_INST = 12,
    OP_ENTRY_POINT = 15,
    OP_EXECUTION_MODE = 16,
    OP_CAPABILITY = 17,
    OP_FIRST_TYPE = 19,
    OP_TYPE_INT = 21,
    OP_TYPE_VECTOR = 23,
    OP_TYPE_POINTER = 32,
    OP_TYPE_FUNCTION = 33,
    OP_LAST_TYPE = 39,
    OP_CONSTANT = 43,
    OP_CONSTANT_COMPOSITE = 44,
    OP_FUNCTION = 54,
    OP_FUNCTION_PARAMETER = 55,
    OP_FUNCTION_END = 56,
    OP_FUNCTION_CALL = 57,
    OP_VARIABLE = 59,
    OP_LOAD = 61,
    OP_STORE = 62,
    OP_ACCESS_CHAIN = 65,
    OP_DECORATE = 71,
    OP_MEMBER_DECORATE = 72,
    OP_COMPOSITE_CONSTRUCT = 80,
    OP_COMPOSITE_EXTRACT = 81,
    OP_I_EQUAL = 170,
    OP_I_NOT_EQUAL = 171,
    OP_U_GREATER_THAN = 172,
    OP_U_GREATER_THAN_EQUAL = 174,
    OP_U_LESS_THAN = 176,
    OP_U_LESS_THAN_EQUAL = 178,
    OP_BITWISE_XOR = 198,
    OP_LABEL = 248,
    OP_RETURN_VALUE = 254,
    GLSL_SQRT = 31, // in the extended instruction set GLSL.std.450
    GLSL_FMA = 50,
    DECORATION_NO_CONTRACTION = 42,
    STORAGE_FUNCTION = 7,
    STORAGE_PUSH_CONSTANT = 9,
    MODE_DENORM_PRESERVE = 4459,
    MODE_SIGNED_ZERO_INF_NAN_PRESERVE = 4461,
    MODE_ROUNDING_RTE = 4462,
    CAPABILITY_FLOAT64 = 10,
    CAPABILITY_DENORM_PRESERVE = 4464,
    CAPABILITY_SIGNED_ZERO_INF_NAN_PRESERVE = 4466,
    CAPABILITY_ROUNDING_RTE = 4467,
};

#define HEADER 5
#define MAX_PARAMETERS (REE_EXPR_MAX_OPERANDS + 1)
#define MAX_VALUES (REE_EXPR_MAX_OPERANDS + 1 + REE_EXPR_MAX_INSTRS)

// A function from OpFunction to OpFunctionEnd.
struct function {
    uint32_t id, type;       // id of the function; id of its OpTypeFunction
    size_t begin, body, end; // word offsets; body is the first OpLabel
    const char *name;        // "" if it has none
    bool reachable;
};

struct module {
    const uint32_t *words;
    size_t n_words;
    uint32_t bound;         // all ids of the module are smaller than this number
    size_t functions_begin; // word offset of the first OpFunction
    struct function *functions;
    size_t n_functions;
    uint32_t *function_of_id; // [bound], index + 1, or 0
    size_t *type_of_id;       // [bound], word offset of the type's instruction, or 0
    uint32_t entry;           // id of the entry point's function
    uint32_t glsl;            // import id of GLSL.std.450; 0: none
    uint32_t uint_type, uvec2_type;
    uint32_t int_type;
    uint32_t push;                        // variable of the push constants; 0: none
    uint32_t small_uint[2], small_int[2]; // ids of the constants 0 and 1; 0: none
    bool has_float64;
};

struct writer {
    uint32_t *words;
    size_t n, capacity;
    bool failed;
};

static void emit_words(struct writer *w, const uint32_t *words, size_t n) {
    if (w->n + n > w->capacity && !w->failed) {
        size_t capacity = (w->n + n) * 2;
        uint32_t *grown = ree_realloc(w->words, capacity * sizeof *grown);
        if (grown) {
            w->words = grown;
            w->capacity = capacity;
        } else {
            w->failed = true;
        }
    }
    if (w->failed) return;
    memcpy(w->words + w->n, words, n * sizeof *words);
    w->n += n;
}

#define EMIT(w, opcode, ...)                                                                       \
    do {                                                                                           \
        const uint32_t operands_[] = {__VA_ARGS__};                                                \
        const uint32_t n_ = sizeof operands_ / sizeof *operands_;                                  \
        const uint32_t first_ = (n_ + 1) << 16 | (opcode);                                         \
        emit_words((w), &first_, 1);                                                               \
        emit_words((w), operands_, n_);                                                            \
    } while (0)

static uint32_t opcode_at(const struct module *m, size_t at) {
    return m->words[at] & 0xFFFF;
}
static uint32_t length_at(const struct module *m, size_t at) {
    return m->words[at] >> 16;
}

static enum ree_status malformed(struct ree_error *err, const char *what) {
    return ree_fail(err, REE_INTERNAL, "a shader of this build is not as expected: %s", what);
}

// Returns the result id of an instruction inside a function's body, or 0 if it has none.
static uint32_t result_in_body(const struct module *m, size_t at) {
    switch (opcode_at(m, at)) {
    case 0: // OpNop
    case 8:
    case 317: // OpLine, OpNoLine
    case OP_FUNCTION_END:
    case OP_STORE:
    case 63:
    case 64: // OpCopyMemory, OpCopyMemorySized
    case 99: // OpImageWrite
    case 224:
    case 225: // OpControlBarrier, OpMemoryBarrier
    case 228: // OpAtomicStore
    case 246:
    case 247: // OpLoopMerge, OpSelectionMerge
    case 249:
    case 250:
    case 251:
    case 252:
    case 253: // OpBranch ... OpReturn
    case OP_RETURN_VALUE:
    case 255: return 0; // OpUnreachable
    case OP_LABEL: return m->words[at + 1];
    default: return length_at(m, at) >= 3 ? m->words[at + 2] : 0;
    }
}

// Parsing

static enum ree_status parse(struct module *m, struct ree_error *err) {
    if (m->n_words < HEADER || m->words[0] != 0x07230203) return malformed(err, "it is not SPIR-V");
    m->bound = m->words[3];
    m->function_of_id = ree_alloc_zeroed(m->bound, sizeof *m->function_of_id);
    m->type_of_id = ree_alloc_zeroed(m->bound, sizeof *m->type_of_id);
    size_t n_functions = 0;
    for (size_t at = HEADER; at < m->n_words; at += length_at(m, at)) {
        if (length_at(m, at) == 0 || length_at(m, at) > m->n_words - at)
            return malformed(err, "an instruction's length");
        n_functions += opcode_at(m, at) == OP_FUNCTION;
    }
    m->functions = ree_alloc_zeroed(n_functions + 1, sizeof *m->functions);
    if (!m->function_of_id || !m->type_of_id || !m->functions)
        return ree_fail(err, REE_NO_MEMORY, "no memory for a shader");

    struct function *current = NULL;
    for (size_t at = HEADER; at < m->n_words; at += length_at(m, at)) {
        const uint32_t *i = m->words + at;
        switch (opcode_at(m, at)) {
        case OP_CAPABILITY: m->has_float64 |= i[1] == CAPABILITY_FLOAT64; break;
        case OP_ENTRY_POINT: m->entry = i[2]; break;
        case OP_EXT_INST_IMPORT:
            if (strcmp((const char *)(i + 2), "GLSL.std.450") == 0) m->glsl = i[1];
            break;
        case OP_TYPE_INT:
            if (i[2] == 32) *(i[3] == 0 ? &m->uint_type : &m->int_type) = i[1];
            break;
        case OP_CONSTANT:
            if (length_at(m, at) == 4 && i[3] < 2 && i[1] == m->uint_type)
                m->small_uint[i[3]] = i[2];
            if (length_at(m, at) == 4 && i[3] < 2 && i[1] == m->int_type) m->small_int[i[3]] = i[2];
            break;
        case OP_VARIABLE:
            if (!current && i[3] == STORAGE_PUSH_CONSTANT) m->push = i[2];
            break;
        case OP_TYPE_VECTOR:
            if (i[2] == m->uint_type && i[3] == 2) m->uvec2_type = i[1];
            break;
        case OP_TYPE_POINTER:
        case OP_TYPE_FUNCTION: m->type_of_id[i[1]] = at; break;
        case OP_FUNCTION:
            if (!m->functions_begin) m->functions_begin = at;
            current = &m->functions[m->n_functions++];
            *current = (struct function){.id = i[2], .type = i[4], .begin = at, .name = ""};
            m->function_of_id[i[2]] = (uint32_t)m->n_functions;
            break;
        case OP_LABEL:
            if (current && !current->body) current->body = at;
            break;
        case OP_FUNCTION_END:
            if (!current || !current->body) return malformed(err, "a function without a body");
            current->end = at + length_at(m, at);
            current = NULL;
            break;
        default: break;
        }
    }
    if (!m->n_functions || current || m->entry >= m->bound || !m->function_of_id[m->entry])
        return malformed(err, "its functions");
    for (size_t at = HEADER; at < m->functions_begin; at += length_at(m, at)) {
        if (opcode_at(m, at) != OP_NAME || m->words[at + 1] >= m->bound) continue;
        uint32_t f = m->function_of_id[m->words[at + 1]];
        if (f) m->functions[f - 1].name = (const char *)(m->words + at + 2);
    }
    return REE_OK;
}

// Returns the function called `name` in the source, or NULL. OpName holds "name(u1;u1;".
static struct function *find_function(const struct module *m, const char *name) {
    size_t n = strlen(name);
    for (size_t i = 0; i < m->n_functions; i++)
        if (strncmp(m->functions[i].name, name, n) == 0 && m->functions[i].name[n] == '(')
            return &m->functions[i];
    return NULL;
}

// The body of ree_expr

struct stitch {
    struct module *m;
    const struct ree_spirv_options *options;
    struct writer constants, variables, code;
    uint32_t next_id;
    uint32_t values[MAX_VALUES]; // ids of the values of the expression
    enum ree_class classes[MAX_VALUES];
    uint32_t n_values;
    uint32_t *callees; // indices of the functions that the body calls
    size_t n_callees;
    // ids that loading the guards' zero requires: pointer type, and constant with the member index
    uint32_t guard_pointer, guard_index;
};

static uint32_t constant32(struct stitch *s, uint32_t value) {
    uint32_t id = s->next_id++;
    EMIT(&s->constants, OP_CONSTANT, s->m->uint_type, id, value);
    return id;
}

static void add_value(struct stitch *s, uint32_t id, enum ree_class class) {
    s->values[s->n_values] = id;
    s->classes[s->n_values++] = class;
}

// Adds the function's parameters to the values of the expression. The bits of a value of class W
// are the first component of its parameter.
static void emit_parameters(struct stitch *s, const uint32_t *parameters) {
    const struct ree_expr *expr = s->options->expr;
    uint32_t first = s->options->is_epilogue ? 1 : 0;
    for (uint32_t i = 0; i < first + expr->n_operands; i++) {
        enum ree_class class =
            i < first ? REE_CLASS_W : ree_dtype_class(expr->operands[i - first].dtype);
        uint32_t id = parameters[i];
        if (class == REE_CLASS_W) {
            id = s->next_id++;
            EMIT(&s->code, OP_COMPOSITE_EXTRACT, s->m->uint_type, id, parameters[i], 0);
        }
        add_value(s, id, class);
    }
}

// Emits a call of ree_op_<name>. A parameter that the compiler declared as a pointer gets a
// variable.
static enum ree_status emit_call(struct stitch *s, const struct ree_expr_instr *instr,
                                 struct ree_error *err) {
    const struct ree_map_op_info *info = &ree_map_op_infos[instr->op];
    char name[64] = "ree_op_";
    strncat(name, info->name, sizeof name - strlen(name) - 1);
    struct function *callee = find_function(s->m, name);
    if (!callee) return malformed(err, name);
    const uint32_t *type = s->m->words + s->m->type_of_id[callee->type];
    if (!s->m->type_of_id[callee->type] || (type[0] >> 16) != 3 + info->n_args)
        return malformed(err, name);

    uint32_t arguments[3] = {0};
    for (uint32_t a = 0; a < info->n_args; a++) {
        uint32_t value = instr->args[a];
        if (value >= s->n_values || s->classes[value] != info->args[a])
            return ree_fail(err, REE_INTERNAL, "expression: argument %u of %s", a, info->name);
        arguments[a] = s->values[value];
        uint32_t parameter_type = type[3 + a];
        size_t pointer = s->m->type_of_id[parameter_type];
        if (pointer) {
            uint32_t variable = s->next_id++;
            EMIT(&s->variables, OP_VARIABLE, parameter_type, variable, STORAGE_FUNCTION);
            EMIT(&s->code, OP_STORE, variable, arguments[a]);
            arguments[a] = variable;
        }
    }
    uint32_t id = s->next_id++;
    uint32_t call[] = {(4 + info->n_args) << 16 | OP_FUNCTION_CALL, type[2], id, callee->id};
    emit_words(&s->code, call, 4);
    emit_words(&s->code, arguments, info->n_args);
    s->callees[s->n_callees++] = (uint32_t)(callee - s->m->functions);
    add_value(s, id, info->result);
    return REE_OK;
}

static enum ree_status emit_body(struct stitch *s, const struct function *function,
                                 struct ree_error *err) {
    const struct module *m = s->m;
    const struct ree_expr *expr = s->options->expr;
    uint32_t parameters[MAX_PARAMETERS], n_parameters = 0;
    for (size_t at = function->begin; at < function->body; at += length_at(m, at))
        if (opcode_at(m, at) == OP_FUNCTION_PARAMETER && n_parameters < MAX_PARAMETERS) {
            if (m->words[at + 1] != m->uvec2_type) return malformed(err, "ree_expr's parameters");
            parameters[n_parameters++] = m->words[at + 2];
        }
    if (n_parameters != MAX_PARAMETERS || !m->uint_type || !m->uvec2_type)
        return malformed(err, "ree_expr's parameters");
    if (!expr) {
        EMIT(&s->code, OP_RETURN_VALUE, parameters[0]);
        return REE_OK;
    }
    if (expr->n_operands > REE_EXPR_MAX_OPERANDS || expr->n_instrs > REE_EXPR_MAX_INSTRS)
        return ree_fail(err, REE_INTERNAL, "an expression has too many operands or instructions");
    emit_parameters(s, parameters);
    for (uint32_t i = 0; i < expr->n_instrs; i++) {
        const struct ree_expr_instr *instr = &expr->instrs[i];
        if (instr->op >= REE_N_MAP_OPS)
            return ree_fail(err, REE_INTERNAL, "expression: operation %u", instr->op);
        if (instr->op == REE_MAP_CONST32) {
            add_value(s, constant32(s, instr->imm[0]), REE_CLASS_W);
        } else if (instr->op == REE_MAP_CONST64) {
            uint32_t low = constant32(s, instr->imm[0]), high = constant32(s, instr->imm[1]);
            uint32_t id = s->next_id++;
            EMIT(&s->constants, OP_CONSTANT_COMPOSITE, m->uvec2_type, id, low, high);
            add_value(s, id, REE_CLASS_D);
        } else {
            REE_TRY(emit_call(s, instr, err));
        }
    }
    uint32_t last = expr->n_instrs ? s->n_values - 1 : 0;
    if (s->n_values == 0) return ree_fail(err, REE_INTERNAL, "an expression has no value");
    uint32_t result = s->values[last];
    if (s->classes[last] == REE_CLASS_W) {
        uint32_t zero = constant32(s, 0);
        result = s->next_id++;
        EMIT(&s->code, OP_COMPOSITE_CONSTRUCT, m->uvec2_type, result, s->values[last], zero);
    }
    EMIT(&s->code, OP_RETURN_VALUE, result);
    return REE_OK;
}

// Marks the functions that function `index` reaches. Shaders cannot recurse; the flag would end a
// recursion anyway.
static void reach(const struct module *m, const struct stitch *s, const struct function *stitched,
                  uint32_t index) {
    struct function *function = &m->functions[index];
    if (function->reachable) return;
    function->reachable = true;
    if (function == stitched) {
        for (size_t i = 0; i < s->n_callees; i++)
            reach(m, s, stitched, s->callees[i]);
        return;
    }
    for (size_t at = function->body; at < function->end; at += length_at(m, at)) {
        uint32_t callee = opcode_at(m, at) == OP_FUNCTION_CALL ? m->words[at + 3] : 0;
        if (callee && callee < m->bound && m->function_of_id[callee])
            reach(m, s, stitched, m->function_of_id[callee] - 1);
    }
}

// Output

static void mark_dropped(const struct module *m, bool *dropped, size_t begin, size_t end) {
    for (size_t at = begin; at < end; at += length_at(m, at)) {
        uint32_t id = result_in_body(m, at);
        if (id && id < m->bound) dropped[id] = true;
    }
}

static void emit_modes(struct writer *out, const struct module *m,
                       const struct ree_spirv_options *options, bool capabilities) {
    const struct ree_spirv_modes none = {0}, *of32 = &options->float32,
                                 *of64 = m->has_float64 ? &options->float64 : &none;
    const struct {
        bool wanted32, wanted64;
        uint32_t capability, mode;
    } modes[] = {
        {of32->denorm_preserve, of64->denorm_preserve, CAPABILITY_DENORM_PRESERVE,
         MODE_DENORM_PRESERVE},
        {of32->rounding_rte, of64->rounding_rte, CAPABILITY_ROUNDING_RTE, MODE_ROUNDING_RTE},
        {of32->signed_zero_inf_nan_preserve, of64->signed_zero_inf_nan_preserve,
         CAPABILITY_SIGNED_ZERO_INF_NAN_PRESERVE, MODE_SIGNED_ZERO_INF_NAN_PRESERVE},
    };
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        bool wanted32 = modes[i].wanted32, wanted64 = modes[i].wanted64;
        if (capabilities && (wanted32 || wanted64)) EMIT(out, OP_CAPABILITY, modes[i].capability);
        if (!capabilities && wanted32) EMIT(out, OP_EXECUTION_MODE, m->entry, modes[i].mode, 32);
        if (!capabilities && wanted64) EMIT(out, OP_EXECUTION_MODE, m->entry, modes[i].mode, 64);
    }
}

// Guards (ree_spirv_options.guard_words): a comparison of a word with 0 or 1 uses the word xor the
// push constant `zero` instead of the word.

static void declare_guard(struct stitch *s) {
    const uint32_t member_of_zero = 1; // shaders/include/ree.glsl, ReePush
    s->guard_pointer = s->next_id++;
    EMIT(&s->constants, OP_TYPE_POINTER, s->guard_pointer, STORAGE_PUSH_CONSTANT, s->m->uint_type);
    s->guard_index = constant32(s, member_of_zero);
}

static bool is_small_constant(const struct module *m, uint32_t id) {
    return id != 0 && (id == m->small_uint[0] || id == m->small_uint[1] || id == m->small_int[0] ||
                       id == m->small_int[1]);
}

static bool is_word_comparison(uint32_t opcode) {
    return opcode == OP_I_EQUAL || opcode == OP_I_NOT_EQUAL || opcode == OP_U_GREATER_THAN ||
           opcode == OP_U_GREATER_THAN_EQUAL || opcode == OP_U_LESS_THAN ||
           opcode == OP_U_LESS_THAN_EQUAL;
}

static void emit_guarded(struct writer *out, struct stitch *s, const uint32_t *i) {
    uint32_t operands[2] = {i[3], i[4]};
    uint32_t which = is_small_constant(s->m, i[3]) ? 1 : 0;
    uint32_t pointer = s->next_id++, zero = s->next_id++, guarded = s->next_id++;
    EMIT(out, OP_ACCESS_CHAIN, s->guard_pointer, pointer, s->m->push, s->guard_index);
    EMIT(out, OP_LOAD, s->m->uint_type, zero, pointer);
    EMIT(out, OP_BITWISE_XOR, s->m->uint_type, guarded, operands[which], zero);
    operands[which] = guarded;
    EMIT(out, i[0] & 0xFFFF, i[1], i[2], operands[0], operands[1]);
}

static void emit_function(struct writer *out, struct stitch *s, const struct function *function) {
    const struct module *m = s->m;
    if (!s->guard_pointer) {
        emit_words(out, m->words + function->begin, function->end - function->begin);
        return;
    }
    for (size_t at = function->begin; at < function->end; at += length_at(m, at)) {
        const uint32_t *i = m->words + at;
        bool guard = is_word_comparison(opcode_at(m, at)) &&
                     is_small_constant(m, i[3]) != is_small_constant(m, i[4]);
        if (guard)
            emit_guarded(out, s, i);
        else
            emit_words(out, i, length_at(m, at));
    }
}

// Decorates fma and sqrt with NoContraction, which GLSL's `precise` gives to other operations.
// glslang does not apply it to extended instructions. Without it the specification permits a driver
// to round an fma twice, and to do so inconsistently.
static void emit_decorations(struct writer *out, const struct module *m,
                             const struct function *stitched) {
    for (size_t f = 0; f < m->n_functions; f++) {
        const struct function *function = &m->functions[f];
        if (!function->reachable || function == stitched) continue;
        for (size_t at = function->body; at < function->end; at += length_at(m, at)) {
            const uint32_t *i = m->words + at;
            if (opcode_at(m, at) != OP_EXT_INST || i[3] != m->glsl) continue;
            if (i[4] == GLSL_FMA || i[4] == GLSL_SQRT)
                EMIT(out, OP_DECORATE, i[2], DECORATION_NO_CONTRACTION);
        }
    }
}

static void emit_module(struct writer *out, struct stitch *s, const struct function *stitched,
                        const bool *dropped) {
    const struct module *m = s->m;
    emit_words(out, m->words, HEADER);
    bool in_capabilities = true, modes_done = false, decorations_done = false;
    for (size_t at = HEADER; at < m->functions_begin; at += length_at(m, at)) {
        uint32_t opcode = opcode_at(m, at);
        if (in_capabilities && opcode != OP_CAPABILITY) {
            emit_modes(out, m, s->options, true);
            in_capabilities = false;
        }
        bool is_type = opcode >= OP_FIRST_TYPE && opcode <= OP_LAST_TYPE;
        if (!decorations_done &&
            (opcode == OP_DECORATE || opcode == OP_MEMBER_DECORATE || is_type)) {
            emit_decorations(out, m, stitched);
            decorations_done = true;
        }
        bool about_id = opcode == OP_NAME || opcode == OP_DECORATE;
        if (about_id && m->words[at + 1] < m->bound && dropped[m->words[at + 1]]) continue;
        emit_words(out, m->words + at, length_at(m, at));
        if (opcode == OP_ENTRY_POINT && !modes_done) {
            emit_modes(out, m, s->options, false);
            modes_done = true;
        }
    }
    if (s->constants.n) emit_words(out, s->constants.words, s->constants.n);
    for (size_t i = 0; i < m->n_functions; i++) {
        const struct function *function = &m->functions[i];
        if (!function->reachable) continue;
        if (function != stitched) {
            emit_function(out, s, function);
            continue;
        }
        emit_words(out, m->words + function->begin, function->body - function->begin);
        EMIT(out, OP_LABEL, s->next_id++);
        if (s->variables.n) emit_words(out, s->variables.words, s->variables.n);
        emit_words(out, s->code.words, s->code.n);
        const uint32_t end = 1 << 16 | OP_FUNCTION_END;
        emit_words(out, &end, 1);
    }
    if (!out->failed) out->words[3] = s->next_id;
}

static enum ree_status stitch(struct stitch *s, struct writer *out, struct ree_error *err) {
    struct module *m = s->m;
    REE_TRY(parse(m, err));
    s->next_id = m->bound;
    struct function *stitched = find_function(m, "ree_expr");
    if (stitched) REE_TRY(emit_body(s, stitched, err));
    if (s->options->guard_words && m->push && m->uint_type) declare_guard(s);
    reach(m, s, stitched, m->function_of_id[m->entry] - 1);

    bool *dropped = ree_alloc_zeroed(m->bound, sizeof *dropped);
    if (!dropped) return ree_fail(err, REE_NO_MEMORY, "no memory for a shader");
    for (size_t i = 0; i < m->n_functions; i++) {
        const struct function *function = &m->functions[i];
        if (!function->reachable)
            mark_dropped(m, dropped, function->begin, function->end);
        else if (function == stitched)
            mark_dropped(m, dropped, function->body, function->end);
    }
    emit_module(out, s, stitched, dropped);
    ree_free(dropped);
    if (out->failed || s->constants.failed || s->variables.failed || s->code.failed)
        return ree_fail(err, REE_NO_MEMORY, "no memory for a shader");
    return REE_OK;
}

enum ree_status ree_spirv_stitch(const uint32_t *words, size_t n_words,
                                 const struct ree_spirv_options *options, uint32_t **out,
                                 size_t *out_n_words, struct ree_error *err) {
    *out = NULL;
    struct module module = {.words = words, .n_words = n_words};
    uint32_t callees[REE_EXPR_MAX_INSTRS];
    struct stitch state = {.m = &module, .options = options, .callees = callees};
    struct writer writer = {0};
    enum ree_status status = stitch(&state, &writer, err);
    ree_free(module.functions);
    ree_free(module.function_of_id);
    ree_free(module.type_of_id);
    ree_free(state.constants.words);
    ree_free(state.variables.words);
    ree_free(state.code.words);
    if (status != REE_OK) {
        ree_free(writer.words);
        return status;
    }
    *out = writer.words;
    *out_n_words = writer.n;
    return REE_OK;
}
