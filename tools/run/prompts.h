// The prompts of a text generation, from the command line and from files, as token ids.
#ifndef REE_TOOLS_RUN_PROMPTS_H
#define REE_TOOLS_RUN_PROMPTS_H

#include "ree.h"

enum prompt_kind { PROMPT_TEXT, PROMPT_IDS, PROMPT_FILE, PROMPT_MESSAGES };

// One option of the command line.
struct prompt_arg {
    enum prompt_kind kind;
    const char *value;
};

// The option `name`, which is one of these: --prompt-text, --prompt-ids, --prompt-file, --messages.
// True if the argument is it; its value goes behind the *n prompts.
struct cli;
bool prompt_option(struct cli *cli, const char *name, struct prompt_arg *list, size_t *n);
bool prompt_is_option(const char *argument); // one of those
// The option --stop; its value goes behind the *n stop texts. As many as a receipt may have.
bool stop_option(struct cli *cli, const char **list, size_t *n);

struct prompts {
    size_t n;
    struct ree_prompt *list; // ids of malloc
    bool *is_chat;           // the prompt is a conversation, which is not repeated
};

// Reads and encodes all of them. `tokenizer` may be NULL where only ids are given. `chat_family`
// may be NULL; raw: no tokens are added to texts. Prints what is wrong and returns an exit code.
int prompts_load(struct prompts *prompts, const struct prompt_arg *args, size_t n_args,
                 const struct ree_tokenizer *tokenizer, const char *chat_family, bool raw);
// One prompt of these ids, copied. False: out of memory.
bool prompts_of_ids(struct prompts *prompts, const int32_t *ids, size_t n);
void prompts_finish(struct prompts *prompts);

#endif
