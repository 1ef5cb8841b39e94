#include "device/cuda/versions.h"

#include <stdio.h>

static bool is_tegra(uint32_t capability) {
    return capability == 72 || capability == 87 || capability == 88 || capability == 101 ||
           capability == 110;
}

bool ree_cuda_has_binary(const struct ree_cuda_build *build, uint32_t capability) {
    for (const unsigned *b = build->binaries; *b; b++)
        if (is_tegra(capability) || is_tegra(*b) ? *b == capability
                                                 : *b / 10 == capability / 10 && *b <= capability)
            return true;
    return false;
}

static bool has_ptx(const struct ree_cuda_build *build, uint32_t capability) {
    for (const unsigned *p = build->ptx; *p; p++)
        if (*p <= capability) return true;
    return false;
}

// Formats "7.5, 8.0".
static void list(const unsigned *capabilities, char *out, size_t size) {
    size_t n = 0;
    out[0] = 0;
    for (const unsigned *c = capabilities; *c && n < size; c++)
        n += (size_t)snprintf(out + n, size - n, "%s%u.%u", n ? ", " : "", *c / 10, *c % 10);
}

enum ree_status ree_cuda_check_versions(const struct ree_cuda_build *build, uint32_t capability,
                                        int driver, struct ree_error *err) {
    char binaries[128], ptx[64];
    const int oldest = (int)build->driver;
    if (ree_cuda_has_binary(build, capability)) return REE_OK;
    list(build->binaries, binaries, sizeof binaries);
    list(build->ptx, ptx, sizeof ptx);
    if (!has_ptx(build, capability))
        return ree_fail(err, REE_UNAVAILABLE,
                        "CUDA: this ree has no kernels for compute capability %u.%u; it has "
                        "%s%s and PTX for %s and later%s",
                        capability / 10, capability % 10,
                        *binaries ? "machine code for " : "no machine code", binaries, ptx,
                        build->stored ? ". Build ree with nvcc of the CUDA toolkit" : "");
    if (driver >= oldest) return REE_OK;
    if (build->stored)
        return ree_fail(err, REE_UNAVAILABLE,
                        "CUDA: this ree was built without nvcc; the PTX that it has instead of "
                        "machine code requires a driver for CUDA %d.%d or later, and this driver "
                        "is for CUDA %d.%d. Update the driver, or build ree with nvcc",
                        oldest / 1000, oldest % 1000 / 10, driver / 1000, driver % 1000 / 10);
    return ree_fail(
        err, REE_UNAVAILABLE,
        "CUDA: this ree has machine code for compute capability %s, but the device has %u.%u; its "
        "PTX requires a driver for CUDA %d.%d or later, and this driver is for CUDA %d.%d. Update "
        "the driver, or build ree with -DREE_CUDA_ARCHITECTURES=%u or an older toolkit",
        binaries, capability / 10, capability % 10, oldest / 1000, oldest % 1000 / 10,
        driver / 1000, driver % 1000 / 10, capability);
}
