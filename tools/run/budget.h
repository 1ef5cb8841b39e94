// Enforces a command's limits of memory and time: --max-memory and --timeout.
#ifndef REE_TOOLS_RUN_BUDGET_H
#define REE_TOOLS_RUN_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#define BUDGET_TIMED_OUT 124 // the exit code of timeout(1) after a timeout

struct budget {
    uint64_t max_memory; // bytes; 0: no limit
    uint64_t timeout;    // seconds since the process began; 0: no limit
    // Exit code if a limit ends the command. Commands whose exit code 1 is a verdict (verify,
    // compare, ...) set their code for "cannot be checked". Other commands set 0: they end with
    // BUDGET_TIMED_OUT at the timeout, and with CLI_FAILED if a library ends the process.
    int cannot;
};

// Records the time from which --timeout counts. Must be called at the beginning of the process.
void budget_begin(void);
// Limits memory and starts the thread that ends the process at the timeout. Must be called after
// sandbox_enter, so that this thread inherits the sandbox. Returns 0, or prints an error and
// returns an exit code.
int budget_start(const struct budget *budget);
// Must be called when the computation is done and writing the results begins. From then on the
// process may run until ten seconds after the timeout, so that a timeout does not leave only some
// of a result's files.
void budget_results(void);
// Must be called when the command has ended: the timeout no longer applies. Returns `code`, the
// command's exit code. Does not return if the timeout has already ended the command.
int budget_end(int code);
// Returns text to append to the error message `message` if --max-memory may have caused the error;
// "" otherwise. The text is borrowed.
const char *budget_hint(const char *message);

#endif
