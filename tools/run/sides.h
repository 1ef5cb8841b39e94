// The receipts of the two parties to a dispute: --a-receipt, --b-receipt and what belongs to them.
#ifndef REE_RUN_SIDES_H
#define REE_RUN_SIDES_H

#include "cli.h"
#include "receipt/receipt.h"

struct sides {
    const char *paths[2], *salts[2], *keys[2]; // as given; NULL: not given
    bool is_loaded[2];
    struct ree_receipt receipts[2];
    char public_keys[2][65];
};

bool sides_option(struct cli *cli, struct sides *sides); // whether the option is one of them
void sides_check(struct cli *cli, const struct sides *sides);
// Reads what is given. Returns 0, or prints an error and returns an exit code.
int sides_load(struct sides *sides);
void sides_finish(struct sides *sides);
const struct ree_receipt *sides_receipt(const struct sides *sides, unsigned k); // NULL: not given
const char *sides_key(const struct sides *sides, unsigned k);                   // likewise

#endif
