// Ranks: what other modules use. ree/ranks.h is the public interface; README.md describes the
// protocol.
#ifndef REE_RANKS_RANKS_H
#define REE_RANKS_RANKS_H

#include "base/strbuf.h"
#include "generate/generator.h"
#include "ree/ranks.h"
#include "transport/transport.h"

// For the progress of models and sessions: reports to the transport that this rank makes progress
// during a long load or run. `user` is a struct ree_transport. Returns true.
bool ree_ranks_progress(void *user, const char *what, uint64_t done, uint64_t total);

#endif
