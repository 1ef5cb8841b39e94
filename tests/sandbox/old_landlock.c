// Gives the program that it is linked into the Landlock of an older kernel.
//
// REE_TEST_LANDLOCK=N (0 to 7) in the environment: syscall() answers Landlock's calls as a kernel
// with version N of Landlock does. The version is min(N, the kernel's); 0 is a kernel without
// Landlock. Requests that version N does not know fail with the errno that it gave; all others
// reach the kernel, which then handles exactly the kinds of access that version N handles. Source:
// security/landlock/syscalls.c of Linux, and Documentation/userspace-api/landlock.rst.
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CREATE_RULESET = 444, RESTRICT_SELF = 446, N_VERSIONS = 8 };

struct ruleset {
    uint64_t files, net, scoped;
};

// What each version handles, and the size of its struct.
static const struct {
    size_t size;
    struct ruleset all;
    unsigned long restrict_flags;
} versions[N_VERSIONS] = {
    [1] = {8, {0x1FFF, 0, 0}, 0},  [2] = {8, {0x3FFF, 0, 0}, 0},  [3] = {8, {0x7FFF, 0, 0}, 0},
    [4] = {16, {0x7FFF, 3, 0}, 0}, [5] = {16, {0xFFFF, 3, 0}, 0}, [6] = {24, {0xFFFF, 3, 3}, 0},
    [7] = {24, {0xFFFF, 3, 3}, 7},
};

// Returns the version that the environment asks for, or -1.
static int old_version(void) {
    const char *text = getenv("REE_TEST_LANDLOCK");
    return text && text[0] >= '0' && text[0] < '0' + N_VERSIONS && !text[1] ? text[0] - '0' : -1;
}

static long fails(int error) {
    errno = error;
    return -1;
}

// Returns 0 if version n knows everything that the ruleset asks for, otherwise an errno. Bytes
// after the version's struct must be zero, as for every extensible struct of Linux.
static int check_ruleset(int n, const char *attr, size_t size) {
    struct ruleset asked = {0};
    size_t known = versions[n].size;
    if (size < sizeof asked.files) return EINVAL;
    for (size_t i = known; i < size; i++)
        if (attr[i]) return E2BIG;
    memcpy(&asked, attr, size < known ? size : known);
    const struct ruleset *all = &versions[n].all;
    bool is_known =
        !(asked.files & ~all->files) && !(asked.net & ~all->net) && !(asked.scoped & ~all->scoped);
    return is_known ? 0 : EINVAL;
}

long syscall(long number, ...) {
    static long (*next)(long, ...);
    if (!next) {
        void *symbol = dlsym(RTLD_NEXT, "syscall");
        memcpy(&next, &symbol, sizeof next); // ISO C has no conversion to a pointer to a function
    }
    long args[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        args[i] = va_arg(list, long);
    va_end(list);

    int n = old_version();
    if (n == 0 && number >= CREATE_RULESET && number <= RESTRICT_SELF) return fails(ENOSYS);
    if (n > 0 && number == CREATE_RULESET) {
        const char *attr = (const char *)args[0];
        int error = attr ? check_ruleset(n, attr, (size_t)args[1]) : 0;
        if (error) return fails(error);
        long result = next(number, args[0], args[1], args[2]);
        return !attr && result > n ? n : result;
    }
    if (n > 0 && number == RESTRICT_SELF && ((unsigned long)args[1] & ~versions[n].restrict_flags))
        return fails(EINVAL);
    return next(number, args[0], args[1], args[2], args[3], args[4], args[5]);
}
