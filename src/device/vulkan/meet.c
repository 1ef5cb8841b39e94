// Drivers that were never met. A driver's compiler may crash on the first module it gets; the
// process that asked should survive that and go on with another device.
#include "base/sha256.h"
#include "device/vulkan/vulkan.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 300000 // SwiftShader takes seconds; whoever takes minutes does not come back
#define MAX_MET 32

// Drivers met in this process, for callers that keep no record.
static pthread_mutex_t met_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned char met[MAX_MET][REE_SHA256_SIZE];
static size_t n_met;

// Beside the digests of pipelines in the record.
static void key_of(const struct ree_vk *vk, unsigned char key[REE_SHA256_SIZE]) {
    struct ree_hasher *hasher = ree_hasher_create("ree-vulkan-met/1");
    memcpy(key, vk->identity, REE_SHA256_SIZE);
    if (!hasher) return;
    ree_hasher_update(hasher, vk->identity, sizeof vk->identity);
    ree_hasher_digest(hasher, key);
}

bool ree_vk_was_met(const struct ree_vk *vk) {
    unsigned char key[REE_SHA256_SIZE];
    key_of(vk, key);
    bool found = ree_test_record_find(&vk->tests, key) != NULL;
    pthread_mutex_lock(&met_lock);
    for (size_t i = 0; i < n_met; i++)
        found = found || memcmp(met[i], key, sizeof key) == 0;
    pthread_mutex_unlock(&met_lock);
    return found;
}

void ree_vk_note_met(struct ree_vk *vk) {
    unsigned char key[REE_SHA256_SIZE];
    if (ree_vk_was_met(vk)) return;
    key_of(vk, key);
    ree_test_record_add(&vk->tests, key, REE_TEST_PASSED, NULL);
    pthread_mutex_lock(&met_lock);
    if (n_met < MAX_MET) memcpy(met[n_met++], key, sizeof key);
    pthread_mutex_unlock(&met_lock);
}

// In the child: never returns.
static void try_device(const char *which, const struct ree_device_options *options) {
    // What a dying driver prints and dumps is of no use to the user.
    const struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    int null = open("/dev/null", O_WRONLY);
    if (null >= 0) dup2(null, STDERR_FILENO);
    struct ree_device *device;
    struct ree_error err;
    if (options->break_primitive && strcmp(options->break_primitive, "driver") == 0) abort();
    if (ree_vk_open(which, options, &device, &err) == REE_OK) device->vtable->destroy(device);
    _exit(0);
}

// Waits until the child closes its end of the pipe, which it does by ending.
static bool wait_for_end(int pipe_end) {
    struct pollfd fd = {.fd = pipe_end, .events = POLLIN};
    int result;
    do
        result = poll(&fd, 1, PATIENCE_MS);
    while (result < 0 && errno == EINTR);
    return result > 0;
}

enum ree_status ree_vk_meet(const char *which, const struct ree_device_options *options,
                            const char *name, struct ree_error *err) {
    int ends[2], result = 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return ree_fail(err, REE_IO, "Vulkan: cannot try '%s': %s", name, strerror(errno));
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        try_device(which, options);
    }
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return ree_fail(err, REE_IO, "Vulkan: cannot try '%s': %s", name, strerror(errno));
    }
    bool came_back = wait_for_end(ends[0]);
    close(ends[0]);
    if (!came_back) kill(child, SIGKILL);
    while (waitpid(child, &result, 0) < 0 && errno == EINTR)
        continue;
    if (!came_back)
        return ree_fail(err, REE_DEVICE,
                        "Vulkan: the driver of '%s' did not come back from the probe in %d s", name,
                        PATIENCE_MS / 1000);
    if (WIFSIGNALED(result))
        return ree_fail(err, REE_DEVICE,
                        "Vulkan: the driver of '%s' crashed in the probe (%s): it cannot be used",
                        name, strsignal(WTERMSIG(result)));
    return REE_OK;
}
