// Every RepOp on the first CUDA device gives the CPU's bytes for random cases, and touches nothing
// else. Without a GPU the kernels run on the emulator (tests/cuda), which $REE_CUDA_DRIVER names.
//
// Usage: cuda_matches_cpu [N [OP]]: N cases of each RepOp, or of OP alone.
#include "device_cases.h"

int main(int argc, char **argv) {
    uint32_t n = argc > 1 ? (uint32_t)atoi(argv[1]) : 60;
    struct ree_device_options options = {0};
    struct ree_device *device;
    struct ree_error err;
    enum ree_status status = ree_cuda_device_open("", &options, &device, &err);
    if (status == REE_UNAVAILABLE) return test_skip(err.message);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    if (status != REE_OK) return test_finish();
    compare_cases(device, "cuda", n, argc > 2 ? argv[2] : NULL);
    ree_device_destroy(device);
    return test_finish();
}
