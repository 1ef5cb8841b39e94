// A device that forwards to another device and refuses programs and buffers beyond a budget, so
// that a fuzz target can run any model in a short time.
#ifndef REE_TESTS_FUZZ_BUDGET_DEVICE_H
#define REE_TESTS_FUZZ_BUDGET_DEVICE_H

#include "device/device.h"

struct budget_device {
    struct ree_device base;
    struct ree_device *inner; // owned
    uint64_t left;            // work units that programs may still use; see dispatch_work
    uint64_t bytes_left;      // bytes that buffers may still use
    bool exceeded;            // a program or buffer was refused
};

// Opens the CPU device with these options, with an empty budget. Ends the process on failure.
void budget_device_open(struct budget_device *device, const struct ree_device_options *options);
void budget_device_refill(struct budget_device *device, uint64_t work, uint64_t nbytes);

#endif
