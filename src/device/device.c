// Opens a device by name: "cpu", "cuda", "vulkan"; "cuda:INDEX", "cuda:NAME", and so on.
#include "device/device.h"

#include "base/float_env.h"
#include "base/options.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>

static enum ree_status open_backend(const char *spec, const struct ree_device_options *options,
                                    struct ree_device **out_device, struct ree_error *err) {
    size_t kind = strcspn(spec, ":");
    const char *which = spec[kind] ? spec + kind + 1 : "";
    if (kind == 3 && strncmp(spec, "cpu", 3) == 0) {
        if (spec[kind])
            return ree_fail(err, REE_INVALID, "device '%s': there is only one cpu; write 'cpu'",
                            spec);
        return ree_cpu_device_open(options, out_device, err);
    }
    if (kind == 6 && strncmp(spec, "vulkan", 6) == 0) {
#ifdef REE_HAVE_VULKAN
        return ree_vulkan_device_open(which, options, out_device, err);
#else
        (void)which;
        return ree_fail(err, REE_UNAVAILABLE,
                        "device '%s': this ree was built without the Vulkan backend", spec);
#endif
    }
    if (kind == 4 && strncmp(spec, "cuda", 4) == 0)
        return ree_cuda_device_open(which, options, out_device, err);
    return ree_fail(err, REE_INVALID,
                    "unknown device '%s'; write 'cpu', 'cuda' or 'vulkan'; the last two may be "
                    "followed by ':INDEX' or ':NAME' to select one of several",
                    spec);
}

enum ree_status ree_device_open(const char *spec, const struct ree_device_options *options,
                                struct ree_device **out_device, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_device_options own;
    struct ree_device_testing testing;
    *out_device = NULL;
    REE_TRY(ree_options_read(&own, sizeof own, options, "ree_device_options", err));
    REE_TRY(ree_options_read(&testing, sizeof testing, own.testing, "ree_device_testing", err));
    own.testing = &testing;
    options = &own;
    ree_cpu_use_cache(options->cache_dir);
    enum ree_status status = open_backend(spec, options, out_device, err);
    if (status != REE_OK) return status;
    (*out_device)->operation_set = options->operation_set;
    (*out_device)->n_threads = options->n_threads;
    (*out_device)->is_cpu = strcmp(spec, "cpu") == 0;
    return REE_OK;
}

const char *ree_operation_set_name(enum ree_operation_set set) {
    static const char *const names[] = {"reproducible", "deterministic", "default"};
    return (size_t)set < sizeof names / sizeof *names ? names[set] : "?";
}

void ree_device_destroy(struct ree_device *device) {
    REE_FLOAT_ENV_API();
    if (device) device->vtable->destroy(device);
}

const char *ree_device_name(const struct ree_device *device) {
    return device->name;
}

enum ree_operation_set ree_device_operation_set(const struct ree_device *device) {
    return device->operation_set;
}

size_t ree_device_facts(const struct ree_device *device, const struct ree_device_fact **out_facts) {
    REE_FLOAT_ENV_API();
    return device->vtable->facts(device, out_facts);
}

size_t ree_device_list(struct ree_device_listing *out_list, size_t max, const char **out_note) {
    REE_FLOAT_ENV_API();
    static _Thread_local char notes[2 * REE_ERROR_MAX];
    const char *cuda_note = NULL, *vulkan_note = NULL;
    struct ree_device *cpu;
    struct ree_device_options options = {.size = sizeof options};
    size_t n = 0;
    if (ree_cpu_device_open(&options, &cpu, NULL) == REE_OK) {
        if (n < max) {
            snprintf(out_list[n].spec, sizeof out_list[n].spec, "cpu");
            snprintf(out_list[n].name, sizeof out_list[n].name, "%s", cpu->name);
        }
        n++;
        ree_device_destroy(cpu);
    }
    size_t used = n < max ? n : max;
    n += ree_cuda_device_list(max > used ? out_list + used : NULL, max - used, &cuda_note);
#ifdef REE_HAVE_VULKAN
    used = n < max ? n : max;
    n += ree_vulkan_device_list(max > used ? out_list + used : NULL, max - used, &vulkan_note);
#else
    vulkan_note = "Vulkan: this ree was built without the Vulkan backend";
#endif
    snprintf(notes, sizeof notes, "%s%s%s", cuda_note ? cuda_note : "",
             cuda_note && vulkan_note ? "\n" : "", vulkan_note ? vulkan_note : "");
    if (out_note) *out_note = *notes ? notes : NULL;
    return n;
}
