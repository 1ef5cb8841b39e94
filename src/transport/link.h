// A link carries frames (frame.h) between the ranks of a run: over MPI, or over sockets for tests.
// Its functions never block, and it reads only the headers of frames; transport.c implements
// deadlines and checks. Several threads may use a link, but only one at a time.
#ifndef REE_TRANSPORT_LINK_H
#define REE_TRANSPORT_LINK_H

#include "ree.h"

// There are two channels between each pair of ranks, so that data does not delay heartbeats and
// errors (control). Frames from one sender on one channel arrive in order.
enum ree_channel { REE_CHANNEL_DATA, REE_CHANNEL_CONTROL, REE_N_CHANNELS };

struct ree_link;

struct ree_link_ops {
    // Starts sending a frame to rank `to`. The frame must stay valid until `test` reports that it
    // was sent. On failure: if *out_request is NULL, the frame may be freed; otherwise the link may
    // still read it, and it must stay valid as long as the process.
    enum ree_status (*start)(struct ree_link *link, uint32_t to, enum ree_channel channel,
                             const unsigned char *frame, size_t nbytes, void **out_request,
                             struct ree_error *err);
    // Sets *out_done to whether the frame of this request was sent. If it was, releases the
    // request.
    enum ree_status (*test)(struct ree_link *link, void *request, bool *out_done,
                            struct ree_error *err);
    // Returns the next frame from rank `from` if it has arrived completely, otherwise NULL. The
    // caller releases it with ree_free. Fails with REE_INVALID, before it allocates, if the frame
    // is longer than `limit` bytes.
    enum ree_status (*take)(struct ree_link *link, uint32_t from, enum ree_channel channel,
                            size_t limit, unsigned char **out_frame, size_t *out_nbytes,
                            struct ree_error *err);
    // Ends the run on all ranks. Over MPI, this ends the process with exit code `code`.
    void (*abort)(struct ree_link *link, int code);
    // Releases the link. Every rank must call it, after it has sent and received everything.
    void (*close)(struct ree_link *link);
};

struct ree_link {
    const struct ree_link_ops *ops;
    uint32_t rank, n_ranks;
};

// For tests: creates the links of `n` ranks, connected by sockets. The ranks are threads of this
// process or its child processes; rank i uses out_links[i].
enum ree_status ree_link_local_create(uint32_t n, struct ree_link **out_links,
                                      struct ree_error *err);

struct ree_link_mpi_options {
    // Seconds that starting or ending MPI may take. If it takes longer, for example because a rank
    // does not start, the process ends with exit code 1 and a message.
    double seconds;
    // For tests: a frame of more bytes is sent as several MPI messages of at most this size. Must
    // be equal on all ranks. 0: 1 GiB, because MPI's counts are ints.
    size_t piece;
};
// Loads the module ree_mpi.so, starts MPI and creates this rank's link. Fails with REE_UNAVAILABLE
// if there is no such module or it cannot be loaded.
enum ree_status ree_link_mpi_create(const struct ree_link_mpi_options *options,
                                    struct ree_link **out_link, struct ree_error *err);

#endif
