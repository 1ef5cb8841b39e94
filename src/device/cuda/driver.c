// Loads the CUDA driver.
#include "device/cuda/driver.h"

#include "base/float_env.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define DRIVER_LIBRARY "libcuda.so.1"

// The name of each symbol, and the field that its address goes to.
#define SYMBOL(name, symbol, parameters) {#symbol, offsetof(struct ree_cuda_driver, name)},
static const struct {
    const char *name;
    size_t offset;
} symbols[] = {REE_CUDA_DRIVER(SYMBOL)};

static enum ree_status load(struct ree_cuda_driver *driver, const char *path,
                            struct ree_error *err) {
    // RTLD_NODELETE: the driver has threads and thread-local memory that outlive dlclose.
    driver->library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!driver->library) return ree_fail(err, REE_UNAVAILABLE, "CUDA: no driver: %s", dlerror());
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *symbol = dlsym(driver->library, symbols[i].name);
        if (!symbol)
            return ree_fail(err, REE_UNAVAILABLE,
                            "CUDA: %s has no %s; a driver for CUDA %d.%d or later is required",
                            path, symbols[i].name, REE_CUDA_DRIVER_VERSION / 1000,
                            REE_CUDA_DRIVER_VERSION % 1000 / 10);
        memcpy((char *)driver + symbols[i].offset, &symbol, sizeof symbol);
    }
    int (*has_kernels)(void);
    void *symbol = dlsym(driver->library, "ree_emulator_has_kernels");
    memcpy(&has_kernels, &symbol, sizeof symbol);
    driver->emulated = symbol != NULL;
    driver->has_kernels = symbol && has_kernels();
    return REE_OK;
}

enum ree_status ree_cuda_driver_open(struct ree_cuda_driver *driver, struct ree_error *err) {
    const char *path = getenv("REE_CUDA_DRIVER");
    memset(driver, 0, sizeof *driver);
    enum ree_status status = load(driver, path && *path ? path : DRIVER_LIBRARY, err);
    int n_devices = 0;
    if (status == REE_OK) {
        CUresult result = driver->init(0);
        if (result == CUDA_SUCCESS) result = driver->driver_version(&driver->version);
        if (result == CUDA_SUCCESS) result = driver->device_count(&n_devices);
        if (result == CUDA_SUCCESS && n_devices == 0) result = CUDA_ERROR_NO_DEVICE;
        if (result != CUDA_SUCCESS) {
            ree_cuda_fail(driver, err, result, "no device");
            if (err) err->status = REE_UNAVAILABLE;
            status = REE_UNAVAILABLE;
        }
    }
    ree_float_env_set(); // the driver's libraries may have changed it
    if (status != REE_OK) ree_cuda_driver_close(driver);
    return status;
}

void ree_cuda_driver_close(struct ree_cuda_driver *driver) {
    if (driver->library) dlclose(driver->library);
    memset(driver, 0, sizeof *driver);
}

#undef ree_cuda_fail // the header wraps it for clang's analyzer
enum ree_status ree_cuda_fail(const struct ree_cuda_driver *driver, struct ree_error *err,
                              CUresult result, const char *what) {
    const char *name = "an unknown error", *text = "";
    if (driver->error_name) driver->error_name(result, &name);
    if (driver->error_string) driver->error_string(result, &text);
    enum ree_status status = result == CUDA_ERROR_OUT_OF_MEMORY ? REE_NO_MEMORY : REE_DEVICE;
    ree_fail_message(err, status, "CUDA: %s: %s (%s)", what, name ? name : "an unknown error",
                     text ? text : "");
    return status;
}
