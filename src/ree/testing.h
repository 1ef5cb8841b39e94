// Settings for tests of ree: planted faults, and forms of primitives that a device would not
// choose. ree.h does not include this header.
#ifndef REE_TESTING_H
#define REE_TESTING_H

#include "device.h"
#include "session.h"

#ifdef __cplusplus
extern "C" {
#endif

// Test settings of a device: ree_device_options.testing.
struct ree_device_testing {
    size_t size; // sizeof(struct ree_device_testing)
    // Vulkan and CUDA: name of a primitive ("fma", "div", "add", ...; on Vulkan also an integer
    // form, "integer fma") that computes wrong results, which the probe must then detect. NULL:
    // off. On Vulkan, "driver", "driver exit" and "driver hang" make the trial of the driver in a
    // child process fail: the child crashes, exits or hangs.
    const char *break_primitive;
    // Vulkan: use this form for the primitives instead of the probe's choice: "native", "float64",
    // "float32" or "integer"; NULL: the probe decides. Opening the device fails if the probe found
    // the form wrong.
    const char *force_form;
    // Vulkan: run the probe even if the cache folder has its results.
    bool probes_again;
};

// Test settings of a rank: ree_transport_open_options.testing and ree_ranks_options.testing
// (ranks.h).
struct ree_ranks_testing {
    size_t size; // sizeof(struct ree_ranks_testing)
    // 1-based index of the data message that this rank corrupts before sending; 0: none.
    uint64_t corrupt;
    // Maximum bytes of an MPI message; must be equal on all ranks. Longer frames are split. 0:
    // 1 GiB, because MPI counts bytes with an int.
    uint64_t message_piece;
    // Numerics version that this rank states instead of ree_numerics_version; NULL: the real one.
    const char *numerics;
};

// A bit of one output of a node, flipped in one run before later nodes read the output, as a
// failing device would. This struct does not change between versions.
struct ree_fault {
    // Index of the node in the model's graph after the passes; index of the output among the node's
    // outputs.
    size_t node, output;
    // Index of the bit in the dense tensor, modulo the tensor's size in bits. It is bit number
    // bit % 8, counted from the lowest, of byte bit / 8.
    uint64_t bit;
    uint64_t run; // number of runs before the affected run; 0: the next run
};

// Injects the fault into one run; replaces a fault that is still pending. Fails with REE_INVALID if
// the graph has no such output. The affected run fails with REE_UNSUPPORTED if the output is empty,
// holds strings, is not a tensor, is computed while binding, or is kept as a kv cache.
REE_API enum ree_status ree_session_inject(struct ree_session *session,
                                           const struct ree_fault *fault, struct ree_error *err);

#ifdef __cplusplus
}
#endif
#endif
