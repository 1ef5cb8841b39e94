#include "base/hash.h"

#include <pthread.h>
#include <sys/random.h>
#include <time.h>

uint64_t ree_hash_key[2];

static void draw(void) {
    uint64_t key[2];
    if (getrandom(key, sizeof key, GRND_NONBLOCK) != (ssize_t)sizeof key) {
        // The entropy pool is not ready. The time and an address are harder to guess than nothing.
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        key[0] = (uint64_t)now.tv_nsec * 0x9E3779B97F4A7C15u ^ (uint64_t)now.tv_sec;
        key[1] = (uint64_t)(uintptr_t)&now * 0xA0761D6478BD642Fu ^ key[0];
    }
    ree_hash_key[0] = key[0];
    ree_hash_key[1] = key[1] | 1; // a multiplier
}

void ree_hash_init(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, draw);
}
