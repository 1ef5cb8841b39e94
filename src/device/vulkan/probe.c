// The probe: a device's arithmetic is tried, not trusted.
//
// When a device is opened, each primitive runs over adversarial vectors in each form that the
// device could use (shaders/include/primitives.glsl), and the bits are compared with those of the
// scalar source in C. The first form without a wrong result is used. A few thousand vectors prove
// nothing about the rest, but the ways in which devices are known to differ all show in them:
// subnormals flushed on the way in or out, fma in two roundings, division by reciprocal,
// float(int(x)) folded.
#include "device/vulkan/vulkan.h"
#include "repops/scalar/ops.h"
#include "shaders.h"

#include <stdlib.h>
#include <string.h>

// In the order of shaders/probe.comp.
enum operation {
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_SQRT,
    OP_FMA,
    OP_INT_TO_FLOAT,
    OP_UINT_TO_FLOAT,
    OP_FLOAT_TO_INT,
    OP_FLOAT_TO_UINT,
    OP_INT_AND_BACK, // float(int(x)): folding it to trunc(x) turns +0 into -0
    OP_MIN,
    OP_MAX,
    OP_EQUAL,
    OP_LESS,
    OP_LESS_EQUAL,
    OP_FLOOR,
    OP_CEIL,
    OP_TRUNC,
    OP_ROUND_EVEN,
    N_OPERATIONS
};

static const struct {
    const char *name;
    enum operation first;
    uint32_t n;
} primitives[REE_VK_N_PRIMITIVES] = {
    [REE_VK_ADD] = {"add", OP_ADD, 2},
    [REE_VK_MUL] = {"mul", OP_MUL, 1},
    [REE_VK_DIV] = {"div", OP_DIV, 1},
    [REE_VK_SQRT] = {"sqrt", OP_SQRT, 1},
    [REE_VK_FMA] = {"fma", OP_FMA, 1},
    [REE_VK_FROM_INT] = {"int to float", OP_INT_TO_FLOAT, 2},
    [REE_VK_TO_INT] = {"float to int", OP_FLOAT_TO_INT, 3},
    [REE_VK_MIN_MAX] = {"min, max", OP_MIN, 2},
    [REE_VK_COMPARE] = {"compare", OP_EQUAL, 3},
    [REE_VK_ROUND] = {"round", OP_FLOOR, 4},
};

const char *ree_vk_primitive_name(enum ree_vk_primitive primitive) {
    return primitives[primitive].name;
}

static const char *const form_names[REE_VK_N_FORMS] = {"native", "float64", "float32", "integer"};

const char *ree_vk_form_name(enum ree_vk_form form) {
    return form_names[form];
}

#define N_RANDOM 1024 // vectors of each operation, beside the special ones
#define N_SPECIAL 24
#define MAX_VECTORS (N_OPERATIONS * (N_RANDOM + N_SPECIAL * N_SPECIAL))

struct vector {
    uint32_t operation, a, b, c;
};

struct vectors {
    struct vector *list;
    uint32_t *expected;
    uint32_t n;
    uint64_t random; // state
};

static uint32_t random_bits(struct vectors *v) {
    v->random = v->random * 6364136223846793005u + 1442695040888963407u;
    uint64_t x = v->random ^ v->random >> 33;
    return (uint32_t)(x * 0xFF51AFD7ED558CCDu >> 32);
}

static uint32_t compute(const struct vector *v) {
    uint32_t a = v->a, b = v->b;
    switch ((enum operation)v->operation) {
    case OP_ADD: return ree_op_add_f32(a, b);
    case OP_SUB: return ree_op_sub_f32(a, b);
    case OP_MUL: return ree_op_mul_f32(a, b);
    case OP_DIV: return ree_op_div_f32(a, b);
    case OP_SQRT: return ree_op_sqrt_f32(a);
    case OP_FMA: return ree_op_fma_f32(a, b, v->c);
    case OP_INT_TO_FLOAT: return ree_op_i32_to_f32(a);
    case OP_UINT_TO_FLOAT: return ree_op_u32_to_f32(a);
    case OP_FLOAT_TO_INT: return ree_op_f32_to_i32(a);
    case OP_FLOAT_TO_UINT: return ree_op_f32_to_u32(a);
    case OP_INT_AND_BACK: return ree_op_i32_to_f32(ree_op_f32_to_i32(a));
    case OP_MIN: return ree_op_min_f32(a, b);
    case OP_MAX: return ree_op_max_f32(a, b);
    case OP_EQUAL: return ree_op_eq_f32(a, b);
    case OP_LESS: return ree_op_lt_f32(a, b);
    case OP_LESS_EQUAL: return ree_op_le_f32(a, b);
    case OP_FLOOR: return ree_op_floor_f32(a);
    case OP_CEIL: return ree_op_ceil_f32(a);
    case OP_TRUNC: return ree_op_trunc_f32(a);
    case OP_ROUND_EVEN: return ree_op_round_f32(a);
    case N_OPERATIONS: break;
    }
    return 0;
}

// Shaders may convert only what fits.
static bool is_defined(uint32_t operation, uint32_t a) {
    float x = ree_float(a);
    if (operation == OP_FLOAT_TO_UINT) return x > -1 && x < 4294967296.0f;
    if (operation == OP_FLOAT_TO_INT || operation == OP_INT_AND_BACK)
        return x > -2147483648.0f && x < 2147483648.0f;
    return true;
}

static void add(struct vectors *v, uint32_t operation, uint32_t a, uint32_t b, uint32_t c) {
    if (v->n == MAX_VECTORS || !is_defined(operation, a)) return;
    v->list[v->n] = (struct vector){operation, a, b, c};
    v->expected[v->n] = compute(&v->list[v->n]);
    v->n++;
}

// A number with an exponent near 2^e.
static uint32_t random_near(struct vectors *v, uint32_t biased, uint32_t spread) {
    uint32_t r = random_bits(v);
    uint32_t e = biased + random_bits(v) % (2 * spread + 1) - spread;
    return (r & 0x807FFFFFu) | (e & 255u) << 23;
}

// Products that nearly cancel, sums that land near midpoints, results near and below the smallest
// normal number.
static void add_random(struct vectors *v, uint32_t operation, uint32_t i) {
    uint32_t a = random_near(v, 127, 3), b = random_near(v, 127, 3), c = random_near(v, 127, 28);
    switch (i % 8) {
    case 0: c = ree_bits(-(ree_float(a) * ree_float(b))); break;
    case 1: c = ree_bits(ree_float(a) * ree_float(b)) ^ (random_bits(v) & 0x80000003u); break;
    case 2: // few significant bits: exact results and ties
        a &= 0xFFFFF000u;
        b &= 0xFFFFF800u;
        break;
    case 3: // the result of a product, a quotient or a root is subnormal
        a = random_near(v, 40, 20);
        b = random_near(v, operation == OP_DIV ? 168 : 87 - 40, 20);
        c = random_near(v, 2, 2);
        break;
    case 4: // subnormal operands
        a &= 0x807FFFFFu;
        if (i & 8) b &= 0x807FFFFFu;
        break;
    case 5: // far apart
        c = random_near(v, 127, 90);
        a = random_near(v, 127, 60);
        break;
    case 6: // near overflow
        a = random_near(v, 250, 4);
        b = random_near(v, operation == OP_MUL || operation == OP_FMA ? 129 : 250, 4);
        c = random_near(v, 250, 4);
        break;
    default: a = random_bits(v), b = random_bits(v), c = random_bits(v); break;
    }
    if (i % 8 == 2 && (operation == OP_ADD || operation == OP_SUB)) // exact ties of sums
        b = (a & 0x7F800000u) - (24u << 23) < 0x7F000000u ? (a & 0xFF800000u) - (24u << 23) : b;
    add(v, operation, a, b, c);
}

static void fill(struct vectors *v) {
    static const uint32_t special[N_SPECIAL] = {
        0x00000000, 0x80000000, 0x3F800000, 0xBF800000, 0x00000001, 0x80000001,
        0x007FFFFF, 0x00800000, 0x80800000, 0x00800001, 0x7F7FFFFF, 0xFF7FFFFF,
        0x7F800000, 0xFF800000, 0x7FC00000, 0x3F000000, 0xBF000000, 0x3F7FFFFF,
        0x3F800001, 0x4B000001, 0xCB7FFFFF, 0x3EFFFFFF, 0x4EFFFFFF, 0x40490FDB,
    };
    v->random = 1;
    for (uint32_t operation = 0; operation < N_OPERATIONS; operation++) {
        bool unary = operation == OP_SQRT || operation >= OP_FLOOR ||
                     (operation >= OP_INT_TO_FLOAT && operation <= OP_INT_AND_BACK);
        for (uint32_t i = 0; i < N_SPECIAL; i++)
            for (uint32_t j = 0; j < (unary ? 1 : N_SPECIAL); j++)
                add(v, operation, special[i], special[j], special[(i + 5 * j) % N_SPECIAL]);
        for (uint32_t i = 0; i < N_RANDOM; i++)
            add_random(v, operation, i);
    }
}

// What the device reads and writes, in host-visible memory.
struct probe {
    struct vectors vectors;
    struct ree_device_buffer *block, *inputs, *results;
};

enum ree_status ree_vk_run_vectors(struct ree_vk *vk, const struct ree_vk_step *step,
                                   const struct ree_device_buffer *block, uint32_t n,
                                   struct ree_error *err) {
    VkPipeline pipeline;
    REE_TRY(ree_vk_pipeline_get(vk, step, NULL, &pipeline, err));
    VkCommandBuffer commands = vk->transfer_commands;
    VkCommandBufferBeginInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
    };
    REE_VK_TRY(err, vk->vk.vkBeginCommandBuffer(commands, &info), "cannot record the probe");
    vk->vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    vk->vk.vkCmdPushConstants(commands, vk->pipeline_layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                              sizeof block->address, &block->address);
    vk->vk.vkCmdDispatch(commands, (n + 63) / 64, 1, 1);
    VkMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_HOST_READ_BIT,
    };
    vk->vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                                VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0, NULL, 0, NULL);
    REE_VK_TRY(err, vk->vk.vkEndCommandBuffer(commands), "cannot record the probe");
    return ree_vk_submit(vk, commands, NULL, NULL, err);
}

// Runs the operations from `first` to `last` in one form.
static enum ree_status run(struct ree_vk *vk, struct probe *probe, enum ree_vk_form form,
                           uint32_t begin, uint32_t n, uint32_t broken, uint32_t n_broken,
                           struct ree_error *err) {
    uint64_t block[17] = {0}; // program.c's layout: 128 bytes, then the parameters
    block[0] = probe->inputs->address + begin * sizeof(struct vector);
    block[1] = probe->results->address + begin * sizeof(uint32_t);
    block[16] = n;
    memcpy(probe->block->mapped, block, sizeof block);

    for (int p = 0; p < REE_VK_N_PRIMITIVES; p++)
        vk->verdicts[p].form = form;
    struct ree_vk_step step = {
        .shader = form == REE_VK_FLOAT64 ? REE_VK_SHADER_PROBE_F64 : REE_VK_SHADER_PROBE,
        .local_size = 64,
        .n_spec = 3,
        .spec = {form, broken, n_broken},
    };
    return ree_vk_run_vectors(vk, &step, probe->block, n, err);
}

static void judge(struct ree_vk *vk, const struct probe *probe, enum ree_vk_form form,
                  uint32_t begin, uint32_t n) {
    const uint32_t *results = (const uint32_t *)(const void *)probe->results->mapped;
    for (uint32_t p = 0; p < REE_VK_N_PRIMITIVES; p++) {
        struct ree_vk_verdict *verdict = &vk->verdicts[p];
        uint32_t n_vectors = 0, n_wrong = 0;
        for (uint32_t i = begin; i < begin + n; i++) {
            const struct vector *v = &probe->vectors.list[i];
            if (v->operation - primitives[p].first >= primitives[p].n) continue;
            n_vectors++;
            bool integer = v->operation == OP_FLOAT_TO_INT || v->operation == OP_FLOAT_TO_UINT;
            uint32_t got = integer ? results[i] : ree_canon(results[i]);
            if (got == probe->vectors.expected[i]) continue;
            if (n_wrong++ == 0) {
                const uint32_t example[5] = {v->a, v->b, v->c, got, probe->vectors.expected[i]};
                memcpy(verdict->example[form], example, sizeof example);
            }
        }
        if (n_vectors == 0) continue;
        verdict->tried[form] = true;
        verdict->allowed[form] = n_wrong == 0;
        verdict->n_wrong[form] = n_wrong;
        verdict->n_vectors = n_vectors;
    }
}

// Which vectors a form is tried on: native all, float32 arithmetic, float64 fma alone.
static void form_range(const struct vectors *v, enum ree_vk_form form, uint32_t *begin,
                       uint32_t *n) {
    uint32_t first = form == REE_VK_FLOAT64 ? OP_FMA : 0;
    uint32_t last = form == REE_VK_NATIVE ? N_OPERATIONS - 1 : OP_FMA;
    uint32_t i = 0;
    while (i < v->n && v->list[i].operation < first)
        i++;
    *begin = i;
    while (i < v->n && v->list[i].operation <= last)
        i++;
    *n = i - *begin;
}

static bool needs_form(const struct ree_vk *vk, enum ree_vk_form form,
                       const struct ree_device_options *options) {
    bool forced = options->force_form && strcmp(options->force_form, form_names[form]) == 0;
    if (form == REE_VK_NATIVE) return true;
    if (form == REE_VK_FLOAT64)
        return vk->has_float64 && (forced || !vk->verdicts[REE_VK_FMA].allowed[REE_VK_NATIVE]);
    for (int p = REE_VK_ADD; p < REE_VK_FMA; p++)
        if (!vk->verdicts[p].allowed[REE_VK_NATIVE]) return true;
    const bool *fma = vk->verdicts[REE_VK_FMA].allowed;
    return forced || (!fma[REE_VK_NATIVE] && !fma[REE_VK_FLOAT64]);
}

static enum ree_status try_forms(struct ree_vk *vk, struct probe *probe,
                                 const struct ree_device_options *options, struct ree_error *err) {
    uint32_t broken = 0, n_broken = 0;
    if (options->break_primitive) {
        int p = 0;
        while (p < REE_VK_N_PRIMITIVES && strcmp(primitives[p].name, options->break_primitive))
            p++;
        if (p == REE_VK_N_PRIMITIVES)
            return ree_fail(err, REE_INVALID, "there is no primitive '%s'",
                            options->break_primitive);
        broken = primitives[p].first;
        n_broken = primitives[p].n;
    }
    uint64_t size = probe->vectors.n * sizeof(struct vector);
    REE_TRY(ree_vk_host_buffer_create(vk, 256, &probe->block, err));
    REE_TRY(ree_vk_host_buffer_create(vk, size, &probe->inputs, err));
    REE_TRY(ree_vk_host_buffer_create(vk, probe->vectors.n * 4, &probe->results, err));
    memcpy(probe->inputs->mapped, probe->vectors.list, size);
    for (int form = REE_VK_NATIVE; form < REE_VK_INTEGER; form++) {
        if (!needs_form(vk, form, options)) continue;
        uint32_t begin, n;
        form_range(&probe->vectors, form, &begin, &n);
        REE_TRY(run(vk, probe, form, begin, n, broken, n_broken, err));
        judge(vk, probe, form, begin, n);
    }
    return REE_OK;
}

// The choice for each primitive: the first form that passed, or the one that was asked for.
static enum ree_status choose(struct ree_vk *vk, const char *force, struct ree_error *err) {
    int forced = 0;
    while (force && forced < REE_VK_N_FORMS && strcmp(force, form_names[forced]))
        forced++;
    if (forced == REE_VK_N_FORMS)
        return ree_fail(err, REE_INVALID, "'%s' is not a form: native, float64, float32, integer",
                        force);
    for (int p = 0; p < REE_VK_N_PRIMITIVES; p++) {
        struct ree_vk_verdict *verdict = &vk->verdicts[p];
        verdict->tried[REE_VK_INTEGER] = verdict->allowed[REE_VK_INTEGER] = true;
        int form = REE_VK_NATIVE;
        while (!verdict->allowed[form])
            form++;
        // Conversions and comparisons are a few integer operations anyway: that is their only form.
        if (p > REE_VK_FMA) form = REE_VK_INTEGER;
        bool has_choice = p <= REE_VK_FMA && (forced != REE_VK_FLOAT64 || p == REE_VK_FMA);
        if (force && has_choice) {
            if (!verdict->tried[forced])
                return ree_fail(err, REE_UNSUPPORTED, "'%s' has no %s form of %s", vk->base.name,
                                force, primitives[p].name);
            if (!verdict->allowed[forced])
                return ree_fail(err, REE_UNSUPPORTED,
                                "'%s' computes %s wrongly in the %s form: %u of %u vectors",
                                vk->base.name, primitives[p].name, force, verdict->n_wrong[forced],
                                verdict->n_vectors);
            form = forced;
        }
        verdict->form = (enum ree_vk_form)form;
    }
    return REE_OK;
}

enum ree_status ree_vk_probe(struct ree_vk *vk, const struct ree_device_options *options,
                             struct ree_error *err) {
    struct probe probe = {0};
    probe.vectors.list = malloc(MAX_VECTORS * sizeof *probe.vectors.list);
    probe.vectors.expected = malloc(MAX_VECTORS * sizeof *probe.vectors.expected);
    enum ree_status status = REE_NO_MEMORY;
    if (probe.vectors.list && probe.vectors.expected) {
        fill(&probe.vectors);
        status = try_forms(vk, &probe, options, err);
    } else {
        ree_fail(err, REE_NO_MEMORY, "no memory for the probe");
    }
    ree_vk_buffer_destroy(&vk->base, probe.block);
    ree_vk_buffer_destroy(&vk->base, probe.inputs);
    ree_vk_buffer_destroy(&vk->base, probe.results);
    free(probe.vectors.list);
    free(probe.vectors.expected);
    if (status == REE_OK) status = ree_vk_observe(vk, err);
    if (status != REE_OK) return ree_fail_prefix(err, "probing '%s'", vk->base.name);
    return choose(vk, options->force_form, err);
}
