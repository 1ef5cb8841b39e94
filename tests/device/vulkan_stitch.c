// Stitching random expressions into every module that accepts one, and specializing the result with
// random constants, gives SPIR-V that spirv-val accepts. Functions that are no longer called are
// removed, and every rounding operation has NoContraction. Input that is not SPIR-V is refused.
#include "cases.h"
#include "device/vulkan/encode.h"
#include "device/vulkan/spirv_fold.h"
#include "device/vulkan/spirv_ops.h"
#include "device/vulkan/spirv_stitch.h"
#include "shaders.h"
#include "test.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_valid(const uint32_t *words, size_t n_words) {
    char path[] = "/tmp/ree-stitch-XXXXXX", command[256];
    int file = mkstemp(path);
    if (file < 0) return false;
    bool ok = write(file, words, n_words * 4) == (ssize_t)(n_words * 4);
    close(file);
    snprintf(command, sizeof command, "spirv-val --target-env vulkan1.2 %s", path);
    int status = ok ? system(command) : -1;
    unlink(path);
    return ok && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static uint32_t count_functions(const uint32_t *words, size_t n_words) {
    uint32_t n = 0;
    for (size_t at = 5; at < n_words; at += words[at] >> 16)
        n += (words[at] & 0xFFFF) == 54;
    return n;
}

static bool is_decorated(const uint32_t *words, size_t n_words, uint32_t id) {
    for (size_t at = 5; at < n_words; at += words[at] >> 16)
        if ((words[at] & 0xFFFF) == 71 && words[at + 1] == id && words[at + 2] == 42) return true;
    return false;
}

// Returns whether the instruction's result is rounded: a sum, difference, product or quotient of
// floats, a vector times a scalar, an fma (50) or a square root (31).
static bool rounds(const uint32_t *words) {
    switch (words[0] & 0xFFFF) {
    case 129:
    case 131:
    case 133:
    case 136:
    case 142: return true;
    case 12: return words[4] == 50 || words[4] == 31;
    default: return false;
    }
}

// Counts rounded results without NoContraction. Adds the number of all rounded results to *n_all.
static uint32_t count_contractible(const uint32_t *words, size_t n_words, uint32_t *n_all) {
    uint32_t n = 0;
    for (size_t at = 5; at < n_words; at += words[at] >> 16) {
        if (!rounds(words + at)) continue;
        ++*n_all;
        n += !is_decorated(words, n_words, words[at + 2]);
    }
    return n;
}

static uint32_t n_rounded; // total over all modules
static uint32_t n_with_float64;
static uint64_t n_before, n_after; // words, before and after specialization

static bool has_spec_constants(const uint32_t *words, size_t n_words) {
    for (size_t at = 5; at < n_words; at += words[at] >> 16) {
        const uint32_t opcode = words[at] & 0xFFFF;
        if (opcode >= REE_SPV_SPEC_CONSTANT_TRUE && opcode <= REE_SPV_SPEC_CONSTANT_OP) return true;
    }
    return false;
}

// Returns whether a function must not be inlined (shaders/optimize.py, allow_inlining).
static bool forbids_inlining(const uint32_t *words, size_t n_words) {
    for (size_t at = 5; at < n_words; at += words[at] >> 16)
        if ((words[at] & 0xFFFF) == 54 && (words[at + 3] & 2)) return true;
    return false;
}

static void fold(struct rng *rng, const char *name, const uint32_t *words, size_t n_words) {
    struct ree_spirv_constant constants[REE_VK_SPEC_FIRST + REE_VK_MAX_SPEC];
    const uint32_t n = sizeof constants / sizeof *constants;
    uint32_t *folded;
    size_t n_folded;
    struct ree_error err;
    enum ree_status status = REE_UNSUPPORTED;
    // Some modules divide by a constant, which may not be 0.
    for (int trial = 0; trial < 8 && status == REE_UNSUPPORTED; trial++) {
        for (uint32_t i = 0; i < n; i++)
            constants[i] = (struct ree_spirv_constant){i, i == 0 ? 64 : rng_below(rng, 5)};
        status = ree_spirv_fold(words, n_words, constants, n, &folded, &n_folded, &err);
    }
    CHECK_MSG(status == REE_OK, "%s: %s", name, err.message);
    if (status != REE_OK) return;
    CHECK_MSG(is_valid(folded, n_folded), "%s: spirv-val refuses it, specialized", name);
    CHECK_MSG(!forbids_inlining(folded, n_folded), "%s: a function must not be inlined", name);
    CHECK_MSG(!has_spec_constants(folded, n_folded), "%s: a specialization constant is left", name);
    CHECK_MSG(count_contractible(folded, n_folded, &n_rounded) == 0,
              "%s: an operation may be contracted, specialized", name);
    n_before += n_words;
    n_after += n_folded;
    free(folded);
}

// Float modes are declared for float32, and for float64 if the module uses it.
static void check_modes(const char *name, const uint32_t *words, size_t n_words) {
    uint32_t n_of_32 = 0, n_of_64 = 0, has_float64 = 0;
    for (size_t at = 5; at < n_words; at += words[at] >> 16) {
        has_float64 |= (words[at] & 0xFFFF) == REE_SPV_CAPABILITY && words[at + 1] == 10;
        if ((words[at] & 0xFFFF) != REE_SPV_EXECUTION_MODE || words[at] >> 16 != 4) continue;
        n_of_32 += words[at + 3] == 32;
        n_of_64 += words[at + 3] == 64;
    }
    CHECK_MSG(n_of_32 == 3 && n_of_64 == 3 * has_float64,
              "%s: %u float modes of 32 bits, %u of 64; float64: %u", name, n_of_32, n_of_64,
              has_float64);
    n_with_float64 += has_float64;
}

// Returns whether the module has the function ree_expr, whose OpName is "ree_expr(...".
static bool has_expr(const struct ree_vk_shader_module *module) {
    for (size_t at = 5; at < module->n_words; at += module->words[at] >> 16)
        if ((module->words[at] & 0xFFFF) == 5 &&
            strncmp((const char *)&module->words[at + 2], "ree_expr(", 9) == 0)
            return true;
    return false;
}

static void stitch(struct rng *rng, const struct ree_vk_shader_module *module,
                   const struct ree_expr *expr, bool is_epilogue) {
    const struct ree_spirv_modes all_modes = {
        .denorm_preserve = true, .rounding_rte = true, .signed_zero_inf_nan_preserve = true};
    struct ree_spirv_options options = {
        .expr = expr, .is_epilogue = is_epilogue, .float32 = all_modes, .float64 = all_modes};
    uint32_t *words;
    size_t n_words;
    struct ree_error err;
    enum ree_status status =
        ree_spirv_stitch(module->words, module->n_words, &options, &words, &n_words, &err);
    CHECK_MSG(status == REE_OK, "%s: %s", module->name, err.message);
    if (status != REE_OK) return;
    CHECK_MSG(is_valid(words, n_words), "%s: spirv-val refuses it", module->name);
    CHECK_MSG(count_contractible(words, n_words, &n_rounded) == 0,
              "%s: an operation may be contracted", module->name);
    check_modes(module->name, words, n_words);
    if (has_expr(module))
        CHECK_MSG(count_functions(words, n_words) <
                      count_functions(module->words, module->n_words) / 2,
                  "%s: dead functions are still there", module->name);
    fold(rng, module->name, words, n_words);
    free(words);
}

int main(void) {
    if (system("spirv-val --version > /dev/null 2>&1") != 0) return test_skip("no spirv-val");
    struct rng rng = {.state = 1};
    for (uint32_t s = 0; s < REE_VK_N_SHADERS; s++) {
        const struct ree_vk_shader_module *module = &ree_vk_shader_modules[s];
        stitch(&rng, module, NULL, true);
        if (!has_expr(module)) continue;
        bool is_map = s == REE_VK_SHADER_MAP || s == REE_VK_SHADER_MAP_F64;
        for (int i = 0; i < (is_map ? 20 : 2); i++) {
            struct test_case c;
            while (!(is_map ? case_map(&rng, &c) : case_matmul(&rng, &c)) ||
                   (!is_map && !c.dispatch.params.matmul.has_epilogue))
                ;
            stitch(&rng, module,
                   is_map ? &c.dispatch.params.map.expr : &c.dispatch.params.matmul.epilogue,
                   !is_map);
            test_case_finish(&c);
        }
    }
    const uint32_t not_spirv[] = {1, 2, 3, 4, 5, 6};
    struct ree_spirv_options options = {0};
    uint32_t *words;
    size_t n_words;
    CHECK(ree_spirv_stitch(not_spirv, 6, &options, &words, &n_words, NULL) == REE_INTERNAL);
    CHECK(words == NULL);
    CHECK(ree_spirv_fold(not_spirv, 6, NULL, 0, &words, &n_words, NULL) == REE_UNSUPPORTED);
    CHECK(words == NULL);
    printf("specialization leaves %.2f of the words\n", (double)n_after / (double)n_before);
    CHECK(n_after < n_before / 2);
    printf("%u rounded results\n", n_rounded);
    CHECK(n_rounded > 3000);
    CHECK(n_with_float64 > 10);
    return test_finish();
}
