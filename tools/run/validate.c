// ree-run validate: checks a receipt's own statements without running the model.
#include "commands.h"
#include "start.h"
#include "receipts.h"

#include "json.h"
#include "paths.h"
#include "ree.h"

struct options {
    const char *path, *key, *dsse;
    bool json;
};

#define AT(field) offsetof(struct options, field)

static const struct cli_option_row rows[] = {
    // clang-format off
    {.kind = ROW_TEXT, .help =
  "ree-run validate RECEIPT [--public-key FILE|HEX] [--dsse FILE] [--json]\n"
  "\n"
  "Checks that a receipt of a run or of a training is complete and unaltered: its format, its\n"
  "hashes, and its signature if it has one. validate runs nothing and needs no model, so it does\n"
  "not show that the run gave this result. It prints one line for each check, then \"valid\" or\n"
  "\"not valid\".\n"
  "\n"},
    {.name = "RECEIPT", .kind = ROW_POSITIONAL, .at = AT(path), .path = CLI_READS},
    {.name = "--public-key", .value = "FILE|HEX", .kind = ROW_STRING, .at = AT(key), .path = CLI_READS,
     .help = "require that the receipt is signed with this key: a file of 'ree-run keygen', or 64 "
             "hexadecimal digits. Without this option, a signature shows only that somebody made "
             "it"},
    {.name = "--dsse", .value = "FILE", .kind = ROW_STRING, .at = AT(dsse), .path = CLI_READS,
     .help = "also check an attestation (a DSSE envelope, written by --dsse of a run): it must be "
             "signed, with the key of --public-key if that is given, and be about this receipt"},
    {.name = "--json", .kind = ROW_FLAG, .at = AT(json),
     .help = "print one JSON object instead of text"},
    CLI_START_ROW_VERDICT,
    {.kind = ROW_TEXT, .help =
  "\n"
  "examples\n"
  "  ree-run validate receipt.json\n"
  "  ree-run validate receipt.json --public-key operator.pub\n"
  "\n"
  "exit status: 0 valid; 1 a hash or the signature does not match; 2 cannot be checked: the\n"
  "file cannot be read or is not a receipt, or wrong usage\n"},
    // clang-format on
};
const struct cli_option_table ree_run_validate_options = CLI_OPTION_TABLE(rows);

#define CANNOT_CHECK 2

struct report {
    const char *receipt_hash, *public_key; // "": not signed
    const struct ree_receipt_finding *findings;
    size_t n;
    bool ok;
};

static int print_text(const struct report *report) {
    struct strbuf out;
    strbuf_init(&out);
    for (size_t i = 0; i < report->n; i++) {
        const struct ree_receipt_finding *finding = &report->findings[i];
        strbuf_printf(&out, "%-14s  %-5s  ", finding->what, finding->ok ? "ok" : "WRONG");
        cli_append_name(&out, finding->detail);
        strbuf_append(&out, "\n", 1);
    }
    if (!report->public_key[0]) strbuf_printf(&out, "%-14s  -      none\n", "signature");
    strbuf_printf(&out, "%s\n", report->ok ? "valid" : "not valid");
    return cli_print(&out);
}

static int print_json(const struct report *report) {
    struct strbuf out;
    cJSON *root = cJSON_CreateObject();
    cJSON_AddBoolToObject(root, "valid", report->ok);
    cJSON_AddStringToObject(root, "receipt_hash", report->receipt_hash);
    cJSON_AddBoolToObject(root, "signed", report->public_key[0]);
    if (report->public_key[0]) cJSON_AddStringToObject(root, "public_key", report->public_key);
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

// Returns the exit code.
static int print(const struct report *report, bool json) {
    // If the result cannot be printed, the receipt counts as not checked.
    if ((json ? print_json(report) : print_text(report)) != 0) return CANNOT_CHECK;
    return report->ok ? 0 : CLI_FAILED;
}

static int cannot_check(const struct ree_error *err) {
    cli_fail(err);
    return CANNOT_CHECK;
}

static int validate_training(const char *path, const struct ree_validate_options *options,
                             bool json, const struct ree_error *why_not_other) {
    struct ree_error err;
    const struct ree_training_validation *v;
    const enum ree_status status = ree_training_receipt_validate(path, options, &v, &err);
    // If it is no receipt of a training either, the first message says what is wrong.
    if (status != REE_OK) return cannot_check(status == REE_UNSUPPORTED ? why_not_other : &err);
    const struct report report = {.receipt_hash = v->receipt->receipt_hash,
                                  .public_key = v->receipt->public_key,
                                  .findings = v->findings,
                                  .n = v->n_findings,
                                  .ok = v->ok};
    const int code = print(&report, json);
    ree_training_validation_destroy(v);
    return code;
}

static int validate(const char *path, const char *key_text, const char *dsse, bool json) {
    struct ree_error err;
    struct ree_receipt *receipt;
    struct report report;
    char key[65] = "";
    if (key_text && !cli_public_key(key_text, key)) return CANNOT_CHECK;
    struct ree_validate_options options = {
        .size = sizeof options, .public_key = key_text ? key : NULL, .attestation = dsse};
    const enum ree_status status = ree_receipt_load(path, &receipt, &err);
    if (status == REE_INVALID) return validate_training(path, &options, json, &err);
    if (status != REE_OK) return cannot_check(&err);
    int code;
    if (ree_receipt_validate(receipt, &options, &report.findings, &report.n, &report.ok, &err) !=
        REE_OK) {
        code = cannot_check(&err);
    } else {
        const struct ree_receipt_info *info = ree_receipt_info(receipt);
        report.receipt_hash = info->receipt_hash;
        report.public_key = info->public_key;
        code = print(&report, json);
    }
    ree_receipt_destroy(receipt);
    return code;
}

int ree_run_validate(int argc, char **argv) {
    struct cli cli;
    struct options o = {0};
    if (cli_wants_help(argc, argv)) return cli_options_help(&ree_run_validate_options);
    cli_init(&cli, argc, argv);
    cli_options_parse(&cli, &ree_run_validate_options, &o);
    if (!o.path) cli_usage(&cli, "no receipt given");
    if (cli.failed) return CLI_USAGE;
    int code = cli_start(&(struct cli_start){.cannot = CANNOT_CHECK});
    return code ? code : validate(o.path, o.key, o.dsse, o.json);
}
