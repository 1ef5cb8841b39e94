// Rows whose tile, together with the kernel's own shared arrays, crosses a limit of shared memory:
// the 48 KiB that a launch may have without an opt-in, and the longest tile. A driver refuses a
// launch above its limit. Without a GPU they run on the emulator, like cuda_matches_cpu.
#include "device/cuda/cuda.h"
#include "device_cases.h"

// A row of c chunks has a tile of 1040 c bytes: 48 KiB are 47 chunks without the kernel's own
// arrays, 45 with them. 96 KiB are 94 chunks.
static const uint32_t lengths[] = {
    11519, 11520, 11521, 11776, 11777, 12032, 12033, 12288, 24063, 24064, 24065,
};

static void make(struct test_case *c, enum ree_repop op, uint32_t n) {
    struct rng rng = {.state = n};
    memset(c, 0, sizeof *c);
    case_begin(c, op);
    if (op == REE_REPOP_SOFTMAX)
        c->dispatch.params.softmax = (struct ree_softmax_params){0, 1, n, 1, 0};
    else
        c->dispatch.params.norm = (struct ree_norm_params){0, 1, n, 1e-5f, 0, 0, 1, 1, 0, 1};
    uint32_t *x = case_input(c, &rng, REE_F32, n);
    for (uint32_t i = 0; i < n; i++) // 1/2 ... 2, both signs
        x[i] = ((uint32_t)rng_next(&rng) & 0x80FFFFFFu) | 0x3F000000u;
    case_output(c, &rng, REE_F32, n);
}

int main(void) {
    struct ree_device_options options = {.size = sizeof options};
    struct ree_device *device;
    struct ree_error err;
    enum ree_status status = ree_cuda_device_open("", &options, &device, &err);
    if (status == REE_UNAVAILABLE) return test_skip(err.message);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    if (status != REE_OK) return test_finish();
    uint32_t n_printed = 0;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct test_case c;
        make(&c, REE_REPOP_SOFTMAX, lengths[i]);
        compare_case(device, "a row", REE_REPOP_SOFTMAX, lengths[i], &c, &n_printed);
        test_case_finish(&c);
        make(&c, REE_REPOP_NORM, lengths[i]);
        compare_case(device, "a row", REE_REPOP_NORM, lengths[i], &c, &n_printed);
        test_case_finish(&c);
    }
    ree_device_destroy(device);
    return test_finish();
}
