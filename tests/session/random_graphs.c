// Random graphs, run in every way that must not change a bit: with and without fusion, with and
// without folding, with every instruction set, with 1 to 3 threads, and on every Vulkan device of
// the machine.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graphs/random_graph.h"
#include "session/model.h"
#include "test.h"

// Runs graph `seed`. Returns false and prints a message if it fails.
static bool run_graph(uint64_t seed, struct ree_device *device, bool fuse, bool fold,
                      char hash[65]) {
    struct ree_error err = {0};
    struct ree_model *model = NULL;
    struct ree_session *session = NULL;
    struct ree_model_options model_options = {.size = sizeof model_options, .no_fold = !fold};
    struct ree_session_options options = {.size = sizeof options, .no_fuse = !fuse};
    struct ree_tensor inputs[2], outputs[MAX_VALUES];
    bool ok = ree_model_from_graph(random_graph(seed), &model_options, &model, &err) == REE_OK &&
              ree_session_create(model, device, &options, &session, &err) == REE_OK;
    if (ok) {
        size_t n_in = ree_model_n_inputs(model), n_out = ree_model_n_outputs(model);
        random_inputs(model, seed, inputs);
        ok = ree_session_run(session, inputs, n_in, outputs, &err) == REE_OK;
        if (ok) ree_tensors_sha256(outputs, n_out, hash);
        for (size_t i = 0; ok && i < n_out; i++)
            ree_tensor_finish(&outputs[i]);
        for (size_t i = 0; i < n_in; i++)
            ree_tensor_finish(&inputs[i]);
    }
    if (!ok) fprintf(stderr, "graph %llu: %s\n", (unsigned long long)seed, err.message);
    ree_session_destroy(session);
    ree_model_destroy(model);
    return ok;
}

struct way {
    char name[300];
    struct ree_device *device;
    bool fuse, fold;
    uint32_t every; // runs only every n-th graph
};

static size_t list_ways(struct way *ways, size_t max) {
    static const char *const isas[] = {"portable", "avx2", "avx512", "neon"};
    size_t n = 0;
    for (uint32_t i = 0; i < 4 && n + 4 < max; i++)
        for (uint32_t threads = 1; threads <= 3; threads++) {
            struct ree_device_options options = {
                .size = sizeof options, .n_threads = threads, .cpu_isa = isas[i]};
            struct ree_device *device;
            struct ree_error err;
            if (ree_device_open("cpu", &options, &device, &err) != REE_OK) {
                CHECK_MSG(err.status == REE_UNAVAILABLE, "%s: %s", isas[i], err.message);
                break; // this machine lacks the instruction set
            }
            struct way *w = &ways[n++];
            *w = (struct way){
                .device = device, .fuse = threads != 2, .fold = threads != 3, .every = 1};
            snprintf(w->name, sizeof w->name, "%s%s%s", ree_device_name(device),
                     w->fuse ? "" : " no-fuse", w->fold ? "" : " no-fold");
        }
    struct ree_device_listing listing[8];
    size_t n_devices = ree_device_list(listing, 8, NULL);
    for (size_t i = 0; i < n_devices && i < 8 && n < max; i++) {
        if (strncmp(listing[i].spec, "vulkan", 6)) continue;
        struct ree_device_options options = {.size = sizeof options, .cache_dir = ""};
        struct ree_device *device;
        struct ree_error err;
        if (ree_device_open(listing[i].spec, &options, &device, &err) != REE_OK) {
            CHECK_MSG(false, "%s: %s", listing[i].name, err.message);
            continue;
        }
        // On Vulkan devices most of the time is spent compiling pipelines.
        ways[n] = (struct way){.device = device, .fuse = true, .fold = true, .every = 20};
        snprintf(ways[n].name, sizeof ways[n].name, "%s", ree_device_name(device));
        n++;
    }
    return n;
}

int main(int argc, char **argv) {
    uint64_t n_graphs = argc > 1 ? strtoull(argv[1], NULL, 10) : 200;
    struct way ways[32];
    size_t n_ways = list_ways(ways, 32);
    CHECK(n_ways >= 3);
    for (size_t k = 0; k < n_ways; k++)
        printf("%s\n", ways[k].name);
    for (uint64_t seed = 0; seed < n_graphs; seed++) {
        char first[65], hash[65];
        if (!run_graph(seed, ways[0].device, true, true, first)) {
            CHECK_MSG(false, "graph %llu does not run", (unsigned long long)seed);
            continue;
        }
        for (size_t k = 1; k < n_ways; k++) {
            if (seed % ways[k].every) continue;
            bool ok = run_graph(seed, ways[k].device, ways[k].fuse, ways[k].fold, hash);
            CHECK_MSG(ok && !strcmp(first, hash), "graph %llu differs on %s",
                      (unsigned long long)seed, ways[k].name);
        }
    }
    for (size_t k = 0; k < n_ways; k++)
        ree_device_destroy(ways[k].device);
    return test_finish();
}
