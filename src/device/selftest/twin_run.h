// Runs a twin on a device of any backend and compares the results.
#ifndef REE_DEVICE_SELFTEST_TWIN_RUN_H
#define REE_DEVICE_SELFTEST_TWIN_RUN_H

#include "device/device.h"
#include "device/selftest/twin.h"

#define REE_TWIN_TEXT_SIZE 512

// Runs `program`, which the device created from the twin's dispatch only, once per round with that
// round's contents. *out_text describes the first round with wrong results; "" if all are right. An
// error comes from the device or from the CPU's reference and says nothing about the twin's result.
enum ree_status ree_twin_run(struct ree_device *device, struct ree_twin *twin,
                             struct ree_device_program *program, char out_text[REE_TWIN_TEXT_SIZE],
                             struct ree_error *err);

#endif
