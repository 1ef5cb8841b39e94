// The CPU as a device: buffers, programs, packed weights stored with their buffer, error messages.
#include "cases.h"
#include "device/cpu/cpu_internal.h"
#include "test.h"

static struct ree_error err;

static bool says(const char *part) {
    return strstr(err.message, part) != NULL;
}

static struct ree_device *open_cpu(uint32_t n_threads, const char *isa) {
    struct ree_device_options options = {
        .size = sizeof options, .n_threads = n_threads, .cpu_isa = isa};
    struct ree_device *device;
    REQUIRE(ree_cpu_device_open(&options, &device, &err) == REE_OK);
    return device;
}

static void check_opening(void) {
    struct ree_device *device = NULL;
    struct ree_device_options options = {.size = sizeof options, .cpu_isa = "mmx"};
    CHECK(ree_cpu_device_open(&options, &device, &err) == REE_INVALID);
    CHECK(!device && says("'mmx'") && says("available: portable"));

    // No machine has both of these instruction sets.
    options.cpu_isa = ree_cpu_isa_available(REE_CPU_NEON) ? "avx2" : "neon";
    CHECK(ree_cpu_device_open(&options, &device, &err) == REE_UNAVAILABLE);
    CHECK(!device && says("not available here; available: portable"));

    options = (struct ree_device_options){.size = sizeof(struct ree_device_options),
                                          .n_threads = 1000000};
    CHECK(ree_cpu_device_open(&options, &device, &err) == REE_INVALID);
    CHECK(!device && says("1000000 threads"));

    device = open_cpu(2, "portable");
    CHECK_MSG(strcmp(device->name, "cpu (portable, 2 threads)") == 0, "name: %s", device->name);
    const struct ree_device_fact *facts;
    size_t n = device->vtable->facts(device, &facts), n_fma = 0;
    for (size_t i = 0; i < n; i++)
        n_fma += strcmp(facts[i].name, "fma") == 0 && strncmp(facts[i].value, "native", 6) == 0;
    CHECK(n_fma == 1);
    device->vtable->destroy(device);
}

static void check_buffers(void) {
    struct ree_device *device = open_cpu(1, NULL);
    const struct ree_device_vtable *vtable = device->vtable;
    struct ree_device_buffer *buffer, *empty, *wrapped;
    char bytes[100], back[100] = {0};
    for (int i = 0; i < 100; i++)
        bytes[i] = (char)i;
    REQUIRE(vtable->buffer_create(device, 100, &buffer, &err) == REE_OK);
    REQUIRE(vtable->buffer_create(device, 0, &empty, &err) == REE_OK);
    CHECK(vtable->buffer_write(device, buffer, 0, bytes, 100, &err) == REE_OK);
    CHECK(vtable->buffer_read(device, buffer, 40, back, 60, &err) == REE_OK);
    CHECK(memcmp(back, bytes + 40, 60) == 0);
    CHECK(vtable->buffer_write(device, buffer, 60, bytes, 41, &err) == REE_INVALID);
    CHECK(says("outside a buffer of 100 bytes"));
    CHECK(vtable->buffer_read(device, buffer, UINT64_MAX, back, 2, &err) == REE_INVALID);
    CHECK(vtable->buffer_read(device, empty, 0, back, 0, &err) == REE_OK);
    CHECK(vtable->buffer_create(device, UINT64_MAX, &wrapped, &err) == REE_NO_MEMORY && !wrapped);

    REQUIRE(vtable->buffer_wrap(device, bytes, 100, &wrapped, &err) == REE_OK);
    CHECK(vtable->buffer_read(device, wrapped, 0, back, 100, &err) == REE_OK);
    CHECK(memcmp(back, bytes, 100) == 0);
    CHECK(vtable->buffer_write(device, wrapped, 0, bytes, 1, &err) == REE_INVALID);
    CHECK(says("read-only"));
    vtable->buffer_destroy(device, wrapped);
    vtable->buffer_destroy(device, empty);
    vtable->buffer_destroy(device, buffer);
    vtable->buffer_destroy(device, NULL);
    vtable->destroy(device);
}

// A product with constant weights, then another product that reads its output.

enum { M = 40, K = 300, N = 50 };

static struct ree_dispatch matmul_dispatch(uint32_t m, uint32_t n, uint32_t k, uint32_t a,
                                           uint32_t b, uint32_t out) {
    struct ree_dispatch dispatch;
    memset(&dispatch, 0, sizeof dispatch);
    dispatch.op = REE_REPOP_MATMUL;
    dispatch.n_operands = 3;
    dispatch.n_outputs = 1;
    dispatch.operands[0] = (struct ree_operand){a, 0, (uint64_t)m * k * 4};
    dispatch.operands[1] = (struct ree_operand){b, 0, (uint64_t)k * n * 4};
    dispatch.operands[2] = (struct ree_operand){out, 0, (uint64_t)m * n * 4};
    dispatch.params.matmul = dense_products(m, n, k);
    return dispatch;
}

static void check_programs(void) {
    static float x[M * K], w[K * N], first[M * N], second[M * N], u[N * N];
    for (int i = 0; i < M * K; i++)
        x[i] = (float)(i * 7 % 31) / 3.0f - 5.0f;
    for (int i = 0; i < K * N; i++)
        w[i] = (float)(i * 11 % 29) / 7.0f - 2.0f;
    for (int i = 0; i < N * N; i++)
        u[i] = (float)(i * 5 % 23) / 5.0f - 2.0f;
    const struct ree_dispatch dispatches[2] = {
        matmul_dispatch(M, N, K, 0, 1, 2),
        matmul_dispatch(M, N, N, 2, 3, 4),
    };
    CHECK(ree_cpu_execute(&dispatches[0], (void *[]){x, w, first}, &err) == REE_OK);
    CHECK(ree_cpu_execute(&dispatches[1], (void *[]){first, u, second}, &err) == REE_OK);

    struct ree_device *device = open_cpu(2, NULL);
    const struct ree_device_vtable *vtable = device->vtable;
    struct ree_device_buffer *slots[5], *constants[5] = {0};
    const uint64_t sizes[5] = {sizeof x, sizeof w, sizeof first, sizeof u, sizeof second};
    for (int i = 0; i < 5; i++)
        REQUIRE(vtable->buffer_create(device, sizes[i], &slots[i], &err) == REE_OK);
    CHECK(vtable->buffer_write(device, slots[0], 0, x, sizeof x, &err) == REE_OK);
    CHECK(vtable->buffer_write(device, slots[1], 0, w, sizeof w, &err) == REE_OK);
    CHECK(vtable->buffer_write(device, slots[3], 0, u, sizeof u, &err) == REE_OK);
    constants[1] = slots[1];
    const struct ree_program program = {.dispatches = dispatches, .n_dispatches = 2, .n_slots = 5};

    // The second program finds the first program's packed weights and outlives the first program.
    struct ree_device_program *programs[2];
    const uint64_t all = UINT64_C(1) << 30;
    uint64_t capacities[2] = {all, all};
    for (int i = 0; i < 2; i++)
        REQUIRE(vtable->program_create(device, &program, constants, &capacities[i], &programs[i],
                                       &err) == REE_OK);
    CHECK(capacities[0] < all && capacities[1] == all);
    double times[2];
    CHECK(!vtable->program_times(device, programs[0], times));
    for (int i = 0; i < 2; i++) {
        static float back[M * N];
        CHECK(vtable->program_run(device, programs[i], slots, NULL, &err) == REE_OK);
        CHECK(vtable->program_times(device, programs[i], times) && times[0] > 0 && times[1] > 0);
        CHECK(vtable->buffer_read(device, slots[4], 0, back, sizeof back, &err) == REE_OK);
        CHECK(memcmp(back, second, sizeof back) == 0);
        CHECK(vtable->buffer_write(device, slots[4], 0, x, sizeof back, &err) == REE_OK);
        vtable->program_destroy(device, programs[i]);
    }
    vtable->program_destroy(device, NULL);

    // A run fails if a buffer is smaller than its operand.
    struct ree_device_buffer *small = slots[0];
    REQUIRE(vtable->program_create(device, &program, NULL, NULL, &programs[0], &err) == REE_OK);
    REQUIRE(vtable->buffer_create(device, 16, &slots[0], &err) == REE_OK);
    CHECK(vtable->program_run(device, programs[0], slots, NULL, &err) == REE_INVALID);
    CHECK(says("outside a buffer of 16 bytes"));
    vtable->program_destroy(device, programs[0]);
    vtable->buffer_destroy(device, small);
    for (int i = 0; i < 5; i++)
        vtable->buffer_destroy(device, slots[i]);
    vtable->destroy(device);
}

// A fault is reported with the node's name as prefix.
static void check_fault(void) {
    struct ree_device *device = open_cpu(1, NULL);
    const struct ree_device_vtable *vtable = device->vtable;
    struct ree_dispatch dispatch;
    memset(&dispatch, 0, sizeof dispatch);
    dispatch.op = REE_REPOP_GATHER;
    dispatch.n_operands = 3;
    dispatch.n_outputs = 1;
    dispatch.node = 1;
    struct ree_gather_params *p = &dispatch.params.gather;
    p->elem_size = 4;
    p->index_dtype = REE_I32;
    p->rank = 1;
    p->n_elements = p->dims[0] = 2;
    p->index_strides[0] = 1;
    p->n_components = 1;
    p->component_sizes[0] = 4;
    p->component_strides[0] = 1;
    const int32_t index[2] = {3, 4};
    struct ree_device_buffer *slots[3];
    for (uint32_t i = 0; i < 3; i++) {
        dispatch.operands[i] = (struct ree_operand){i, 0, i == 0 ? 16 : 8};
        REQUIRE(vtable->buffer_create(device, 16, &slots[i], &err) == REE_OK);
    }
    CHECK(vtable->buffer_write(device, slots[1], 0, index, sizeof index, &err) == REE_OK);
    const char *const names[2] = {"node 'x' (Add)", "node 'pick' (Gather)"};
    const struct ree_program program = {&dispatch, 1, 3, names, 2};
    struct ree_device_program *compiled;
    REQUIRE(vtable->program_create(device, &program, NULL, NULL, &compiled, &err) == REE_OK);
    CHECK(vtable->program_run(device, compiled, slots, NULL, &err) == REE_INVALID);
    CHECK_MSG(strncmp(err.message, "node 'pick' (Gather): ", 22) == 0, "message: %s", err.message);
    vtable->program_destroy(device, compiled);
    for (int i = 0; i < 3; i++)
        vtable->buffer_destroy(device, slots[i]);
    vtable->destroy(device);
}

int main(void) {
    check_opening();
    check_buffers();
    check_programs();
    check_fault();
    return test_finish();
}
