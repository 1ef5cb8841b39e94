#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/float_env.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    void (*log)(void *user, enum ree_log_level level, const char *text);
    void *user;
} hook;

void ree_set_log(void (*log)(void *user, enum ree_log_level level, const char *text), void *user) {
    pthread_mutex_lock(&lock);
    hook.log = log;
    hook.user = user;
    pthread_mutex_unlock(&lock);
}

void ree_log(enum ree_log_level level, const char *format, ...) {
    char text[REE_ERROR_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (char *c = text; *c; c++)
        if (*c == '\n') *c = ' ';
    pthread_mutex_lock(&lock);
    if (hook.log) {
        REE_FLOAT_ENV_CALLBACK();
        hook.log(hook.user, level, text);
    }
    pthread_mutex_unlock(&lock);
}
