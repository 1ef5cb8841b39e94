// Compute pipelines, cached by (shader, specialization, expression) for the life of the device. The
// driver's own pipeline cache is kept in a file for the next start.
#include "device/cache_folder.h"
#include "base/clock.h"
#include "base/float_env.h"
#include "base/memory.h"
#include "device/vulkan/spirv_fold.h"
#include "device/vulkan/spirv_stitch.h"
#include "device/vulkan/vulkan.h"
#include "device/vulkan/encode.h"
#include "shaders.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_THREADS 8
#define STACK_SIZE ((size_t)16 << 20) // bytes per thread; mostly unused
#define MAX_CONSTANTS (1 + REE_VK_N_PRIMITIVES + REE_VK_MAX_SPEC)

// Everything that a pipeline depends on. Compared as bytes, so unused parts are zero.
struct key {
    struct ree_vk_step step; // n_groups is 0
    bool has_expr;
    uint32_t n_operands, n_instrs;
    uint32_t classes[REE_EXPR_MAX_OPERANDS];
    struct ree_expr_instr instrs[REE_EXPR_MAX_INSTRS];
};

enum progress { PLANNED, BEING_MADE, MADE };

struct ree_vk_cached_pipeline {
    struct ree_vk_pipeline base;
    struct ree_vk_cached_pipeline *next;
    uint64_t hash;
    struct key key;
    // Only in a list of planned pipelines. expr is borrowed.
    const struct ree_expr *expr;
    enum progress progress;
};

// Threads that create planned pipelines.
struct ree_vk_makers {
    struct ree_vk *vk;
    pthread_mutex_t lock;
    pthread_cond_t made; // signalled after each pipeline
    struct ree_vk_cached_pipeline *list;
    pthread_t threads[MAX_THREADS];
    uint32_t n_threads;
};

static void key_init(struct key *key, const struct ree_vk_step *step, const struct ree_expr *expr) {
    memset(key, 0, sizeof *key);
    key->step.shader = step->shader;
    key->step.local_size = step->local_size;
    key->step.forms = step->forms;
    key->step.n_spec = step->n_spec;
    memcpy(key->step.spec, step->spec, step->n_spec * sizeof *step->spec);
    if (!expr) return;
    key->has_expr = true;
    key->n_operands = expr->n_operands;
    key->n_instrs = expr->n_instrs;
    for (uint32_t i = 0; i < expr->n_operands; i++)
        key->classes[i] = ree_dtype_class(expr->operands[i].dtype);
    for (uint32_t i = 0; i < expr->n_instrs; i++) {
        const struct ree_expr_instr *from = &expr->instrs[i];
        struct ree_expr_instr *to = &key->instrs[i];
        bool constant = from->op == REE_MAP_CONST32 || from->op == REE_MAP_CONST64;
        to->op = from->op;
        for (uint32_t a = 0; a < ree_map_op_infos[from->op].n_args; a++)
            to->args[a] = from->args[a];
        if (constant) memcpy(to->imm, from->imm, sizeof to->imm);
    }
}

bool ree_vk_same_pipeline(const struct ree_vk_step *a, const struct ree_vk_step *b) {
    return a->shader == b->shader && a->local_size == b->local_size && a->n_spec == b->n_spec &&
           memcmp(&a->forms, &b->forms, sizeof a->forms) == 0 &&
           memcmp(a->spec, b->spec, a->n_spec * sizeof *a->spec) == 0;
}

// FNV-1a
static uint64_t hash_bytes(const void *bytes, size_t n) {
    const uint8_t *p = bytes;
    uint64_t hash = 0xCBF29CE484222325;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ p[i]) * 0x100000001B3;
    return hash;
}

// The file of the driver's cache

// Computes the SHA-256 of the driver's data, which is stored at the end of the file.
static bool digest_of(const void *data, size_t size, unsigned char out[REE_SHA256_SIZE]) {
    struct ree_hasher *hasher = ree_hasher_create("ree-vulkan-cache/1");
    if (!hasher) return false;
    ree_hasher_update(hasher, data, size);
    ree_hasher_digest(hasher, out);
    return true;
}

// Returns the file's contents if they belong to this driver, otherwise NULL. A driver should
// validate the data itself, but not every driver does. Pipelines that passed their self-tests are
// not tested again, so a file that has been corrupted since must not be used.
static void *cache_read(const struct ree_vk *vk, size_t *out_size) {
    *out_size = 0;
    VkPipelineCacheHeaderVersionOne header;
    void *bytes = NULL;
    size_t size = 0;
    if (!vk->cache_path || !ree_cache_read(vk->cache_path, (size_t)1 << 30, &bytes, &size))
        return NULL;
    uint8_t *data = bytes;
    bool ok = size >= sizeof header + REE_SHA256_SIZE;
    unsigned char digest[REE_SHA256_SIZE];
    if (ok) size -= REE_SHA256_SIZE;
    ok = ok && digest_of(data, size, digest) && memcmp(data + size, digest, sizeof digest) == 0;
    if (ok) {
        memcpy(&header, data, sizeof header);
        ok = header.headerSize >= sizeof header && header.headerSize <= size &&
             header.headerVersion == VK_PIPELINE_CACHE_HEADER_VERSION_ONE &&
             header.vendorID == vk->properties.vendorID &&
             header.deviceID == vk->properties.deviceID &&
             memcmp(header.pipelineCacheUUID, vk->properties.pipelineCacheUUID, VK_UUID_SIZE) == 0;
    }
    if (!ok) {
        ree_free(data);
        return NULL;
    }
    *out_size = size;
    return data;
}

// Replaces the file atomically if the driver's data grew. Ignores failures.
static void cache_write(struct ree_vk *vk) {
    size_t size = 0;
    vk->n_unsaved = 0;
    vk->saved_at = ree_clock();
    if (!vk->cache_path ||
        vk->vk.vkGetPipelineCacheData(vk->handle, vk->pipeline_cache, &size, NULL) != VK_SUCCESS ||
        size <= sizeof(VkPipelineCacheHeaderVersionOne) || size == vk->cache_size)
        return;
    uint8_t *data = ree_alloc(size + REE_SHA256_SIZE);
    if (data &&
        vk->vk.vkGetPipelineCacheData(vk->handle, vk->pipeline_cache, &size, data) == VK_SUCCESS &&
        digest_of(data, size, data + size)) {
        ree_cache_write(vk->cache_path, data, size + REE_SHA256_SIZE);
        vk->cache_size = size;
    }
    ree_free(data);
}

#define SAVE_SECONDS 5

void ree_vk_pipelines_save(struct ree_vk *vk) {
    if (vk->n_unsaved && (!vk->saved_at || ree_clock() - vk->saved_at >= SAVE_SECONDS))
        cache_write(vk);
}

// The device's pipelines

enum ree_status ree_vk_pipelines_init(struct ree_vk *vk, struct ree_error *err) {
    VkPushConstantRange range = {
        .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
        .size = sizeof(struct ree_vk_push),
    };
    VkPipelineLayoutCreateInfo layout = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .pushConstantRangeCount = 1,
        .pPushConstantRanges = &range,
    };
    REE_VK_TRY(err, vk->vk.vkCreatePipelineLayout(vk->handle, &layout, NULL, &vk->pipeline_layout),
               "cannot create a pipeline layout");
    void *data = cache_read(vk, &vk->cache_size);
    VkPipelineCacheCreateInfo cache = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
        .initialDataSize = vk->cache_size,
        .pInitialData = data,
    };
    VkResult result = vk->vk.vkCreatePipelineCache(vk->handle, &cache, NULL, &vk->pipeline_cache);
    ree_free(data);
    REE_VK_TRY(err, result, "cannot create a pipeline cache");
    return REE_OK;
}

void ree_vk_pipelines_finish(struct ree_vk *vk) {
    while (vk->pipelines) {
        struct ree_vk_cached_pipeline *pipeline = vk->pipelines;
        vk->pipelines = pipeline->next;
        vk->vk.vkDestroyPipeline(vk->handle, pipeline->base.handle, NULL);
        ree_free(pipeline);
    }
    if (vk->pipeline_cache) {
        cache_write(vk);
        vk->vk.vkDestroyPipelineCache(vk->handle, vk->pipeline_cache, NULL);
    }
    if (vk->pipeline_layout) vk->vk.vkDestroyPipelineLayout(vk->handle, vk->pipeline_layout, NULL);
}

// Asks for what the device supports. Subnormals and rounding depend on the device's independence:
// - ALL: each width may have its own mode
// - 32_BIT_ONLY: only float32 may. Nothing is asked for float64, because float16 has its mode.
// - NONE: all widths have the same mode, so nothing is asked
static void choose_modes(const VkPhysicalDeviceFloatControlsProperties *controls,
                         struct ree_spirv_options *options) {
    const VkShaderFloatControlsIndependence denorm = controls->denormBehaviorIndependence,
                                            rounding = controls->roundingModeIndependence;
    options->float32 = (struct ree_spirv_modes){
        .denorm_preserve = denorm != VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE &&
                           controls->shaderDenormPreserveFloat32,
        .rounding_rte = rounding != VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE &&
                        controls->shaderRoundingModeRTEFloat32,
        .signed_zero_inf_nan_preserve = controls->shaderSignedZeroInfNanPreserveFloat32,
    };
    // No subnormal number of float64 occurs.
    options->float64 = (struct ree_spirv_modes){
        .rounding_rte = rounding == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL &&
                        controls->shaderRoundingModeRTEFloat64,
        .signed_zero_inf_nan_preserve = controls->shaderSignedZeroInfNanPreserveFloat64,
    };
}

// Inserts the step's expression into its module and specializes it. *out_folded: whether it is
// specialized; otherwise the driver has to do it. The caller frees *out.
static enum ree_status make_words(const struct ree_vk *vk, const struct ree_vk_step *step,
                                  const struct ree_expr *expr,
                                  const struct ree_spirv_constant *constants, uint32_t n_constants,
                                  uint32_t **out, size_t *out_n, bool *out_folded,
                                  struct ree_error *err) {
    const struct ree_vk_shader_module *source = &vk->modules[step->shader];
    struct ree_spirv_options options = {
        .expr = expr,
        .is_epilogue = step->shader != REE_VK_SHADER_MAP && step->shader != REE_VK_SHADER_MAP_F64,
        .guard_words = step->forms.guarded,
    };
    if (step->shader != REE_VK_SHADER_OBSERVE) choose_modes(&vk->float_controls, &options);
    uint32_t *words;
    size_t n_words;
    REE_TRY(ree_spirv_stitch(source->words, source->n_words, &options, &words, &n_words, err));
    enum ree_status status =
        ree_spirv_fold(words, n_words, constants, n_constants, out, out_n, err);
    *out_folded = status == REE_OK;
    if (status == REE_UNSUPPORTED) {
        ree_error_clear(err);
        *out = words;
        *out_n = n_words;
        return REE_OK;
    }
    ree_free(words);
    return status;
}

static enum ree_status create_module(struct ree_vk *vk, const uint32_t *words, size_t n_words,
                                     VkShaderModule *out, struct ree_error *err) {
    VkShaderModuleCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = n_words * sizeof *words,
        .pCode = words,
    };
    VkResult result = vk->vk.vkCreateShaderModule(vk->handle, &info, NULL, out);
    return result == VK_SUCCESS ? REE_OK : ree_vk_fail(err, result, "cannot load a shader");
}

// Writes the step's specialization constants and returns their number.
static uint32_t list_constants(const struct ree_vk_step *step,
                               struct ree_spirv_constant out[MAX_CONSTANTS]) {
    uint32_t n = 0;
    out[n++] = (struct ree_spirv_constant){REE_VK_SPEC_LOCAL_SIZE, step->local_size};
    for (uint32_t p = 0; p < REE_VK_N_PRIMITIVES; p++)
        out[n++] = (struct ree_spirv_constant){REE_VK_SPEC_FORMS + p, step->forms.of[p]};
    for (uint32_t i = 0; i < step->n_spec; i++)
        out[n++] = (struct ree_spirv_constant){REE_VK_SPEC_FIRST + i, step->spec[i]};
    return n;
}

// Returns whether the module's threads share operands in a subgroup (TILE_SUBGROUP of tile.glsl).
static bool uses_subgroups(uint32_t shader) {
    switch (shader) {
    case REE_VK_SHADER_MATMUL_N_FLOAT64:
    case REE_VK_SHADER_CONV_N_FLOAT64:
    case REE_VK_SHADER_ATTENTION_SCORES_N_FLOAT64:
    case REE_VK_SHADER_ATTENTION_VALUES_N_FLOAT64: return true;
    default: return false;
    }
}

// Creates out->handle and computes out->digest.
static enum ree_status create_pipeline(struct ree_vk *vk, const struct ree_vk_step *step,
                                       const struct ree_expr *expr, struct ree_vk_pipeline *out,
                                       struct ree_error *err) {
    struct ree_spirv_constant constants[MAX_CONSTANTS];
    const uint32_t n = list_constants(step, constants);
    uint32_t *words;
    size_t n_words;
    bool is_folded;
    REE_TRY(make_words(vk, step, expr, constants, n, &words, &n_words, &is_folded, err));
    struct ree_hasher *hasher = ree_hasher_create("ree-vulkan-pipeline/2");
    if (!hasher) {
        ree_free(words);
        return ree_fail(err, REE_NO_MEMORY, "no memory for a pipeline");
    }
    ree_hasher_update(hasher, vk->identity, sizeof vk->identity);
    ree_hasher_update(hasher, vk->tester, sizeof vk->tester);
    ree_hasher_update(hasher, constants, n * sizeof *constants);
    ree_hasher_update(hasher, words, n_words * sizeof *words);
    ree_hasher_digest(hasher, out->digest);
    VkShaderModule module;
    enum ree_status status = create_module(vk, words, n_words, &module, err);
    if (status != REE_OK) {
        ree_free(words);
        return ree_fail_prefix(err, "%s", vk->modules[step->shader].name);
    }
    VkSpecializationMapEntry entries[MAX_CONSTANTS];
    for (uint32_t i = 0; i < n; i++)
        entries[i] = (VkSpecializationMapEntry){
            .constantID = constants[i].id,
            .offset =
                (uint32_t)(i * sizeof *constants + offsetof(struct ree_spirv_constant, value)),
            .size = sizeof constants->value,
        };
    VkSpecializationInfo specialization = {
        .mapEntryCount = n,
        .pMapEntries = entries,
        .dataSize = n * sizeof *constants,
        .pData = constants,
    };
    // A module that uses subgroups requires that its workgroup is exactly one subgroup.
    bool requires_size = uses_subgroups(step->shader) && vk->has_subgroup_size;
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfoEXT subgroup = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO_EXT,
        .requiredSubgroupSize = vk->subgroup.subgroupSize,
    };
    VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .flags = vk->has_statistics ? VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR : 0,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .pNext = requires_size ? &subgroup : NULL,
                  .flags = requires_size
                               ? VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT_EXT
                               : 0,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = "main",
                  .pSpecializationInfo = is_folded ? NULL : &specialization},
        .layout = vk->pipeline_layout,
    };
    const clock_t begin = clock();
    VkResult result = vk->vk.vkCreateComputePipelines(vk->handle, vk->pipeline_cache, 1, &info,
                                                      NULL, &out->handle);
    if (vk->compiled && result == VK_SUCCESS) {
        const struct ree_vk_compilation compilation = {
            .module = vk->modules[step->shader].name,
            .words = words,
            .n_words = n_words,
            .is_specialized = is_folded,
            .seconds = (double)(clock() - begin) / CLOCKS_PER_SEC,
            .pipeline = out->handle,
        };
        vk->compiled(vk->compiled_user, &compilation);
    }
    ree_free(words);
    vk->vk.vkDestroyShaderModule(vk->handle, module, NULL);
    if (result == VK_SUCCESS) return REE_OK;
    ree_vk_fail(err, result, "cannot create a pipeline");
    return ree_fail_prefix(err, "%s", vk->modules[step->shader].name);
}

// Writes an expression that gives the same module as the one from which the key was made: modules
// depend on the classes of operands, not on their types, offsets and strides.
static void expr_of_key(const struct key *key, struct ree_expr *out) {
    memset(out, 0, sizeof *out);
    out->n_operands = key->n_operands;
    out->n_instrs = key->n_instrs;
    for (uint32_t i = 0; i < key->n_operands; i++)
        out->operands[i].dtype = key->classes[i] == REE_CLASS_D ? REE_F64 : REE_F32;
    memcpy(out->instrs, key->instrs, key->n_instrs * sizeof *key->instrs);
}

enum ree_status ree_vk_pipeline_show(const struct ree_vk *vk, VkPipeline handle,
                                     const struct ree_kernel_sink *sink, struct ree_error *err) {
    const struct ree_vk_cached_pipeline *pipeline = vk->pipelines;
    while (pipeline && pipeline->base.handle != handle)
        pipeline = pipeline->next;
    if (!pipeline) return ree_fail(err, REE_INTERNAL, "a program has a pipeline of another device");
    const struct ree_vk_step *step = &pipeline->key.step;
    struct ree_expr expr;
    struct ree_spirv_constant constants[MAX_CONSTANTS];
    uint32_t *words;
    size_t n_words;
    bool is_folded;
    expr_of_key(&pipeline->key, &expr);
    REE_TRY(make_words(vk, step, pipeline->key.has_expr ? &expr : NULL, constants,
                       list_constants(step, constants), &words, &n_words, &is_folded, err));
    const struct ree_kernel kernel = {.name = vk->modules[step->shader].name,
                                      .format = "SPIR-V",
                                      .code = words,
                                      .nbytes = n_words * sizeof *words};
    sink->each(sink->user, &kernel);
    ree_free(words);
    return REE_OK;
}

// Records one vkCmdDispatch of x * y groups.
static void record_grid(const struct ree_vk *vk, VkCommandBuffer commands, uint64_t block,
                        uint64_t first_group, uint64_t x, uint64_t y) {
    struct ree_vk_push push = {.block = block, .first_group = (uint32_t)first_group};
    vk->vk.vkCmdPushConstants(commands, vk->pipeline_layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                              sizeof push, &push);
    vk->vk.vkCmdDispatch(commands, (uint32_t)x, (uint32_t)y, 1);
}

void ree_vk_record_groups(const struct ree_vk *vk, VkCommandBuffer commands, VkPipeline pipeline,
                          uint64_t block, uint64_t first_group, uint64_t n_groups) {
    // The groups are numbered row by row (ree_group of shaders/include/ree.glsl). If they do not
    // fit one row, whole rows are dispatched and then the rest. A grid with more than n_groups
    // groups would also run groups of another piece of the step.
    const uint32_t *limit = vk->properties.limits.maxComputeWorkGroupCount;
    vk->vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    while (n_groups > 0) {
        uint64_t x = n_groups < limit[0] ? n_groups : limit[0];
        uint64_t y = n_groups / x < limit[1] ? n_groups / x : limit[1];
        record_grid(vk, commands, block, first_group, x, y);
        first_group += x * y;
        n_groups -= x * y;
    }
}

// Returns the entry of this key in a list, or NULL.
static struct ree_vk_cached_pipeline *find(struct ree_vk_cached_pipeline *list,
                                           const struct key *key, uint64_t hash) {
    while (list && (list->hash != hash || memcmp(&list->key, key, sizeof *key) != 0))
        list = list->next;
    return list;
}

static void insert(struct ree_vk *vk, struct ree_vk_cached_pipeline *pipeline) {
    vk->n_unsaved++;
    pipeline->expr = NULL;
    pipeline->base.shader = pipeline->key.step.shader;
    ree_vk_take_record(vk, &pipeline->base);
    pipeline->next = vk->pipelines;
    vk->pipelines = pipeline;
}

// Creating several at the same time

bool ree_vk_pipeline_plan(struct ree_vk *vk, const struct ree_vk_step *step,
                          const struct ree_expr *expr, struct ree_vk_cached_pipeline **list) {
    struct key key;
    key_init(&key, step, expr);
    const uint64_t hash = hash_bytes(&key, sizeof key);
    if (find(vk->pipelines, &key, hash) || find(*list, &key, hash)) return false;
    struct ree_vk_cached_pipeline *pipeline = ree_alloc_zeroed(1, sizeof *pipeline);
    if (!pipeline) return false;
    pipeline->hash = hash;
    memcpy(&pipeline->key, &key, sizeof key);
    pipeline->expr = expr;
    while (*list) // the first one that is needed is the first one that is made
        list = &(*list)->next;
    *list = pipeline;
    return true;
}

// Makes the first planned pipeline that no thread has begun. Returns false if there is none. The
// caller holds the lock, which is released meanwhile.
static bool make_next(struct ree_vk_makers *makers) {
    struct ree_vk_cached_pipeline *pipeline = makers->list;
    while (pipeline && pipeline->progress != PLANNED)
        pipeline = pipeline->next;
    if (!pipeline) return false;
    pipeline->progress = BEING_MADE;
    pthread_mutex_unlock(&makers->lock);
    struct ree_error err;
    create_pipeline(makers->vk, &pipeline->key.step, pipeline->expr, &pipeline->base, &err);
    pthread_mutex_lock(&makers->lock);
    pipeline->progress = MADE;
    pthread_cond_broadcast(&makers->made);
    return true;
}

static void *make_planned(void *user) {
    REE_FLOAT_ENV_WORKER();
    struct ree_vk_makers *makers = user;
    pthread_mutex_lock(&makers->lock);
    while (make_next(makers))
        ;
    pthread_mutex_unlock(&makers->lock);
    return NULL;
}

static void free_list(struct ree_vk_cached_pipeline *list) {
    while (list) {
        struct ree_vk_cached_pipeline *next = list->next;
        ree_free(list);
        list = next;
    }
}

void ree_vk_pipelines_start(struct ree_vk *vk, struct ree_vk_cached_pipeline *list,
                            uint32_t n_threads) {
    pthread_attr_t attributes;
    sigset_t all, before;
    struct ree_vk_makers *makers = n_threads ? ree_alloc_zeroed(1, sizeof *makers) : NULL;
    if (!makers || pthread_attr_init(&attributes) != 0) {
        ree_free(makers);
        free_list(list);
        return;
    }
    *makers = (struct ree_vk_makers){.vk = vk,
                                     .lock = PTHREAD_MUTEX_INITIALIZER,
                                     .made = PTHREAD_COND_INITIALIZER,
                                     .list = list};
    // Drivers compile on the stack of the calling thread, so it must be large. The program's
    // signal handlers must not run on these threads.
    const bool is_deep = pthread_attr_setstacksize(&attributes, STACK_SIZE) == 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (is_deep && makers->n_threads < n_threads && makers->n_threads < MAX_THREADS &&
           pthread_create(&makers->threads[makers->n_threads], &attributes, make_planned, makers) ==
               0)
        makers->n_threads++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    vk->makers = makers;
}

// Takes the planned pipeline of this key out of the makers' list. If a maker has begun it, makes
// others until it is made. Returns NULL if it is not made: it is not planned, no maker has begun
// it, or the driver cannot create it. Then the caller creates it, which gives the error.
static struct ree_vk_cached_pipeline *take_made(struct ree_vk *vk, const struct key *key,
                                                uint64_t hash) {
    struct ree_vk_makers *makers = vk->makers;
    if (!makers) return NULL;
    pthread_mutex_lock(&makers->lock);
    struct ree_vk_cached_pipeline *pipeline = find(makers->list, key, hash);
    if (pipeline) {
        while (pipeline->progress == BEING_MADE)
            if (!make_next(makers)) pthread_cond_wait(&makers->made, &makers->lock);
        struct ree_vk_cached_pipeline **link = &makers->list;
        while (*link != pipeline)
            link = &(*link)->next;
        *link = pipeline->next;
    }
    pthread_mutex_unlock(&makers->lock);
    if (!pipeline || pipeline->base.handle) return pipeline;
    ree_free(pipeline);
    return NULL;
}

void ree_vk_pipelines_join(struct ree_vk *vk) {
    struct ree_vk_makers *makers = vk->makers;
    if (!makers) return;
    for (uint32_t i = 0; i < makers->n_threads; i++)
        pthread_join(makers->threads[i], NULL);
    while (makers->list) {
        struct ree_vk_cached_pipeline *pipeline = makers->list;
        makers->list = pipeline->next;
        if (pipeline->base.handle)
            insert(vk, pipeline);
        else
            ree_free(pipeline);
    }
    vk->makers = NULL;
    ree_free(makers);
}

enum ree_status ree_vk_pipeline_get(struct ree_vk *vk, const struct ree_vk_step *step,
                                    const struct ree_expr *expr, struct ree_vk_pipeline **out,
                                    struct ree_error *err) {
    struct key key;
    key_init(&key, step, expr);
    const uint64_t hash = hash_bytes(&key, sizeof key);
    struct ree_vk_cached_pipeline *pipeline = find(vk->pipelines, &key, hash);
    if (!pipeline && (pipeline = take_made(vk, &key, hash)) != NULL) insert(vk, pipeline);
    if (pipeline) {
        *out = &pipeline->base;
        if (pipeline->base.handle) return REE_OK;
        return ree_fail(err, REE_DEVICE, "%s: the driver cannot create this pipeline",
                        vk->modules[step->shader].name);
    }
    pipeline = ree_alloc_zeroed(1, sizeof *pipeline);
    if (!pipeline) return ree_fail(err, REE_NO_MEMORY, "no memory for a pipeline");
    enum ree_status status = create_pipeline(vk, step, expr, &pipeline->base, err);
    if (status == REE_OK) status = ree_vk_check_validation(vk, err);
    if (status != REE_OK && (status != REE_DEVICE || pipeline->base.handle)) {
        vk->vk.vkDestroyPipeline(vk->handle, pipeline->base.handle, NULL);
        ree_free(pipeline);
        return status;
    }
    pipeline->hash = hash;
    memcpy(&pipeline->key, &key, sizeof key); // padding included
    insert(vk, pipeline);
    // The entry stays in the cache without a handle, so that the driver is not tried again.
    if (status != REE_OK) ree_vk_reject_pipeline(vk, &pipeline->base, err ? err->message : "");
    *out = &pipeline->base;
    return status;
}
