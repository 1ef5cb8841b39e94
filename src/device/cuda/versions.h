// Which drivers and devices the kernels of a build require.
//
// A kernel's machine code runs on devices of its major compute capability whose minor one is at
// least its own, but on Tegra only if both are the same ("CUDA C++ Programming Guide", binary
// compatibility). Its PTX runs on every later device, but the driver must compile it, and a driver
// compiles only PTX that declares a PTX ISA which is not newer than the driver. nvcc's PTX declares
// the ISA of nvcc's toolkit, the stored PTX an older one (cuda/ptx/README.md).
#ifndef REE_DEVICE_CUDA_VERSIONS_H
#define REE_DEVICE_CUDA_VERSIONS_H

#include <stdint.h>

#include "base/status.h"
#include "kernels.h"

// Returns whether the build has machine code for the capability (80: 8.0).
bool ree_cuda_has_binary(const struct ree_cuda_build *build, uint32_t capability);
// Fails with REE_UNAVAILABLE if no kernel of the build can run on the device with this driver; the
// message says what to install. driver: as cuDriverGetVersion returns it (12040: CUDA 12.4).
enum ree_status ree_cuda_check_versions(const struct ree_cuda_build *build, uint32_t capability,
                                        int driver, struct ree_error *err);

#endif
