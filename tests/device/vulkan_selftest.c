// Self-tests of pipelines. Modules with planted faults are detected before any result depends on
// them, and their replacements give the CPU's bytes. Verdicts are recorded and not computed again
// at the next start.
//
// Usage: vulkan_selftest --identity DEVICE: prints what identifies the device's driver.
#include "device/vulkan/vulkan.h"
#include "device_cases.h"
#include "test_folder.h"
#include "shaders.h"

#include <unistd.h>

static struct ree_error err;

extern const struct ree_vk_shader_module planted_1[], planted_2[], planted_3[], planted_4[],
    planted_5[];

// A fault, the modules that have it, and the RepOp whose cases reveal it.
static const struct plant {
    const char *what;
    const struct ree_vk_shader_module *modules;
    enum ree_repop ops[4];
    uint32_t n_ops;
    uint32_t n_cases; // of each RepOp
    bool needs_float64;
    bool needs_native_add; // on other devices the planted instruction never produces a subnormal
} plants[] = {
    {.what = "a rounding is removed",
     .modules = planted_1,
     .ops = {REE_REPOP_MATMUL, REE_REPOP_CONV},
     .n_ops = 2,
     .n_cases = 24,
     .needs_float64 = true},
    {.what = "contracts", .modules = planted_2, .ops = {REE_REPOP_NORM}, .n_ops = 1, .n_cases = 12},
    {.what = "reorders a sum",
     .modules = planted_3,
     .ops = {REE_REPOP_SOFTMAX, REE_REPOP_NORM, REE_REPOP_RESIZE},
     .n_ops = 3,
     .n_cases = 8},
    {.what = "flushes subnormals",
     .modules = planted_4,
     .ops = {REE_REPOP_SCAN, REE_REPOP_REDUCE},
     .n_ops = 2,
     .n_cases = 8,
     .needs_native_add = true},
};

static struct ree_device *open_device(const char *which, const char *cache_dir) {
    struct ree_device_options options = {.size = sizeof options, .cache_dir = cache_dir};
    struct ree_device *device = NULL;
    CHECK_MSG(ree_vulkan_device_open(which, &options, &device, &err) == REE_OK, "%s", err.message);
    // Small products use the modules of large ones, and few rows the code for groups: these have
    // planted faults.
    if (!device) return NULL;
    struct ree_vk_thresholds *thresholds = &ree_vk_of(device)->thresholds;
    thresholds->small_product = thresholds->tiny_product = thresholds->few_elements = 0;
    return device;
}

static size_t n_failed_facts(struct ree_device *device) {
    const struct ree_device_fact *facts;
    size_t n = device->vtable->facts(device, &facts), n_failed = 0;
    for (size_t i = 0; i < n; i++)
        n_failed += strcmp(facts[i].kind, "self-test") == 0 && strcmp(facts[i].name, "failed") == 0;
    return n_failed;
}

// Fills the table with the device's modules, with the planted ones replacing theirs.
static void plant_modules(struct ree_vk *vk, const struct ree_vk_shader_module *planted,
                          struct ree_vk_shader_module table[REE_VK_N_SHADERS]) {
    memcpy(table, ree_vk_shader_modules, REE_VK_N_SHADERS * sizeof *table);
    for (const struct ree_vk_shader_module *p = planted; p->name; p++) {
        bool found = false;
        for (uint32_t i = 0; i < REE_VK_N_SHADERS; i++) {
            if (strcmp(table[i].name, p->name) != 0) continue;
            table[i] = *p;
            found = true;
        }
        CHECK_MSG(found, "there is no module %s", p->name);
    }
    vk->modules = table;
}

static void try_plant(const char *which, const struct plant *plant) {
    static struct ree_vk_shader_module table[REE_VK_N_SHADERS];
    struct ree_device *device = open_device(which, "");
    if (!device) return;
    struct ree_vk *vk = ree_vk_of(device);
    if ((plant->needs_float64 && vk->verdicts[REE_VK_FMA].form != REE_VK_FLOAT64) ||
        (plant->needs_native_add && vk->verdicts[REE_VK_ADD].form != REE_VK_NATIVE)) {
        printf("%s: not tried, %s computes in another form\n", plant->what, device->name);
        device->vtable->destroy(device);
        return;
    }
    plant_modules(vk, plant->modules, table);
    uint32_t n_printed = 0;
    for (uint32_t o = 0; o < plant->n_ops; o++) {
        enum ree_repop op = plant->ops[o];
        size_t n_before = n_failed_facts(device);
        uint32_t n_done = 0;
        // In a sampled run: a few cases, then as many as needed until the fault is detected.
        uint32_t n_enough = getenv("REE_TEST_SAMPLE") ? 3 : plant->n_cases;
        for (uint64_t seed = 1; n_done < plant->n_cases; seed++) {
            if (n_done >= n_enough && n_failed_facts(device) > n_before) break;
            struct rng rng = {.state = seed * 1000003 + (uint64_t)op};
            struct test_case c;
            if (case_generators[op](&rng, &c)) {
                compare_case(device, plant->what, op, seed, &c, &n_printed);
                n_done++;
            }
            test_case_finish(&c);
        }
        CHECK_MSG(n_failed_facts(device) > n_before, "%s: no self-test of %s noticed", plant->what,
                  ree_repop_name(op));
    }
    device->vtable->destroy(device);
}

// Products of blockwise activations, with a module that flushes subnormal products of scales. Few
// random cases have such scales.
static void try_block_plant(const char *which) {
    static struct ree_vk_shader_module table[REE_VK_N_SHADERS];
    static const uint32_t rows[] = {1, 19};
    struct ree_device *device = open_device(which, "");
    if (!device) return;
    struct ree_vk *vk = ree_vk_of(device);
    vk->has_dot8 = false; // the modules that every device has
    plant_modules(vk, planted_4, table);
    uint32_t n_printed = 0;
    for (size_t i = 0; i < 2 && vk->verdicts[REE_VK_MUL].form == REE_VK_NATIVE; i++) {
        const size_t n_before = n_failed_facts(device);
        struct test_case c;
        struct rng rng = {.state = 1};
        case_block_product(
            &c, &rng,
            &(struct ree_matmul_params){
                .m = rows[i], .n = 41, .k = 300, .a_block = 32, .b_block = 32, .b_bits = 4});
        compare_case(device, "flushes products of scales", REE_REPOP_MATMUL, i, &c, &n_printed);
        CHECK_MSG(n_failed_facts(device) > n_before,
                  "flushes products of scales: no self-test of %u rows noticed", rows[i]);
        test_case_finish(&c);
    }
    device->vtable->destroy(device);
}

// A driver that divides float64 wrongly. The probe must then reject the float64 form of fma,
// although fma itself is right: in that form elementary functions divide.
static void try_quotients(const char *which) {
    static struct ree_vk_shader_module table[REE_VK_N_SHADERS];
    struct ree_device *device = open_device(which, "");
    if (!device) return;
    struct ree_vk *vk = ree_vk_of(device);
    const struct ree_vk_verdict *fma = &vk->verdicts[REE_VK_FMA];
    if (!fma->allowed[REE_VK_FLOAT64]) {
        printf("quotients: not tried, %s does not compute fma in float64\n", device->name);
        device->vtable->destroy(device);
        return;
    }
    ree_vk_pipelines_finish(vk); // the first probe's pipelines have the same keys
    CHECK_MSG(ree_vk_pipelines_init(vk, &err) == REE_OK, "%s", err.message);
    plant_modules(vk, planted_5, table);
    struct ree_device_options options = {.size = sizeof options, .cache_dir = ""};
    CHECK_MSG(ree_vk_probe(vk, &options, &err) == REE_OK, "%s", err.message);
    CHECK(fma->tried[REE_VK_FLOAT64] && !fma->allowed[REE_VK_FLOAT64]);
    CHECK(fma->n_wrong[REE_VK_FLOAT64] > 0 &&
          fma->n_wrong[REE_VK_FLOAT64] < fma->n_vectors); // not all quotients are wrong
    CHECK(fma->form == REE_VK_FLOAT32 || fma->form == REE_VK_INTEGER);
    device->vtable->destroy(device);
}

// A driver that fails to create the first few pipelines.
static PFN_vkCreateComputePipelines real_create;
static uint32_t n_refused, n_to_refuse;
static VkResult VKAPI_PTR create_some(VkDevice device, VkPipelineCache cache, uint32_t n,
                                      const VkComputePipelineCreateInfo *infos,
                                      const VkAllocationCallbacks *allocator, VkPipeline *out) {
    if (n_refused < n_to_refuse) {
        n_refused++;
        return VK_ERROR_UNKNOWN;
    }
    return real_create(device, cache, n, infos, allocator, out);
}

static void run_cases(struct ree_device *device, enum ree_repop op, uint32_t n) {
    uint32_t n_printed = 0, n_done = 0;
    for (uint64_t seed = 1; n_done < n; seed++) {
        struct rng rng = {.state = seed * 1000003 + (uint64_t)op};
        struct test_case c;
        if (case_generators[op](&rng, &c)) {
            compare_case(device, "record", op, seed, &c, &n_printed);
            n_done++;
        }
        test_case_finish(&c);
    }
}

// Another form replaces a form that cannot be compiled.
static void survives_refusal(const char *which) {
    struct ree_device *device = open_device(which, "");
    if (!device) return;
    struct ree_vk *vk = ree_vk_of(device);
    if (vk->verdicts[REE_VK_FMA].form != REE_VK_INTEGER) {
        n_refused = 0;
        n_to_refuse = 2;
        real_create = vk->vk.vkCreateComputePipelines;
        vk->vk.vkCreateComputePipelines = create_some;
        run_cases(device, REE_REPOP_NORM, 6);
        CHECK(n_refused == n_to_refuse && n_failed_facts(device) == n_to_refuse);
    }
    device->vtable->destroy(device);
}

// The second start tests nothing again, whether tests passed or failed; a start with another driver
// does.
static void keeps_results(const char *which) {
    static struct ree_vk_shader_module table[REE_VK_N_SHADERS];
    char folder[] = "vulkan-selftest-XXXXXX";
    REQUIRE(mkdtemp(folder) != NULL);
    const uint32_t n_cases = 4;
    uint32_t n_run[5];
    size_t n_failed[5];
    for (int start = 0; start < 5; start++) {
        if (start == 4) setenv("LP_REE_TEST", "another compiler", 1);
        struct ree_device *device = open_device(which, folder);
        REQUIRE(device);
        struct ree_vk *vk = ree_vk_of(device);
        if (start > 1) plant_modules(vk, planted_2, table); // before that, all pass
        run_cases(device, REE_REPOP_SOFTMAX, n_cases);
        run_cases(device, REE_REPOP_NORM, 2 * n_cases);
        n_run[start] = vk->n_tests_run;
        n_failed[start] = n_failed_facts(device);
        device->vtable->destroy(device);
    }
    unsetenv("LP_REE_TEST");
    CHECK_MSG(n_run[0] > 0 && n_failed[0] == 0, "%u run, %zu failed", n_run[0], n_failed[0]);
    CHECK_MSG(n_run[1] == 0 && n_failed[1] == 0, "once more: %u run, %zu failed", n_run[1],
              n_failed[1]);
    CHECK_MSG(n_run[2] > 0 && n_run[2] < n_run[0] + n_cases && n_failed[2] > 0,
              "with a fault: %u run, %zu failed", n_run[2], n_failed[2]);
    CHECK_MSG(n_run[3] == 0 && n_failed[3] == n_failed[2], "once more: %u run, %zu failed",
              n_run[3], n_failed[3]);
    CHECK_MSG(n_run[4] > n_run[2], "another driver: %u run", n_run[4]);
    test_remove_folder(folder);
}

// The driver's identity as a new process computes it: 64 digits, or "" if the driver could not be
// opened.
static void identity_at_start(const char *which, char hex[65]) {
    char self[512] = "", command[600];
    hex[0] = '\0';
    REQUIRE(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    snprintf(command, sizeof command, "'%s' --identity '%s'", self, which);
    FILE *program = popen(command, "r");
    REQUIRE(program);
    if (!fgets(hex, 65, program)) hex[0] = '\0';
    pclose(program);
}

// Two starts compute the same identity; another compiler gives another identity.
static void is_known_again(const char *which) {
    char first[65], second[65], third[65];
    identity_at_start(which, first);
    identity_at_start(which, second);
    setenv("LP_REE_TEST", "another compiler", 1);
    identity_at_start(which, third);
    unsetenv("LP_REE_TEST");
    CHECK_MSG(strlen(first) == 64 && strcmp(first, second) == 0, "%s, then %s", first, second);
    CHECK(strlen(third) == 64 && strcmp(first, third) != 0);
}

static int print_identity(const char *which) {
    char hex[65];
    struct ree_device *device = open_device(which, "");
    if (!device) return 1;
    ree_hex(ree_vk_of(device)->identity, hex);
    printf("%s\n", hex);
    device->vtable->destroy(device);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--identity") == 0) return print_identity(argv[2]);
    struct ree_device_listing list[16];
    const char *note;
    size_t n_devices = ree_vulkan_device_list(list, 16, &note);
    if (n_devices == 0) return test_skip(note);
    for (size_t d = 0; d < n_devices && d < 16; d++) {
        const char *which = strchr(list[d].spec, ':') + 1;
        for (size_t p = 0; p < sizeof plants / sizeof *plants; p++)
            try_plant(which, &plants[p]);
        try_block_plant(which);
        try_quotients(which);
        is_known_again(which);
        keeps_results(which);
        survives_refusal(which);
    }
    return test_finish();
}
