// Loads what the command line names about the two parties of a dispute (0: A, 1: B): --a-receipt,
// --b-receipt and related options.
#ifndef REE_RUN_PARTY_RECEIPTS_H
#define REE_RUN_PARTY_RECEIPTS_H

#include "cli.h"
#include "ree.h"

struct party_receipts {
    const char *request_path; // value of --request; NULL: not given
    struct ree_request *request;
    // Values of --a-receipt, --a-salt, --a-public-key and --a-tokens, and of the same options for
    // B; NULL: not given.
    const char *paths[2], *salts[2], *keys[2], *token_paths[2];
    struct ree_receipt *receipts[2];           // NULL: not given, or the receipt of a training
    struct ree_training_receipt *trainings[2]; // NULL: not given, or another receipt
    const char *data_path;                     // value of --data; NULL: not given
    struct ree_dataset *dataset;
    struct ree_training_terms training; // if there are receipts of trainings
    char public_keys[2][65];
    int32_t *ids[2];
    size_t n_ids[2];
};

// Reports options of cli_parties_group that do not fit together as wrong usage, and adds the paths
// of salts next to the receipts to the paths of the command line (paths.h).
void party_receipts_check(struct cli *cli, const struct party_receipts *parties);
// Reads the given files. Returns 0, or prints an error and returns an exit code.
int party_receipts_load(struct party_receipts *parties);
void party_receipts_finish(struct party_receipts *parties);
// Sets the receipt, public key and tokens in out[0] (A) and out[1] (B). The pointers are borrowed
// from `parties`, and NULL if not given.
void party_receipts_fill(const struct party_receipts *parties, struct ree_disputant out[2]);
// Returns the request that --request names, borrowed from `parties`; NULL if not given.
const struct ree_request *party_request(const struct party_receipts *parties);

// Returns what the receipts say about a training, borrowed from `parties`; NULL if they are not
// receipts of trainings.
const struct ree_training_terms *party_training(const struct party_receipts *parties);
// Returns the hash of party k's receipt, and the key that signed it ("": not signed) in *out_key,
// both borrowed from `parties`; NULL if there is no receipt.
const char *party_receipt_hash(const struct party_receipts *parties, unsigned k,
                               const char **out_key);

#endif
