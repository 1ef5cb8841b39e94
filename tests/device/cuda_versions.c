// Which devices and drivers can run the kernels of a build, and what a user is told otherwise.
#include "device/cuda/driver.h"
#include "device/cuda/versions.h"
#include "test.h"

#include <string.h>

// The expected message; NULL: the kernels can run.
static void check(const struct ree_cuda_build *build, uint32_t capability, int driver,
                  const char *message) {
    struct ree_error err = {.message = ""};
    const enum ree_status status = ree_cuda_check_versions(build, capability, driver, &err);
    CHECK_MSG(status == (message ? REE_UNAVAILABLE : REE_OK) &&
                  (!message || strstr(err.message, message)),
              "capability %u, driver %d: %s", capability, driver,
              status == REE_OK ? "accepted" : err.message);
}

int main(void) {
    const unsigned binaries[] = {75, 80, 86, 90, 100, 120, 0}, ptx[] = {80, 120, 0};
    const struct ree_cuda_build build = {13000, binaries, ptx};
    const char *old = "requires a driver for CUDA 13.0 or later, and this driver is for CUDA 12.8";
    // Machine code: the same major capability. Whether an older driver loads it, it says itself.
    check(&build, 80, 13000, NULL);
    check(&build, 89, 12080, NULL);
    check(&build, 103, 12080, NULL);
    check(&build, 121, 12080, NULL);
    // PTX: any later capability, but the driver must be as new as the toolkit.
    check(&build, 110, 13000, NULL);
    check(&build, 110, 14010, NULL);
    check(&build, 110, 12080, old);
    check(&build, 87, 13000, NULL);
    check(&build, 87, 12080, old); // Tegra does not run the machine code of 8.6
    check(&build, 130, 13020, NULL);
    check(&build, 130, 12080, old);
    check(&build, 61, 13000,
          "no kernels for compute capability 6.1; it has machine code for 7.5, ");
    check(&build, 70, 13000, "no kernels for compute capability 7.0");
    check(&build, 72, 13000, "no kernels for compute capability 7.2");
    CHECK(ree_cuda_has_binary(&build, 89) && !ree_cuda_has_binary(&build, 110));

    // This build: every device from 8.0 on has a form.
    if (ree_cuda_build.toolkit == 0) return test_finish(); // built without nvcc
    CHECK((int)ree_cuda_build.toolkit >= REE_CUDA_DRIVER_VERSION);
    for (uint32_t capability = 80; capability <= 200; capability++)
        check(&ree_cuda_build, capability, (int)ree_cuda_build.toolkit, NULL);
    return test_finish();
}
