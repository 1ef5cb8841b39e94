#include "receipts.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"

bool cli_receipt_option(struct cli *cli, struct cli_receipt *receipt) {
    if (cli_flag(cli, "--private")) return receipt->is_private = true;
    return cli_option(cli, "--receipt-path", &receipt->path) ||
           cli_option(cli, "--sign", &receipt->key);
}

void cli_receipt_check(struct cli *cli, const struct cli_receipt *receipt) {
    if (receipt->path) return;
    if (receipt->key) cli_usage(cli, "--sign is of a receipt, and there is no --receipt-path");
    if (receipt->is_private)
        cli_usage(cli, "--private is of a receipt, and there is no --receipt-path");
}

int cli_receipt_prepare(const struct cli_receipt *receipt) {
    struct ree_error err;
    char public_key[65];
    if (!receipt->path) return 0;
    int code = cli_check_place(receipt->path, "a receipt");
    if (!code && receipt->key && ree_key_public(receipt->key, public_key, &err) != REE_OK)
        code = cli_fail(&err);
    return code;
}

static bool is_hex_key(const char *text) {
    return strlen(text) == 64 && strspn(text, "0123456789abcdefABCDEF") == 64;
}

bool cli_public_key(const char *text, char key[65]) {
    struct ree_error err;
    if (!is_hex_key(text)) {
        if (ree_key_public(text, key, &err) == REE_OK) return true;
        cli_fail(&err);
        return false;
    }
    for (size_t i = 0; i <= 64; i++)
        key[i] = text[i] >= 'A' && text[i] <= 'F' ? (char)(text[i] - 'A' + 'a') : text[i];
    return true;
}

int cli_receipt_save(const struct cli_receipt *receipt, struct ree_receipt *made) {
    struct ree_error err;
    if (receipt->key && ree_receipt_sign(made, receipt->key, &err) != REE_OK) return cli_fail(&err);
    if (ree_receipt_write(made, receipt->path, &err) != REE_OK) return cli_fail(&err);
    return 0;
}
