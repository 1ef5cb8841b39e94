// Links over sockets, for tests: connects ranks that are threads or child processes (link.h).
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/container.h"
#include "base/memory.h"
#include "base/status.h"
#include "transport/frame.h"
#include "transport/link.h"

// A frame being received from a rank.
struct incoming {
    unsigned char header[REE_FRAME_HEADER];
    unsigned char *frame; // allocated after the header has arrived
    size_t have, nbytes;
};

struct outgoing {
    uint32_t to;
    enum ree_channel channel;
    const unsigned char *frame;
    size_t sent, nbytes;
    uint64_t turn; // number of frames started on this socket before this one
    struct outgoing *next, **former;
};

struct local {
    struct ree_link link;
    int *sockets; // (n_ranks, channels); -1: this rank's own, or closed
    struct incoming *incoming;
    uint64_t *begun, *ended;   // per socket: frames started and frames sent
    struct outgoing *outgoing; // frames not yet sent
};

static struct local *local_of(struct ree_link *link) {
    return REE_CONTAINER_OF(link, struct local, link);
}

static size_t place(uint32_t rank, enum ree_channel channel) {
    return (size_t)rank * REE_N_CHANNELS + channel;
}

static enum ree_status local_start(struct ree_link *link, uint32_t to, enum ree_channel channel,
                                   const unsigned char *frame, size_t nbytes, void **out_request,
                                   struct ree_error *err) {
    struct local *l = local_of(link);
    struct outgoing *o = ree_alloc(sizeof *o);
    if (!o) return ree_no_memory(err);
    *o = (struct outgoing){
        to, channel, frame, 0, nbytes, l->begun[place(to, channel)]++, l->outgoing, &l->outgoing};
    if (o->next) o->next->former = &o->next;
    l->outgoing = o;
    *out_request = o;
    return REE_OK;
}

static enum ree_status local_test(struct ree_link *link, void *request, bool *out_done,
                                  struct ree_error *err) {
    struct local *l = local_of(link);
    struct outgoing *o = request;
    size_t k = place(o->to, o->channel);
    *out_done = false;
    if (o->turn != l->ended[k]) return REE_OK;
    while (o->sent < o->nbytes) {
        ssize_t n = send(l->sockets[k], o->frame + o->sent, o->nbytes - o->sent,
                         MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return REE_OK;
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            return ree_fail(err, REE_IO, "cannot send to rank %u: %s", o->to, strerror(errno));
        o->sent += (size_t)n;
    }
    l->ended[k]++;
    *o->former = o->next;
    if (o->next) o->next->former = o->former;
    ree_free(o);
    *out_done = true;
    return REE_OK;
}

// Reads what has arrived until *have equals `want`. *out_whole receives whether it does.
static enum ree_status read_more(int fd, unsigned char *to, size_t *have, size_t want,
                                 uint32_t from, bool *out_whole, struct ree_error *err) {
    *out_whole = false;
    while (*have < want) {
        ssize_t n = recv(fd, to + *have, want - *have, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return REE_OK;
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) return ree_fail(err, REE_IO, "rank %u has closed its connection", from);
        if (n < 0)
            return ree_fail(err, REE_IO, "cannot receive from rank %u: %s", from, strerror(errno));
        *have += (size_t)n;
    }
    *out_whole = true;
    return REE_OK;
}

static enum ree_status local_take(struct ree_link *link, uint32_t from, enum ree_channel channel,
                                  size_t limit, unsigned char **out_frame, size_t *out_nbytes,
                                  struct ree_error *err) {
    struct local *l = local_of(link);
    size_t k = place(from, channel);
    struct incoming *in = &l->incoming[k];
    bool whole;
    *out_frame = NULL;
    *out_nbytes = 0;
    if (!in->frame) {
        REE_TRY(
            read_more(l->sockets[k], in->header, &in->have, REE_FRAME_HEADER, from, &whole, err));
        if (!whole) return REE_OK;
        REE_TRY(ree_frame_measure(in->header, limit, &in->nbytes, err));
        in->frame = ree_alloc(in->nbytes);
        if (!in->frame) return ree_no_memory(err);
        memcpy(in->frame, in->header, REE_FRAME_HEADER);
    }
    REE_TRY(read_more(l->sockets[k], in->frame, &in->have, in->nbytes, from, &whole, err));
    if (!whole) return REE_OK;
    *out_frame = in->frame;
    *out_nbytes = in->nbytes;
    *in = (struct incoming){.frame = NULL};
    return REE_OK;
}

static void local_close(struct ree_link *link) {
    if (!link) return;
    struct local *l = local_of(link);
    for (size_t k = 0; l->sockets && k < (size_t)link->n_ranks * REE_N_CHANNELS; k++)
        if (l->sockets[k] >= 0) close(l->sockets[k]);
    for (size_t k = 0; l->incoming && k < (size_t)link->n_ranks * REE_N_CHANNELS; k++)
        ree_free(l->incoming[k].frame);
    while (l->outgoing) {
        struct outgoing *next = l->outgoing->next;
        ree_free(l->outgoing);
        l->outgoing = next;
    }
    ree_free(l->sockets);
    ree_free(l->incoming);
    ree_free(l->begun);
    ree_free(l->ended);
    ree_free(l);
}

// The other ranks notice the end of their connections.
static void local_abort(struct ree_link *link, int code) {
    struct local *l = local_of(link);
    (void)code;
    for (size_t k = 0; k < (size_t)link->n_ranks * REE_N_CHANNELS; k++)
        if (l->sockets[k] >= 0) shutdown(l->sockets[k], SHUT_RDWR);
}

static const struct ree_link_ops local_ops = {local_start, local_test, local_take, local_abort,
                                              local_close};

static struct local *make(uint32_t rank, uint32_t n) {
    size_t n_sockets = (size_t)n * REE_N_CHANNELS;
    struct local *l = ree_alloc_zeroed(1, sizeof *l);
    if (!l) return NULL;
    l->link = (struct ree_link){&local_ops, rank, n};
    l->sockets = ree_alloc((n_sockets + 1) * sizeof *l->sockets);
    l->incoming = ree_alloc_zeroed(n_sockets + 1, sizeof *l->incoming);
    l->begun = ree_alloc_zeroed(n_sockets + 1, sizeof *l->begun);
    l->ended = ree_alloc_zeroed(n_sockets + 1, sizeof *l->ended);
    for (size_t k = 0; l->sockets && k < n_sockets; k++)
        l->sockets[k] = -1;
    if (l->sockets && l->incoming && l->begun && l->ended) return l;
    local_close(&l->link);
    return NULL;
}

enum ree_status ree_link_local_create(uint32_t n, struct ree_link **out, struct ree_error *err) {
    enum ree_status status = REE_OK;
    memset(out, 0, n * sizeof *out);
    for (uint32_t i = 0; status == REE_OK && i < n; i++) {
        struct local *l = make(i, n);
        if (l)
            out[i] = &l->link;
        else
            status = ree_no_memory(err);
    }
    for (uint32_t a = 0; status == REE_OK && a < n; a++)
        for (uint32_t b = a + 1; b < n; b++)
            for (int c = 0; c < REE_N_CHANNELS; c++) {
                int pair[2];
                if (status != REE_OK) break;
                if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
                    status = ree_fail(err, REE_IO, "cannot create a socket: %s", strerror(errno));
                    break;
                }
                struct local *la = local_of(out[a]), *lb = local_of(out[b]);
                la->sockets[place(b, (enum ree_channel)c)] = pair[0];
                lb->sockets[place(a, (enum ree_channel)c)] = pair[1];
            }
    for (uint32_t i = 0; status != REE_OK && i < n; i++) {
        local_close(out[i]);
        out[i] = NULL;
    }
    return status;
}
