// The options for writing a receipt of a run, and reading and writing a receipt's files.
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

// Reports options that lack another one as wrong usage: --sign and --private without
// --receipt-path, and --dsse without --sign.
void cli_receipt_check(struct cli *cli, const struct cli_receipt *receipt);
// Message for the wrong usage of --no-fold together with a receipt and a trace. The root of a trace
// depends on the nodes that the graph passes leave, so a receipt's trace requires the default
// passes.
#define CLI_TRACE_IS_FOLDED                                                                        \
    "a receipt's trace requires folded constants: --no-fold would change its root"
// Must be called before the run: checks that the receipt can be written and the key can be read, so
// that no hours of work are lost. Returns 0, or prints an error and returns an exit code.
int cli_receipt_prepare(const struct cli_receipt *receipt);
// Signs the receipt `made` if requested, then writes it, its salt if it is private, and the DSSE
// envelope if requested. Returns 0, or prints an error and returns an exit code.
int cli_receipt_save(const struct cli_receipt *receipt, struct ree_receipt *made);
// As ree_receipt_load. If the file is the receipt of a training, the message says how to check it.
enum ree_status cli_receipt_load(const char *path, struct ree_receipt **out,
                                 struct ree_error *err);
// Reads the salt of a private receipt from the file `salt_path`. NULL: from the file RECEIPT.salt
// next to the receipt, if it exists; otherwise the receipt stays without a salt. path: the
// receipt's path, for messages. Returns 0, or prints an error and returns an exit code.
int cli_receipt_salt(struct ree_receipt *receipt, const char *path, const char *salt_path);
// Fills *out with what a receipt states about a written trace, and returns `out`. Returns NULL if
// `traced` is NULL. The strings in *out are borrowed from `traced`.
const struct ree_receipt_trace *cli_receipt_trace(const struct traced *traced,
                                                  struct ree_receipt_trace *out);
// Reads the public key that an option names. text: the path of a file, or the key as 64 hexadecimal
// digits. Writes the key to `key` as 64 lower-case digits. Returns false after printing an error.
bool cli_public_key(const char *text, char key[65]);

#endif
