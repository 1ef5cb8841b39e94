// The interface of ree_mpi.so.
#ifndef REE_TRANSPORT_MPI_MODULE_H
#define REE_TRANSPORT_MPI_MODULE_H

#include "transport/watchdog.h"
#include "transport/link.h"

struct ree_mpi_setup {
    struct ree_link_mpi_options options;
    struct ree_watchdog watchdog;
    // Frames belong to the transport, which releases them with ree_free.
    void *(*reallocate)(void *memory, size_t size);
    void (*release)(void *memory);
};

// See ree_link_mpi_create.
__attribute__((visibility("default"))) enum ree_status
ree_mpi_open(const struct ree_mpi_setup *setup, struct ree_link **out_link, struct ree_error *err);

#endif
