// What carries frames between the ranks of a run: MPI, or sockets for tests. A link neither waits
// nor looks into frames beyond their headers; deadlines and checks are transport.c's. It is used by
// several threads, one at a time.
#ifndef REE_TRANSPORT_LINK_H
#define REE_TRANSPORT_LINK_H

#include "ree.h"

// Two channels between each pair of ranks, so that signs of life and errors come through while
// data waits for its turn. Frames of one channel from one sender arrive in their order.
enum ree_channel { REE_CHANNEL_DATA, REE_CHANNEL_CONTROL, REE_N_CHANNELS };

struct ree_link;

struct ree_link_ops {
    // Begins to send a frame, which stays where it is until `test` says that it has gone.
    enum ree_status (*start)(struct ree_link *link, uint32_t to, enum ree_channel channel,
                             const unsigned char *frame, size_t nbytes, void **out_request,
                             struct ree_error *err);
    // Once done, the request is released.
    enum ree_status (*test)(struct ree_link *link, void *request, bool *out_done,
                            struct ree_error *err);
    // The next frame from a rank, if it has arrived whole (malloc), else NULL. Fails where one is
    // longer than `limit`, before memory is taken for it.
    enum ree_status (*take)(struct ree_link *link, uint32_t from, enum ree_channel channel,
                            size_t limit, unsigned char **out_frame, size_t *out_nbytes,
                            struct ree_error *err);
    // Ends all ranks. MPI's does not return.
    void (*abort)(struct ree_link *link, int code);
    // All ranks together, after everything was sent and received. Releases the link.
    void (*close)(struct ree_link *link);
};

struct ree_link {
    const struct ree_link_ops *ops;
    uint32_t rank, n_ranks;
};

// `n` ranks within one process or its children, connected by sockets: rank i uses out_links[i].
enum ree_status ree_link_local_create(uint32_t n, struct ree_link **out_links,
                                      struct ree_error *err);

// Whether this process is one of several that mpirun started; asks the environment alone.
bool ree_link_mpi_started(void);
struct ree_link_mpi_options {
    // Where MPI's start takes longer (a rank does not come up), the process ends with exit code 1
    // and a message, and so it does when MPI's end takes longer.
    double seconds;
    // For tests: bytes of a frame that go as one message of MPI; the same on all ranks. 0: 1 GiB
    // (MPI's counts are ints). Frames may be longer.
    size_t piece;
};
// Loads ree_mpi.so, which lies beside the program, and begins MPI. REE_UNAVAILABLE where ree was
// built without MPI.
enum ree_status ree_link_mpi_create(const struct ree_link_mpi_options *options,
                                    struct ree_link **out_link, struct ree_error *err);

#endif
