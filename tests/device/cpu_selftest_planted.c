// Kernels miscompiled on purpose: this program has its own versions of the vector kernels of reduce
// (planted_reduce_*.c), which round twice instead of once. The self-test detects them, the next
// instruction set replaces them, and the bits are correct.
#include "cases.h"
#include "device/cpu/selftest.h"
#include "device/device.h"
#include "device_cases.h"

int main(void) {
    struct ree_device_options options = {.size = sizeof options, .cache_dir = ""};
    struct ree_device *device;
    struct ree_error err;
    if (!ree_cpu_isa_available(REE_CPU_AVX2))
        return test_skip("no planted kernel is for this processor");
    REQUIRE(ree_cpu_device_open(&options, &device, &err) == REE_OK);
    CHECK_MSG(strstr(device->name, "portable"), "%s was chosen", device->name);
    const struct ree_device_fact *facts;
    size_t n = device->vtable->facts(device, &facts), n_failed = 0;
    for (size_t i = 0; i < n; i++)
        if (strcmp(facts[i].kind, "self-test") == 0 && strcmp(facts[i].name, "failed") == 0) {
            CHECK_MSG(strstr(facts[i].value, "reduce") && !strstr(facts[i].value, "softmax"), "%s",
                      facts[i].value);
            n_failed++;
        }
    CHECK(n_failed == 1u + ree_cpu_isa_available(REE_CPU_AVX512));
    device->vtable->destroy(device);
    // Requested by name, the faulty instruction set is refused.
    options.cpu_isa = "avx2";
    CHECK(ree_cpu_device_open(&options, &device, &err) == REE_UNSUPPORTED && !device);
    CHECK_MSG(strstr(err.message, "avx2") && strstr(err.message, "reduce"), "%s", err.message);
    // Execution without a device is correct as well: a sum of squares whose squares are not exact.
    float x[512], expected = 0, sum = -1;
    for (int i = 0; i < 512; i++)
        x[i] = 1.0f / (float)(i + 3);
    for (int c = 0; c < 2; c++) {
        float acc = 0;
        for (int i = 0; i < 256; i++)
            acc = __builtin_fmaf(x[256 * c + i], x[256 * c + i], acc);
        expected = c == 0 ? acc : expected + acc;
    }
    struct ree_dispatch d = {.op = REE_REPOP_REDUCE, .n_operands = 2, .n_outputs = 1};
    d.params.reduce = (struct ree_reduce_params){.kind = REE_REDUCE_SUM_SQ,
                                                 .dtype = REE_F32,
                                                 .n_outer = 1,
                                                 .n_reduce = 512,
                                                 .outer_rank = 1,
                                                 .reduce_rank = 1,
                                                 .outer_dims = {1},
                                                 .reduce_dims = {512},
                                                 .reduce_strides = {1}};
    void *operands[] = {x, &sum};
    CHECK(ree_cpu_execute(&d, operands, &err) == REE_OK);
    CHECK_MSG(memcmp(&sum, &expected, 4) == 0, "%a, expected %a", (double)sum, (double)expected);
    return test_finish();
}
