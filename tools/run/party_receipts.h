// The receipts of the two parties to a dispute: --a-receipt, --b-receipt and the related options.
#ifndef REE_RUN_PARTY_RECEIPTS_H
#define REE_RUN_PARTY_RECEIPTS_H

#include "dispute/rules.h"
#include "cli.h"
#include "receipt/request.h"

struct party_receipts {
    const char *request_path; // as given; NULL: not given
    struct ree_request request;
    const char *paths[2], *salts[2], *keys[2], *token_paths[2]; // as given; NULL: not given
    bool is_loaded[2];
    struct ree_receipt receipts[2];
    char public_keys[2][65];
    int32_t *ids[2];
    struct ree_stated_tokens tokens[2];
};

// The options are cli_parties_group.
void party_receipts_check(struct cli *cli, const struct party_receipts *parties);
// Reads the given files. Returns 0, or prints an error and returns an exit code.
int party_receipts_load(struct party_receipts *parties);
void party_receipts_finish(struct party_receipts *parties);
const struct ree_receipt *party_receipt(const struct party_receipts *parties,
                                        unsigned k);                            // NULL: not given
const struct ree_request *party_request(const struct party_receipts *parties);  // NULL: not given
const char *party_public_key(const struct party_receipts *parties, unsigned k); // NULL: not given

#endif
