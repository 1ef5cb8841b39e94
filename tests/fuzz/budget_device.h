// A device in front of another that refuses programs and buffers beyond a budget, so that a fuzz
// target can run any model in a short time. What it passes on, the other device does.
#ifndef REE_TESTS_FUZZ_BUDGET_DEVICE_H
#define REE_TESTS_FUZZ_BUDGET_DEVICE_H

#include "device/device.h"

struct budget_device {
    struct ree_device base;
    struct ree_device *inner; // owned
    uint64_t left;            // units of work (program_work) that programs may still take
    uint64_t bytes_left;      // of buffers
    bool exceeded;            // something was refused
};

// Opens the CPU device with these options. Ends the process where that fails.
void budget_device_open(struct budget_device *device, const struct ree_device_options *options);
void budget_device_refill(struct budget_device *device, uint64_t work, uint64_t nbytes);

#endif
