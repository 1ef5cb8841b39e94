#include "points.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

// A function of the sanitizers; NULL without them.
__attribute__((weak)) void __sanitizer_print_stack_trace(void);

static struct fault_plan plan;
static long *counter; // NULL: points are not counted yet

static bool fails(enum fault_kind kind) {
    if (!counter || kind != plan.kind) return false;
    long n = __atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
    if (plan.at == 0 || n < plan.at || (n > plan.at && !plan.onward)) return false;
    if (plan.shows && n == plan.at && __sanitizer_print_stack_trace) {
        long *kept = counter;
        counter = NULL; // allocations by the printing are not points
        __sanitizer_print_stack_trace();
        counter = kept;
    }
    errno = kind == FAULT_MEMORY || kind == FAULT_JSON ? ENOMEM : plan.error;
    return true;
}

// Defines the wrapper of NAME; `REAL(NAME)` is the library's function.
#define REAL(name) __real_##name
#define WRAP(type, name, ...)                                                                      \
    type REAL(name)(__VA_ARGS__);                                                                  \
    type __wrap_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__)

// Memory

static _Thread_local bool in_json; // cJSON is the caller

WRAP(void *, malloc, size_t size) {
    return fails(in_json ? FAULT_JSON : FAULT_MEMORY) ? NULL : REAL(malloc)(size);
}

WRAP(void *, calloc, size_t n, size_t size) {
    return fails(FAULT_MEMORY) ? NULL : REAL(calloc)(n, size);
}

WRAP(void *, realloc, void *memory, size_t size) {
    return fails(FAULT_MEMORY) ? NULL : REAL(realloc)(memory, size);
}

WRAP(void *, aligned_alloc, size_t alignment, size_t size) {
    return fails(FAULT_MEMORY) ? NULL : REAL(aligned_alloc)(alignment, size);
}

WRAP(int, posix_memalign, void **out, size_t alignment, size_t size) {
    return fails(FAULT_MEMORY) ? ENOMEM : REAL(posix_memalign)(out, alignment, size);
}

WRAP(char *, strdup, const char *s) {
    return fails(FAULT_MEMORY) ? NULL : REAL(strdup)(s);
}

WRAP(char *, strndup, const char *s, size_t n) {
    return fails(FAULT_MEMORY) ? NULL : REAL(strndup)(s, n);
}

WRAP(int, vasprintf, char **out, const char *format, va_list args) {
    // After a failure *out is undefined, and glibc before 2.39 may leave any value there.
    if (!fails(FAULT_MEMORY)) return REAL(vasprintf)(out, format, args);
    *out = (char *)(uintptr_t)8;
    return -1;
}

int __wrap_asprintf(char **out, const char *format, ...);
int __wrap_asprintf(char **out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = __wrap_vasprintf(out, format, args);
    va_end(args);
    return n;
}

WRAP(char *, realpath, const char *path, char *resolved) {
    return fails(FAULT_MEMORY) ? NULL : REAL(realpath)(path, resolved);
}

WRAP(ssize_t, getline, char **line, size_t *capacity, FILE *file) {
    return fails(FAULT_MEMORY) ? -1 : REAL(getline)(line, capacity, file);
}

WRAP(DIR *, opendir, const char *path) {
    return fails(FAULT_MEMORY) || fails(FAULT_READ) ? NULL : REAL(opendir)(path);
}

WRAP(void *, mmap, void *at, size_t size, int protection, int flags, int fd, off_t offset) {
    if (fails(FAULT_MEMORY) || fails(FAULT_READ)) return MAP_FAILED;
    return REAL(mmap)(at, size, protection, flags, fd, offset);
}

WRAP(int, memfd_create, const char *name, unsigned flags) {
    return fails(FAULT_MEMORY) ? -1 : REAL(memfd_create)(name, flags);
}

WRAP(int, pthread_create, pthread_t *out, const pthread_attr_t *attributes, void *(*run)(void *),
     void *user) {
    return fails(FAULT_MEMORY) ? EAGAIN : REAL(pthread_create)(out, attributes, run, user);
}

// Not points: salts and times are the same in each run, so that receipts are the same.
time_t __wrap_time(time_t *out);
time_t __wrap_time(time_t *out) {
    if (out) *out = 1;
    return 1;
}

ssize_t __wrap_getrandom(void *bytes, size_t nbytes, unsigned flags);
ssize_t __wrap_getrandom(void *bytes, size_t nbytes, unsigned flags) {
    (void)flags;
    memset(bytes, 7, nbytes);
    return (ssize_t)nbytes;
}

// cJSON allocates through the hooks that the program sets.
static void *(*json_hook)(size_t size) = __wrap_malloc;

static void *json_malloc(size_t size) {
    in_json = true;
    void *memory = json_hook(size);
    in_json = false;
    return memory;
}

static void json_free(void *memory) {
    free(memory);
}

WRAP(void, cJSON_InitHooks, cJSON_Hooks *hooks) {
    json_hook = hooks->malloc_fn;
    REAL(cJSON_InitHooks)(&(cJSON_Hooks){json_malloc, json_free});
}

// PCRE2 allocates with the functions in its contexts.
static void *regex_malloc(PCRE2_SIZE size, void *unused) {
    (void)unused;
    return __wrap_malloc(size);
}

static void regex_free(void *memory, void *unused) {
    (void)unused;
    free(memory);
}

static pcre2_general_context *regex_context(void) {
    static pcre2_general_context *context;
    if (!context) context = pcre2_general_context_create(regex_malloc, regex_free, NULL);
    return context;
}

WRAP(pcre2_compile_context *, pcre2_compile_context_create_8, pcre2_general_context *context) {
    return REAL(pcre2_compile_context_create_8)(context ? context : regex_context());
}

WRAP(pcre2_match_context *, pcre2_match_context_create_8, pcre2_general_context *context) {
    return REAL(pcre2_match_context_create_8)(context ? context : regex_context());
}

WRAP(pcre2_match_data *, pcre2_match_data_create_from_pattern_8, const pcre2_code *code,
     pcre2_general_context *context) {
    return REAL(pcre2_match_data_create_from_pattern_8)(code, context ? context : regex_context());
}

WRAP(pcre2_jit_stack *, pcre2_jit_stack_create_8, size_t start, size_t most,
     pcre2_general_context *context) {
    return REAL(pcre2_jit_stack_create_8)(start, most, context ? context : regex_context());
}

WRAP(int, pcre2_jit_compile_8, pcre2_code *code, uint32_t options) {
    return fails(FAULT_MEMORY) ? PCRE2_ERROR_NOMEMORY : REAL(pcre2_jit_compile_8)(code, options);
}

// Writing

// Opening a file for writing is a write point. Standard output has its own wrappers below.
static bool opening_fails(int flags) {
    bool writes = (flags & O_ACCMODE) != O_RDONLY;
    return fails(writes ? FAULT_WRITE : FAULT_READ);
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    return opening_fails(flags) ? -1 : __real_open(path, flags, mode);
}

int __real_openat(int folder, const char *path, int flags, ...);
int __wrap_openat(int folder, const char *path, int flags, ...);
int __wrap_openat(int folder, const char *path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    return opening_fails(flags) ? -1 : __real_openat(folder, path, flags, mode);
}

WRAP(int, mkostemp, char *name, int flags) {
    return fails(FAULT_WRITE) ? -1 : REAL(mkostemp)(name, flags);
}

WRAP(int, mkdir, const char *path, mode_t mode) {
    return fails(FAULT_WRITE) ? -1 : REAL(mkdir)(path, mode);
}

// With ENOSPC it first writes half of the bytes, as a full disk does, and then fails.
WRAP(ssize_t, write, int fd, const void *bytes, size_t nbytes) {
    if (fd == STDERR_FILENO || !fails(FAULT_WRITE)) return REAL(write)(fd, bytes, nbytes);
    int error = errno;
    if (error == ENOSPC) (void)!REAL(write)(fd, bytes, nbytes / 2);
    errno = error;
    return -1;
}

WRAP(int, fsync, int fd) {
    return fails(FAULT_WRITE) ? -1 : REAL(fsync)(fd);
}

WRAP(int, ftruncate, int fd, off_t size) {
    return fails(FAULT_WRITE) ? -1 : REAL(ftruncate)(fd, size);
}

WRAP(int, fchmod, int fd, mode_t mode) {
    return fails(FAULT_WRITE) ? -1 : REAL(fchmod)(fd, mode);
}

WRAP(int, rename, const char *from, const char *to) {
    return fails(FAULT_WRITE) ? -1 : REAL(rename)(from, to);
}

WRAP(int, renameat2, int a, const char *from, int b, const char *to, unsigned flags) {
    return fails(FAULT_WRITE) ? -1 : REAL(renameat2)(a, from, b, to, flags);
}

WRAP(int, linkat, int a, const char *from, int b, const char *to, int flags) {
    return fails(FAULT_WRITE) ? -1 : REAL(linkat)(a, from, b, to, flags);
}

// Closes the descriptor even if it reports a failure.
WRAP(int, close, int fd) {
    int result = REAL(close)(fd);
    return fails(FAULT_WRITE) ? -1 : result;
}

WRAP(size_t, fwrite, const void *bytes, size_t size, size_t n, FILE *file) {
    return file == stdout && fails(FAULT_WRITE) ? 0 : REAL(fwrite)(bytes, size, n, file);
}

WRAP(int, fflush, FILE *file) {
    return file != stderr && fails(FAULT_WRITE) ? EOF : REAL(fflush)(file);
}

// Reading

WRAP(ssize_t, read, int fd, void *bytes, size_t nbytes) {
    if (fails(FAULT_READ)) return -1;
    return REAL(read)(fd, bytes, nbytes > 1 && fails(FAULT_SHORT) ? nbytes / 2 : nbytes);
}

WRAP(ssize_t, pread, int fd, void *bytes, size_t nbytes, off_t offset) {
    if (fails(FAULT_READ)) return -1;
    return REAL(pread)(fd, bytes, nbytes > 1 && fails(FAULT_SHORT) ? nbytes / 2 : nbytes, offset);
}

WRAP(int, fstat, int fd, struct stat *out) {
    return fails(FAULT_READ) ? -1 : REAL(fstat)(fd, out);
}

WRAP(FILE *, fopen, const char *path, const char *mode) {
    return fails(FAULT_MEMORY) || fails(FAULT_READ) ? NULL : REAL(fopen)(path, mode);
}

void fault_begin(const struct fault_plan *wanted, long *out_counter) {
    __wrap_cJSON_InitHooks(&(cJSON_Hooks){__wrap_malloc, json_free});
    regex_context();
    plan = *wanted;
    counter = out_counter;
}
