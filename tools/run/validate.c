// ree-run validate: checks a receipt's own statements without running the model.
#include "start.h"
#include "receipts.h"

#include "json.h"
#include "receipt/dsse.h"
#include "receipt/receipt.h"
#include "paths.h"

#include <stdio.h>
#include <string.h>

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
    struct ree_receipt_finding findings[REE_RECEIPT_MAX_FINDINGS + 2];
    size_t n;
    bool ok;
};

// Returns a finding that says nothing about the receipt: memory ran out, or a file cannot be read.
static const struct ree_receipt_finding *find_unknown(const struct report *report) {
    for (size_t i = 0; i < report->n; i++)
        if (report->findings[i].unknown) return &report->findings[i];
    return NULL;
}

static void check_key(const struct ree_receipt *receipt, const char *key, struct report *report) {
    struct ree_receipt_finding *finding = &report->findings[report->n++];
    *finding = (struct ree_receipt_finding){.what = "public key"};
    finding->ok = receipt->is_signed && strcmp(receipt->public_key, key) == 0;
    if (finding->ok)
        snprintf(finding->detail, sizeof finding->detail, "%s, as required", key);
    else if (receipt->is_signed)
        snprintf(finding->detail, sizeof finding->detail, "it is %s, required is %s",
                 receipt->public_key, key);
    else
        snprintf(finding->detail, sizeof finding->detail,
                 "the receipt is not signed, required is %s", key);
    report->ok = report->ok && finding->ok;
}

static void check_dsse(const char *path, const char *receipt_path, const char *key,
                       struct report *report) {
    struct ree_receipt_finding *finding = &report->findings[report->n++];
    struct ree_error err;
    char signer[65];
    enum ree_status status = ree_dsse_check(path, receipt_path, key, signer, &err);
    *finding = (struct ree_receipt_finding){.what = "attestation",
                                            .ok = status == REE_OK,
                                            .unknown = status == REE_NO_MEMORY ||
                                                       status == REE_NOT_FOUND || status == REE_IO};
    if (finding->ok)
        snprintf(finding->detail, sizeof finding->detail, "by %s", signer);
    else
        snprintf(finding->detail, sizeof finding->detail, "%.250s", err.message);
    report->ok = report->ok && finding->ok;
}

static int print_text(const struct ree_receipt *receipt, const struct report *report) {
    struct strbuf out;
    strbuf_init(&out);
    for (size_t i = 0; i < report->n; i++) {
        const struct ree_receipt_finding *finding = &report->findings[i];
        strbuf_printf(&out, "%-14s  %-5s  ", finding->what, finding->ok ? "ok" : "WRONG");
        cli_append_name(&out, finding->detail);
        strbuf_append(&out, "\n", 1);
    }
    if (!receipt->is_signed) strbuf_printf(&out, "%-14s  -      none\n", "signature");
    strbuf_printf(&out, "%s\n", report->ok ? "valid" : "not valid");
    return cli_print(&out);
}

static int print_json(const struct ree_receipt *receipt, const struct report *report) {
    struct strbuf out;
    cJSON *root = cJSON_CreateObject();
    cJSON_AddBoolToObject(root, "valid", report->ok);
    cJSON_AddStringToObject(root, "receipt_hash", receipt->receipt_hash);
    cJSON_AddBoolToObject(root, "signed", receipt->is_signed);
    if (receipt->is_signed) cJSON_AddStringToObject(root, "public_key", receipt->public_key);
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

static int validate(const char *path, const char *key_text, const char *dsse, bool json) {
    struct ree_error err;
    struct ree_receipt receipt;
    struct report report;
    char key[65] = "";
    if (key_text && !cli_public_key(key_text, key)) return CANNOT_CHECK;
    int code = CANNOT_CHECK;
    if (ree_receipt_load(path, &receipt, &err) == REE_OK) {
        report.n = ree_receipt_check(&receipt, report.findings, &report.ok);
        if (key_text && (!dsse || receipt.is_signed)) check_key(&receipt, key, &report);
        if (dsse) check_dsse(dsse, path, key, &report);
        code = report.ok ? 0 : CLI_FAILED;
        const struct ree_receipt_finding *unknown = find_unknown(&report);
        if (unknown) {
            cli_error("%s: %s: %s", path, unknown->what, unknown->detail);
            code = CANNOT_CHECK;
        }
        // If the result cannot be printed, the receipt counts as not checked.
        else if ((json ? print_json(&receipt, &report) : print_text(&receipt, &report)) != 0)
            code = CANNOT_CHECK;
    } else {
        cli_fail(&err);
    }
    ree_receipt_finish(&receipt);
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
