// Runs a twin on a device of any backend and compares the results.
#ifndef REE_DEVICE_SELFTEST_TWIN_RUN_H
#define REE_DEVICE_SELFTEST_TWIN_RUN_H

#include "device/device.h"
#include "device/selftest/twin.h"

#define REE_TWIN_TEXT_SIZE 512

// Runs `program`, whose only dispatch is the twin's, once per round with that round's contents.
// out_text receives a description of the first wrong result, or "" if all results are right. The
// call fails if the device or the CPU's reference fails; that says nothing about the results.
enum ree_status ree_twin_run(struct ree_device *device, struct ree_twin *twin,
                             struct ree_device_program *program, char out_text[REE_TWIN_TEXT_SIZE],
                             struct ree_error *err);

#endif
