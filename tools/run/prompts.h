// The prompts of a text generation as token ids, read from the command line and from files.
#ifndef REE_TOOLS_RUN_PROMPTS_H
#define REE_TOOLS_RUN_PROMPTS_H

#include "ree.h"

enum prompt_kind { PROMPT_TEXT, PROMPT_IDS, PROMPT_FILE, PROMPT_MESSAGES };

// One prompt option of the command line.
struct prompt_arg {
    enum prompt_kind kind;
    const char *value;
};

// Parses the option `name`: --prompt-text, --prompt-ids, --prompt-file or --messages. Returns true
// if the current argument is this option; appends its value to `list` and increments *n.
struct cli;
bool prompt_option(struct cli *cli, const char *name, struct prompt_arg *list, size_t *n);
bool prompt_is_option(const char *argument); // true: it is one of these four options
// Parses --stop and appends its value to `list`. Accepts as many texts and bytes as a receipt may
// have.
bool stop_option(struct cli *cli, const char **list, size_t *n);

struct prompts {
    size_t n;
    const struct ree_prompt *list; // borrowed from `all`
    struct ree_prompts *all;
};

// Reads and encodes all prompts. `tokenizer` may be NULL if all prompts are ids. `chat_family` may
// be NULL. raw: add no special tokens to texts. Prints errors and returns an exit code.
int prompts_load(struct prompts *prompts, const struct prompt_arg *args, size_t n_args,
                 const struct ree_tokenizer *tokenizer, const char *chat_family, bool raw);
// A conversation is not echoed before the answer.
bool prompts_is_chat(const struct prompts *prompts, size_t i);
void prompts_finish(struct prompts *prompts); // accepts a zeroed struct

#endif
