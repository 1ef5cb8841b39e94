// Runs a twin on a device, whatever its backend is, and compares.
#ifndef REE_DEVICE_SELFTEST_TWIN_RUN_H
#define REE_DEVICE_SELFTEST_TWIN_RUN_H

#include "device/device.h"
#include "device/selftest/twin.h"

#define REE_TWIN_TEXT_SIZE 512

// Runs `program`, which the device made of the twin alone, with the contents of all rounds.
// *out_text: what is wrong with the first wrong round, "" if nothing is. An error is one of the
// device or of the CPU's reference: nothing is known of the twin then.
enum ree_status ree_twin_run(struct ree_device *device, struct ree_twin *twin,
                             struct ree_device_program *program, char out_text[REE_TWIN_TEXT_SIZE],
                             struct ree_error *err);

#endif
