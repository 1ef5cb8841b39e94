#include "landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// The same numbers on all architectures.
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

// The kernel's structs at version 6. An older kernel accepts the longer struct if the members that
// it does not know are zero.
struct ruleset_attr {
    uint64_t handled_access_fs, handled_access_net, scoped;
};
struct __attribute__((packed)) path_beneath_attr {
    uint64_t allowed_access;
    int32_t parent_fd;
};
#define CREATE_RULESET_VERSION 1u
#define RULE_PATH_BENEATH 1
#define RESTRICT_SELF_TSYNC (1u << 3)
#define NET_TCP UINT64_C(3)      // bind and connect
#define SCOPE_OTHERS UINT64_C(3) // abstract UNIX sockets and signals

// Kinds of access that apply to files; all others apply only to folders.
#define OF_FILES                                                                                   \
    (LANDLOCK_EXECUTE | LANDLOCK_WRITE_FILE | LANDLOCK_READ_FILE | LANDLOCK_TRUNCATE |             \
     LANDLOCK_IOCTL_DEV)

bool landlock_begin(struct landlock_rules *rules) {
    *rules = (struct landlock_rules){.fd = -1};
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_RULESET_VERSION);
    if (abi < 1) {
        rules->error = abi < 0 ? errno : ENOSYS;
        return false;
    }
    uint64_t last = abi >= 5   ? LANDLOCK_IOCTL_DEV
                    : abi >= 3 ? LANDLOCK_TRUNCATE
                    : abi >= 2 ? LANDLOCK_REFER
                               : LANDLOCK_REFER >> 1;
    struct ruleset_attr attr = {.handled_access_fs = 2 * last - 1,
                                .handled_access_net = abi >= 4 ? NET_TCP : 0,
                                .scoped = abi >= 6 ? SCOPE_OTHERS : 0};
    // Before version 4 the struct was shorter, and some kernels with backports compare sizes first.
    size_t size = abi >= 6   ? sizeof attr
                  : abi >= 4 ? offsetof(struct ruleset_attr, scoped)
                             : offsetof(struct ruleset_attr, handled_access_net);
    rules->abi = (int)abi;
    rules->handled = attr.handled_access_fs;
    rules->fd = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
    rules->error = rules->fd < 0 ? errno : 0;
    return rules->fd >= 0;
}

bool landlock_allow(const struct landlock_rules *rules, const char *path, uint64_t access) {
    struct stat info;
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0) return true;
    bool ok = fstat(fd, &info) == 0;
    if (ok) {
        access &= rules->handled & (S_ISDIR(info.st_mode) ? UINT64_MAX : OF_FILES);
        struct path_beneath_attr rule = {access, fd};
        ok = !access || syscall(SYS_landlock_add_rule, rules->fd, RULE_PATH_BENEATH, &rule, 0) == 0;
        // Objects outside of file systems, such as pipes, need no rule and cannot have one.
        if (!ok && errno == EBADFD) ok = true;
    }
    int error = errno;
    close(fd);
    errno = error;
    return ok;
}

bool landlock_enter(struct landlock_rules *rules) {
    long result = -1;
    if (rules->abi >= 8)
        result = syscall(SYS_landlock_restrict_self, rules->fd, RESTRICT_SELF_TSYNC);
    if (result != 0) result = syscall(SYS_landlock_restrict_self, rules->fd, 0);
    int error = errno;
    close(rules->fd);
    rules->fd = -1;
    errno = error;
    return result == 0;
}
