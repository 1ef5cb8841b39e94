// Ranks connected by MPI. A module of its own, loaded by mpi_start.c: the program itself is not
// linked to MPI's library. It uses nothing of libree but its headers.
//
// Nothing here waits: MPI's blocking calls cannot be given a deadline. What has to be collective
// (MPI_Init, MPI_Finalize) is watched by a thread.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "transport/mpi/mpi_module.h"

struct receiving {
    MPI_Request request;
    unsigned char *frame; // NULL: nothing is arriving
    size_t nbytes;
};

struct mpi {
    struct ree_link link;
    double seconds;
    struct receiving *receiving; // (n_ranks, channels)
};

// Writes what MPI says.
static enum ree_status fail(struct ree_error *err, const char *what, int code) {
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    int n = 0;
    MPI_Error_string(code, text, &n);
    if (err) {
        err->status = REE_IO;
        snprintf(err->message, sizeof err->message, "%s: %s", what, text);
    }
    return REE_IO;
}

static enum ree_status no_memory(struct ree_error *err) {
    if (err) {
        err->status = REE_NO_MEMORY;
        snprintf(err->message, sizeof err->message, "out of memory");
    }
    return REE_NO_MEMORY;
}

// A thread that ends the process unless it is told in time that all is well.
struct watch {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    const char *what;
    double seconds;
    bool done, started;
};

static void *watch_over(void *user) {
    struct watch *w = user;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)w->seconds;
    until.tv_nsec += (long)((w->seconds - (double)(time_t)w->seconds) * 1e9);
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&w->mutex);
    int code = 0;
    while (!w->done && code == 0)
        code = pthread_cond_timedwait(&w->cond, &w->mutex, &until);
    if (!w->done) {
        fprintf(stderr, "ree-run: %s takes longer than %.3g s: a rank does not take part\n",
                w->what, w->seconds);
        fflush(stderr);
        _exit(1);
    }
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

static void watch_begin(struct watch *w, const char *what, double seconds) {
    *w = (struct watch){.what = what, .seconds = seconds};
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->cond, NULL);
    w->started = pthread_create(&w->thread, NULL, watch_over, w) == 0;
}

static void watch_end(struct watch *w) {
    pthread_mutex_lock(&w->mutex);
    w->done = true;
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->mutex);
    if (w->started) pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->cond);
    pthread_mutex_destroy(&w->mutex);
}

static enum ree_status mpi_start(struct ree_link *link, uint32_t to, enum ree_channel channel,
                                 const unsigned char *frame, size_t nbytes, void **out_request,
                                 struct ree_error *err) {
    (void)link;
    MPI_Request *request = malloc(sizeof *request);
    if (!request) return no_memory(err);
    int code = nbytes <= INT32_MAX ? MPI_Isend(frame, (int)nbytes, MPI_BYTE, (int)to, (int)channel,
                                               MPI_COMM_WORLD, request)
                                   : MPI_ERR_COUNT;
    if (code != MPI_SUCCESS) {
        free(request);
        return fail(err, "cannot send", code);
    }
    *out_request = request;
    return REE_OK;
}

static enum ree_status mpi_test(struct ree_link *link, void *request, bool *out_done,
                                struct ree_error *err) {
    (void)link;
    int done = 0;
    int code = MPI_Test(request, &done, MPI_STATUS_IGNORE);
    *out_done = false;
    if (code != MPI_SUCCESS) return fail(err, "cannot send", code);
    if (done) free(request);
    *out_done = done;
    return REE_OK;
}

static enum ree_status mpi_take(struct ree_link *link, uint32_t from, enum ree_channel channel,
                                size_t limit, unsigned char **out_frame, size_t *out_nbytes,
                                struct ree_error *err) {
    struct mpi *m = (struct mpi *)link;
    struct receiving *r = &m->receiving[from * REE_N_CHANNELS + channel];
    int done = 0, code;
    *out_frame = NULL;
    *out_nbytes = 0;
    if (!r->frame) {
        MPI_Message message;
        MPI_Status status;
        int n;
        code = MPI_Improbe((int)from, (int)channel, MPI_COMM_WORLD, &done, &message, &status);
        if (code != MPI_SUCCESS) return fail(err, "cannot receive", code);
        if (!done) return REE_OK;
        MPI_Get_count(&status, MPI_BYTE, &n);
        if (n < 0 || (size_t)n > limit) {
            if (err) {
                err->status = REE_INVALID;
                snprintf(err->message, sizeof err->message,
                         "%d bytes long; at most %zu are expected here", n, limit);
            }
            return REE_INVALID;
        }
        r->nbytes = (size_t)n;
        r->frame = malloc(r->nbytes + 1);
        if (!r->frame) return no_memory(err);
        code = MPI_Imrecv(r->frame, n, MPI_BYTE, &message, &r->request);
        if (code != MPI_SUCCESS) return fail(err, "cannot receive", code);
    }
    code = MPI_Test(&r->request, &done, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) return fail(err, "cannot receive", code);
    if (!done) return REE_OK;
    *out_frame = r->frame;
    *out_nbytes = r->nbytes;
    r->frame = NULL;
    return REE_OK;
}

static void mpi_abort(struct ree_link *link, int code) {
    (void)link;
    fflush(NULL);
    MPI_Abort(MPI_COMM_WORLD, code);
    _exit(code);
}

static void mpi_close(struct ree_link *link) {
    struct mpi *m = (struct mpi *)link;
    struct watch watch;
    watch_begin(&watch, "the end of MPI", m->seconds);
    MPI_Finalize();
    watch_end(&watch);
    free(m->receiving);
    free(m);
}

static const struct ree_link_ops mpi_ops = {mpi_start, mpi_test, mpi_take, mpi_abort, mpi_close};

enum ree_status ree_mpi_open(double seconds, struct ree_link **out, struct ree_error *err) {
    int provided, rank, size;
    struct watch watch;
    *out = NULL;
    watch_begin(&watch, "the start of MPI", seconds);
    int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
    watch_end(&watch);
    if (code != MPI_SUCCESS) return fail(err, "MPI does not start", code);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    struct mpi *m = calloc(1, sizeof *m);
    if (m) m->receiving = calloc((size_t)size * REE_N_CHANNELS, sizeof *m->receiving);
    if (!m || !m->receiving) {
        free(m);
        return no_memory(err);
    }
    m->link = (struct ree_link){&mpi_ops, (uint32_t)rank, (uint32_t)size};
    m->seconds = seconds;
    *out = &m->link;
    return REE_OK;
}
