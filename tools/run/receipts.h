// The options with which a run leaves a receipt.
#ifndef REE_TOOLS_RUN_RECEIPTS_H
#define REE_TOOLS_RUN_RECEIPTS_H

#include "audit/make_receipt.h"

struct cli;
struct cli_receipt {
    const char *path; // NULL: none is wanted
    const char *key;  // NULL: not signed
    const char *dsse; // file for an attestation; NULL: none
    bool is_private;
    unsigned char salt[REE_SALT_SIZE]; // of a private one
};

#define CLI_RECEIPT_HELP                                                                           \
    "  --receipt-path FILE  write a receipt of the run: the hashes of model, input and output, "   \
    "for\n"                                                                                        \
    "                       others to verify ('ree-run help verify'). Reads all weights once "     \
    "more\n"                                                                                       \
    "  --sign KEY           sign it with this private key\n"                                       \
    "  --dsse FILE          with --sign: an in-toto statement about the receipt, too, in a DSSE\n" \
    "                       envelope, for tools that know these\n"

bool cli_receipt_option(struct cli *cli, struct cli_receipt *receipt);
// --sign and --private without --receipt-path are wrong usage.
void cli_receipt_check(struct cli *cli, const struct cli_receipt *receipt);
// The root of a trace depends on the nodes that passes leave, so that a receipt with a trace is of
// those that ree makes unasked; --no-fold with both is wrong usage.
#define CLI_TRACE_IS_FOLDED                                                                        \
    "a receipt's trace is of the graph with its constants folded: --no-fold leaves it another "    \
    "root"
// Before the run: whether the file can be written and the key be read, so that hours of work are
// not lost for it. Draws the salt of a private one. Prints what is wrong and returns an exit code.
int cli_receipt_prepare(struct cli_receipt *receipt);
// Signs if asked to, and writes; a private one's salt first, to a file of mode 0600 beside it.
int cli_receipt_save(const struct cli_receipt *receipt, struct ree_receipt *made);
// Gives a private receipt the salt in the file `salt_path`; NULL: in the one beside it, if there is
// one. Otherwise the receipt stays without. Prints what is wrong and returns an exit code.
int cli_receipt_salt(struct ree_receipt *receipt, const char *path, const char *salt_path);
// The public key that an option names, a file or 64 hexadecimal digits, as digits in lower case;
// false: printed.
bool cli_public_key(const char *text, char key[65]);

#endif
