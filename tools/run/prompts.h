// Parses the options that name prompts and stop texts, and reads and encodes the prompts as token
// ids.
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
// Returns true if `argument` is --prompt-text, --prompt-ids, --prompt-file or --messages, with or
// without "=VALUE".
bool prompt_is_option(const char *argument);
// Returns true if the current argument is --stop; appends its value to `list` and increments *n.
// More texts or bytes than a receipt may have are wrong usage.
bool stop_option(struct cli *cli, const char **list, size_t *n);

struct prompts {
    size_t n;
    const struct ree_prompt *list; // [n]: the token ids of each prompt; borrowed from `all`
    struct ree_prompts *all;
};

// Reads and encodes all prompts. Returns 0, or prints an error and returns an exit code. Release
// with prompts_finish, also after a failure.
// - tokenizer: may be NULL if all prompts are ids.
// - chat_family: the chat format of conversations; NULL: that of the tokenizer.
// - raw: add no special tokens to texts; encode special tokens that a text contains as such.
int prompts_load(struct prompts *prompts, const struct prompt_arg *args, size_t n_args,
                 const struct ree_tokenizer *tokenizer, const char *chat_family, bool raw);
// Returns whether prompt i is a conversation; `generate` does not print one before the answer.
bool prompts_is_chat(const struct prompts *prompts, size_t i);
void prompts_finish(struct prompts *prompts); // accepts a zeroed struct

#endif
