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

#define PARTY_RECEIPTS_HELP                                                                        \
    "  --a-receipt FILE, --b-receipt FILE\n"                                                       \
    "                         the parties' receipts\n"                                             \
    "  --a-salt FILE, --b-salt FILE\n"                                                             \
    "                         the salt of a private receipt (default: RECEIPT.salt, if it\n"       \
    "                         exists)\n"                                                           \
    "  --a-tokens FILE, --b-tokens FILE\n"                                                         \
    "                         the tokens of a private receipt, prompt and output: numbers\n"       \
    "                         separated by commas or white space\n"                                \
    "  --a-public-key FILE|HEX, --b-public-key FILE|HEX\n"                                         \
    "                         require that the receipt is signed with this key\n"                  \
    "  --request FILE         require that both receipts answer this request ('ree-run help\n"     \
    "                         request'): a receipt with another prompt or other parameters is\n"   \
    "                         wrong\n"

// returns true if the argument is one of these options
bool party_receipts_option(struct cli *cli, struct party_receipts *parties);
void party_receipts_check(struct cli *cli, const struct party_receipts *parties);
// Reads the given files. Returns 0, or prints an error and returns an exit code.
int party_receipts_load(struct party_receipts *parties);
void party_receipts_finish(struct party_receipts *parties);
// Fills what is known of both parties; borrowed from `parties`.
void party_receipts_fill(const struct party_receipts *parties, struct ree_disputant out[2]);
const struct ree_request *party_request(const struct party_receipts *parties); // NULL: not given

#endif
