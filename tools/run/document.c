// Manual pages and shell completions, printed from the option tables. The build runs this program
// to make them, so that they cannot contradict what it parses.
#include "cli.h"
#include "commands.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

// Calls a function for each option of a table, including the options of its groups.

typedef void visit(const struct cli_option_row *row, void *user);

static void each_option(const struct cli_option_table *table, visit *fn, void *user) {
    for (size_t i = 0; i < table->n; i++) {
        const struct cli_option_row *row = &table->rows[i];
        if (row->kind == ROW_GROUP)
            each_option(row->group, fn, user);
        else if (row->kind != ROW_TEXT && !row->is_unlisted)
            fn(row, user);
    }
}

// Manual pages

struct page {
    struct strbuf *out;
    bool in_example; // between .nf and .fi
    bool is_begun;   // the section has text, so a paragraph needs a distance from it
};

// Appends text, escaped so that roff takes no character for a command and replaces none by another
// one.
static void append_roff(struct strbuf *out, const char *text, size_t n) {
    if (n > 0 && (text[0] == '.' || text[0] == '\'')) strbuf_printf(out, "\\&");
    for (size_t i = 0; i < n; i++) {
        switch (text[i]) {
        case '\\': strbuf_printf(out, "\\e"); break;
        case '-': strbuf_printf(out, "\\-"); break;
        case '\'': strbuf_printf(out, "\\(aq"); break;
        case '~': strbuf_printf(out, "\\(ti"); break;
        case '^': strbuf_printf(out, "\\(ha"); break;
        case '`': strbuf_printf(out, "\\(ga"); break;
        default: strbuf_append(out, &text[i], 1);
        }
    }
}

static void append_line(struct strbuf *out, const char *text) {
    append_roff(out, text, strlen(text));
    strbuf_append(out, "\n", 1);
}

static void begin_section(struct page *page, const char *macro) {
    strbuf_printf(page->out, "%s", macro);
    page->is_begun = false;
}

static void begin_paragraph(struct page *page) {
    if (page->is_begun) strbuf_printf(page->out, ".PP\n");
    page->is_begun = true;
}

static void end_example(struct page *page) {
    if (page->in_example) strbuf_printf(page->out, ".fi\n.RE\n");
    page->in_example = false;
}

// Returns whether a line begins a section of a help: "examples", "devices (...)".
static bool is_heading(const char *line, bool options_follow) {
    const char *end = strchr(line, '\n');
    if (!islower((unsigned char)line[0])) return false;
    if (end && end[1] == ' ' && end[-1] != ':') return true;
    // The heading of the options that follow may have several lines.
    return options_follow && !strstr(line, "\n\n") && strncmp(line, "exit status", 11) != 0;
}

// Appends an option that a text documents: "  --name VALUE   what it does" and the lines after it
// that are indented further. Returns the rest of the text.
static const char *append_option_text(struct page *page, const char *text, const char *end) {
    end_example(page);
    page->is_begun = true;
    size_t length = strcspn(text, "\n"), n_name = 2;
    while (n_name < length && (text[n_name] != ' ' || text[n_name + 1] != ' '))
        n_name++;
    strbuf_printf(page->out, ".TP\n\\fB");
    append_roff(page->out, text + 2, n_name - 2);
    strbuf_printf(page->out, "\\fR\n");
    text += n_name;
    while (text < end) {
        text += strspn(text, " ");
        length = strcspn(text, "\n");
        if (length > 0) {
            append_roff(page->out, text, length);
            strbuf_append(page->out, "\n", 1);
        }
        text += length + (text[length] == '\n');
        if (text >= end || strncmp(text, "    ", 4) != 0) break;
    }
    return text;
}

// Appends one paragraph of a help, n bytes.
static void append_paragraph(struct page *page, const char *text, size_t n, bool options_follow) {
    const char *end = text + n;
    bool is_first = true;
    while (text < end) {
        size_t length = strcspn(text, "\n");
        if (is_first && strncmp(text, "exit status", 11) == 0) {
            // One line: "exit status: 0 success"; or a heading and a list.
            begin_section(page, ".SH EXIT STATUS\n");
            text += 11;
            text += *text == ':' ? 2 : 1;
            is_first = false;
            continue;
        }
        if (is_first && is_heading(text, options_follow)) {
            // The heading extends up to the first indented line.
            begin_section(page, ".SS ");
            while (text < end && text[0] != ' ') {
                if (!is_first) strbuf_append(page->out, " ", 1);
                length = strcspn(text, "\n");
                append_roff(page->out, text, length);
                text += length + (text[length] == '\n');
                is_first = false;
            }
            strbuf_append(page->out, "\n", 1);
            continue;
        }
        if (text[0] == ' ' && text[1] == ' ' && text[2] == '-') {
            text = append_option_text(page, text, end);
            is_first = false;
            continue;
        }
        if (text[0] == ' ') {
            if (!page->in_example) {
                begin_paragraph(page);
                strbuf_printf(page->out, ".RS 2\n.nf\n");
            }
            page->in_example = true;
            size_t indent = text[1] == ' ' ? 2 : 1;
            append_roff(page->out, text + indent, length - indent);
        } else {
            if (page->in_example || is_first) {
                end_example(page);
                begin_paragraph(page);
            }
            append_roff(page->out, text, length);
        }
        strbuf_append(page->out, "\n", 1);
        is_first = false;
        text += length + (text[length] == '\n');
    }
    end_example(page);
}

static void append_text(struct page *page, const char *text, bool options_follow) {
    while (*text) {
        text += strspn(text, "\n");
        const char *end = strstr(text, "\n\n");
        size_t n = end ? (size_t)(end - text) + 1 : strlen(text);
        if (n > 0) append_paragraph(page, text, n, options_follow && text[n] != '\n');
        text += n;
    }
}

static void append_options(struct page *page, const struct cli_option_table *table) {
    struct strbuf *out = page->out;
    for (size_t i = 0; i < table->n; i++) {
        const struct cli_option_row *row = &table->rows[i];
        if (row->kind == ROW_GROUP && !row->help) append_options(page, row->group);
        if (!row->help) continue;
        if (!row->name) {
            const struct cli_option_row *next = i + 1 < table->n ? row + 1 : NULL;
            while (next && next->kind == ROW_POSITIONAL)
                next = next + 1 < table->rows + table->n ? next + 1 : NULL;
            append_text(page, row->help, next && next->kind != ROW_TEXT);
            continue;
        }
        page->is_begun = true;
        strbuf_printf(out, ".TP\n\\fB");
        append_roff(out, row->name, strlen(row->name));
        strbuf_printf(out, "\\fR");
        if (row->value) {
            strbuf_printf(out, row->is_optional ? " [\\fI" : " \\fI");
            append_roff(out, row->value, strlen(row->value));
            strbuf_printf(out, row->is_optional ? "\\fR]" : "\\fR");
        }
        strbuf_append(out, "\n", 1);
        append_line(out, row->help);
    }
}

// Appends no date, because the build must give the same bytes every day.
static void append_title(struct strbuf *out, const char *name, const char *summary) {
    strbuf_printf(out, ".\\\" Made by the build from the option tables of ree-run.\n.TH ");
    for (const char *c = name; *c; c++) {
        char upper = (char)toupper((unsigned char)*c);
        append_roff(out, &upper, 1);
    }
    strbuf_printf(out, " 1 \"\" \"ree %s\" \"ree manual\"\n.SH NAME\n", ree_version());
    append_roff(out, name, strlen(name));
    strbuf_printf(out, " \\- ");
    append_line(out, summary);
}

// Appends the synopsis. The first paragraph of a help is its synopsis and a summary, which the
// page's name repeats. Returns the rest of the text.
static const char *append_synopsis(struct strbuf *out, const char *help) {
    const char *rest = strstr(help, "\n\n");
    strbuf_printf(out, ".SH SYNOPSIS\n.nf\n");
    for (const char *line = help; line < rest; line += strcspn(line, "\n") + 1) {
        if (strncmp(line, "ree-run", 7) != 0) continue;
        size_t n = strcspn(line, "\n");
        const char *colon = memchr(line, ':', n);
        append_roff(out, line, colon ? (size_t)(colon - line) : n);
        strbuf_append(out, "\n", 1);
    }
    strbuf_printf(out, ".fi\n");
    return rest;
}

static void man_of_command(const struct cli_command *command, struct strbuf *out) {
    char name[64];
    struct page page = {.out = out};
    snprintf(name, sizeof name, "ree-run-%s", command->name);
    append_title(out, name, command->summary);
    const struct cli_option_row *rows = command->options->rows;
    const char *rest = append_synopsis(out, rows[0].help);
    if (command->is_default)
        strbuf_printf(out, ".PP\nThe word \\fB%s\\fR may be omitted.\n", command->name);
    strbuf_printf(out, ".SH DESCRIPTION\n");
    bool options_follow = command->options->n > 1;
    append_text(&page, rest, options_follow);
    append_options(&page, &(struct cli_option_table){rows + 1, command->options->n - 1});
    strbuf_printf(out, ".SH SEE ALSO\n.BR ree\\-run (1)\n");
}

static void man_of_program(struct strbuf *out) {
    append_title(out, "ree-run", "run ONNX models so that every device gives the same bits");
    strbuf_printf(out, ".SH SYNOPSIS\n.nf\n");
    for (size_t i = 0; i < cli_n_commands; i++) {
        const struct cli_command *c = &cli_commands[i];
        strbuf_printf(out, "\\fBree\\-run%s%s\\fR ", c->is_default ? "" : " ",
                      c->is_default ? "" : c->name);
        append_line(out, c->usage);
    }
    strbuf_printf(out, "\\fBree\\-run help\\fR [SUBCOMMAND]\n\\fBree\\-run "
                       "\\-\\-version\\fR\n.fi\n.SH DESCRIPTION\n");
    append_text(&(struct page){.out = out}, cli_introduction(), false);
    strbuf_printf(out, ".SH COMMANDS\n");
    for (size_t i = 0; i < cli_n_commands; i++) {
        strbuf_printf(out, ".TP\n.BR ree\\-run\\-%s (1)\n", cli_commands[i].name);
        append_line(out, cli_commands[i].summary);
    }
}

// Completions

static bool is_option(const struct cli_option_row *row) {
    return row->kind != ROW_POSITIONAL;
}

// Appends the first sentence of an option's help, at most 76 characters, without the characters in
// `omit`.
static void append_description(struct strbuf *out, const struct cli_option_row *row,
                               const char *omit) {
    const char *text = row->help ? row->help : "";
    size_t n = 0;
    while (text[n] && n < 76 &&
           !(strchr(".;:(", text[n]) && (text[n + 1] == ' ' || text[n] == '(')))
        n++;
    if (text[n] && n == 76)
        while (n > 0 && text[n] != ' ')
            n--;
    while (n > 0 && strchr(" ,:", text[n - 1]))
        n--;
    for (size_t i = 0; i < n; i++)
        if (!strchr(omit, text[i])) strbuf_append(out, &text[i], 1);
}

static void append_choices(struct strbuf *out, const char *const *choices) {
    for (size_t i = 0; choices[i]; i++)
        strbuf_printf(out, "%s%s", i ? " " : "", choices[i]);
}

static void append_bash_name(const struct cli_option_row *row, void *user) {
    if (is_option(row)) strbuf_printf(user, " %s", row->name);
}

struct bash_values {
    struct strbuf *out;
    const char *command;
};

static void append_bash_values(const struct cli_option_row *row, void *user) {
    const struct bash_values *values = user;
    if (!is_option(row) || !row->value) return;
    strbuf_printf(values->out, "    %s/%s) ", values->command, row->name);
    if (row->choices) {
        strbuf_printf(values->out, "words='");
        append_choices(values->out, row->choices);
        strbuf_printf(values->out, "'");
    } else {
        strbuf_printf(values->out, "kind=%s",
                      row->path == CLI_FILLS     ? "folder"
                      : row->path != CLI_NO_PATH ? "file"
                                                 : "none");
    }
    strbuf_printf(values->out, " ;;\n");
}

static void append_first_choices(const struct cli_option_row *row, void *user) {
    if (is_option(row) || !row->choices) return;
    strbuf_append(user, " ", 1);
    append_choices(user, row->choices);
}

static void append_names(struct strbuf *out, const char *separator) {
    for (size_t i = 0; i < cli_n_commands; i++)
        strbuf_printf(out, "%s%s", i ? separator : "", cli_commands[i].name);
}

static void bash(struct strbuf *out) {
    strbuf_printf(out, "# bash completion for ree-run, made by the build from its option tables.\n"
                       "_ree_run() {\n"
                       "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                       "    local command=${COMP_WORDS[1]} words='' kind='' options='' first=''\n"
                       "    COMPREPLY=()\n"
                       "    # readline divides --option=value into three words.\n"
                       "    if [[ $cur == = ]]; then\n"
                       "        cur=\n"
                       "    elif [[ $prev == = ]]; then\n"
                       "        prev=${COMP_WORDS[COMP_CWORD-2]}\n"
                       "    fi\n"
                       "    if ((COMP_CWORD == 1)) && [[ $cur != -* ]]; then\n"
                       "        COMPREPLY=($(compgen -W '");
    append_names(out, " ");
    strbuf_printf(out, " help' -- \"$cur\"))\n"
                       "        compopt -o filenames 2>/dev/null\n"
                       "        COMPREPLY+=($(compgen -f -- \"$cur\"))\n"
                       "        return\n"
                       "    fi\n"
                       "    case $command in\n    ");
    append_names(out, " | ");
    strbuf_printf(out, ") ;;\n"
                       "    help)\n"
                       "        COMPREPLY=($(compgen -W '");
    append_names(out, " ");
    strbuf_printf(
        out, "' -- \"$cur\"))\n"
             "        return ;;\n"
             "    *)\n"
             "        command=run\n"
             "        # A prompt makes it a generation.\n"
             "        [[ \" ${COMP_WORDS[*]} \" != *' --prompt-'* &&\n"
             "            \" ${COMP_WORDS[*]} \" != *' --messages '* ]] || command=generate ;;\n"
             "    esac\n"
             "    case $command in\n");
    for (size_t i = 0; i < cli_n_commands; i++) {
        const struct cli_command *c = &cli_commands[i];
        strbuf_printf(out, "    %s)\n        options='", c->name);
        each_option(c->options, append_bash_name, out);
        strbuf_printf(out, " --help'\n        first='");
        each_option(c->options, append_first_choices, out);
        strbuf_printf(out, "' ;;\n");
    }
    strbuf_printf(out, "    esac\n"
                       "    if ((COMP_CWORD == 1)) && [[ $command == run ]]; then\n"
                       "        options+=' --prompt-text --prompt-ids --prompt-file --messages "
                       "--version'\n"
                       "    fi\n"
                       "    case $command/$prev in\n");
    for (size_t i = 0; i < cli_n_commands; i++)
        each_option(cli_commands[i].options, append_bash_values,
                    &(struct bash_values){out, cli_commands[i].name});
    strbuf_printf(out, "    *) [[ $cur != -* ]] || words=$options ;;\n"
                       "    esac\n"
                       "    if [[ -z $words$kind ]]; then\n"
                       "        kind=file\n"
                       "        ((COMP_CWORD != 2)) || words=$first\n"
                       "    fi\n"
                       "    [[ -z $words ]] || COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                       "    case $kind in\n"
                       "    file) COMPREPLY+=($(compgen -f -- \"$cur\")) ;;\n"
                       "    folder) COMPREPLY+=($(compgen -d -- \"$cur\")) ;;\n"
                       "    *) return ;;\n"
                       "    esac\n"
                       "    compopt -o filenames 2>/dev/null\n"
                       "}\n"
                       "complete -F _ree_run ree-run\n");
}

static const char *zsh_action(const struct cli_option_row *row) {
    if (row->path == CLI_FILLS) return "_files -/";
    return row->path == CLI_NO_PATH ? "" : "_files";
}

static void append_zsh_values(struct strbuf *out, const struct cli_option_row *row) {
    if (!row->choices) {
        strbuf_printf(out, "%s", zsh_action(row));
        return;
    }
    strbuf_printf(out, "(");
    append_choices(out, row->choices);
    strbuf_printf(out, ")");
}

static void append_zsh_option(const struct cli_option_row *row, void *user) {
    struct strbuf *out = user;
    if (!is_option(row)) return;
    // Only long options accept --option=value; '*': more than once.
    bool is_long = row->name[1] == '-';
    strbuf_printf(out, "        '*%s%s[", row->name, row->value && is_long ? "=" : "");
    append_description(out, row, "'[]\\");
    strbuf_printf(out, "]");
    if (row->value) {
        strbuf_printf(out, row->is_optional ? "::" : ":");
        for (const char *c = row->value; *c; c++)
            strbuf_printf(out, *c == ':' ? "\\%c" : "%c", *c);
        strbuf_printf(out, ":");
        append_zsh_values(out, row);
    }
    strbuf_printf(out, "'\n");
}

static void append_zsh_positional(const struct cli_option_row *row, void *user) {
    struct strbuf *out = user;
    if (is_option(row)) return;
    strbuf_printf(out, "        ':%s:", row->name);
    append_zsh_values(out, row);
    strbuf_printf(out, "'\n");
}

static void zsh(struct strbuf *out) {
    strbuf_printf(out, "#compdef ree-run\n"
                       "# zsh completion for ree-run, made by the build from its option tables.\n"
                       "_ree_run() {\n"
                       "    local -a commands arguments\n"
                       "    local command=$words[2]\n"
                       "    commands=(\n");
    for (size_t i = 0; i < cli_n_commands; i++) {
        strbuf_printf(out, "        '%s:", cli_commands[i].name);
        for (const char *c = cli_commands[i].summary; *c; c++)
            if (*c != '\'') strbuf_append(out, c, 1);
        strbuf_printf(out, "'\n");
    }
    strbuf_printf(out, "        'help:print the manual of a command'\n"
                       "    )\n"
                       "    if ((CURRENT == 2)) && [[ $command != -* ]]; then\n"
                       "        _describe command commands\n"
                       "        _files\n"
                       "        return\n"
                       "    fi\n"
                       "    case $command in\n    ");
    append_names(out, "|");
    strbuf_printf(out, ") shift words; ((CURRENT--)) ;;\n"
                       "    help)\n"
                       "        _describe command commands\n"
                       "        return ;;\n"
                       "    *)\n"
                       "        command=run\n"
                       "        [[ -z ${words[(r)--prompt-*]}${words[(r)--messages*]} ]] || "
                       "command=generate ;;\n"
                       "    esac\n"
                       "    case $command in\n");
    for (size_t i = 0; i < cli_n_commands; i++) {
        strbuf_printf(out, "    %s) arguments=(\n", cli_commands[i].name);
        each_option(cli_commands[i].options, append_zsh_positional, out);
        each_option(cli_commands[i].options, append_zsh_option, out);
        strbuf_printf(out, "        '--help[print the manual]'\n    ) ;;\n");
    }
    strbuf_printf(out, "    esac\n"
                       "    _arguments -S $arguments\n"
                       "}\n"
                       "_ree_run \"$@\"\n");
}

struct fish_option {
    struct strbuf *out;
    const char *condition;
};

static void append_fish_option(const struct cli_option_row *row, void *user) {
    const struct fish_option *fish = user;
    struct strbuf *out = fish->out;
    if (!is_option(row) && !row->choices) return;
    strbuf_printf(out, "complete -c ree-run -n '%s'", fish->condition);
    if (is_option(row))
        strbuf_printf(out, row->name[1] == '-' ? " -l %s" : " -s %s",
                      row->name + (row->name[1] == '-' ? 2 : 1));
    if (row->choices) {
        strbuf_printf(out, " %s-a '", is_option(row) ? "-x " : "");
        append_choices(out, row->choices);
        strbuf_printf(out, "'");
    } else if (row->value && !row->is_optional) {
        // -x: no file names
        strbuf_printf(out, row->path == CLI_FILLS     ? " -x -a '(__fish_complete_directories)'"
                           : row->path != CLI_NO_PATH ? " -r"
                                                      : " -x");
    }
    if (is_option(row) && row->help) {
        strbuf_printf(out, " -d '");
        append_description(out, row, "'\\");
        strbuf_printf(out, "'");
    }
    strbuf_append(out, "\n", 1);
}

static void fish(struct strbuf *out) {
    strbuf_printf(out,
                  "# fish completion for ree-run, made by the build from its option tables.\n");
    for (size_t i = 0; i < cli_n_commands; i++) {
        strbuf_printf(out, "complete -c ree-run -n __fish_use_subcommand -a %s -d '",
                      cli_commands[i].name);
        for (const char *c = cli_commands[i].summary; *c; c++)
            if (*c != '\'') strbuf_append(out, c, 1);
        strbuf_printf(out, "'\n");
    }
    strbuf_printf(out, "complete -c ree-run -n __fish_use_subcommand -a help -d 'print the manual "
                       "of a command'\n"
                       "complete -c ree-run -n '__fish_seen_subcommand_from help' -f -a '");
    append_names(out, " ");
    strbuf_printf(out, "'\ncomplete -c ree-run -l help -d 'print the manual'\n");
    for (size_t i = 0; i < cli_n_commands; i++) {
        char condition[160];
        const struct cli_command *c = &cli_commands[i];
        snprintf(condition, sizeof condition, "__fish_seen_subcommand_from %s", c->name);
        each_option(c->options, append_fish_option, &(struct fish_option){out, condition});
    }
    // Without a subcommand: a run or a generation.
    for (size_t i = 0; i < cli_n_commands; i++)
        if (cli_commands[i].is_default)
            each_option(cli_commands[i].options, append_fish_option,
                        &(struct fish_option){out, "__fish_use_subcommand"});
}

int cli_document(const char *kind, const char *name) {
    const struct cli_command *command = cli_find_command(name);
    struct strbuf out;
    strbuf_init(&out);
    if (strcmp(kind, "man") == 0 && command)
        man_of_command(command, &out);
    else if (strcmp(kind, "man") == 0 && !*name)
        man_of_program(&out);
    else if (strcmp(kind, "bash") == 0)
        bash(&out);
    else if (strcmp(kind, "zsh") == 0)
        zsh(&out);
    else if (strcmp(kind, "fish") == 0)
        fish(&out);
    else {
        cli_error("no such document: %s %s", kind, name);
        return CLI_USAGE;
    }
    return cli_print(&out);
}
