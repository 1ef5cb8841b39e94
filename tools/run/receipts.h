// The options for writing a receipt of a run.
#ifndef REE_TOOLS_RUN_RECEIPTS_H
#define REE_TOOLS_RUN_RECEIPTS_H

#include "ree.h"

struct cli;
struct traced; // trace_options.h
struct cli_receipt {
    const char *path; // file to write; NULL: no receipt
    const char *key;  // file of the private key; NULL: not signed
    const char *dsse; // file for the DSSE envelope; NULL: none
    bool is_private;
};

// The options are cli_receipt_group, and --private, which only some commands document.
// --sign and --private without --receipt-path are wrong usage.
void cli_receipt_check(struct cli *cli, const struct cli_receipt *receipt);
// A trace's root depends on the nodes that the passes leave. A receipt with a trace therefore
// requires the default passes: --no-fold with both is wrong usage.
#define CLI_TRACE_IS_FOLDED                                                                        \
    "a receipt's trace requires folded constants: --no-fold would change its root"
// Must be called before the run: checks that the receipt can be written and the key can be read, so
// that no hours of work are lost. Prints errors and returns an exit code.
int cli_receipt_prepare(const struct cli_receipt *receipt);
// Signs if requested, then writes the receipt, its salt if it is private, and its attestation.
int cli_receipt_save(const struct cli_receipt *receipt, struct ree_receipt *made);
// Sets the salt of a private receipt from the file `salt_path`. NULL: from the file next to the
// receipt, if it exists; otherwise the receipt stays without a salt. Prints errors and returns an
// exit code.
int cli_receipt_salt(struct ree_receipt *receipt, const char *path, const char *salt_path);
// A recorded trace as a receipt states it. Returns NULL if `traced` is NULL. `out` must outlive the
// result.
const struct ree_receipt_trace *cli_receipt_trace(const struct traced *traced,
                                                  struct ree_receipt_trace *out);
// Reads the public key that an option names, either a file or 64 hexadecimal digits, as lower-case
// digits. false: a message was printed.
bool cli_public_key(const char *text, char key[65]);

#endif
