#include "start.h"

#include <string.h>

// One command line per process, hence the statics.
static struct budget budget;
static bool no_sandbox;

#define MAX_SECONDS (UINT64_C(1) << 31)

static const char *hint(const char *message) {
    const char *text = budget_hint(message);
    return text[0] ? text : sandbox_hint(message);
}

static bool take_option(struct cli *cli) {
    const char *size = NULL;
    if (cli_flag(cli, "--no-sandbox")) return no_sandbox = true;
    if (cli_option_number(cli, "--timeout", 1, MAX_SECONDS, &budget.timeout)) return true;
    if (!cli_option_text(cli, "--max-memory", &size)) return false;
    if (size && !cli_parse_size(size, &budget.max_memory))
        cli_usage(cli, "--max-memory requires a size such as 512M or 4G, not '%s'", size);
    return true;
}

void cli_start_init(void) {
    cli_common_option = take_option;
    cli_error_hint = hint;
}

int cli_start(const struct cli_start *start) {
    int code = 0;
    budget.cannot = start->cannot;
    if (no_sandbox || start->no_sandbox)
        sandbox_skip(no_sandbox ? "--no-sandbox" : start->no_sandbox);
    else
        code = sandbox_enter(start->uses);
    if (code) return start->cannot ? start->cannot : code;
    return budget_start(&budget);
}
