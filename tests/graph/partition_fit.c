// Plans for devices with a memory limit, on random graphs:
// - Each stage fits together with the caches of its device.
// - On one device no plan has fewer stages.
// - If a limit is refused, the message names a sufficient limit; on one device, the smallest one.
#include "graph/partition/fit.h"
#include "graph/partition_graph.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

#define N_GRAPHS 400

static long n_fitted, n_cut, n_refused, n_unequal;

struct fixture {
    struct ree_graph *graph;
    struct ree_partition_options options;
    struct ree_partition_devices devices;
    uint64_t weights, caches; // totals of the whole model
    int number;
};

static size_t one(size_t n) {
    return n ? n : 1;
}

// Returns the device of a stage, counted over all ranks, by enumeration.
static size_t place_of(const struct ree_partition_devices *d, size_t n_stages, size_t stage) {
    size_t rank = 0, at = 0;
    for (size_t r = 0; r < one(d->n_ranks); r++) {
        size_t n = n_stages / one(d->n_ranks) + (r < n_stages % one(d->n_ranks));
        if (stage >= at && stage < at + n) rank = r;
        at += n;
    }
    return rank * one(d->n_devices) + stage % one(d->n_devices);
}

static bool fits(const struct fixture *f, const struct ree_partition *plan) {
    uint64_t rows = f->options.context * one(f->devices.n_cache_slots);
    uint64_t available = f->devices.max_memory - f->devices.max_memory / 16;
    for (size_t i = 0; i < plan->n_stages; i++) {
        uint64_t bytes = plan->costs[i].weight_bytes;
        for (size_t j = 0; j < plan->n_stages; j++)
            if (place_of(&f->devices, plan->n_stages, i) ==
                place_of(&f->devices, plan->n_stages, j))
                bytes += plan->costs[j].kv_cache_bytes * rows;
        if (bytes > available) return false;
    }
    return true;
}

// On one device: returns whether a plan with that many stages exists. The caches of all stages are
// always resident.
static bool is_possible(const struct fixture *f, size_t n_stages) {
    uint64_t limits[64], available = f->devices.max_memory - f->devices.max_memory / 16;
    if (available < f->caches) return false;
    for (size_t i = 0; i < n_stages; i++)
        limits[i] = available - f->caches;
    struct ree_partition_options options = f->options;
    options.n_stages = n_stages;
    options.weight_limits = limits;
    struct ree_partition plan;
    if (ree_partition_plan(f->graph, &options, &plan, NULL) != REE_OK) return false;
    ree_partition_finish(&plan);
    return true;
}

static bool is_one_device(const struct fixture *f) {
    return one(f->devices.n_devices) * one(f->devices.n_ranks) == 1;
}

static void check_refused(const struct fixture *f, size_t least, const struct ree_error *err) {
    struct fixture other = *f;
    struct ree_partition plan;
    struct ree_error ignored;
    CHECK_MSG(err->status == REE_INVALID, "graph %d: %s", f->number, err->message);
    if (strstr(err->message, "possible cut") || strstr(err->message, "cannot be cut, so"))
        return; // too few cut points
    const char *at = strstr(err->message, "; ");
    bool names_limit = at && strstr(at, " bytes are enough");
    CHECK_MSG(names_limit, "graph %d: no sufficient limit in: %s", f->number, err->message);
    if (!names_limit) return;
    n_refused++;
    other.devices.max_memory = strtoull(at + 2, NULL, 10);
    CHECK(other.devices.max_memory > f->devices.max_memory);
    bool done = ree_partition_fit(f->graph, &other.options, &other.devices, least, &plan,
                                  &ignored) == REE_OK;
    CHECK_MSG(done, "graph %d: %s\nbut then: %s", f->number, err->message, ignored.message);
    if (done) CHECK(fits(&other, &plan));
    ree_partition_finish(&plan);
    other.devices.max_memory--;
    if (!is_one_device(f)) return;
    done = ree_partition_fit(f->graph, &other.options, &other.devices, least, &plan, &ignored) ==
           REE_OK;
    CHECK_MSG(!done, "graph %d: %s\nbut less does", f->number, err->message);
    ree_partition_finish(&plan);
}

static void check(const struct fixture *f, size_t least) {
    struct ree_partition plan;
    struct ree_error err = {.message = ""};
    if (ree_partition_fit(f->graph, &f->options, &f->devices, least, &plan, &err) != REE_OK) {
        check_refused(f, least, &err);
        return;
    }
    n_fitted++;
    n_cut += plan.n_stages > least;
    CHECK_MSG(fits(f, &plan), "graph %d: %zu stages do not fit", f->number, plan.n_stages);
    CHECK(ree_partition_check_fit(&plan, &f->devices, NULL) == REE_OK);
    if (f->options.n_stages)
        CHECK(plan.n_stages == f->options.n_stages);
    else
        CHECK(plan.n_stages >= least);
    for (size_t n = least; !f->options.n_stages && is_one_device(f) && n < plan.n_stages; n++)
        CHECK_MSG(!is_possible(f, n), "graph %d: %zu stages, and %zu would do", f->number,
                  plan.n_stages, n);
    // ree_partition_check_fit must name the smallest limit at which this plan fits.
    struct fixture tight = *f;
    tight.devices.max_memory = 0;
    for (uint64_t bit = UINT64_C(1) << 30; bit; bit /= 2) {
        tight.devices.max_memory += bit;
        if (fits(&tight, &plan)) tight.devices.max_memory -= bit;
    }
    char expected[40];
    snprintf(expected, sizeof expected, "; %llu bytes are enough",
             (unsigned long long)tight.devices.max_memory + 1);
    bool refused = ree_partition_check_fit(&plan, &tight.devices, &err) == REE_INVALID;
    CHECK_MSG(tight.devices.max_memory + 1 == 1 || (refused && strstr(err.message, expected)),
              "graph %d: %s\nexpected %s", f->number, err.message, expected);
    ree_partition_finish(&plan);
}

static void check_graph(struct fixture *f, uint64_t *random) {
    struct ree_partition whole;
    f->options.n_stages = 1;
    f->options.context = 1 + test_below(random, 200);
    REQUIRE(ree_partition_plan(f->graph, &f->options, &whole, NULL) == REE_OK);
    for (int i = 0; i < 12; i++) {
        f->devices.n_devices = test_below(random, 4);
        f->devices.n_ranks = test_below(random, 3);
        f->devices.n_cache_slots = test_below(random, 3);
        f->weights = whole.costs[0].weight_bytes;
        f->caches =
            whole.costs[0].kv_cache_bytes * f->options.context * one(f->devices.n_cache_slots);
        uint64_t all = f->weights + f->caches;
        f->devices.max_memory = all * test_below(random, 40) / 32;
        f->devices.max_memory += test_below(random, 1000);
        f->options.n_stages = test_below(random, 3) ? 0 : 1 + test_below(random, 6);
        check(f, 1 + test_below(random, 3));
        n_unequal += f->caches > 0 && !is_one_device(f);
    }
    ree_partition_finish(&whole);
}

static void test_shares(void) {
    for (size_t n = 1; n < 20; n++)
        for (uint32_t n_ranks = 1; n_ranks <= n; n_ranks++) {
            size_t at = 0;
            for (uint32_t rank = 0; rank < n_ranks; rank++) {
                size_t first, own;
                ree_partition_share(n, n_ranks, rank, &first, &own);
                CHECK(first == at && own >= n / n_ranks && own <= n / n_ranks + 1);
                at += own;
            }
            CHECK(at == n);
        }
}

int main(void) {
    uint64_t random = 0xA24BAED4963EE407;
    test_shares();
    for (int i = 0; i < N_GRAPHS; i++) {
        struct test_graph g;
        struct ree_partition_kv_cache kv_caches[TEST_MAX_KV_CACHES];
        test_random_graph(&g, &random);
        struct fixture f = {.graph = test_make_graph(&g, NULL, kv_caches), .number = i};
        f.options.n_kv_caches = (size_t)g.n_kv_caches;
        f.options.kv_caches = kv_caches;
        check_graph(&f, &random);
        ree_graph_destroy(f.graph);
    }
    printf("%ld fitted, %ld of them with more stages than asked for; %ld refused; %ld with caches "
           "on several devices\n",
           n_fitted, n_cut, n_refused, n_unequal);
    CHECK(n_fitted > 500 && n_cut > 100 && n_refused > 500 && n_unequal > 500);
    return test_finish();
}
