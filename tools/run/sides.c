#include "sides.h"

#include "receipts.h"

bool sides_option(struct cli *cli, struct sides *s) {
    static const char *const names[][2] = {{"--a-receipt", "--b-receipt"},
                                           {"--a-salt", "--b-salt"},
                                           {"--a-public-key", "--b-public-key"}};
    for (unsigned k = 0; k < 2; k++)
        if (cli_option(cli, names[0][k], &s->paths[k]) ||
            cli_option(cli, names[1][k], &s->salts[k]) || cli_option(cli, names[2][k], &s->keys[k]))
            return true;
    return false;
}

void sides_check(struct cli *cli, const struct sides *s) {
    for (unsigned k = 0; k < 2 && !cli->failed; k++)
        if (!s->paths[k] && (s->salts[k] || s->keys[k]))
            cli_usage(cli, "a salt and a public key are of a receipt: --%c-receipt", "ab"[k]);
}

int sides_load(struct sides *s) {
    struct ree_error err;
    for (unsigned k = 0; k < 2; k++) {
        if (!s->paths[k]) continue;
        s->is_loaded[k] = true;
        if (ree_receipt_load(s->paths[k], &s->receipts[k], &err) != REE_OK) return cli_fail(&err);
        int code = cli_receipt_salt(&s->receipts[k], s->paths[k], s->salts[k]);
        if (code) return code;
        if (s->keys[k] && !cli_public_key(s->keys[k], s->public_keys[k])) return CLI_FAILED;
    }
    return 0;
}

void sides_finish(struct sides *s) {
    for (unsigned k = 0; k < 2; k++)
        if (s->is_loaded[k]) ree_receipt_finish(&s->receipts[k]);
}

const struct ree_receipt *sides_receipt(const struct sides *s, unsigned k) {
    return s->paths[k] ? &s->receipts[k] : NULL;
}

const char *sides_key(const struct sides *s, unsigned k) {
    return s->keys[k] ? s->public_keys[k] : NULL;
}
