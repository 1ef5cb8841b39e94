// The texts that a chat template (Jinja) can write: its string literals (those joined by + count as
// one) and the text outside its tags.
#ifndef REE_TEXT_CHAT_TEXTS_H
#define REE_TEXT_CHAT_TEXTS_H

#include <stdbool.h>

// Calls `visit` with each text until it returns false. Returns false then, and also if the template
// is not understood or memory is exhausted. Leaves out comments, the arguments of raise_exception,
// and white space that Jinja removes (with trim_blocks and lstrip_blocks, as transformers sets
// them).
bool ree_chat_each_text(const char *jinja, bool (*visit)(void *user, const char *text), void *user);

#endif
