// Plans for devices with a memory limit. A device holds the weights of one stage at a time (the
// stage that runs), the caches of all its stages all the time, and intermediate results in the
// remaining memory. PLANNING.md, "Devices with a limit".
#ifndef REE_GRAPH_PARTITION_FIT_H
#define REE_GRAPH_PARTITION_FIT_H

#include "graph/partition/partition.h"

// The devices that run the stages. Each process has n_devices devices and the stages that
// ree_partition_share gives it. Stage i of the plan runs on device i modulo n_devices of its
// process.
struct ree_partition_devices {
    size_t n_devices;     // devices of each process; 0 means 1
    uint32_t n_ranks;     // processes; 0 means 1
    size_t n_cache_slots; // cache slots, each with the kv caches of one sequence; 0 means 1
    uint64_t max_memory;  // capacity of each device in bytes
};

// Computes the stages that process `rank` runs: *out_n stages from *out_first on. The stages are
// distributed as evenly as possible; the first processes have one more than the others.
void ree_partition_share(size_t n_stages, uint32_t n_ranks, uint32_t rank, size_t *out_first,
                         size_t *out_n);

// Makes a plan whose stages fit on the devices. It has options->n_stages stages or, if that is 0,
// as few as necessary but at least `least`. Ignores options->weight_limits. Fails with REE_INVALID
// if no plan fits; the message names a limit that would suffice (for one device, the smallest one).
enum ree_status ree_partition_fit(const struct ree_graph *graph,
                                  const struct ree_partition_options *options,
                                  const struct ree_partition_devices *devices, size_t least,
                                  struct ree_partition *out, struct ree_error *err);
// Checks whether the stages of a plan, made in another way, fit on the devices. Fails with
// REE_INVALID if not; the message names the smallest limit that would suffice.
enum ree_status ree_partition_check_fit(const struct ree_partition *partition,
                                        const struct ree_partition_devices *devices,
                                        struct ree_error *err);

#endif
