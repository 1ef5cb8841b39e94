// Connects ranks by MPI. A separate module that mpi_start.c loads, so that the program itself is
// not linked with MPI's library. It calls no function of libree, but uses its headers.
//
// Sending and receiving never block, because MPI's blocking calls have no deadline. A thread
// watches the calls that must be collective (MPI_Init, MPI_Finalize). MPI counts in ints, so a
// frame of more than struct mpi.piece bytes is sent as several messages in sequence with the same
// tag, whose order MPI preserves.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/container.h"
#include "transport/frame.h"
#include "transport/mpi/mpi_module.h"

// Maximum bytes of a frame per MPI message.
#define MAX_PIECE ((size_t)1 << 30)

struct receiving {
    MPI_Request request;
    unsigned char *frame; // NULL: no frame is arriving
    size_t nbytes, have;  // bytes of the frame that `frame` has space for; bytes received
    size_t arriving;      // bytes of the message being received; 0: none
    bool is_under_way;
};

struct sending {
    size_t n;
    MPI_Request requests[]; // (n)
};

struct mpi {
    struct ree_link link;
    double seconds;
    struct ree_watchdog watchdog;
    size_t piece;                // maximum bytes per MPI message
    struct receiving *receiving; // (n_ranks, channels)
    void *(*reallocate)(void *memory, size_t size);
    void (*release)(void *memory);
};

static struct mpi *mpi_of(struct ree_link *link) {
    return REE_CONTAINER_OF(link, struct mpi, link);
}

// Fails with MPI's error text.
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

// A thread that ends the process unless watch_end is called in time.
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
    // The clock that watch_begin chose for the condition variable.
    clock_gettime(CLOCK_MONOTONIC, &until);
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
        fprintf(stderr, "ree-run: %s takes longer than %.3g s: a rank does not participate\n",
                w->what, w->seconds);
        fflush(stderr);
        _exit(1);
    }
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

static void watch_begin(struct watch *w, const char *what, double seconds) {
    *w = (struct watch){.what = what, .seconds = seconds};
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->cond, &attributes);
    pthread_condattr_destroy(&attributes);
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
    const struct mpi *m = mpi_of(link);
    size_t n = nbytes ? (nbytes - 1) / m->piece + 1 : 1;
    struct sending *s = malloc(sizeof *s + n * sizeof *s->requests);
    *out_request = NULL;
    if (!s) return no_memory(err);
    for (s->n = 0; s->n < n; s->n++) {
        size_t at = s->n * m->piece, left = nbytes - at;
        int code = MPI_Isend(frame + at, (int)(left < m->piece ? left : m->piece), MPI_BYTE,
                             (int)to, (int)channel, MPI_COMM_WORLD, &s->requests[s->n]);
        if (code == MPI_SUCCESS) continue;
        // The run ends. Messages that are being sent still use their requests and the frame.
        if (s->n == 0)
            free(s);
        else
            *out_request = s;
        return fail(err, "cannot send", code);
    }
    *out_request = s;
    return REE_OK;
}

static enum ree_status mpi_test(struct ree_link *link, void *request, bool *out_done,
                                struct ree_error *err) {
    (void)link;
    struct sending *s = request;
    int done = 0;
    int code = MPI_Testall((int)s->n, s->requests, &done, MPI_STATUSES_IGNORE);
    *out_done = false;
    if (code != MPI_SUCCESS) return fail(err, "cannot send", code);
    if (done) free(s);
    *out_done = done;
    return REE_OK;
}

static enum ree_status too_long(struct ree_error *err, uint64_t nbytes, size_t limit) {
    if (err) {
        err->status = REE_INVALID;
        snprintf(err->message, sizeof err->message,
                 "%llu bytes long or damaged; the expected maximum is %zu",
                 (unsigned long long)nbytes, limit);
    }
    return REE_INVALID;
}

// Starts receiving the next MPI message if one has arrived.
static enum ree_status begin_piece(const struct mpi *m, struct receiving *r, uint32_t from,
                                   enum ree_channel channel, size_t limit, struct ree_error *err) {
    MPI_Message message;
    MPI_Status status;
    int there = 0, n = 0;
    int code = MPI_Improbe((int)from, (int)channel, MPI_COMM_WORLD, &there, &message, &status);
    if (code != MPI_SUCCESS) return fail(err, "cannot receive", code);
    if (!there) return REE_OK;
    MPI_Get_count(&status, MPI_BYTE, &n);
    size_t capacity = r->frame ? r->nbytes - r->have : limit;
    if (n < 1 || (size_t)n > capacity) return too_long(err, n > 0 ? (uint64_t)n : 0, capacity);
    if (!r->frame) {
        r->frame = m->reallocate(NULL, (size_t)n);
        if (!r->frame) return no_memory(err);
        r->nbytes = (size_t)n;
        r->have = 0;
    }
    code = MPI_Imrecv(r->frame + r->have, n, MPI_BYTE, &message, &r->request);
    if (code != MPI_SUCCESS) return fail(err, "cannot receive", code);
    r->arriving = (size_t)n;
    r->is_under_way = true;
    return REE_OK;
}

// Called after the first MPI message of a frame if that message has the maximum size: allocates
// memory for the rest of the frame, whose length its header states.
static enum ree_status reserve_buffer(const struct mpi *m, struct receiving *r, size_t limit,
                                      struct ree_error *err) {
    uint64_t behind = 0;
    if (r->have < REE_FRAME_HEADER) return REE_OK;
    for (int i = 0; i < 8; i++)
        behind |= (uint64_t)r->frame[REE_FRAME_LENGTH_AT + i] << 8 * i;
    if (behind > limit - REE_FRAME_HEADER) return too_long(err, behind, limit);
    size_t nbytes = REE_FRAME_HEADER + (size_t)behind;
    if (nbytes <= r->have) return REE_OK;
    unsigned char *frame = m->reallocate(r->frame, nbytes);
    if (!frame) return no_memory(err);
    r->frame = frame;
    r->nbytes = nbytes;
    return REE_OK;
}

static enum ree_status mpi_take(struct ree_link *link, uint32_t from, enum ree_channel channel,
                                size_t limit, unsigned char **out_frame, size_t *out_nbytes,
                                struct ree_error *err) {
    struct mpi *m = mpi_of(link);
    struct receiving *r = &m->receiving[from * REE_N_CHANNELS + channel];
    enum ree_status status = REE_OK;
    *out_frame = NULL;
    *out_nbytes = 0;
    do {
        int done = 0;
        if (!r->is_under_way) status = begin_piece(m, r, from, channel, limit, err);
        if (status != REE_OK || !r->is_under_way) return status;
        int code = MPI_Test(&r->request, &done, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS) return fail(err, "cannot receive", code);
        if (!done) return REE_OK;
        r->is_under_way = false;
        bool is_first = r->have == 0;
        r->have += r->arriving;
        if (is_first && r->have == m->piece) status = reserve_buffer(m, r, limit, err);
        if (status != REE_OK) return status;
    } while (r->have < r->nbytes);
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
    struct mpi *m = mpi_of(link);
    struct watch watch;
    watch_begin(&watch, "MPI shutdown", m->seconds);
    MPI_Finalize();
    watch_end(&watch);
    if (m->watchdog.fd >= 0 && write(m->watchdog.fd, REE_WATCHDOG_DONE, 1) == 1) {
        close(m->watchdog.fd);
        waitpid(m->watchdog.pid, NULL, 0);
    }
    for (size_t i = 0; i < (size_t)link->n_ranks * REE_N_CHANNELS; i++)
        m->release(m->receiving[i].frame);
    free(m->receiving);
    free(m);
}

static const struct ree_link_ops mpi_ops = {mpi_start, mpi_test, mpi_take, mpi_abort, mpi_close};

enum ree_status ree_mpi_open(const struct ree_mpi_setup *setup, struct ree_link **out,
                             struct ree_error *err) {
    const struct ree_link_mpi_options *options = &setup->options;
    int provided, rank, size;
    struct watch watch;
    *out = NULL;
    watch_begin(&watch, "MPI startup", options->seconds);
    int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
    watch_end(&watch);
    if (code != MPI_SUCCESS) return fail(err, "MPI startup failed", code);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (provided < MPI_THREAD_SERIALIZED)
        return fail(err,
                    "this MPI library does not support calls from two threads in turn "
                    "(MPI_THREAD_SERIALIZED)",
                    MPI_ERR_OTHER);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    struct mpi *m = calloc(1, sizeof *m);
    if (m) m->receiving = calloc((size_t)size * REE_N_CHANNELS, sizeof *m->receiving);
    if (!m || !m->receiving) {
        free(m);
        return no_memory(err);
    }
    m->link = (struct ree_link){&mpi_ops, (uint32_t)rank, (uint32_t)size};
    m->seconds = options->seconds;
    m->reallocate = setup->reallocate;
    m->release = setup->release;
    m->watchdog = setup->watchdog;
    m->piece = options->piece && options->piece < MAX_PIECE ? options->piece : MAX_PIECE;
    *out = &m->link;
    return REE_OK;
}
