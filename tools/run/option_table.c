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

static bool take(struct cli *cli, const struct cli_option_row *row, void *options) {
    void *target = (char *)options + row->at;
    switch (row->kind) {
    case ROW_TEXT: return false;
    case ROW_POSITIONAL: return cli_positional_path(cli, row->path, target);
    case ROW_FLAG:
        if (!cli_flag(cli, row->name)) return false;
        *(bool *)target = true;
        return true;
    case ROW_STRING: return cli_option_path(cli, row->name, row->path, target);
    case ROW_NUMBER: return cli_option_number(cli, row->name, row->min, row->max, target);
    case ROW_REAL: return take_real(cli, row, target);
    case ROW_TAKE:
    case ROW_GROUP: break;
    }
    return row->take(cli, row->name, target);
}

void cli_options_parse(struct cli *cli, const struct cli_option_row *rows, size_t n,
                       void *options) {
    while (cli_next(cli)) {
        size_t i = 0;
        while (i < n && !take(cli, &rows[i], options))
            i++;
        if (i == n) cli_unknown(cli);
    }
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

int cli_options_help(const struct cli_option_row *rows, size_t n) {
    struct strbuf out;
    strbuf_init(&out);
    for (size_t i = 0; i < n; i++) {
        const struct cli_option_row *row = &rows[i];
        if (!row->help) continue;
        if (!row->name) {
            strbuf_printf(&out, "%s", row->help);
            continue;
        }
        size_t begin = out.size;
        strbuf_printf(&out, "  %s%s%s", row->name, row->value ? " " : "",
                      row->value ? row->value : "");
        size_t column = out.size - begin;
        if (column >= HELP_COLUMN) {
            strbuf_printf(&out, "\n");
            column = 0;
        }
        append_words(&out, row->help, column);
    }
    return cli_print(&out);
}
