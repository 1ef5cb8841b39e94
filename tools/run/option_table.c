#include "option_table.h"
#include "paths.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Column where the help of an option begins, and maximum width of its lines.
#define HELP_COLUMN 23
#define HELP_WIDTH 95

static bool take_real(struct cli *cli, const struct cli_option_row *row, float *out) {
    const char *text = NULL;
    if (!cli_option_text(cli, row->name, &text)) return false;
    if (!text) return true;
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    bool is_number = end != text && !*end && !errno && isfinite(value);
    float rounded = is_number ? (float)value : 0;
    if (is_number && (double)rounded >= row->low && (double)rounded <= row->high &&
        !(row->above && (double)rounded == row->low))
        *out = rounded;
    else if (row->above)
        cli_usage(cli, "%s requires a number above %.10g and at most %.10g, not '%s'", row->name,
                  row->low, row->high, text);
    else
        cli_usage(cli, "%s requires a number from %.10g to %.10g, not '%s'", row->name, row->low,
                  row->high, text);
    return true;
}

// Appends "a, b or c".
static void append_choices(struct strbuf *out, const char *const *choices) {
    for (size_t i = 0; choices[i]; i++)
        strbuf_printf(out, "%s%s", i == 0 ? "" : choices[i + 1] ? ", " : " or ", choices[i]);
}

// Returns whether the argument is this option. Sets *out to its value if that is one of the
// choices; otherwise prints a message.
static bool take_choice(struct cli *cli, const struct cli_option_row *row, const char **out) {
    const char *text = NULL;
    if (!cli_option(cli, row->name, &text)) return false;
    for (size_t i = 0; text && row->choices[i]; i++) {
        if (strcmp(row->choices[i], text) != 0) continue;
        *out = text;
        return true;
    }
    if (!text) return true;
    struct strbuf names;
    strbuf_init(&names);
    append_choices(&names, row->choices);
    cli_usage(cli, "%s requires %s, not '%s'", row->name, names.failed ? "" : names.data, text);
    strbuf_finish(&names);
    return true;
}

static bool take_choice_of_numbers(struct cli *cli, const struct cli_option_row *row,
                                   uint64_t *out) {
    const char *text = NULL;
    if (!take_choice(cli, row, &text)) return false;
    if (text) cli_parse_number(text, 0, UINT64_MAX, out);
    return true;
}

static bool take_size(struct cli *cli, const struct cli_option_row *row, uint64_t *out) {
    const char *text = NULL;
    if (!cli_option(cli, row->name, &text)) return false;
    if (text && !cli_parse_size(text, out))
        cli_usage(cli, "%s requires a size such as 600M or 2G, not '%s'", row->name, text);
    return true;
}

static bool take(struct cli *cli, const struct cli_option_row *row, void *options) {
    void *target = (char *)options + row->at;
    switch (row->kind) {
    case ROW_TEXT: return false;
    case ROW_POSITIONAL: return cli_positional_path(cli, row->path, target);
    case ROW_FLAG:
        if (!cli_flag(cli, row->name)) return false;
        *(bool *)target = true;
        return true;
    case ROW_STRING:
        if (row->may_be_empty) return cli_option_text(cli, row->name, target);
        return cli_option_path(cli, row->name, row->path, target);
    case ROW_NUMBER: return cli_option_number(cli, row->name, row->min, row->max, target);
    case ROW_REAL: return take_real(cli, row, target);
    case ROW_SIZE: return take_size(cli, row, target);
    case ROW_CHOICE: return take_choice(cli, row, target);
    case ROW_CHOICE_OF_NUMBERS: return take_choice_of_numbers(cli, row, target);
    case ROW_GROUP: return cli_options_take(cli, row->group, target);
    case ROW_TAKE: break;
    }
    return row->take(cli, row->name, target);
}

bool cli_options_take(struct cli *cli, const struct cli_option_table *table, void *options) {
    for (size_t i = 0; i < table->n; i++)
        if (take(cli, &table->rows[i], options)) return true;
    return false;
}

void cli_options_parse(struct cli *cli, const struct cli_option_table *table, void *options) {
    while (cli_next(cli))
        if (!cli_options_take(cli, table, options)) cli_unknown(cli);
}

// Appends the words of `text` in lines that begin at HELP_COLUMN. The first line begins at
// `column`.
static void append_words(struct strbuf *out, const char *text, size_t column) {
    bool is_first = true;
    while (*text) {
        size_t n = strcspn(text, " ");
        if (!is_first && column + 1 + n > HELP_WIDTH) {
            strbuf_printf(out, "\n");
            column = 0;
            is_first = true;
        }
        if (is_first) {
            strbuf_printf(out, "%*s", (int)(HELP_COLUMN - column), "");
            column = HELP_COLUMN;
        } else {
            strbuf_printf(out, " ");
            column++;
        }
        strbuf_append(out, text, n);
        column += n;
        is_first = false;
        text += n + (text[n] == ' ');
    }
    strbuf_printf(out, "\n");
}

static void append_rows(struct strbuf *out, const struct cli_option_table *table) {
    for (size_t i = 0; i < table->n; i++) {
        const struct cli_option_row *row = &table->rows[i];
        if (row->kind == ROW_GROUP && !row->help) append_rows(out, row->group);
        if (!row->help) continue;
        if (!row->name) {
            strbuf_printf(out, "%s", row->help);
            continue;
        }
        size_t begin = out->size;
        strbuf_printf(out, "  %s", row->name);
        if (row->value) strbuf_printf(out, row->is_optional ? " [%s]" : " %s", row->value);
        size_t column = out->size - begin;
        if (column >= HELP_COLUMN) {
            strbuf_printf(out, "\n");
            column = 0;
        }
        append_words(out, row->help, column);
    }
}

int cli_options_help(const struct cli_option_table *table) {
    struct strbuf out;
    strbuf_init(&out);
    append_rows(&out, table);
    return cli_print(&out);
}
