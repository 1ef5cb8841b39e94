// Carries frames between the ranks of a run: over MPI, or over sockets for tests. A link never
// blocks and reads only the headers of frames; transport.c implements deadlines and checks. Several
// threads use a link, one at a time.
#ifndef REE_TRANSPORT_LINK_H
#define REE_TRANSPORT_LINK_H

#include "ree.h"

// Two channels between each pair of ranks, so that heartbeats and errors are not delayed by data.
// Frames of one channel from one sender arrive in order.
enum ree_channel { REE_CHANNEL_DATA, REE_CHANNEL_CONTROL, REE_N_CHANNELS };

struct ree_link;

struct ree_link_ops {
    // Starts sending a frame, which must stay valid until `test` reports that it was sent. On
    // failure *out_request is NULL if the frame may be freed. Otherwise the link may still read
    // part of it: the frame must stay valid as long as the process.
    enum ree_status (*start)(struct ree_link *link, uint32_t to, enum ree_channel channel,
                             const unsigned char *frame, size_t nbytes, void **out_request,
                             struct ree_error *err);
    // Whether the frame was sent; if so, releases the request.
    enum ree_status (*test)(struct ree_link *link, void *request, bool *out_done,
                            struct ree_error *err);
    // Returns the next frame from a rank (ree_alloc) if it has arrived completely, otherwise NULL.
    // Fails, before allocating, if a frame is longer than `limit`.
    enum ree_status (*take)(struct ree_link *link, uint32_t from, enum ree_channel channel,
                            size_t limit, unsigned char **out_frame, size_t *out_nbytes,
                            struct ree_error *err);
    // Ends all ranks. Does not return over MPI.
    void (*abort)(struct ree_link *link, int code);
    // Collective over all ranks, after everything was sent and received. Releases the link.
    void (*close)(struct ree_link *link);
};

struct ree_link {
    const struct ree_link_ops *ops;
    uint32_t rank, n_ranks;
};

// Creates `n` ranks within one process or its children, connected by sockets: rank i uses
// out_links[i].
enum ree_status ree_link_local_create(uint32_t n, struct ree_link **out_links,
                                      struct ree_error *err);

struct ree_link_mpi_options {
    // If starting or ending MPI takes longer than this (a rank does not come up), the process ends
    // with exit code 1 and a message.
    double seconds;
    // For tests: maximum bytes of a frame per MPI message; must be equal on all ranks. 0: 1 GiB
    // (MPI's counts are ints). Longer frames are split.
    size_t piece;
};
// Loads ree_mpi.so and starts MPI, as ree_transport_open_mpi says.
enum ree_status ree_link_mpi_create(const struct ree_link_mpi_options *options,
                                    struct ree_link **out_link, struct ree_error *err);

#endif
