// ree_spirv_fold refuses a module with an instruction outside functions that it does not know,
// because the pass may have removed or replaced what its ids name. The debug information that the
// pass knows disappears completely.
#include <string.h>

#include "base/memory.h"
#include "device/vulkan/spirv_fold.h"
#include "device/vulkan/spirv_ops.h"
#include "test.h"

// The ids of the module
enum { MAIN = 1, VOID, VOID_FUNCTION, UINT, SPEC, GLSL, FILE_NAME, EXTRA, LABEL, BOUND };

// Where an instruction is inserted
enum place { IMPORTS, ENTRIES, DEBUG, DECORATIONS, TYPES, HEADER };

struct instruction {
    const char *name;
    enum place place;
    uint32_t opcode, n; // n: number of operands
    uint32_t operands[6];
};

#define OPERANDS(...) .n = sizeof((uint32_t[]){__VA_ARGS__}) / 4, .operands = {__VA_ARGS__}
#define TEXT(a, b, c) ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16)
#define GLSL_STD_450 0x4C534C47, 0x6474732E, 0x3035342E, 0 // "GLSL.std.450"

static const struct instruction module[] = {
    {"OpCapability", IMPORTS, 17, OPERANDS(1)}, // Shader
    {"OpExtInstImport", IMPORTS, 11, OPERANDS(GLSL, GLSL_STD_450)},
    {"OpMemoryModel", ENTRIES, 14, OPERANDS(0, 1)}, // Logical, GLSL450
    {"OpEntryPoint", ENTRIES, 15, OPERANDS(5, MAIN, TEXT('a', 0, 0))},
    {"OpExecutionMode", DEBUG, 16, OPERANDS(MAIN, 17, 1, 1, 1)}, // LocalSize
    {"OpString", DEBUG, 7, OPERANDS(FILE_NAME, TEXT('f', 0, 0))},
    {"OpDecorate", DECORATIONS, 71, OPERANDS(SPEC, 1, 0)}, // SpecId 0
    {"OpTypeVoid", TYPES, 19, OPERANDS(VOID)},
    {"OpTypeFunction", TYPES, 33, OPERANDS(VOID_FUNCTION, VOID)},
    {"OpTypeInt", TYPES, 21, OPERANDS(UINT, 32, 0)},
    {"OpSpecConstant", TYPES, 50, OPERANDS(UINT, SPEC, 3)},
    {"OpFunction", HEADER, 54, OPERANDS(VOID, MAIN, 0, VOID_FUNCTION)},
};
static const uint32_t body[] = {2 << 16 | 248, LABEL, 1 << 16 | 253, 1 << 16 | 56};

static const struct instruction unknown[] = {
    {"OpExtInstImport of other instructions", IMPORTS, 11, OPERANDS(EXTRA, TEXT('s', 'e', 't'), 0)},
    {"a second OpEntryPoint", ENTRIES, 15, OPERANDS(5, MAIN, TEXT('b', 0, 0))},
    {"OpExecutionModeId", DEBUG, 331, OPERANDS(MAIN, 38, SPEC, SPEC, SPEC)}, // LocalSizeId
    {"OpDecorationGroup", DECORATIONS, 73, OPERANDS(EXTRA)},
    {"OpGroupDecorate", DECORATIONS, 74, OPERANDS(EXTRA, SPEC)},
    {"OpGroupMemberDecorate", DECORATIONS, 75, OPERANDS(EXTRA, SPEC, 0)},
    {"OpDecorateId", DECORATIONS, 332, OPERANDS(SPEC, 5634, EXTRA)},
    {"OpDecorateString", DECORATIONS, 5632, OPERANDS(SPEC, 5635, TEXT('t', 0, 0))},
    {"OpMemberDecorateString", DECORATIONS, 5633, OPERANDS(SPEC, 0, 5635, TEXT('t', 0, 0))},
    {"OpExtInst of debug information", TYPES, 12, OPERANDS(VOID, EXTRA, GLSL, 35, FILE_NAME)},
    {"OpTypeImage", TYPES, 25, OPERANDS(EXTRA, UINT, 1, 0, 0, 0)},
    {"OpTypeSampler", TYPES, 26, OPERANDS(EXTRA)},
    {"OpTypeEvent", TYPES, 34, OPERANDS(EXTRA)},
    {"OpConstantSampler", TYPES, 45, OPERANDS(VOID, EXTRA, 0, 0, 0)},
    {"OpTypeCooperativeMatrix", TYPES, 4456, OPERANDS(EXTRA, UINT, SPEC, SPEC, SPEC, SPEC)},
    {"an opcode that does not exist", TYPES, 6999, OPERANDS(EXTRA)},
    {"OpNop", TYPES, 0, .n = 0},
};

static const struct instruction kept[] = {
    {"OpExtension", IMPORTS, 10, OPERANDS(TEXT('e', 'x', 't'))},
    {"OpExecutionMode", DEBUG, 16, OPERANDS(MAIN, 4462, 32)}, // RoundingModeRTE
    {"OpDecorate", DECORATIONS, 71, OPERANDS(UINT, 0)},       // RelaxedPrecision
    {"OpMemberDecorate", DECORATIONS, 72, OPERANDS(UINT, 0, 35, 0)},
    {"OpTypeFloat", TYPES, 22, OPERANDS(EXTRA, 64)},
    {"OpTypeArray", TYPES, 28, OPERANDS(EXTRA, UINT, SPEC)},
    {"OpTypeForwardPointer", TYPES, 39, OPERANDS(EXTRA, 5349)},
    {"OpConstantNull", TYPES, 46, OPERANDS(UINT, EXTRA)},
    {"OpUndef", TYPES, 1, OPERANDS(UINT, EXTRA)},
};

static const struct instruction dropped[] = {
    {"OpName", DEBUG, 5, OPERANDS(SPEC, TEXT('n', 0, 0))},
    {"OpSource", DEBUG, 3, OPERANDS(2, 460, FILE_NAME)},
    {"OpModuleProcessed", DEBUG, 330, OPERANDS(TEXT('p', 0, 0))},
    {"OpLine before a type", TYPES, 8, OPERANDS(FILE_NAME, 1, 1)},
    {"OpLine before the first block", HEADER, 8, OPERANDS(FILE_NAME, 1, 1)},
    {"OpNoLine before the first block", HEADER, 317, .n = 0},
};

static size_t put(uint32_t *words, size_t at, const struct instruction *i) {
    words[at] = (i->n + 1) << 16 | i->opcode;
    memcpy(words + at + 1, i->operands, i->n * 4);
    return at + i->n + 1;
}

// Writes the module, with `extra` (may be NULL) at the end of its place. Returns the word count.
static size_t write_module(const struct instruction *extra, uint32_t words[256]) {
    const uint32_t header[] = {0x07230203, 0x00010500, 0, BOUND, 0};
    size_t n = sizeof header / 4;
    memcpy(words, header, sizeof header);
    for (size_t i = 0; i < sizeof module / sizeof *module; i++) {
        n = put(words, n, &module[i]);
        const bool is_last = i + 1 == sizeof module / sizeof *module;
        if (extra && extra->place == module[i].place &&
            (is_last || module[i + 1].place != extra->place))
            n = put(words, n, extra);
    }
    memcpy(words + n, body, sizeof body);
    return n + sizeof body / 4;
}

static uint32_t count(const uint32_t *words, size_t n, uint32_t opcode) {
    uint32_t found = 0;
    for (size_t at = 5; at < n; at += words[at] >> 16)
        found += (words[at] & 0xFFFF) == opcode;
    return found;
}

// Folds the module with `extra`. Returns the count of its opcode that is left, or -1 if the module
// is refused.
static int fold(const struct instruction *extra) {
    const char *name = extra ? extra->name : "the module itself";
    const struct ree_spirv_constant constant = {0, 42};
    uint32_t words[256], *out;
    size_t n_out;
    struct ree_error err;
    const size_t n = write_module(extra, words);
    const enum ree_status status = ree_spirv_fold(words, n, &constant, 1, &out, &n_out, &err);
    if (status != REE_OK) {
        CHECK_MSG(status == REE_UNSUPPORTED && !out, "%s: status %d: %s", name, (int)status,
                  err.message);
        return -1;
    }
    CHECK_MSG(count(out, n_out, REE_SPV_SPEC_CONSTANT) == 0, "%s: a constant is left", name);
    CHECK_MSG(count(out, n_out, REE_SPV_CONSTANT) == 1, "%s: no constant instead", name);
    CHECK_MSG(count(out, n_out, REE_SPV_STRING) == 0, "%s: the file's name is left", name);
    const int left = extra ? (int)count(out, n_out, extra->opcode) : 0;
    ree_free(out);
    return left;
}

int main(void) {
    CHECK(fold(NULL) == 0);
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        CHECK_MSG(fold(&unknown[i]) == -1, "%s: not refused", unknown[i].name);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        uint32_t words[256];
        const size_t n = write_module(&kept[i], words);
        uint32_t expected = count(words, n, kept[i].opcode);
        if (kept[i].opcode == REE_SPV_DECORATE) expected--; // SpecId
        CHECK_MSG(fold(&kept[i]) == (int)expected, "%s: not kept", kept[i].name);
    }
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
        CHECK_MSG(fold(&dropped[i]) == 0, "%s: refused, or left in the module", dropped[i].name);
    return test_finish();
}
