// The Vulkan backend's own header: what its files share. Nothing outside this folder and its tests
// includes it.
//
// One struct ree_vk is one opened device: an instance of its own, a logical device with one queue,
// its memory, its pipelines and the probe's verdicts. Shaders reach memory by 64-bit buffer device
// addresses, so there are no descriptor sets; shaders/README.md has the conventions of both sides.
#ifndef REE_DEVICE_VULKAN_VULKAN_H
#define REE_DEVICE_VULKAN_VULKAN_H

#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <pthread.h>
#include <volk.h>

#include "base/container.h"
#include "base/status.h"
#include "device/device.h"
#include "device/facts.h"
#include "device/selftest/record.h"
#include "device/vulkan/encode.h"

struct ree_vk_verdict {
    enum ree_vk_form form;               // what is used
    bool allowed[REE_VK_N_FORMS];        // exists on this device and passed
    bool tried[REE_VK_N_FORMS];          // exists on this device and was tried
    uint32_t n_wrong[REE_VK_N_FORMS];    // of n_vectors
    uint32_t n_vectors;                  // adversarial vectors tried
    uint32_t example[REE_VK_N_FORMS][5]; // a, b, c, got, expected of the first wrong one
};

// What shading languages offer and ree never uses, tried for the record, in a shader that asks for
// no particular treatment of floats.
enum ree_vk_observed {
    REE_VK_OBSERVED_EXP,
    REE_VK_OBSERVED_TANH,
    REE_VK_OBSERVED_RSQRT,
    REE_VK_OBSERVED_INT_AND_BACK, // float(int(x)): some compilers fold it to trunc(x), -0 included
    REE_VK_N_OBSERVED
};

struct ree_vk_observation {
    uint32_t n_wrong, n_vectors;
    uint32_t example[3]; // argument, got, expected of the first wrong one
};

struct ree_vk_block; // a pooled allocation, memory.c

struct ree_device_buffer {
    VkBuffer handle;
    VkDeviceMemory memory;      // null when the buffer is a part of a block
    struct ree_vk_block *block; // NULL when the buffer has memory of its own
    uint64_t offset;            // of this buffer in `handle`, bytes
    uint64_t size;              // as asked for, bytes
    uint64_t reserved;          // size rounded up, bytes
    uint64_t address;           // device address of its first byte, a multiple of 64
    uint8_t *mapped;            // NULL: the host cannot see it
};

// One compiled module, which lives as long as the device.
struct ree_vk_pipeline {
    VkPipeline handle;
    uint32_t shader;                       // enum ree_vk_shader
    unsigned char digest[REE_SHA256_SIZE]; // of the driver, the module and its constants
    enum ree_test_state state;             // of its self-test
    uint32_t strength;                     // PASSED: of the strongest twin that it passed
    bool counted;                          // in n_untested
};
struct ree_vk_cached_pipeline; // pipeline.c

// The push constants of every shader, as shaders/include/ree.glsl declares them.
struct ree_vk_push {
    uint64_t block;  // device address of the dispatch's block
    uint32_t zero;   // 0: ree_rounded of shaders/include/primitives.glsl
    uint32_t unused; // padding
};

struct ree_vk {
    struct ree_device base;
    // instance.c
    VkInstance instance;
    VkDebugUtilsMessengerEXT messenger; // null without validation
    char validation_message[REE_ERROR_MAX];
    bool has_validation_message;
    VkPhysicalDevice physical;
    // device.c
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceDriverProperties driver;
    VkPhysicalDeviceFloatControlsProperties float_controls;
    VkPhysicalDeviceSubgroupProperties subgroup;
    VkPhysicalDeviceMemoryProperties memory;
    bool has_float64, has_int64, has_int16, has_int8, has_float16;
    bool guarded;  // words are compared with guards, spirv_stitch.h: integers are wrong without
    bool has_dot8; // dot product of four bytes; a test may clear it
    bool is_cpu;   // the driver runs on the host's processor
    bool unified;  // device-local memory is host-visible and cached: no staging
    struct ree_vk_thresholds thresholds;
    // Iterations after which the driver ends the loops of a thread; UINT64_MAX: none were found.
    // Lavapipe of Mesa 22 has 65535.
    uint64_t loop_budget;
    uint32_t queue_family;
    bool has_timestamps;
    VkDevice handle;
    struct VolkDeviceTable vk;
    VkQueue queue;
    VkCommandPool command_pool;
    VkCommandBuffer transfer_commands;
    VkFence fence;
    // memory.c
    uint32_t device_type, host_type; // memory type indices
    struct ree_vk_block *blocks;
    struct ree_device_buffer *staging; // NULL until first needed
    // pipeline.c
    VkPipelineLayout pipeline_layout;
    VkPipelineCache pipeline_cache;
    char *cache_path; // NULL: no file
    size_t cache_loaded_size;
    struct ree_vk_cached_pipeline *pipelines;
    const struct ree_vk_shader_module *modules; // by enum ree_vk_shader; tests put others here
    unsigned char identity[REE_SHA256_SIZE];    // of the driver and what changes its compiler
    unsigned char tester[REE_SHA256_SIZE];      // of what tests: this binary, the host's processor
    // selftest.c
    struct ree_test_record tests;
    uint32_t n_tests_run;
    uint32_t n_untested; // pipelines that are used though no twin reaches them
    uint32_t n_passed;   // pipelines that passed, now or according to the record
    char *passed_text;   // the value of the fact that says so; NULL: there is none yet
    bool forced;         // options->force_form: no other form is tried
    // probe.c
    struct ree_vk_verdict verdicts[REE_VK_N_PRIMITIVES];
    struct ree_vk_observation observations[REE_VK_N_OBSERVED]; // observe.c
    struct ree_facts facts;                                    // facts.c
};

static inline struct ree_vk *ree_vk_of(struct ree_device *device) {
    return REE_CONTAINER_OF(device, struct ree_vk, base);
}

// instance.c: the loader, the instance, the choice of a physical device.

// Held while devices are listed or opened: by one thread of the process at a time.
extern pthread_mutex_t ree_vk_opening;

// Fills vk->instance, vk->messenger and vk->physical; `which` as in ree_vulkan_device_open.
enum ree_status ree_vk_instance_init(struct ree_vk *vk, const char *which, bool validation,
                                     struct ree_error *err);
void ree_vk_instance_finish(struct ree_vk *vk);
// Fails with the first message of the validation layer since the last call, if there was one.
enum ree_status ree_vk_check_validation(struct ree_vk *vk, struct ree_error *err);
// Fails with "what: VK_ERROR_...", in the status that fits the result.
enum ree_status ree_vk_fail(struct ree_error *err, VkResult result, const char *what);
#define REE_VK_TRY(err, call, what)                                                                \
    do {                                                                                           \
        VkResult ree_vk_result_ = (call);                                                          \
        if (ree_vk_result_ != VK_SUCCESS) return ree_vk_fail((err), ree_vk_result_, (what));       \
    } while (0)

// meet.c: a driver that was never met before is tried in a child process, so that one which crashes
// in the probe does not take the caller down.

// Whether this driver came through the probe, in this process or according to the record.
bool ree_vk_was_met(const struct ree_vk *vk);
void ree_vk_note_met(struct ree_vk *vk);
// Opens the device in a child process and closes it again. No instance may be open for it. Fails
// if the child crashed or did not come back; that opening it failed is found out by doing so here.
// Where no process can be made (a limit, a sandbox) the driver is used without this.
enum ree_status ree_vk_meet(const char *which, const struct ree_device_options *options,
                            const char *name, struct ree_error *err);

// device.c

// Opens a device without ree_vk_meet.
enum ree_status ree_vk_open(const char *which, const struct ree_device_options *options,
                            struct ree_device **out, struct ree_error *err);
// Submits one command buffer and waits for it, however long it takes. While it runs `watch` (may be
// NULL) is called a few times a second.
enum ree_status ree_vk_submit(struct ree_vk *vk, VkCommandBuffer commands,
                              void (*watch)(struct ree_vk *vk, void *user), void *user,
                              struct ree_error *err);

// facts.c

enum ree_status ree_vk_facts_init(struct ree_vk *vk, struct ree_error *err);
size_t ree_vk_facts(const struct ree_device *device, const struct ree_device_fact **out_facts);

// memory.c

enum ree_status ree_vk_memory_init(struct ree_vk *vk, struct ree_error *err);
void ree_vk_memory_finish(struct ree_vk *vk);
enum ree_status ree_vk_buffer_create(struct ree_device *device, uint64_t size,
                                     struct ree_device_buffer **out, struct ree_error *err);
// Memory that the host sees for certain (coherent): staging, and the blocks of programs.
enum ree_status ree_vk_host_buffer_create(struct ree_vk *vk, uint64_t size,
                                          struct ree_device_buffer **out, struct ree_error *err);
void ree_vk_buffer_destroy(struct ree_device *device, struct ree_device_buffer *buffer);
enum ree_status ree_vk_buffer_write(struct ree_device *device, struct ree_device_buffer *buffer,
                                    uint64_t offset, const void *data, uint64_t size,
                                    struct ree_error *err);
enum ree_status ree_vk_buffer_read(struct ree_device *device, struct ree_device_buffer *buffer,
                                   uint64_t offset, void *data, uint64_t size,
                                   struct ree_error *err);
// For tests: from now on behave as a device whose memory the host cannot see.
void ree_vk_force_staging(struct ree_vk *vk);

// pipeline.c

// Fills vk->identity and opens the record of self-tests, once the driver's properties are known.
// ree_vk_unidentify writes the record.
void ree_vk_identify(struct ree_vk *vk, const char *cache_dir);
void ree_vk_unidentify(struct ree_vk *vk);
enum ree_status ree_vk_pipelines_init(struct ree_vk *vk, struct ree_error *err);
void ree_vk_pipelines_finish(struct ree_vk *vk); // writes the cache file if it grew
// Binds the pipeline and pushes the address of its block.
void ree_vk_pipeline_bind(const struct ree_vk *vk, VkCommandBuffer commands, VkPipeline pipeline,
                          uint64_t block);
// The pipeline for a step, from the device's cache or built. expr may be NULL. It lives as long as
// the device. REE_DEVICE where the driver cannot create it.
enum ree_status ree_vk_pipeline_get(struct ree_vk *vk, const struct ree_vk_step *step,
                                    const struct ree_expr *expr, struct ree_vk_pipeline **out,
                                    struct ree_error *err);
// Whether two steps with the same expression have one pipeline.
bool ree_vk_same_pipeline(const struct ree_vk_step *a, const struct ree_vk_step *b);

// selftest.c

// Encodes a dispatch in the first of the device's forms whose pipelines pass their self-tests, down
// to integers. Fails with REE_UNSUPPORTED, and the first wrong result, where none does.
enum ree_status ree_vk_encode_tested(struct ree_vk *vk, const struct ree_dispatch *dispatch,
                                     struct ree_vk_encoding *out, struct ree_error *err);
// The steps of an encoding, as bits, whose pipelines no twin of the dispatch reaches. *out_weak:
// some are reached only by twins that keep sizes of the dispatch. Asks no driver: of *vk it needs
// only what ree_vk_encode does.
enum ree_status ree_vk_find_unreached(struct ree_vk *vk, const struct ree_dispatch *dispatch,
                                      const struct ree_vk_encoding *encoding, bool *out_weak,
                                      uint32_t *out_steps, struct ree_error *err);
// Adds the fact that counts pipelines; those that failed get facts of their own as they come up.
void ree_vk_selftest_facts(struct ree_vk *vk);
// Gives a new pipeline the state that the record has of it.
void ree_vk_take_record(struct ree_vk *vk, struct ree_vk_pipeline *pipeline);
// Marks a pipeline that the driver did not create.
void ree_vk_reject_pipeline(struct ree_vk *vk, struct ree_vk_pipeline *pipeline, const char *why);

// probe.c

// Tries every primitive in every form that could be its choice, fills vk->verdicts.
// REE_UNSUPPORTED where a primitive has no right form.
enum ree_status ree_vk_probe(struct ree_vk *vk, const struct ree_device_options *options,
                             struct ree_error *err);
// Runs `step` over n vectors, 64 to a work group, with `block` (host-visible) as its block, and
// waits.
enum ree_status ree_vk_run_vectors(struct ree_vk *vk, const struct ree_vk_step *step,
                                   const struct ree_device_buffer *block, uint32_t n,
                                   struct ree_error *err);
const char *ree_vk_form_name(enum ree_vk_form form);
const char *ree_vk_primitive_name(enum ree_vk_primitive primitive);

// observe.c

// Counts how often a loop really runs, into vk->loop_budget.
enum ree_status ree_vk_count_loops(struct ree_vk *vk, struct ree_error *err);
// Counts how often the device's own functions are wrong, into vk->observations.
enum ree_status ree_vk_observe(struct ree_vk *vk, struct ree_error *err);
const char *ree_vk_observed_name(enum ree_vk_observed function);

// program.c

enum ree_status ree_vk_program_create(struct ree_device *device, const struct ree_program *program,
                                      struct ree_device_buffer *const *constants,
                                      struct ree_device_program **out, struct ree_error *err);
// The same from encodings, one for each dispatch.
enum ree_status ree_vk_program_assemble(struct ree_vk *vk, const struct ree_program *program,
                                        const struct ree_vk_encoding *encodings,
                                        struct ree_device_program **out, struct ree_error *err);
void ree_vk_program_destroy(struct ree_device *device, struct ree_device_program *program);
enum ree_status ree_vk_program_run(struct ree_device *device, struct ree_device_program *program,
                                   struct ree_device_buffer *const *slots, struct ree_error *err);
bool ree_vk_program_times(struct ree_device *device, struct ree_device_program *program,
                          double *out_seconds);

#endif
