// ree-run keygen: creates a key pair for signing receipts.
#include "commands.h"
#include "start.h"

#include "paths.h"
#include "ree.h"
#include "sandbox.h"

#include <string.h>

static const struct cli_option_row rows[] = {
    // clang-format off
    {.kind = ROW_TEXT, .help =
  "ree-run keygen FILE: make a key pair to sign receipts with\n"
  "\n"
  "Makes an Ed25519 key pair. The private key is written to FILE, which only you can read; it\n"
  "has no password. The public key is written to FILE.pub, for those who check your receipts,\n"
  "and is printed as 64 hexadecimal digits. Existing files are not overwritten. Both files are\n"
  "PEM, as 'openssl genpkey -algorithm ed25519' writes them.\n"},
    {.name = "FILE", .kind = ROW_POSITIONAL, .at = 0, .path = CLI_WRITES},
    CLI_START_ROW_PLAIN,
    {.kind = ROW_TEXT, .help =
  "\n"
  "examples\n"
  "  ree-run keygen operator\n"
  "  ree-run validate receipt.json --public-key operator.pub\n"
  "\n"
  "exit status: 0 success, 1 failure, 2 wrong usage, 124 --timeout\n"},
    // clang-format on
};
const struct cli_option_table ree_run_keygen_options = CLI_OPTION_TABLE(rows);

static int keygen(const char *path) {
    struct ree_error err;
    struct strbuf text;
    char public_key[65];
    if (ree_key_create(path, public_key, &err) != REE_OK) return cli_fail(&err);
    strbuf_init(&text);
    strbuf_printf(&text, "%s\n", public_key);
    return cli_print(&text);
}

int ree_run_keygen(int argc, char **argv) {
    struct cli cli;
    const char *path = NULL; // the table stores FILE here
    if (cli_wants_help(argc, argv)) return cli_options_help(&ree_run_keygen_options);
    cli_init(&cli, argc, argv);
    cli_options_parse(&cli, &ree_run_keygen_options, &path);
    if (!path) cli_usage(&cli, "no file for the key given");
    if (cli.failed) return CLI_USAGE;
    // The table allows writing in FILE's folder, where keygen also writes the public key.
    int code = cli_start(&(struct cli_start){.uses = SANDBOX_NO_OPENMP});
    return code ? code : keygen(path);
}
