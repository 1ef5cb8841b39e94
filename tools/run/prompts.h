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
    struct ree_prompt *list; // the ids are allocated with malloc and owned
    bool *is_chat; // per prompt: it is a conversation, which is not echoed before the answer
};

// Reads and encodes all prompts. `tokenizer` may be NULL if all prompts are ids. `chat_family` may
// be NULL. raw: add no special tokens to texts. Prints errors and returns an exit code.
int prompts_load(struct prompts *prompts, const struct prompt_arg *args, size_t n_args,
                 const struct ree_tokenizer *tokenizer, const char *chat_family, bool raw);
// Creates one prompt from a copy of these ids. False: out of memory.
bool prompts_of_ids(struct prompts *prompts, const int32_t *ids, size_t n);
void prompts_finish(struct prompts *prompts);

#endif
