// ree-run keygen: creates a key pair for signing receipts.
#include "start.h"

#include "paths.h"
#include "ree.h"

#include <string.h>

static const char help[] =
    "ree-run keygen FILE: make a key pair to sign receipts with\n"
    "\n"
    "Makes an Ed25519 key pair. The private key is written to FILE, which only you can read; it\n"
    "has no password. The public key is written to FILE.pub, for those who check your receipts,\n"
    "and is printed as 64 hexadecimal digits. Existing files are not overwritten. Both files are\n"
    "PEM, as 'openssl genpkey -algorithm ed25519' writes them.\n" CLI_START_HELP_PLAIN "\n"
    "examples\n"
    "  ree-run keygen operator\n"
    "  ree-run validate receipt.json --public-key operator.pub\n"
    "\n"
    "exit status: 0 success, 1 failure, 2 wrong usage, 124 --timeout\n";

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
    const char *path = NULL;
    bool wants_help = false;
    cli_init(&cli, argc, argv);
    while (cli_next(&cli)) {
        if (cli_flag(&cli, "--help"))
            wants_help = true;
        else if (!cli_positional(&cli, &path))
            cli_unknown(&cli);
    }
    if (cli.failed) return CLI_USAGE;
    if (wants_help) return cli_print_text(help);
    if (!path || !*path) cli_usage(&cli, "no file for the key given");
    if (cli.failed) return CLI_USAGE;
    cli_path_add(CLI_WRITES, path);
    int code = cli_start(&(struct cli_start){0});
    return code ? code : keygen(path);
}
