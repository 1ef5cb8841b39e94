// The options with which a run leaves a receipt.
#ifndef REE_TOOLS_RUN_RECEIPTS_H
#define REE_TOOLS_RUN_RECEIPTS_H

#include "audit/make_receipt.h"

struct cli;
struct cli_receipt {
    const char *path; // NULL: none is wanted
    const char *key;  // NULL: not signed
    bool is_private;
};

#define CLI_RECEIPT_HELP                                                                           \
    "  --receipt-path FILE  write a receipt of the run: the hashes of model, input and output, "   \
    "for\n"                                                                                        \
    "                       others to verify ('ree-run help verify'). Reads all weights once "     \
    "more\n"                                                                                       \
    "  --sign KEY           sign it with this private key\n"

bool cli_receipt_option(struct cli *cli, struct cli_receipt *receipt);
// --sign and --private without --receipt-path are wrong usage.
void cli_receipt_check(struct cli *cli, const struct cli_receipt *receipt);
// Before the run: whether the file can be written and the key be read, so that hours of work are
// not lost for it. Prints what is wrong and returns an exit code.
int cli_receipt_prepare(const struct cli_receipt *receipt);
// Signs if asked to, and writes.
int cli_receipt_save(const struct cli_receipt *receipt, struct ree_receipt *made);
// The public key that an option names, a file or 64 hexadecimal digits, as digits in lower case;
// false: printed.
bool cli_public_key(const char *text, char key[65]);

#endif
