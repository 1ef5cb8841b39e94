#include "receipts.h"

#include "option_groups.h"
#include "status.h"
#include "trace_options.h"

#define AT(field) offsetof(struct cli_receipt, field)

static const struct cli_option_row rows[] = {
    {.name = "--receipt-path",
     .value = "FILE",
     .kind = ROW_STRING,
     .at = AT(path),
     .path = CLI_WRITES,
     .help =
         "write a receipt of the run to FILE: the hashes of model, input and output, for others "
         "to verify ('ree-run help verify'). Reads all weights once more"},
    {.name = "--sign",
     .value = "KEY",
     .kind = ROW_STRING,
     .at = AT(key),
     .path = CLI_READS,
     .help = "sign the receipt with this private key"},
    {.name = "--dsse",
     .value = "FILE",
     .kind = ROW_STRING,
     .at = AT(dsse),
     .path = CLI_WRITES,
     .help = "with --sign: also write an in-toto statement about the receipt, in a DSSE envelope, "
             "for tools that use these formats"},
};
const struct cli_option_table cli_receipt_group = CLI_OPTION_TABLE(rows);

void cli_receipt_check(struct cli *cli, const struct cli_receipt *receipt) {
    if (receipt->dsse && !receipt->key) cli_usage(cli, "--dsse requires --sign KEY");
    if (receipt->path) return;
    if (receipt->key) cli_usage(cli, "--sign requires --receipt-path");
    if (receipt->is_private) cli_usage(cli, "--private requires --receipt-path");
}

int cli_receipt_prepare(const struct cli_receipt *receipt) {
    struct ree_error err;
    if (!receipt->path) return 0;
    int code = cli_check_output_path(receipt->path, "a receipt");
    if (!code && receipt->dsse) code = cli_check_output_path(receipt->dsse, "an attestation");
    if (!code && receipt->key && ree_key_check(receipt->key, &err) != REE_OK) code = cli_fail(&err);
    return code;
}

int cli_receipt_save(const struct cli_receipt *receipt, struct ree_receipt *made) {
    struct ree_error err;
    if (receipt->key && ree_receipt_sign(made, receipt->key, &err) != REE_OK) return cli_fail(&err);
    if (ree_receipt_write(made, receipt->path, &err) != REE_OK) return cli_fail(&err);
    if (receipt->dsse &&
        ree_dsse_write(made, receipt->path, receipt->key, receipt->dsse, &err) != REE_OK)
        return cli_fail(&err);
    return 0;
}

enum ree_status cli_receipt_load(const char *path, struct ree_receipt **out,
                                 struct ree_error *err) {
    struct ree_training_receipt *training;
    struct ree_error other;
    enum ree_status status = ree_receipt_load(path, out, err);
    if (status != REE_INVALID) return status;
    status = ree_training_receipt_load(path, &training, &other);
    ree_training_receipt_destroy(training);
    // If it is no receipt of a training, the first message says what is wrong.
    if (status == REE_UNSUPPORTED) return err->status;
    if (status != REE_OK) *err = other;
    if (status != REE_OK) return status;
    return set_error(err, REE_INVALID,
                     "%s: is the receipt of a training; check it with 'ree-run verify RECEIPT STEP "
                     "--data FILE'",
                     path);
}

int cli_receipt_salt(struct ree_receipt *receipt, const char *path, const char *salt_path) {
    struct ree_error err;
    if (salt_path && !ree_receipt_info(receipt)->is_private) {
        cli_error("--salt: %s is not a private receipt", path);
        return CLI_USAGE;
    }
    return ree_receipt_load_salt(receipt, salt_path, &err) == REE_OK ? 0 : cli_fail(&err);
}

const struct ree_receipt_trace *cli_receipt_trace(const struct traced *traced,
                                                  struct ree_receipt_trace *out) {
    if (!traced) return NULL;
    *out = (struct ree_receipt_trace){.size = sizeof *out,
                                      .root = traced->root,
                                      .n_steps = traced->n_steps,
                                      .prefill_chunk = traced->prefill_chunk,
                                      .file = traced->file};
    return out;
}

bool cli_public_key(const char *text, char key[65]) {
    struct ree_error err;
    if (ree_key_named(text, key, &err) == REE_OK) return true;
    cli_fail(&err);
    return false;
}
