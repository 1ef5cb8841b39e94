// ree_device_open: specs, error messages, and the list of devices that can be opened.
#include "ree.h"
#include "test.h"

#include <string.h>

static void check_refused(const char *spec, enum ree_status status, const char *part) {
    struct ree_error err = {0};
    struct ree_device *device = (void *)&err;
    CHECK_MSG(ree_device_open(spec, NULL, &device, &err) == status && !device &&
                  strstr(err.message, part) && strstr(err.message, spec),
              "'%s': %s", spec, err.message);
}

// Returns whether a device of this kind, "cuda:" or "vulkan:", is listed.
static bool is_listed(const struct ree_device_listing *list, size_t n, const char *kind) {
    for (size_t i = 0; i < n; i++)
        if (strncmp(list[i].spec, kind, strlen(kind)) == 0) return true;
    return false;
}

// Returns whether a line of the note begins with `start`. note: NULL if there is none.
static bool has_line(const char *note, const char *start) {
    for (const char *line = note; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, start, strlen(start)) == 0) return true;
    }
    return false;
}

int main(void) {
    struct ree_error err;
    struct ree_device *device;
    check_refused("tpu", REE_INVALID, "unknown device");
    check_refused("", REE_INVALID, "write 'cpu'");
    check_refused("cpus", REE_INVALID, "unknown device");
    check_refused("cpu:1", REE_INVALID, "there is only one cpu");

    struct ree_device_options options = {
        .size = sizeof options, .n_threads = 1, .cpu_isa = "portable"};
    REQUIRE(ree_device_open("cpu", &options, &device, &err) == REE_OK);
    CHECK(strcmp(ree_device_name(device), "cpu (portable, 1 thread)") == 0);
    const struct ree_device_fact *facts;
    CHECK(ree_device_facts(device, &facts) > 5);
    ree_device_destroy(device);
    ree_device_destroy(NULL);

    // The count does not depend on the capacity; entries beyond the capacity stay unchanged.
    enum { MAX = 64 };
    struct ree_device_listing list[MAX];
    const char *note;
    memset(list, 0x5A, sizeof list);
    size_t n = ree_device_list(list, 1, &note);
    CHECK(n >= 1 && strcmp(list[0].spec, "cpu") == 0 && strncmp(list[0].name, "cpu (", 5) == 0);
    CHECK(list[1].spec[0] == 0x5A);
    CHECK(ree_device_list(NULL, 0, NULL) == n);
    // The note names the missing kinds of device, one per line.
    REQUIRE(n <= MAX && ree_device_list(list, MAX, &note) == n);
    CHECK_MSG(has_line(note, "CUDA: ") == !is_listed(list, n, "cuda:"), "%s", note ? note : "");
    CHECK_MSG(has_line(note, "Vulkan: ") == !is_listed(list, n, "vulkan:"), "%s", note ? note : "");
    return test_finish();
}
