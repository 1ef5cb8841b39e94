// What a command may spend: --max-memory and --timeout.
#ifndef REE_TOOLS_RUN_BUDGET_H
#define REE_TOOLS_RUN_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#define BUDGET_TIMED_OUT 124 // the exit code that timeout(1) has for it

struct budget {
    uint64_t max_memory; // bytes; 0: no limit
    uint64_t timeout;    // seconds since the process began; 0: no limit
    // Exit code of a command that a budget ends. Where 1 is a verdict (verify, compare, ...), the
    // one for "cannot be checked"; otherwise 0: BUDGET_TIMED_OUT after the time, CLI_FAILED after a
    // library ended the process.
    int cannot;
};

// At the beginning of the process, for the clock.
void budget_begin(void);
// Limits memory, and starts the thread that ends the process when the time is over: after
// sandbox_enter, which it inherits. Prints and returns an exit code.
int budget_start(const struct budget *budget);
// The work is done and results are about to be written: the time no longer ends the process, unless
// writing takes more than ten seconds more. Results that are several files are so all there or not.
void budget_results(void);
// The end of the command. Returns `code`; does not return if the time was over before.
int budget_end(int code);
// What to add to an error message of too little memory; "". `message` decides.
const char *budget_hint(const char *message);

#endif
