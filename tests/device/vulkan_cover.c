// A twin reaches every pipeline that a dispatch may use. Needs no driver: random cases of each
// RepOp, and some sizes that random cases do not have, are encoded as for a CPU driver that ends
// long loops and as for GPUs, in the forms of arithmetic that these devices have.
#include "device/vulkan/vulkan.h"
#include "device/vulkan/encode.h"
#include "device_cases.h"
#include "shaders.h"

#define N_CASES 1200 // of each RepOp, for each device

static struct ree_error err;

struct kind_of_device {
    const char *name;
    bool is_cpu;
    uint32_t subgroup; // 0: modules cannot rely on subgroups
    uint64_t loop_budget;
    enum ree_vk_form fma;
    bool dot8;
};
static const struct kind_of_device kinds[] = {
    {"a CPU driver that ends loops", true, 8, 65534, REE_VK_FLOAT64, false},
    {"the same in integers", true, 8, 65534, REE_VK_INTEGER, true},
    {"a CPU driver", true, 8, UINT64_MAX, REE_VK_FLOAT64, false},
    {"a CPU driver with wide vectors", true, 16, UINT64_MAX, REE_VK_FLOAT64, false},
    {"a CPU driver with fma", true, 4, UINT64_MAX, REE_VK_NATIVE, false},
    {"a GPU", false, 32, UINT64_MAX, REE_VK_NATIVE, true},
    {"a GPU without fma", false, 64, UINT64_MAX, REE_VK_FLOAT32, false},
    {"a GPU with float64 instead", false, 32, UINT64_MAX, REE_VK_FLOAT64, false},
    {"the same without subgroups", false, 0, UINT64_MAX, REE_VK_FLOAT64, false},
};

static struct ree_vk_forms forms_of(const struct kind_of_device *kind) {
    struct ree_vk_forms forms = {.dot8 = kind->dot8};
    forms.of[REE_VK_FMA] = kind->fma;
    return forms;
}

// Fills in a device as far as the encoders read it.
static void device_init(struct ree_vk *vk, const struct kind_of_device *kind) {
    memset(vk, 0, sizeof *vk);
    snprintf(vk->base.name, sizeof vk->base.name, "%s", kind->name);
    vk->is_cpu = kind->is_cpu;
    vk->subgroup.subgroupSize = kind->subgroup;
    vk->has_subgroups = kind->subgroup > 0;
    vk->loop_budget = kind->loop_budget;
    vk->thresholds = kind->is_cpu ? ree_vk_cpu_thresholds : ree_vk_gpu_thresholds;
}

// Number of cases that need a twin other than the strongest (`weak`), and of all cases.
static struct { uint32_t weak, all; } reached[REE_N_REPOPS];

// Number of dispatches that the device refuses because their loops are too long. They never run.
static uint32_t n_refused;

// Returns whether twins reach all pipelines that the dispatch uses, or the device refuses it.
static bool is_covered(struct ree_vk *vk, const struct ree_vk_forms *forms,
                       const struct ree_dispatch *dispatch) {
    static struct ree_vk_encoding encoding;
    uint32_t steps = 0;
    bool weak = false;
    enum ree_status status = ree_vk_encode(vk, dispatch, forms, &encoding, &err);
    if (status == REE_UNSUPPORTED) {
        n_refused++;
        return true;
    }
    if (status == REE_OK)
        status = ree_vk_find_unreached(vk, dispatch, &encoding, &weak, &steps, &err);
    reached[dispatch->op].weak += weak;
    reached[dispatch->op].all++;
    CHECK_MSG(status == REE_OK, "%s", err.message);
    return status == REE_OK && steps == 0;
}

// Number of cases allowed to have no twin: an epilogue whose iota has equal strides in two of three
// dimensions, so that other dimensions merge in the twin.
static const uint32_t n_allowed[REE_N_REPOPS] = {[REE_REPOP_MATMUL] = 1, [REE_REPOP_CONV] = 1};

static void random_cases(struct ree_vk *vk, const struct kind_of_device *kind) {
    const struct ree_vk_forms forms = forms_of(kind);
    for (int op = 0; op < REE_N_REPOPS; op++) {
        uint32_t n_missed = 0;
        uint64_t first = 0;
        for (uint64_t seed = 1; seed <= N_CASES; seed++) {
            struct rng rng = {.state = seed * 7919 + (uint64_t)op};
            struct test_case c = {0};
            if (case_generators[op](&rng, &c) && !is_covered(vk, &forms, &c.dispatch) &&
                n_missed++ == n_allowed[op]) {
                struct ree_strbuf text;
                ree_strbuf_init(&text);
                ree_dispatch_print(&c.dispatch, &text);
                fprintf(stderr, "no twin: %s\n", text.data ? text.data : "");
                ree_strbuf_finish(&text);
                first = seed;
            }
            test_case_finish(&c);
        }
        CHECK_MSG(n_missed <= n_allowed[op],
                  "%s: %u cases of %s have a pipeline that no twin reaches, first %llu", kind->name,
                  n_missed, ree_repop_name(op), (unsigned long long)first);
    }
}

static void set_sizes(struct ree_dispatch *d, uint32_t n, const uint64_t *n_elements) {
    d->n_operands = n;
    d->n_outputs = 1;
    for (uint32_t i = 0; i < n; i++)
        d->operands[i] = (struct ree_operand){.slot = i, .size = n_elements[i] * 4};
}

// Sizes of real models, on which the encoders' choices depend.
static void large_cases(struct ree_vk *vk, const struct kind_of_device *kind) {
    const struct ree_vk_forms forms = forms_of(kind);
    static const uint32_t products[][3] = {// m, n, k
                                           {2048, 4096, 4096}, {1, 16384, 2048},  {1, 16384, 64},
                                           {1, 64, 8192},      {3, 300, 70000},   {512, 512, 512},
                                           {5, 3, 66000},      {4096, 40000, 300}};
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        const uint32_t m = products[i][0], n = products[i][1], k = products[i][2];
        struct ree_dispatch d = {.op = REE_REPOP_MATMUL};
        d.params.matmul = dense_products(m, n, k);
        set_sizes(&d, 3, (uint64_t[]){(uint64_t)m * k, (uint64_t)k * n, (uint64_t)m * n});
        CHECK_MSG(is_covered(vk, &forms, &d), "%s: matmul %ux%ux%u", kind->name, m, n, k);
    }
    static const uint32_t rows[][2] = {{1, 151936}, {1, 1000},    {1, 20},     {5000, 1500},
                                       {70, 20000}, {70, 300000}, {5000, 100}, {1, 2000000}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const uint32_t n = rows[i][0], k = rows[i][1];
        struct ree_dispatch d = {.op = REE_REPOP_SOFTMAX};
        d.params.softmax = (struct ree_softmax_params){.outer = n, .k = k, .inner = 1};
        set_sizes(&d, 2, (uint64_t[]){(uint64_t)n * k, (uint64_t)n * k});
        CHECK_MSG(is_covered(vk, &forms, &d), "%s: softmax %ux%u", kind->name, n, k);
    }
    static const uint32_t lengths[] = {64, 300, 1500, 20000, 60000};
    for (int bounds = 0; bounds < 4; bounds++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
            for (uint32_t q_len = 1; q_len <= 100; q_len += 99) {
                const uint32_t n = lengths[i];
                struct ree_dispatch d = {.op = REE_REPOP_ATTENTION};
                d.params.attention = (struct ree_attention_params){
                    .batch = 1,
                    .n_heads = 4,
                    .n_kv_heads = 4,
                    .q_len = q_len,
                    .kv_len = n,
                    .head_dim = 64,
                    .v_head_dim = 64,
                    .k_dtype = REE_F32,
                    .v_dtype = REE_F32,
                    .q_strides = {0, (int32_t)q_len * 64, 64, 1},
                    .k_strides = {0, (int32_t)n * 64, 64, 1},
                    .v_strides = {0, (int32_t)n * 64, 64, 1},
                    .out_strides = {0, (int32_t)q_len * 64, 64},
                    .scale = i % 2 ? 1 : 0.125f,
                    .left = bounds & 1 ? 5 : -1,
                    .right = bounds & 2 ? 0 : -1,
                };
                const uint64_t q = (uint64_t)q_len * 256, kv = (uint64_t)n * 256;
                set_sizes(&d, 4, (uint64_t[]){q, kv, kv, q});
                CHECK_MSG(is_covered(vk, &forms, &d), "%s: attention of %u queries, %u keys",
                          kind->name, q_len, n);
            }
}

// Small products whose twins are larger than they are: many batches, narrow operands.
static void small_batches(struct ree_vk *vk, const struct kind_of_device *kind) {
    const struct ree_vk_forms forms = forms_of(kind);
    const uint32_t m = 49, n = 49, k = 32;
    for (uint32_t rank = 1; rank <= 4; rank++) {
        struct ree_dispatch d = {.op = REE_REPOP_MATMUL};
        struct ree_matmul_params *p = &d.params.matmul;
        *p = dense_products(m, n, k);
        p->a_dtype = p->b_dtype = REE_F16;
        p->batch_rank = rank;
        p->n_batch = 1;
        // Strides that do not merge.
        for (uint32_t i = 0; i < rank; i++) {
            p->batch_dims[i] = 3;
            p->n_batch *= 3;
            p->a_batch_strides[i] = (int32_t)(m * k * (i % 2 ? 1 : 7 + i));
            p->b_batch_strides[i] = (int32_t)(k * n * (i % 2 ? 9 + i : 1));
        }
        const uint64_t extent = (uint64_t)40 * rank * m * n;
        set_sizes(&d, 3, (uint64_t[]){extent, extent, (uint64_t)p->n_batch * m * n});
        CHECK_MSG(is_covered(vk, &forms, &d), "%s: %u batch dimensions", kind->name, rank);
    }
}

// With a driver for CPUs, only large products use the modules for many rows, because these take
// long to compile; on a GPU only the number of rows decides.
static void modules_by_size(struct ree_vk *vk, const struct kind_of_device *kind) {
    const struct ree_vk_forms forms = forms_of(kind);
    static const uint32_t products[][3] = {{11, 172, 64}, {512, 512, 512}, {1, 4096, 4096}};
    const bool few_rows[2][3] = {{false, false, true}, {true, false, true}};
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        static struct ree_vk_encoding encoding;
        const uint32_t m = products[i][0], n = products[i][1], k = products[i][2];
        struct ree_dispatch d = {.op = REE_REPOP_MATMUL};
        d.params.matmul = dense_products(m, n, k);
        set_sizes(&d, 3, (uint64_t[]){(uint64_t)m * k, (uint64_t)k * n, (uint64_t)m * n});
        REQUIRE(ree_vk_encode(vk, &d, &forms, &encoding, &err) == REE_OK);
        const uint32_t one_row = REE_VK_SHADER_MATMUL_1_NATIVE + (uint32_t)kind->fma;
        CHECK_MSG((encoding.steps[0].shader == one_row) == few_rows[kind->is_cpu][i],
                  "%s: %s for %ux%ux%u", kind->name,
                  ree_vk_shader_modules[encoding.steps[0].shader].name, m, n, k);
    }
}

int main(void) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        static struct ree_vk vk;
        device_init(&vk, &kinds[i]);
        memset(reached, 0, sizeof reached);
        n_refused = 0;
        random_cases(&vk, &kinds[i]);
        for (int op = 0; op < REE_N_REPOPS; op++) // some seeds give no case
            CHECK_MSG(reached[op].all > N_CASES / 2, "%s: only %u cases of %s", kinds[i].name,
                      reached[op].all, ree_repop_name((enum ree_repop)op));
        // If loops are not limited, the strongest twin misses only epilogues with a dimension of 1,
        // because that dimension merges with another.
        for (int op = 0; op < REE_N_REPOPS && kinds[i].loop_budget == UINT64_MAX; op++)
            CHECK_MSG(reached[op].weak * 50 <= reached[op].all, "%s: %u of %u cases of %s are weak",
                      kinds[i].name, reached[op].weak, reached[op].all,
                      ree_repop_name((enum ree_repop)op));
        large_cases(&vk, &kinds[i]);
        small_batches(&vk, &kinds[i]);
        // One: softmax of 2,000,000 elements in a row.
        const uint32_t most = kinds[i].loop_budget == UINT64_MAX ? 0 : 1;
        CHECK_MSG(n_refused <= most, "%s refuses %u dispatches", kinds[i].name, n_refused);
        if (kinds[i].loop_budget == UINT64_MAX && kinds[i].subgroup)
            modules_by_size(&vk, &kinds[i]);
    }
    return test_finish();
}
