#include "graph/ir/mapping_guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "base/memory.h"

// The handler walks the list without a lock, so guards are reused and never freed. A thread that
// faults is reading a mapping in use, so that mapping's guard stays valid meanwhile.
struct ree_guard {
    _Atomic(uintptr_t) data; // 0: free for reuse
    _Atomic(size_t) size;
    atomic_bool damaged;
    struct ree_guard *next; // never changes
};

static _Atomic(struct ree_guard *) guards;
// Protects the following variables and the creation of guards.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t n_used;
static bool is_installed;
static struct sigaction previous;

static struct ree_guard *guard_of(uintptr_t at) {
    for (struct ree_guard *g = atomic_load(&guards); g; g = g->next) {
        uintptr_t data = atomic_load(&g->data);
        if (data && at >= data && at - data < atomic_load(&g->size)) return g;
    }
    return NULL;
}

static void pass_on(int number, siginfo_t *info, void *context) {
    if (previous.sa_flags & SA_SIGINFO) {
        previous.sa_sigaction(number, info, context);
    } else if (previous.sa_handler == SIG_DFL) {
        // Ends the process: now if the signal was sent, or when the faulting read is repeated.
        signal(number, SIG_DFL);
        if (info->si_code <= 0) raise(number);
    } else if (previous.sa_handler != SIG_IGN) {
        previous.sa_handler(number);
    } else if (info->si_code > 0) {
        signal(number, SIG_DFL); // a fault cannot be ignored: the read would fault again forever
    }
}

static void on_bus_error(int number, siginfo_t *info, void *context) {
    int error = errno;
    struct ree_guard *g = info->si_code == BUS_ADRERR ? guard_of((uintptr_t)info->si_addr) : NULL;
    // Mark first, because another thread may read the zeros at once. mmap is safe in a signal
    // handler: on Linux it is a plain system call.
    if (g) atomic_store(&g->damaged, true);
    if (!g || mmap((void *)atomic_load(&g->data), atomic_load(&g->size), PROT_READ,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == MAP_FAILED)
        pass_on(number, info, context);
    errno = error;
}

// The lock must be held.
static void install(void) {
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    if (is_installed) return;
    sigemptyset(&action.sa_mask);
    is_installed = sigaction(SIGBUS, &action, &previous) == 0;
}

// The lock must be held.
static void uninstall(void) {
    struct sigaction now;
    if (!is_installed || sigaction(SIGBUS, NULL, &now) != 0) return;
    // Someone else has installed a handler, which may call ours. Keep it, ours and `previous`.
    if (!(now.sa_flags & SA_SIGINFO) || now.sa_sigaction != on_bus_error) return;
    if (sigaction(SIGBUS, &previous, NULL) == 0) is_installed = false;
}

struct ree_guard *ree_guard_create(void *data, size_t size) {
    pthread_mutex_lock(&lock);
    struct ree_guard *g = atomic_load(&guards);
    while (g && atomic_load(&g->data))
        g = g->next;
    if (!g) {
        g = ree_alloc_zeroed(1, sizeof *g);
        if (g) {
            g->next = atomic_load(&guards);
            atomic_store(&guards, g);
        }
    }
    if (g) {
        atomic_store(&g->damaged, false);
        atomic_store(&g->size, size);
        atomic_store(&g->data, (uintptr_t)data);
        n_used++;
        install();
    }
    pthread_mutex_unlock(&lock);
    return g;
}

bool ree_guard_is_damaged(const struct ree_guard *guard) {
    return atomic_load(&guard->damaged);
}

void ree_guard_destroy(struct ree_guard *guard) {
    if (!guard) return;
    pthread_mutex_lock(&lock);
    atomic_store(&guard->data, 0);
    if (--n_used == 0) uninstall();
    pthread_mutex_unlock(&lock);
}
