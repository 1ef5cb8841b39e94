// A training that several ranks share, the ranks being threads: the states of one process; ranks
// that differ; allocations of a rank that fail.
//
//     shared STEP       STEP: tests/data/training/words.onnx
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "ree.h"
#include "test.h"
#include "transport/transport.h"

#define MAX_RANKS 8
#define N_STEPS 3

// Allocations of ree fail if the linker lets them call these (--wrap).
static _Thread_local long fails_in; // this many allocations from now; 0: never

static bool fails(void) {
    return fails_in > 0 && --fails_in == 0;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *memory, size_t size);

void *__wrap_malloc(size_t size) {
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size) {
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *memory, size_t size) {
    return fails() ? NULL : __real_realloc(memory, size);
}

static const char *step_path;

// Rows of ids in which each follows from the one before it.
static enum ree_status make_dataset(const struct ree_model *model, struct ree_dataset **out,
                                    struct ree_error *err) {
    const struct ree_port *port = ree_model_input(model, 0);
    const int64_t n = 24, dims[2] = {n, port->dims[1]};
    struct ree_tensor ids;
    enum ree_status status = ree_tensor_init(&ids, port->name, port->dtype, 2, dims, err);
    if (status != REE_OK) return status;
    int64_t *values = ids.data;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < dims[1]; k++)
            values[i * dims[1] + k] = (i * 5 + (1 + i % 2) * k) % 32;
    status = ree_dataset_create(&ids, 1, out, err);
    ree_tensor_finish(&ids);
    return status;
}

struct rank {
    struct ree_transport *transport; // NULL: one process, not shared
    uint64_t seed;
    long fail_at;    // allocation of ree_training_share and the steps that fails; 0: none
    bool has_failed; // it was reached
    int n_steps;
    char hex[65];
    struct ree_error err;
    enum ree_status status;
    pthread_t thread;
};

static enum ree_status lead(struct rank *r, struct ree_training *t) {
    struct ree_training_share_info shares[MAX_RANKS];
    enum ree_status status = REE_OK;
    for (int i = 0; status == REE_OK && i < r->n_steps; i++)
        status = ree_training_step(t, NULL, &r->err);
    if (status == REE_OK) status = ree_training_sha256(t, r->hex, &r->err);
    if (status == REE_OK && r->transport) status = ree_training_end(t, shares, &r->err);
    if (status == REE_OK) status = ree_training_release(t, &r->err);
    return status;
}

static enum ree_status train(struct rank *r, struct ree_model *model, struct ree_device *device,
                             struct ree_dataset *dataset) {
    const struct ree_training_options options = {.size = sizeof options, .seed = r->seed};
    struct ree_training *t;
    enum ree_status status = ree_training_create(model, device, dataset, &options, &t, &r->err);
    if (status != REE_OK) return status;
    fails_in = r->fail_at;
    if (r->transport) status = ree_training_share(t, r->transport, &r->err);
    if (status == REE_OK && r->transport && ree_transport_rank(r->transport))
        status = ree_training_serve(t, &r->err);
    else if (status == REE_OK)
        status = lead(r, t);
    r->has_failed = r->fail_at && fails_in == 0;
    fails_in = 0;
    if (status == REE_OK) status = ree_training_sha256(t, r->hex, &r->err);
    ree_training_destroy(t);
    return status;
}

static void *run_rank(void *user) {
    struct rank *r = user;
    const struct ree_device_options threads = {.size = sizeof threads, .n_threads = 1};
    struct ree_model *model = NULL;
    struct ree_device *device = NULL;
    struct ree_dataset *dataset = NULL;
    r->status = ree_model_load(step_path, NULL, &model, &r->err);
    if (r->status == REE_OK) r->status = ree_device_open("cpu", &threads, &device, &r->err);
    if (r->status == REE_OK) r->status = make_dataset(model, &dataset, &r->err);
    if (r->status == REE_OK) r->status = train(r, model, device, dataset);
    ree_dataset_destroy(dataset);
    ree_device_destroy(device);
    ree_model_destroy(model);
    if (r->status != REE_OK && r->transport && ree_transport_n_ranks(r->transport) > 1) {
        ree_transport_fail(r->transport, r->err.message, 1); // releases it
        r->transport = NULL;
    }
    return NULL;
}

static void connect_ranks(struct rank *ranks, uint32_t n) {
    struct ree_link *links[MAX_RANKS];
    struct ree_error err;
    const struct ree_transport_options options = {.deadline = 30};
    REQUIRE(ree_link_local_create(n, links, &err) == REE_OK);
    for (uint32_t i = 0; i < n; i++)
        REQUIRE(ree_transport_create(links[i], &options, &ranks[i].transport, &err) == REE_OK);
}

static void run_all(struct rank *ranks, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        REQUIRE(pthread_create(&ranks[i].thread, NULL, run_rank, &ranks[i]) == 0);
    for (uint32_t i = 0; i < n; i++)
        pthread_join(ranks[i].thread, NULL);
    for (uint32_t i = 0; i < n; i++)
        ree_transport_close(ranks[i].transport);
}

static char expected[65];

static void equal_states(void) {
    struct rank alone = {.n_steps = N_STEPS};
    run_rank(&alone);
    CHECK_MSG(alone.status == REE_OK, "%s", alone.err.message);
    memcpy(expected, alone.hex, sizeof expected);
    for (uint32_t n = 1; n <= MAX_RANKS; n = n < 3 ? n + 1 : n + 5) {
        struct rank ranks[MAX_RANKS] = {{.n_steps = N_STEPS}};
        connect_ranks(ranks, n);
        run_all(ranks, n);
        for (uint32_t i = 0; i < n; i++)
            CHECK_MSG(ranks[i].status == REE_OK && strcmp(ranks[i].hex, expected) == 0,
                      "rank %u of %u: %s, %s instead of %s", i, n,
                      ranks[i].status == REE_OK ? "other states" : ranks[i].err.message,
                      ranks[i].hex, expected);
    }
}

static void different_ranks(void) {
    struct rank ranks[2] = {{.n_steps = 1}, {.seed = 1}};
    connect_ranks(ranks, 2);
    run_all(ranks, 2);
    for (int i = 0; i < 2; i++)
        CHECK_MSG(ranks[i].status != REE_OK &&
                      strstr(ranks[i].err.message, "rank 1 has --seed 1, but rank 0 has 0"),
                  "rank %d: %s", i, ranks[i].err.message);
}

// One rank, so that nobody waits for the one whose allocation fails.
static void failing_allocations(void) {
    long n = 0, n_failures = 0;
    struct rank alone = {.n_steps = 1};
    run_rank(&alone);
    for (bool has_failed = true; has_failed; n += 1 + n / 8) { // all of the first ones, then fewer
        struct rank rank = {.n_steps = 1, .fail_at = n + 1};
        connect_ranks(&rank, 1);
        run_all(&rank, 1);
        has_failed = rank.has_failed;
        n_failures += rank.status != REE_OK;
        // Some work can be left undone, such as folding constants; the bits stay.
        CHECK_MSG(
            rank.status == REE_OK ? strcmp(rank.hex, alone.hex) == 0 : rank.status == REE_NO_MEMORY,
            "allocation %ld: %s", n + 1, rank.status == REE_OK ? "other states" : rank.err.message);
    }
    printf("%ld allocations, %ld of the failing ones reported\n", n, n_failures);
    CHECK(n_failures > 10);
}

int main(int argc, char **argv) {
    REQUIRE(argc == 2);
    step_path = argv[1];
    equal_states();
    different_ranks();
    failing_allocations();
    return test_finish();
}
