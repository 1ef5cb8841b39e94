// Files of a Hugging Face cache. The cache stores each file once, named by its hash. A revision of
// a repository is a folder of symbolic links:
//
//     blobs/5a3f...                                     the bytes
//     snapshots/REVISION/model.safetensors -> ../../blobs/5a3f...
//
// A link of exactly this form, from a folder in `snapshots` into `blobs` next to `snapshots`, may
// be followed although it leads out of the model's folder. It cannot reach any other file: the name
// contains no slash, and the file that it names must not be a link itself.
#include "graph/onnx/reader.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char blobs[] = "../../blobs/";

static bool is_in_snapshots(int folder_fd) {
    struct stat parent, snapshots;
    return fstatat(folder_fd, "..", &parent, 0) == 0 &&
           fstatat(folder_fd, "../../snapshots", &snapshots, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISDIR(snapshots.st_mode) && parent.st_dev == snapshots.st_dev &&
           parent.st_ino == snapshots.st_ino;
}

int ree_onnx_open_blob(int folder_fd, const char *location) {
    char target[256];
    if (strchr(location, '/')) return -1;
    ssize_t n = readlinkat(folder_fd, location, target, sizeof target - 1);
    if (n < 0 || (size_t)n >= sizeof target - 1) return -1;
    target[n] = 0;
    if (strncmp(target, blobs, sizeof blobs - 1) != 0) return -1;
    const char *name = target + sizeof blobs - 1;
    size_t digits = strspn(name, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    if (digits == 0 || name[digits] || !is_in_snapshots(folder_fd)) return -1;
    int folder = openat(folder_fd, "../../blobs", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) return -1;
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
    close(folder);
    return fd;
}
