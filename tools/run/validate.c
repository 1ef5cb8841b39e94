// ree-run validate: checks a receipt's own statements without running the model.
#include "start.h"
#include "receipts.h"

#include "json.h"
#include "paths.h"
#include "ree.h"

static const char help[] =
    "ree-run validate RECEIPT [--public-key FILE|HEX] [--dsse FILE] [--json]\n"
    "\n"
    "Checks that a receipt is complete and unaltered: that its format is right, that its hashes\n"
    "are those of its contents, and that its signature, if it has one, is valid. validate runs\n"
    "nothing and needs no model, so it does not show that the run gave this result. It prints one\n"
    "line for each check, then \"valid\" or \"not valid\".\n"
    "\n"
    "  --public-key FILE|HEX  require that the receipt is signed with this key: a file of\n"
    "                         'ree-run keygen', or 64 hexadecimal digits. Without this option, a\n"
    "                         signature shows only that somebody made it\n"
    "  --dsse FILE            also check an attestation (a DSSE envelope, written by --dsse of a\n"
    "                         run): it must be signed, with the key of --public-key if that is\n"
    "                         given, and be about this receipt\n"
    "  --json                 print one JSON object instead of text\n" CLI_START_HELP_VERDICT "\n"
    "examples\n"
    "  ree-run validate receipt.json\n"
    "  ree-run validate receipt.json --public-key operator.pub\n"
    "\n"
    "exit status: 0 valid; 1 a hash or the signature does not match; 2 cannot be checked: the\n"
    "file cannot be read or is not a receipt, or wrong usage\n";

#define CANNOT_CHECK 2

struct report {
    const struct ree_receipt_finding *findings;
    size_t n;
    bool ok;
};

static int print_text(const struct ree_receipt_info *receipt, const struct report *report) {
    struct strbuf out;
    strbuf_init(&out);
    for (size_t i = 0; i < report->n; i++) {
        const struct ree_receipt_finding *finding = &report->findings[i];
        strbuf_printf(&out, "%-14s  %-5s  ", finding->what, finding->ok ? "ok" : "WRONG");
        cli_append_name(&out, finding->detail);
        strbuf_append(&out, "\n", 1);
    }
    if (!receipt->public_key[0]) strbuf_printf(&out, "%-14s  -      none\n", "signature");
    strbuf_printf(&out, "%s\n", report->ok ? "valid" : "not valid");
    return cli_print(&out);
}

static int print_json(const struct ree_receipt_info *receipt, const struct report *report) {
    struct strbuf out;
    cJSON *root = cJSON_CreateObject();
    cJSON_AddBoolToObject(root, "valid", report->ok);
    cJSON_AddStringToObject(root, "receipt_hash", receipt->receipt_hash);
    cJSON_AddBoolToObject(root, "signed", receipt->public_key[0]);
    if (receipt->public_key[0]) cJSON_AddStringToObject(root, "public_key", receipt->public_key);
    cJSON *array = cJSON_AddArrayToObject(root, "findings");
    for (size_t i = 0; i < report->n; i++) {
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "what", report->findings[i].what);
        cJSON_AddBoolToObject(item, "ok", report->findings[i].ok);
        cJSON_AddStringToObject(item, "detail", report->findings[i].detail);
        json_put(array, item);
    }
    strbuf_init(&out);
    cli_append_json(&out, root, true);
    return cli_print(&out);
}

static int cannot_check(const struct ree_error *err) {
    cli_fail(err);
    return CANNOT_CHECK;
}

static int validate(const char *path, const char *key_text, const char *dsse, bool json) {
    struct ree_error err;
    struct ree_receipt *receipt;
    struct report report;
    char key[65] = "";
    if (key_text && !cli_public_key(key_text, key)) return CANNOT_CHECK;
    if (ree_receipt_load(path, &receipt, &err) != REE_OK) return cannot_check(&err);
    struct ree_validate_options options = {
        .size = sizeof options, .public_key = key_text ? key : NULL, .attestation = dsse};
    int code;
    if (ree_receipt_validate(receipt, &options, &report.findings, &report.n, &report.ok, &err) !=
        REE_OK) {
        code = cannot_check(&err);
    } else {
        const struct ree_receipt_info *info = ree_receipt_info(receipt);
        code = report.ok ? 0 : CLI_FAILED;
        // If the result cannot be printed, the receipt counts as not checked.
        if ((json ? print_json(info, &report) : print_text(info, &report)) != 0)
            code = CANNOT_CHECK;
    }
    ree_receipt_destroy(receipt);
    return code;
}

int ree_run_validate(int argc, char **argv) {
    struct cli cli;
    const char *path = NULL, *key = NULL, *dsse = NULL;
    bool json = false, wants_help = false;
    cli_init(&cli, argc, argv);
    while (cli_next(&cli)) {
        if (cli_flag(&cli, "--json"))
            json = true;
        else if (cli_flag(&cli, "--help"))
            wants_help = true;
        else if (!cli_option_path(&cli, "--public-key", CLI_READS, &key) &&
                 !cli_option_path(&cli, "--dsse", CLI_READS, &dsse) &&
                 !cli_positional_path(&cli, CLI_READS, &path))
            cli_unknown(&cli);
    }
    if (cli.failed) return CLI_USAGE;
    if (wants_help) return cli_print_text(help);
    if (!path) cli_usage(&cli, "no receipt given");
    if (cli.failed) return CLI_USAGE;
    int code = cli_start(&(struct cli_start){.cannot = CANNOT_CHECK});
    return code ? code : validate(path, key, dsse, json);
}
