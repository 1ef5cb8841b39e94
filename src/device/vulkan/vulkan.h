// Internal header of the Vulkan backend, shared by its files. Only this folder and its tests
// include it.
//
// One struct ree_vk is one opened device: its own instance, a logical device with one queue, its
// memory, its pipelines and the probe's verdicts. Shaders access memory through 64-bit buffer
// device addresses, so there are no descriptor sets. shaders/README.md describes the conventions of
// both sides.
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
#include "device/vulkan/forms.h"

struct ree_vk_verdict {
    enum ree_vk_form form;            // the form in use
    bool allowed[REE_VK_N_FORMS];     // the form exists on this device and passed
    bool tried[REE_VK_N_FORMS];       // the form exists on this device and was tested
    uint32_t n_wrong[REE_VK_N_FORMS]; // wrong results among n_vectors
    uint32_t n_vectors;               // number of vectors that test the primitive
    // first wrong vector: a, b, c, actual result, expected result
    uint32_t example[REE_VK_N_FORMS][5];
};

// All pipeline stages that ree's submissions use. For barriers.
#define REE_VK_STAGES (VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT)

// Functions of shading languages that ree never uses. It tests them only to report how accurate
// they are, in a shader that requests no particular treatment of floats.
enum ree_vk_observed {
    REE_VK_OBSERVED_EXP,
    REE_VK_OBSERVED_TANH,
    REE_VK_OBSERVED_RSQRT,
    // float(int(x)): some compilers fold it to trunc(x), which keeps -0
    REE_VK_OBSERVED_INT_AND_BACK,
    REE_VK_N_OBSERVED
};

struct ree_vk_observation {
    uint32_t n_wrong, n_vectors;
    uint32_t example[3]; // first wrong vector: argument, actual result, expected result
};

struct ree_vk_step; // encode.h
struct ree_vk_encoding;
struct ree_vk_block; // an allocation that several buffers share, memory.c

struct ree_device_buffer {
    VkBuffer handle;
    VkDeviceMemory memory;      // null if the buffer is part of a block
    struct ree_vk_block *block; // NULL if the buffer has its own memory
    uint64_t offset;            // offset of this buffer in `handle`, bytes
    uint64_t size;              // requested bytes
    uint64_t reserved;          // size rounded up, bytes
    uint64_t address;           // device address of the first byte, a multiple of 64
    uint8_t *mapped;            // NULL: not host-visible
};

// One compiled module with its specialization constants and expression. It lives as long as the
// device.
struct ree_vk_pipeline {
    VkPipeline handle;
    uint32_t shader;                       // enum ree_vk_shader
    unsigned char digest[REE_SHA256_SIZE]; // digest of the driver, the module and its constants
    enum ree_test_state state;             // result of its self-test
    // If `state` is PASSED: enum strength (selftest.c) of the strongest twin that it passed.
    uint32_t strength;
    bool counted; // the pipeline is already counted in ree_vk.n_untested
};
struct ree_vk_cached_pipeline; // pipeline.c
struct ree_vk_makers;

// A pipeline that the driver has just compiled.
struct ree_vk_compilation {
    const char *module;
    const uint32_t *words; // the SPIR-V that the driver received
    size_t n_words;
    bool is_specialized; // spirv_fold.c has specialized `words`; false: the driver does
    double seconds;      // CPU time of all threads
    VkPipeline pipeline;
};
typedef void ree_vk_compiled(void *user, const struct ree_vk_compilation *compilation);

// The push constants of every shader, declared in shaders/include/ree.glsl.
struct ree_vk_push {
    // device address of the dispatch's block: its operands' addresses and its parameters
    uint64_t block;
    uint32_t zero;        // always 0; used by ree_rounded of shaders/include/primitives.glsl
    uint32_t first_group; // index of the first workgroup of this vkCmdDispatch
};

#define REE_VK_N_IN_FLIGHT 2 // maximum submissions of a program that are in flight

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
    // A child of this process probed the driver a moment ago (driver_trial.c). Set before the
    // probe, which then repeats nothing of what the child recorded.
    bool was_just_tried;
    // All modules compare words in the guarded form (guard_words of spirv_stitch.h), because the
    // probe found the integer form of primitives wrong without it.
    bool guarded;
    // has_subgroups: modules may rely on subgroups of subgroup.subgroupSize threads.
    // has_subgroup_size: pipelines must request this size.
    bool has_subgroups, has_subgroup_size;
    bool has_dot8;       // shaders can use a dot product of four bytes; tests may clear it
    bool is_cpu;         // the driver runs shaders on the host's processor
    bool has_statistics; // the driver reports statistics of pipelines (compiler.h)
    bool unified;        // device-local memory is host-visible and cached: no staging
    struct ree_vk_thresholds thresholds;
    // Loop iterations after which the driver ends a thread's loops; UINT64_MAX: no limit was found.
    // Lavapipe of Mesa 22 has 65535.
    uint64_t loop_budget;
    uint32_t queue_family;   // index of the family of `queue` (queue.c)
    uint64_t timestamp_mask; // valid bits of the queue's timestamps, which wrap; 0: it has none
    VkDevice handle;
    struct VolkDeviceTable vk;
    VkQueue queue;
    VkCommandPool command_pool;
    VkCommandBuffer transfer_commands;
    VkFence fences[REE_VK_N_IN_FLIGHT];
    bool is_lost; // the driver reported VK_ERROR_DEVICE_LOST, or ree_vk_abandon was called
    bool is_abandoned;
    // Seconds after which one wait for the device fails and the device is abandoned; 0: never.
    // Self-tests set it to test_seconds, which tests may change.
    double wait_limit, test_seconds;
    // pace.c
    double submission_seconds; // intended seconds of each submission; tests may change it
    double pace;               // measured seconds per predicted second
    // memory.c
    // indices of the memory types of device buffers and of host-visible buffers
    uint32_t device_type, host_type;
    struct ree_vk_block *blocks;
    struct ree_device_buffer *staging; // NULL until first used
    // pipeline.c
    VkPipelineLayout pipeline_layout;
    VkPipelineCache pipeline_cache;
    char *cache_path;   // NULL: no file
    size_t cache_size;  // bytes of the driver's data in the file, as read or written last
    uint32_t n_unsaved; // pipelines created since the cache's file was written
    double saved_at;    // ree_clock() when the cache's file was last written; 0: not yet
    struct ree_vk_cached_pipeline *pipelines;
    struct ree_vk_makers *makers; // threads that create pipelines; NULL: none
    // All SPIR-V modules, indexed by enum ree_vk_shader; tests may replace this table.
    const struct ree_vk_shader_module *modules;
    unsigned char identity[REE_SHA256_SIZE]; // digest of the driver and what affects its compiler
    // Digest of what computes expected results: this binary, the host's processor.
    unsigned char tester[REE_SHA256_SIZE];
    // selftest.c
    struct ree_test_record tests;
    uint32_t n_tests_run;
    uint32_t n_untested; // pipelines in use that no twin reaches
    uint32_t n_passed;   // pipelines that passed their self-test, now or according to the record
    char *passed_text;   // value of the fact about passed pipelines; NULL: not yet added
    bool forced;         // a form is forced (ree/testing.h): try no other form
    // compiler.c: called for each compiled pipeline; NULL on devices that also run programs
    ree_vk_compiled *compiled;
    void *compiled_user;
    // probe.c
    char *probe_path; // path of the file with the probe's results; NULL: none is kept
    struct ree_vk_verdict verdicts[REE_VK_N_PRIMITIVES];
    // observe.c; all zero: not measured
    struct ree_vk_observation observations[REE_VK_N_OBSERVED];
    struct ree_facts facts; // facts.c
};

static inline struct ree_vk *ree_vk_of(struct ree_device *device) {
    return REE_CONTAINER_OF(device, struct ree_vk, base);
}

// instance.c: the loader, the instance, and the choice of a physical device.

// Lock held by the thread that lists or opens devices; one thread of the process at a time.
extern pthread_mutex_t ree_vk_opening;

// Fills vk->instance, vk->messenger and vk->physical. `which` is as in ree_vulkan_device_open.
enum ree_status ree_vk_instance_init(struct ree_vk *vk, const char *which, bool validation,
                                     struct ree_error *err);
void ree_vk_instance_finish(struct ree_vk *vk);
// Fails with the first message of the validation layer since the last call, if there was one.
enum ree_status ree_vk_check_validation(struct ree_vk *vk, struct ree_error *err);
// Sets *err to "what: VK_ERROR_..." for the failed `result` and returns the matching status.
enum ree_status ree_vk_fail(struct ree_error *err, VkResult result, const char *what);
#define REE_VK_TRY(err, call, what)                                                                \
    do {                                                                                           \
        VkResult ree_vk_result_ = (call);                                                          \
        if (ree_vk_result_ != VK_SUCCESS) return ree_vk_fail((err), ree_vk_result_, (what));       \
    } while (0)

// abandon.c: from now on every submission and every wait fails with VK_ERROR_DEVICE_LOST, and no
// object of the device, nor its instance, is destroyed.
void ree_vk_abandon(struct ree_vk *vk);

// driver_trial.c: an unknown driver is first tried in a child process, so that a driver that
// crashes in the probe does not crash the caller.

// Returns whether the driver went through the probe without a crash, in this process or according
// to the record.
bool ree_vk_driver_is_known(const struct ree_vk *vk);
// Records that the driver went through the probe without a crash.
void ree_vk_note_known_driver(struct ree_vk *vk);
// Opens the device in a child process and closes it again. The caller must not have an open Vulkan
// instance. Fails with REE_DEVICE if the child crashes or does not return in time. Succeeds if the
// child cannot open the device: the caller sees that error when it opens the device itself. Also
// succeeds if no process can be created (a limit, a sandbox); the driver is then used without this
// test. name: the device's name, for messages. Calls `meanwhile` while the child is at work, at most
// once; it must not run code on the device.
enum ree_status ree_vk_try_driver(const char *which, const struct ree_device_options *options,
                                  const char *name, void (*meanwhile)(void *user), void *user,
                                  struct ree_error *err);

// device.c

// Opens a device without ree_vk_try_driver.
enum ree_status ree_vk_open(const char *which, const struct ree_device_options *options,
                            struct ree_device **out, struct ree_error *err);
// Opens a device that only compiles (compiler.h). It has no memory and no queue, and no probe runs,
// because null hardware supports none of them. The caller must not close the device, because
// drivers of null hardware crash then.
enum ree_status ree_vk_open_for_compiling(const char *which, struct ree_vk **out,
                                          struct ree_error *err);

// queue.c

// Fills vk->queue_family and vk->timestamp_mask. Requires vk->properties.
enum ree_status ree_vk_queue_choose(struct ree_vk *vk, struct ree_error *err);
// Returns the seconds from one of the queue's timestamps to another. They may have wrapped once.
double ree_vk_seconds_between(const struct ree_vk *vk, uint64_t from, uint64_t to);
// Submits a command buffer. Every successful call must be followed by ree_vk_queue_wait with the
// same fence.
enum ree_status ree_vk_queue_submit(struct ree_vk *vk, VkCommandBuffer commands, VkFence fence,
                                    struct ree_error *err);
// Waits without a time limit for the submission with this fence. Meanwhile calls `watch` (may be
// NULL) a few times a second.
enum ree_status ree_vk_queue_wait(struct ree_vk *vk, VkFence fence,
                                  void (*watch)(struct ree_vk *vk, void *user), void *user,
                                  struct ree_error *err);
// Submits a short command buffer and waits for it.
enum ree_status ree_vk_submit(struct ree_vk *vk, VkCommandBuffer commands, struct ree_error *err);

// facts.c

enum ree_status ree_vk_facts_init(struct ree_vk *vk, struct ree_error *err);
size_t ree_vk_facts(const struct ree_device *device, const struct ree_device_fact **out_facts);

// memory.c

enum ree_status ree_vk_memory_init(struct ree_vk *vk, struct ree_error *err);
void ree_vk_memory_finish(struct ree_vk *vk);
enum ree_status ree_vk_buffer_create(struct ree_device *device, uint64_t size,
                                     struct ree_device_buffer **out, struct ree_error *err);
// Creates a buffer in host-visible, coherent memory: for staging, and for the blocks of programs.
enum ree_status ree_vk_host_buffer_create(struct ree_vk *vk, uint64_t size,
                                          struct ree_device_buffer **out, struct ree_error *err);
void ree_vk_buffer_destroy(struct ree_device *device, struct ree_device_buffer *buffer);
enum ree_status ree_vk_buffer_write(struct ree_device *device, struct ree_device_buffer *buffer,
                                    uint64_t offset, const void *data, uint64_t size,
                                    struct ree_error *err);
enum ree_status ree_vk_buffer_read(struct ree_device *device, struct ree_device_buffer *buffer,
                                   uint64_t offset, void *data, uint64_t size,
                                   struct ree_error *err);
// For tests: from now on the device behaves as if its memory were not host-visible.
void ree_vk_force_staging(struct ree_vk *vk);

// identity.c

// Fills vk->identity, vk->tester and the paths of the files in the cache folder, and opens the
// record of self-tests. Requires the driver's properties. ree_vk_unidentify writes the record and
// frees the paths.
void ree_vk_identify(struct ree_vk *vk, const char *cache_dir);
void ree_vk_unidentify(struct ree_vk *vk);

// prepare.c

// Starts to create, on other threads, the pipelines that the program's dispatches use in the forms
// that ree_vk_first_forms returns. Starts nothing if there is one processor, or if the validation
// layer is on. The program must stay valid until ree_vk_pipelines_join.
void ree_vk_pipelines_prepare(struct ree_vk *vk, const struct ree_program *program);

// pipeline.c

enum ree_status ree_vk_pipelines_init(struct ree_vk *vk, struct ree_error *err);
// Writes the driver's cache to its file if pipelines were created since the last write, but at most
// once every few seconds. A process that is killed then loses only its last pipelines.
void ree_vk_pipelines_save(struct ree_vk *vk);
void ree_vk_pipelines_finish(struct ree_vk *vk); // writes the driver's cache if it grew
// Records commands that run exactly n_groups workgroups of a step, from number first_group on.
// block: device address of the dispatch's block.
void ree_vk_record_groups(const struct ree_vk *vk, VkCommandBuffer commands, VkPipeline pipeline,
                          uint64_t block, uint64_t first_group, uint64_t n_groups);
// Returns the pipeline of a step, from the device's cache or newly created. expr may be NULL. The
// pipeline lives as long as the device. Fails with REE_DEVICE if the driver cannot create it.
enum ree_status ree_vk_pipeline_get(struct ree_vk *vk, const struct ree_vk_step *step,
                                    const struct ree_expr *expr, struct ree_vk_pipeline **out,
                                    struct ree_error *err);
// Adds a pipeline that is to be created to *list, unless the device already has it or the list
// contains it. Returns whether it was added. The step is copied; expr must stay valid until the
// pipeline is created.
bool ree_vk_pipeline_plan(struct ree_vk *vk, const struct ree_vk_step *step,
                          const struct ree_expr *expr, struct ree_vk_cached_pipeline **list);
// Starts up to n_threads threads that create the pipelines of a list that ree_vk_pipeline_plan made.
// Takes ownership of the list. n_threads 0: only frees it. Meanwhile the calling thread may use the
// device, but not start other threads; ree_vk_pipeline_get waits for a pipeline that a thread has
// begun. ree_vk_pipelines_join must follow.
void ree_vk_pipelines_start(struct ree_vk *vk, struct ree_vk_cached_pipeline *list,
                            uint32_t n_threads);
// Waits until all threads have finished, and adds their pipelines to the device's. Skips those that
// could not be created: ree_vk_pipeline_get later reports their errors.
void ree_vk_pipelines_join(struct ree_vk *vk);
// Passes the SPIR-V of one of the device's pipelines to the sink, as the driver received it. Makes
// it again, because pipelines do not keep it.
enum ree_status ree_vk_pipeline_show(const struct ree_vk *vk, VkPipeline handle,
                                     const struct ree_kernel_sink *sink, struct ree_error *err);
// Returns whether two steps with the same expression share one pipeline.
bool ree_vk_same_pipeline(const struct ree_vk_step *a, const struct ree_vk_step *b);

// selftest.c

// Returns the forms in which a dispatch is tried first: those that the probe chose.
struct ree_vk_forms ree_vk_first_forms(const struct ree_vk *vk);
// Encodes a dispatch in the first of the device's forms whose pipelines all pass their self-tests.
// The last form uses only integers. If no twin reaches a pipeline, this form is used untested.
// Fails with REE_UNSUPPORTED and a description of the first wrong result if no form passes.
enum ree_status ree_vk_encode_tested(struct ree_vk *vk, const struct ree_dispatch *dispatch,
                                     struct ree_vk_encoding *out, struct ree_error *err);
// Finds the steps of an encoding whose pipelines no twin of the dispatch uses. *out_steps: bit s is
// set for such a step s. *out_weak: some steps are used only by twins that keep dimensions of size
// 1 or sums of one chunk. Makes no driver calls; uses only the fields of *vk that ree_vk_encode
// uses.
enum ree_status ree_vk_find_unreached(struct ree_vk *vk, const struct ree_dispatch *dispatch,
                                      const struct ree_vk_encoding *encoding, bool *out_weak,
                                      uint32_t *out_steps, struct ree_error *err);
// Adds the fact that counts the pipelines that passed. A pipeline that fails adds a fact of its own
// when it fails.
void ree_vk_selftest_facts(struct ree_vk *vk);
// Sets the state of a new pipeline to its result in the record of self-tests, if there is one.
void ree_vk_take_record(struct ree_vk *vk, struct ree_vk_pipeline *pipeline);
// Sets the state of a pipeline that the driver failed to create to FAILED, and adds a fact with the
// reason `why`.
void ree_vk_reject_pipeline(struct ree_vk *vk, struct ree_vk_pipeline *pipeline, const char *why);

// probe.c

// Tests every form of every primitive that could be chosen, and fills vk->verdicts. Fails with
// REE_UNSUPPORTED if no form of a primitive is correct.
enum ree_status ree_vk_probe(struct ree_vk *vk, const struct ree_device_options *options,
                             struct ree_error *err);
// Runs `step` over n vectors, 64 per workgroup, and waits. block: host-visible memory with the
// operands' addresses and parameters for the shader.
enum ree_status ree_vk_run_vectors(struct ree_vk *vk, const struct ree_vk_step *step,
                                   const struct ree_device_buffer *block, uint32_t n,
                                   struct ree_error *err);
const char *ree_vk_form_name(enum ree_vk_form form);
const char *ree_vk_primitive_name(enum ree_vk_primitive primitive);

// probe_record.c

// Reads the results of an earlier probe of this driver by this build of ree. Returns false if there
// are none.
bool ree_vk_probe_recall(struct ree_vk *vk);
// Writes the probe's results for later starts. Ignores failures.
void ree_vk_probe_keep(const struct ree_vk *vk);

// observe.c

// Measures after how many iterations the driver ends a loop, and sets vk->loop_budget.
enum ree_status ree_vk_count_loops(struct ree_vk *vk, struct ree_error *err);
// Counts wrong results of the functions of enum ree_vk_observed, and fills vk->observations, unless
// they are filled.
enum ree_status ree_vk_observe(struct ree_vk *vk, struct ree_error *err);
bool ree_vk_has_observed(const struct ree_vk *vk);
const char *ree_vk_observed_name(enum ree_vk_observed function);

// program.c

enum ree_status ree_vk_program_create(struct ree_device *device, const struct ree_program *program,
                                      struct ree_device_buffer *const *constants,
                                      uint64_t *copies_capacity, struct ree_device_program **out,
                                      struct ree_error *err);
// Creates a program from encodings, one per dispatch. halves: launch each step in two pieces, so
// that both ways to number its groups are tested.
enum ree_status ree_vk_program_assemble(struct ree_vk *vk, const struct ree_program *program,
                                        const struct ree_vk_encoding *encodings, bool halves,
                                        struct ree_device_program **out, struct ree_error *err);
void ree_vk_program_destroy(struct ree_device *device, struct ree_device_program *program);
enum ree_status ree_vk_program_run(struct ree_device *device, struct ree_device_program *program,
                                   struct ree_device_buffer *const *slots,
                                   const struct ree_program_run *options, struct ree_error *err);
bool ree_vk_program_times(struct ree_device *device, struct ree_device_program *program,
                          double *out_seconds);
enum ree_status ree_vk_program_kernels(struct ree_device *device,
                                       const struct ree_device_program *program,
                                       const struct ree_kernel_sink *sink, struct ree_error *err);

#endif
