// The referee: decides a claim (audit/claim.h) by computing the one node on the CPU, from the
// model and the values that the node read.
#ifndef REE_AUDIT_REFEREE_H
#define REE_AUDIT_REFEREE_H

#include "audit/claim.h"

enum ree_verdict { REE_VERDICT_A, REE_VERDICT_B, REE_VERDICT_NEITHER };
const char *ree_verdict_text(enum ree_verdict verdict); // "A is right"

struct ree_ruling {
    enum ree_verdict verdict;
    int64_t misread[2]; // an input that the side's record does not have as agreed; -1: none
    int64_t wrong[2];   // the first output that differs from the referee's; -1: none
    uint32_t n_outputs;
    ree_digest *outputs;           // the referee's; malloc
    uint32_t n_loaded, n_constant; // inputs read from files; the model's
};

struct ree_referee_options {
    const char *model;  // file or folder
    const char *folder; // of the recorded inputs (audit/recorded.h)
    void (*on_progress)(void *user, const char *what, uint64_t done, uint64_t total); // NULL: off
};

// Fails where the claim cannot be decided, and says why: REE_INVALID, it does not hold together, is
// of another model, or what is recorded is not what was committed to; REE_NOT_FOUND, a file is
// missing; REE_UNSUPPORTED, of another operation set than "reproducible", other numerics, or a
// sequence. Release with ree_ruling_finish, also on failure.
enum ree_status ree_referee(const struct ree_claim *claim,
                            const struct ree_referee_options *options, struct ree_ruling *out,
                            struct ree_error *err);
void ree_ruling_finish(struct ree_ruling *ruling);

#endif
