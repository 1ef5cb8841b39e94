// What `ree-run verify` prints about checks, and its exit codes.
#ifndef REE_TOOLS_RUN_VERIFY_REPORT_H
#define REE_TOOLS_RUN_VERIFY_REPORT_H

#include "cli.h"
#include "ree.h"

#define CLI_DIFFERS 1
#define CLI_CANNOT 2
#define CLI_PARTLY 3

int verify_exit_code(enum ree_verify_verdict verdict);
// Appends a line for each check: "NAME: agrees".
void verify_print_checks(const struct ree_verify_check *checks, size_t n, struct strbuf *out);
// Appends a line with what a receipt claims without a proof: pairs of a name and a value. Values
// that are NULL are left out.
void verify_print_claims(const char *const (*claims)[2], size_t n, struct strbuf *out);
// Adds the member "checks" to a JSON object. Sets out->failed if memory is exhausted.
struct cJSON;
void verify_add_checks(const struct ree_verify_check *checks, size_t n, struct cJSON *root,
                       struct strbuf *out);

#endif
