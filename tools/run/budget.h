// Resource limits of a command: --max-memory and --timeout.
#ifndef REE_TOOLS_RUN_BUDGET_H
#define REE_TOOLS_RUN_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#define BUDGET_TIMED_OUT 124 // the exit code of timeout(1) after a timeout

struct budget {
    uint64_t max_memory; // bytes; 0: no limit
    uint64_t timeout;    // seconds since the process began; 0: no limit
    // Exit code when a limit ends the command. Commands whose exit code 1 is a verdict (verify,
    // compare, ...) set their code for "cannot be checked". 0 for other commands: they end with
    // BUDGET_TIMED_OUT after a timeout, and with CLI_FAILED if a library ended the process.
    int cannot;
};

// Starts the clock of --timeout. Must be called at the beginning of the process.
void budget_begin(void);
// Limits memory and starts the thread that ends the process at the timeout. Must be called after
// sandbox_enter, so that this thread inherits the sandbox. Prints errors and returns an exit code.
int budget_start(const struct budget *budget);
// Must be called when the computation is done and writing the results begins. From here on the
// process has ten seconds more than the timeout, so that either all files of a result exist or
// none.
void budget_results(void);
// Ends the command. Returns `code`, or does not return if the timeout has passed.
int budget_end(int code);
// Text to append to `message` if it looks like an error caused by --max-memory; "" otherwise.
const char *budget_hint(const char *message);

#endif
