// A device that forwards to another device and refuses programs and buffers beyond a budget, so
// that a fuzz target can run any model in a short time.
#ifndef REE_TESTS_FUZZ_BUDGET_DEVICE_H
#define REE_TESTS_FUZZ_BUDGET_DEVICE_H

#include "device/device.h"

struct budget_device {
    struct ree_device base;
    struct ree_device *inner; // owned
    uint64_t left;       // work that new programs may still need: elements visited, multiply-adds
    uint64_t bytes_left; // bytes that new buffers may still have; destroyed ones give none back
    bool exceeded;       // a program or buffer was refused since the last refill
};

// Opens the CPU device with these options. The budget is empty until budget_device_refill sets it.
// Ends the process on failure.
void budget_device_open(struct budget_device *device, const struct ree_device_options *options);
void budget_device_refill(struct budget_device *device, uint64_t work, uint64_t nbytes);

#endif
