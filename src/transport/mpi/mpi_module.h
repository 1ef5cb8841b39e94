// The interface of ree_mpi.so, the module that connects ranks by MPI. mpi_start.c loads it, so that
// ree itself is not linked with an MPI library.
#ifndef REE_TRANSPORT_MPI_MODULE_H
#define REE_TRANSPORT_MPI_MODULE_H

#include "transport/watchdog.h"
#include "transport/link.h"

struct ree_mpi_setup {
    struct ree_link_mpi_options options;
    struct ree_watchdog watchdog;
    // ree_realloc and ree_free: the module allocates received frames with them, because the
    // transport releases the frames with ree_free.
    void *(*reallocate)(void *memory, size_t size);
    void (*release)(void *memory);
};

// Starts MPI and creates this rank's link, for ree_link_mpi_create.
__attribute__((visibility("default"))) enum ree_status
ree_mpi_open(const struct ree_mpi_setup *setup, struct ree_link **out_link, struct ree_error *err);

#endif
