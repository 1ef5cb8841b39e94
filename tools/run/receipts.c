#include "receipts.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/file.h"
#include "status.h"
#include "receipt/dsse.h"

#include "cli.h"
#include "paths.h"

bool cli_receipt_option(struct cli *cli, struct cli_receipt *receipt) {
    if (cli_flag(cli, "--private")) return receipt->is_private = true;
    return cli_option_path(cli, "--receipt-path", CLI_WRITES, &receipt->path) ||
           cli_option_path(cli, "--sign", CLI_READS, &receipt->key) ||
           cli_option_path(cli, "--dsse", CLI_WRITES, &receipt->dsse);
}

void cli_receipt_check(struct cli *cli, const struct cli_receipt *receipt) {
    if (receipt->dsse && !receipt->key) cli_usage(cli, "--dsse requires --sign KEY");
    if (receipt->path) return;
    if (receipt->key) cli_usage(cli, "--sign requires --receipt-path");
    if (receipt->is_private) cli_usage(cli, "--private requires --receipt-path");
}

static char *salt_path_of(const char *path) {
    size_t size = strlen(path) + sizeof ".salt";
    char *salt_path = malloc(size);
    if (salt_path)
        snprintf(salt_path, size, "%s.salt", path);
    else
        cli_error("out of memory");
    return salt_path;
}

int cli_receipt_prepare(struct cli_receipt *receipt) {
    struct ree_error err;
    if (!receipt->path) return 0;
    if (receipt->is_private &&
        getrandom(receipt->salt, sizeof receipt->salt, 0) != (ssize_t)sizeof receipt->salt) {
        cli_error("the system returned no random bytes for a salt");
        return CLI_FAILED;
    }
    int code = cli_check_output_path(receipt->path, "a receipt");
    if (!code && receipt->dsse) code = cli_check_output_path(receipt->dsse, "an attestation");
    if (!code && receipt->key && ree_key_check(receipt->key, &err) != REE_OK) code = cli_fail(&err);
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

#define MAX_OLD_SALT 4096 // maximum size in bytes of an existing file that a salt replaces

static enum ree_status save_salt(const struct cli_receipt *receipt, const char *path,
                                 struct ree_error *err) {
    char text[66];
    ree_hex(receipt->salt, text);
    strcpy(text + 64, "\n");
    return ree_file_write_secret(path, text, 65, err);
}

// Reads 64 hexadecimal digits, optionally followed by newlines.
static enum ree_status load_salt(const char *path, unsigned char salt[REE_SALT_SIZE],
                                 struct ree_error *err) {
    void *bytes;
    size_t n;
    char hex[65] = "";
    TRY(ree_file_read_small(path, 66, &bytes, &n, err));
    const char *text = bytes;
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
        n--;
    if (n == 64) memcpy(hex, text, 64);
    free(bytes);
    if (ree_unhex(hex, salt)) return REE_OK;
    return set_error(err, REE_INVALID, "%s: a salt must be 64 hexadecimal digits", path);
}

int cli_receipt_salt(struct ree_receipt *receipt, const char *path, const char *salt_path) {
    struct ree_error err;
    unsigned char salt[REE_SALT_SIZE];
    if (!receipt->is_private) {
        if (!salt_path) return 0;
        cli_error("--salt: %s is not a private receipt", path);
        return CLI_USAGE;
    }
    char *beside = salt_path ? NULL : salt_path_of(path);
    if (!salt_path && !beside) return CLI_FAILED;
    int code = 0;
    if (!salt_path && access(beside, F_OK) != 0)
        ; // the receipt stays without a salt
    else if (load_salt(salt_path ? salt_path : beside, salt, &err) != REE_OK)
        code = cli_fail(&err);
    else if (!ree_receipt_set_salt(receipt, salt)) {
        cli_error("%s: is the salt of another receipt", salt_path ? salt_path : beside);
        code = CLI_FAILED;
    }
    free(beside);
    return code;
}

// Writes receipt and salt, which are worthless without each other. The salt gets its name when the
// receipt is completely written except for its name. If naming the receipt then fails, the old salt
// is restored.
static enum ree_status save(const struct cli_receipt *receipt, const struct ree_receipt *made,
                            struct ree_error *err) {
    struct ree_file_draft *draft;
    struct ree_error ignored;
    if (!receipt->is_private) return ree_receipt_write(made, receipt->path, err);
    char *path = salt_path_of(receipt->path);
    if (!path) return memory_error(err);
    void *old = NULL;
    size_t n_old = 0;
    // An unreadable old salt is replaced too.
    bool is_new = ree_file_read_small(path, MAX_OLD_SALT, &old, &n_old, &ignored) == REE_NOT_FOUND;
    enum ree_status status = ree_receipt_draft(made, receipt->path, &draft, err);
    if (status == REE_OK) {
        status = save_salt(receipt, path, err);
        if (status != REE_OK)
            ree_file_abandon(draft);
        else if ((status = ree_file_commit(draft, err)) != REE_OK && is_new)
            unlink(path);
        else if (status != REE_OK && old)
            ree_file_write_secret(path, old, n_old, &ignored);
    }
    free(old);
    free(path);
    return status;
}

int cli_receipt_save(const struct cli_receipt *receipt, struct ree_receipt *made) {
    struct ree_error err;
    if (receipt->key && ree_receipt_sign(made, receipt->key, &err) != REE_OK) return cli_fail(&err);
    if (save(receipt, made, &err) != REE_OK) return cli_fail(&err);
    if (receipt->dsse &&
        ree_dsse_write(made, receipt->path, receipt->key, receipt->dsse, &err) != REE_OK)
        return cli_fail(&err);
    return 0;
}
