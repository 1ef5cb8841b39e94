// Random cases of gather on the CPU give the reference's bytes on every instruction set and with
// any number of threads, and write nothing outside their outputs. An index out of range is reported
// with its valid range; if several are out of range, the first one is reported, whatever the number
// of threads.
#include "run_cpu_cases.h"
#include "test.h"

#include "device/cpu/cpu_internal.h"

static void check_fault(uint32_t n_threads) {
    float data[5] = {0}, out[1000];
    int64_t index[1000] = {0};
    index[300] = 7;
    index[900] = -6;
    struct ree_gather_params p = {
        .elem_size = 4,
        .index_dtype = REE_I64,
        .rank = 1,
        .n_elements = 1000,
        .dims = {1000},
        .index_strides = {1},
        .n_components = 1,
        .component_sizes = {5},
        .component_strides = {1},
    };
    struct ree_cpu_scratch scratch[3] = {0};
    struct ree_cpu_context ctx = {.n_threads = n_threads, .scratch = scratch, .thread_grain = 1};
    void *operands[] = {data, index, out};
    struct ree_error err;
    CHECK(ree_cpu_gather(&ctx, &p, operands, &err) == REE_INVALID);
    CHECK_MSG(strcmp(err.message, "index 7 is out of range [-5, 4]") == 0, "%s", err.message);
    index[300] = -5;
    CHECK(ree_cpu_gather(&ctx, &p, operands, &err) == REE_INVALID);
    CHECK_MSG(strcmp(err.message, "index -6 is out of range [-5, 4]") == 0, "%s", err.message);
    index[900] = 4;
    CHECK(ree_cpu_gather(&ctx, &p, operands, &err) == REE_OK);
    for (uint32_t t = 0; t < 3; t++)
        ree_cpu_scratch_finish(&scratch[t]);
}

int main(void) {
    long n_runs;
    CHECK(run_cpu_cases(REE_REPOP_GATHER, 600, &n_runs) == 0);
    CHECK(n_runs >= 600 * 3);
    for (uint32_t n_threads = 1; n_threads <= 3; n_threads++)
        check_fault(n_threads);
    return test_finish();
}
