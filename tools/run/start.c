#include "start.h"

#include "option_groups.h"

// One command line per process, hence the statics.
static struct budget budget;
static bool no_sandbox;

#define MAX_SECONDS (UINT64_C(1) << 31)

static const char *hint(const char *message) {
    const char *text = budget_hint(message);
    return text[0] ? text : sandbox_hint(message);
}

static bool take_memory(struct cli *cli, const char *name, void *unused) {
    const char *size = NULL;
    (void)unused;
    if (!cli_option_text(cli, name, &size)) return false;
    if (size && !cli_parse_size(size, &budget.max_memory))
        cli_usage(cli, "%s requires a size such as 512M or 4G, not '%s'", name, size);
    return true;
}

static bool take_timeout(struct cli *cli, const char *name, void *unused) {
    (void)unused;
    return cli_option_number(cli, name, 1, MAX_SECONDS, &budget.timeout);
}

static bool take_no_sandbox(struct cli *cli, const char *name, void *unused) {
    (void)unused;
    if (!cli_flag(cli, name)) return false;
    no_sandbox = true;
    return true;
}

static const struct cli_option_row rows[] = {
    {.name = "--max-memory", .value = "SIZE", .kind = ROW_TAKE, .take = take_memory},
    {.name = "--timeout", .value = "SECONDS", .kind = ROW_TAKE, .take = take_timeout},
    {.name = "--no-sandbox", .kind = ROW_TAKE, .take = take_no_sandbox},
};
const struct cli_option_table cli_start_group = CLI_OPTION_TABLE(rows);

void cli_start_init(void) {
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
