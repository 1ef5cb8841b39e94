// Every RepOp on every Vulkan device of this machine, in every form of arithmetic that the probe
// allows, gives the CPU's bytes for random cases, and touches nothing else.
//
// Usage: vulkan_matches_cpu [N [OP]]: N cases of each RepOp and form, of OP alone. Drivers compile
// a module for most cases, so the default is few.
#include "base/strbuf.h"
#include "device/device.h"
#include "test.h"
#include "vulkan_cases.h"

static void compare(struct ree_device *device, const char *form, uint32_t n, const char *only) {
    for (int op = 0; op < REE_N_REPOPS; op++) {
        if (only && strcmp(only, ree_repop_name(op)) != 0) continue;
        uint32_t n_done = 0, n_printed = 0;
        for (uint64_t seed = 1; n_done < n; seed++) {
            struct rng rng = {.state = seed * 7919 + (uint64_t)op};
            struct test_case c = {0};
            if (!case_generators[op](&rng, &c)) {
                test_case_finish(&c);
                continue;
            }
            n_done++;
            const char *what = run_vulkan_case(device, &c);
            CHECK_MSG(!what, "%s, %s, %s, seed %llu: %s", device->name, form, ree_repop_name(op),
                      (unsigned long long)seed, what);
            if (what && n_printed++ < 2) {
                struct ree_strbuf text;
                ree_strbuf_init(&text);
                ree_dispatch_print(&c.dispatch, &text);
                fprintf(stderr, "  %s\n", text.data ? text.data : "");
                ree_strbuf_finish(&text);
            }
            test_case_finish(&c);
            if (n_printed > 5) break;
        }
    }
}

int main(int argc, char **argv) {
    uint32_t n = argc > 1 ? (uint32_t)atoi(argv[1]) : 6;
    struct ree_device_listing list[16];
    const char *note;
    size_t n_devices = ree_vulkan_device_list(list, 16, &note);
    if (n_devices == 0) return test_skip(note);
    static const char *const forms[] = {NULL, "native", "float64", "float32", "integer"};
    for (size_t d = 0; d < n_devices && d < 16; d++) {
        for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
            struct ree_device_options options = {
                .validation = true, .cache_dir = "", .force_form = forms[f]};
            struct ree_device *device;
            struct ree_error err;
            enum ree_status status =
                ree_vulkan_device_open(strchr(list[d].spec, ':') + 1, &options, &device, &err);
            if (status == REE_UNSUPPORTED && forms[f]) continue; // the probe refuses this form here
            if (status == REE_UNAVAILABLE) return test_skip(err.message);
            CHECK_MSG(status == REE_OK, "%s: %s", list[d].name, err.message);
            if (status != REE_OK) continue;
            compare(device, forms[f] ? forms[f] : "chosen", forms[f] ? (n + 3) / 4 : n,
                    argc > 2 ? argv[2] : NULL);
            device->vtable->destroy(device);
        }
    }
    return test_finish();
}
