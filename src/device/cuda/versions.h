// Decides whether the kernels of a build can run on a device with its driver.
//
// Machine code for compute capability X.Y runs on devices of capability X.Z with Z >= Y, but on
// Tegra only if Z = Y ("CUDA C++ Programming Guide", binary compatibility). PTX runs on every later
// device, but the driver must compile it, and a driver rejects PTX that declares a newer PTX ISA
// than the driver knows. PTX from nvcc declares the ISA of nvcc's toolkit; the PTX that is stored
// in the source tree declares an older one (cuda/ptx/README.md).
#ifndef REE_DEVICE_CUDA_VERSIONS_H
#define REE_DEVICE_CUDA_VERSIONS_H

#include <stdint.h>

#include "base/status.h"
#include "kernels.h"

// Returns whether the build has machine code that runs on a device of this compute capability (80:
// 8.0).
bool ree_cuda_has_binary(const struct ree_cuda_build *build, uint32_t capability);
// Fails with REE_UNAVAILABLE if no kernel of the build can run on a device of this compute
// capability with this driver; the message says what to install. driver: as cuDriverGetVersion
// returns it (12040: CUDA 12.4).
enum ree_status ree_cuda_check_versions(const struct ree_cuda_build *build, uint32_t capability,
                                        int driver, struct ree_error *err);

#endif
