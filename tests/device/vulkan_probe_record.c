// The probe's results are kept in the cache folder: the next start repeats only the trial of the
// native forms, and comes to the same verdicts. It probes again if that trial has other results, or
// if the file is damaged. Tests that change the probe do not use the file. A process whose own
// child has just probed a new driver repeats nothing.
#include "device/vulkan/vulkan.h"
#include "device_cases.h"
#include "test_folder.h"

#include <sys/stat.h>
#include <unistd.h>

static struct ree_error err;
static char folder[] = "vulkan-probe-XXXXXX";

enum probed { NOTHING, THE_NATIVE_FORMS, THE_WHOLE };

// Opens the device. *out_verdicts: what it found. Returns how much of the probe ran: the trial of
// the native forms is one pipeline, and a device that has run nothing else has no others.
static enum probed probes(const struct ree_device_testing *testing,
                          struct ree_vk_verdict out_verdicts[REE_VK_N_PRIMITIVES]) {
    const struct ree_device_options options = {
        .size = sizeof options, .cache_dir = folder, .testing = testing};
    struct ree_device *device;
    const enum ree_status status = ree_vulkan_device_open("", &options, &device, &err);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    if (status != REE_OK) return NOTHING;
    const uint32_t n_pipelines = ree_vk_of(device)->n_unsaved;
    memcpy(out_verdicts, ree_vk_of(device)->verdicts, sizeof ree_vk_of(device)->verdicts);
    device->vtable->destroy(device);
    return n_pipelines == 0 ? NOTHING : n_pipelines == 1 ? THE_NATIVE_FORMS : THE_WHOLE;
}

// Calls `change` for the file of the probe's results. Returns whether there is one.
static bool with_file(void (*change)(const char *path)) {
    DIR *dir = opendir(folder);
    bool found = false;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char path[512];
        const size_t n = strlen(entry->d_name);
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (n < 6 || strcmp(entry->d_name + n - 6, ".probe") != 0) continue;
        found = true;
        change(path);
    }
    if (dir) closedir(dir);
    return found;
}

// Claims that a form was found right which was found wrong, or the other way round.
static void flip_a_verdict(const char *path) {
    struct ree_vk_verdict verdict;
    FILE *file = fopen(path, "r+b");
    REQUIRE(file && fread(&verdict, sizeof verdict, 1, file) == 1);
    verdict.allowed[0] = !verdict.allowed[0];
    rewind(file);
    REQUIRE(fwrite(&verdict, sizeof verdict, 1, file) == 1 && fclose(file) == 0);
}

static void shorten(const char *path) {
    REQUIRE(truncate(path, 100) == 0);
}

// Records that the device computes an addition wrongly, as another card of its model might.
static void record_another_card(void) {
    const struct ree_device_options options = {.size = sizeof options, .cache_dir = folder};
    struct ree_device *device;
    REQUIRE(ree_vulkan_device_open("", &options, &device, &err) == REE_OK);
    struct ree_vk_verdict *add = &ree_vk_of(device)->verdicts[REE_VK_ADD];
    add->n_wrong[REE_VK_NATIVE]++;
    add->allowed[REE_VK_NATIVE] = false;
    ree_vk_probe_keep(ree_vk_of(device));
    device->vtable->destroy(device);
}

int main(void) {
    struct ree_device_listing list[16];
    const char *note;
    if (ree_vulkan_device_list(list, 16, &note) == 0) return test_skip(note);
    REQUIRE(mkdtemp(folder) != NULL);
    static struct ree_vk_verdict first[REE_VK_N_PRIMITIVES], again[REE_VK_N_PRIMITIVES];
    const size_t size = sizeof first;

    CHECK(probes(NULL, first) == NOTHING); // the child that tries a new driver has probed it
    CHECK(probes(NULL, again) == THE_NATIVE_FORMS && memcmp(first, again, size) == 0);

    const struct ree_device_testing once_more = {.size = sizeof once_more, .probes_again = true};
    CHECK(probes(&once_more, again) == THE_WHOLE && memcmp(first, again, size) == 0);
    const struct ree_device_testing broken = {.size = sizeof broken, .break_primitive = "add"};
    CHECK(probes(&broken, again) == THE_WHOLE && memcmp(first, again, size) != 0);
    const struct ree_device_testing integers = {.size = sizeof integers, .force_form = "integer"};
    CHECK(probes(&integers, again) == THE_WHOLE);
    CHECK(probes(NULL, again) == THE_NATIVE_FORMS && memcmp(first, again, size) == 0);

    CHECK(with_file(flip_a_verdict));
    CHECK(probes(NULL, again) == THE_WHOLE && memcmp(first, again, size) == 0);
    CHECK(probes(NULL, again) == THE_NATIVE_FORMS);
    CHECK(with_file(shorten));
    CHECK(probes(NULL, again) == THE_WHOLE && memcmp(first, again, size) == 0);

    CHECK(probes(NULL, again) == THE_NATIVE_FORMS);
    record_another_card();
    CHECK(probes(NULL, again) == THE_WHOLE && memcmp(first, again, size) == 0);
    CHECK(probes(NULL, again) == THE_NATIVE_FORMS && memcmp(first, again, size) == 0);

    setenv("LP_REE_TEST", "another compiler", 1); // part of the driver's identity
    CHECK(probes(NULL, again) == NOTHING);        // its child has probed
    unsetenv("LP_REE_TEST");
    test_remove_folder(folder);
    return test_finish();
}
