// The elementary functions on every Vulkan device: device_functions.h.
#include "device_functions.h"

int main(int argc, char **argv) {
    struct ree_device_listing list[16];
    const char *note;
    size_t n_devices = ree_vulkan_device_list(list, 16, &note);
    if (n_devices == 0) return test_skip(note);
    return run_device_functions(argc, argv, list, n_devices < 16 ? n_devices : 16,
                                ree_vulkan_device_open);
}
