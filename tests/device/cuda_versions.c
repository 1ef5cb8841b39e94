// Which devices and drivers can run the kernels of a build, and what a user is told otherwise.
#include "device/cuda/cuda.h"
#include "device/cuda/versions.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

// message: part of the expected error; NULL: the kernels can run.
static void check(const struct ree_cuda_build *build, uint32_t capability, int driver,
                  const char *message) {
    struct ree_error err = {.message = ""};
    const enum ree_status status = ree_cuda_check_versions(build, capability, driver, &err);
    CHECK_MSG(status == (message ? REE_UNAVAILABLE : REE_OK) &&
                  (!message || strstr(err.message, message)),
              "capability %u, driver %d: %s", capability, driver,
              status == REE_OK ? "accepted" : err.message);
}

// Without nvcc, the images are PTX texts. Each must declare the target that ree_cuda_build states,
// and the PTX version whose oldest driver is ree_cuda_build.driver.
static void check_stored(void) {
    for (int m = 0; m < REE_CUDA_N_MODULES; m++) {
        const struct ree_cuda_image *image = &ree_cuda_images[m];
        const char *version = strstr(image->data, "\n.version "),
                   *target = strstr(image->data, "\n.target ");
        unsigned major = 0, minor = 0, capability = 0;
        CHECK(*image->end == 0); // the driver reads up to the NUL byte
        CHECK(version && sscanf(version, "\n.version %u.%u", &major, &minor) == 2);
        CHECK(target && sscanf(target, "\n.target sm_%u", &capability) == 1);
        CHECK_MSG((major + 4) * 1000 + minor * 10 == ree_cuda_build.driver, "%s: PTX %u.%u",
                  image->name, major, minor);
        CHECK_MSG(capability == ree_cuda_build.ptx[0], "%s: sm_%u", image->name, capability);
    }
    CHECK(!ree_cuda_has_binary(&ree_cuda_build, 80));
}

int main(void) {
    const unsigned binaries[] = {75, 80, 86, 90, 100, 120, 0}, ptx[] = {80, 120, 0};
    const struct ree_cuda_build build = {13000, 13000, false, binaries, ptx};
    const char *old = "requires a driver for CUDA 13.0 or later, and this driver is for CUDA 12.8";
    // Machine code runs on the same major capability. The driver's version is not checked: an older
    // driver reports itself if it cannot load the code.
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

    // Built without nvcc: PTX only, which an older driver than the toolkit compiles.
    const unsigned none[] = {0}, ptx_80[] = {80, 0};
    const struct ree_cuda_build stored = {13000, 11070, true, none, ptx_80};
    check(&stored, 80, 11070, NULL);
    check(&stored, 121, 12020, NULL);
    check(&stored, 80, 11060,
          "built without nvcc; the PTX that it has instead of machine code requires a driver for "
          "CUDA 11.7 or later, and this driver is for CUDA 11.6");
    check(&stored, 75, 13000,
          "no kernels for compute capability 7.5; it has no machine code and "
          "PTX for 8.0 and later. Build ree with nvcc");

    // This build: every device from 8.0 on has a form.
    if (ree_cuda_build.toolkit == 0) return test_finish(); // REE_CUDA=OFF
    CHECK((int)ree_cuda_build.driver >= REE_CUDA_DRIVER_VERSION);
    CHECK(ree_cuda_build.driver <= ree_cuda_build.toolkit);
    for (uint32_t capability = 80; capability <= 200; capability++)
        check(&ree_cuda_build, capability, (int)ree_cuda_build.driver, NULL);
    if (ree_cuda_build.stored) check_stored();
    return test_finish();
}
