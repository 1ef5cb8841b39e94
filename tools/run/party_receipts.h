// The receipts of the two parties to a dispute: --a-receipt, --b-receipt and the related options.
#ifndef REE_RUN_PARTY_RECEIPTS_H
#define REE_RUN_PARTY_RECEIPTS_H

#include "cli.h"
#include "ree.h"

struct party_receipts {
    const char *request_path; // as given; NULL: not given
    struct ree_request *request;
    const char *paths[2], *salts[2], *keys[2], *token_paths[2]; // as given; NULL: not given
    struct ree_receipt *receipts[2];
    char public_keys[2][65];
    int32_t *ids[2];
    size_t n_ids[2];
};

// The options are cli_parties_group.
void party_receipts_check(struct cli *cli, const struct party_receipts *parties);
// Reads the given files. Returns 0, or prints an error and returns an exit code.
int party_receipts_load(struct party_receipts *parties);
void party_receipts_finish(struct party_receipts *parties);
// Fills what is known of both parties; borrowed from `parties`.
void party_receipts_fill(const struct party_receipts *parties, struct ree_disputant out[2]);
const struct ree_request *party_request(const struct party_receipts *parties); // NULL: not given

#endif
