// Functions of the ranks module for other modules of the library. ree/ranks.h is the public
// interface; README.md in this folder describes the protocol.
#ifndef REE_RANKS_RANKS_H
#define REE_RANKS_RANKS_H

#include "base/strbuf.h"
#include "generate/generator.h"
#include "ree/ranks.h"
#include "transport/transport.h"

// A function for `report` of struct ree_progress: tells the transport that this rank makes progress
// while it loads or runs a model. `user` is the struct ree_transport. Always returns true.
bool ree_ranks_progress(void *user, const char *what, uint64_t done, uint64_t total);

#endif
