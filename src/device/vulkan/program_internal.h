// A program of the Vulkan backend, shared by the files that create, record and run it.
//
//     dispatches   0       1               2
//     launches     0       1       2       3          one for each step that has groups
//     segments     0       0       0  1    1          command buffers, submitted one by one
//
// A segment is about as long as vk->submission_seconds. A launch that is longer is cut between two
// of its groups.
#ifndef REE_DEVICE_VULKAN_PROGRAM_INTERNAL_H
#define REE_DEVICE_VULKAN_PROGRAM_INTERNAL_H

#include "device/program_info.h"
#include "device/vulkan/encode.h"
#include "device/vulkan/vulkan.h"

// Report of the first index out of range that a shader found in a run. It precedes the dispatches'
// blocks in memory.
struct ree_vk_fault {
    uint32_t dispatch;  // index of the dispatch plus 1; 0: no fault
    uint32_t low, high; // low and high 32 bits of the index that is out of range
    uint32_t unused[13];
};
_Static_assert(sizeof(struct ree_vk_fault) == 64, "blocks are aligned to 64 bytes");

struct ree_vk_launch {
    VkPipeline pipeline;
    uint64_t n_groups;
    double work;       // predicted seconds at pace 1 (pace.c)
    uint32_t dispatch; // index of the dispatch in the program
    bool barrier;      // must wait for earlier launches: reads or overwrites their results
};

// A position in a program, between two workgroups.
struct ree_vk_cursor {
    uint32_t launch;
    uint64_t group;
    uint32_t n_dispatches; // number of dispatches that are complete before this place
};

struct ree_vk_segment {
    VkCommandBuffer commands;
    struct ree_vk_cursor begin, end;
    double work; // predicted seconds at pace 1 (pace.c)
};

struct ree_device_program {
    struct ree_program_info info;
    // [n_dispatches]: where in `blocks` each dispatch's block begins, in bytes. A block has the
    // operands' addresses and the parameters.
    uint64_t *block_offsets;
    uint64_t *bound; // [n_slots]: device addresses of the slots' buffers in the last run
    bool is_bound;
    // Mapped memory in which the host writes the dispatches' blocks.
    struct ree_device_buffer *blocks_host;
    // Memory from which the device reads the blocks; equals blocks_host if vk->unified.
    struct ree_device_buffer *blocks;
    struct ree_device_buffer *scratch; // NULL if not required
    struct ree_vk_launch *launches;    // [n_launches]
    uint32_t n_launches;
    struct ree_vk_segment *segments; // [n_segments]; fewer than needed if recording failed
    uint32_t n_segments, segments_capacity;
    double pace;         // vk->pace when the program was divided into segments
    bool halves;         // launch each step in two pieces (selftest.c)
    VkQueryPool queries; // n_dispatches + 1 timestamps; null if unsupported
    bool is_timed;       // the last run wrote all timestamps
};

// pace.c

// Predicts how many seconds each step of an encoding takes at pace 1, which is that of a slow
// device of the same type. vk->pace times this number is the expected time.
void ree_vk_work_of(const struct ree_vk *vk, const struct ree_dispatch *dispatch,
                    const struct ree_vk_encoding *encoding, double out_work[REE_VK_MAX_STEPS]);
// Corrects vk->pace after a submission took `seconds`, for which `work` seconds were predicted.
void ree_vk_pace_note(struct ree_vk *vk, double work, double seconds);

// record.c

// Makes the launches of a program. Creates pipelines that do not exist yet.
enum ree_status ree_vk_launches_init(struct ree_vk *vk, struct ree_device_program *program,
                                     const struct ree_program *source,
                                     const struct ree_vk_encoding *encodings,
                                     struct ree_error *err);
// Records the segments again, from segment `first` on, for the device's present pace. The device
// must not be executing them. On failure the program has no segments from `first` on.
enum ree_status ree_vk_program_cut(struct ree_vk *vk, struct ree_device_program *program,
                                   uint32_t first, struct ree_error *err);
// Frees the command buffers from segment `first` on.
void ree_vk_program_discard(struct ree_vk *vk, struct ree_device_program *program, uint32_t first);

#endif
