// ree-run keygen: creates a key pair for signing receipts.
#include "start.h"

#include "receipt/receipt.h"

#include <string.h>

static const char help[] =
    "ree-run keygen FILE\n"
    "\n"
    "Makes a pair of Ed25519 keys to sign receipts with: the private key in FILE, which only you\n"
    "can read and which has no password, and the public key in FILE.pub, for those who check\n"
    "your receipts. Neither file may be there already. The public key is printed, too, as 64\n"
    "hexadecimal digits. Both are PEM files, as 'openssl genpkey -algorithm ed25519' makes "
    "them.\n" CLI_START_HELP_PLAIN "\n"
    "examples\n"
    "  ree-run keygen operator\n"
    "  ree-run validate receipt.json --public-key operator.pub\n"
    "\n"
    "exit status: 0 success, 1 failure, 2 wrong usage, 124 --timeout\n";

static int keygen(const char *path) {
    struct ree_error err;
    struct ree_strbuf text;
    char public_key[65];
    if (ree_key_create(path, public_key, &err) != REE_OK) return cli_fail(&err);
    ree_strbuf_init(&text);
    ree_strbuf_printf(&text, "%s\n", public_key);
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
    if (!path || !*path) cli_usage(&cli, "a file for the key?");
    if (cli.failed) return CLI_USAGE;
    cli_path_add(CLI_WRITES, path);
    int code = cli_start(&(struct cli_start){0});
    return code ? code : keygen(path);
}
