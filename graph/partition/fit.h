// Plans for devices that hold so many bytes: their stages' weights while they run, the caches of
// all their stages the whole time, and what is left for intermediate results. PLANNING.md, "Devices
// with a limit".
#ifndef REE_GRAPH_PARTITION_FIT_H
#define REE_GRAPH_PARTITION_FIT_H

#include "graph/partition/partition.h"

// Where stages run. Of several processes each has so many devices, and stages as
// ree_partition_share says; stage i is on device i modulo n_devices of its process.
struct ree_partition_devices {
    size_t n_devices;    // 0: 1
    uint32_t n_ranks;    // processes; 0: 1
    size_t n_sets;       // of caches, each of one sequence; 0: 1
    uint64_t max_memory; // bytes that each device may hold
};

// Which stages a process has: as even as can be, in order; the first processes have one more.
void ree_partition_share(size_t n_stages, uint32_t n_ranks, uint32_t rank, size_t *out_first,
                         size_t *out_n);

// Plans with options->n_stages or, where that is 0, with as few as needed, at least `least`;
// options->weight_limits is not looked at. Fails with REE_INVALID where no plan fits, naming a
// limit that would do: of one device the smallest.
enum ree_status ree_partition_fit(const struct ree_graph *graph,
                                  const struct ree_partition_options *options,
                                  const struct ree_partition_devices *devices, size_t least,
                                  struct ree_partition *out, struct ree_error *err);
// Fails with REE_INVALID where a plan that was made otherwise does not fit, naming the smallest
// limit with which it would.
enum ree_status ree_partition_check_fit(const struct ree_partition *partition,
                                        const struct ree_partition_devices *devices,
                                        struct ree_error *err);

#endif
