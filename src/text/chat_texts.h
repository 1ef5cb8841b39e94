// Lists the texts that a chat template (Jinja) can write: its string literals (literals joined by +
// count as one) and the text outside its tags.
#ifndef REE_TEXT_CHAT_TEXTS_H
#define REE_TEXT_CHAT_TEXTS_H

#include <stdbool.h>

// Calls `visit` with each text that the template can write, in order. Stops and returns false if
// `visit` returns false, the template cannot be parsed, or memory is exhausted. Leaves out
// comments, the arguments of raise_exception, and white space that Jinja removes (with trim_blocks
// and lstrip_blocks, as transformers sets them).
bool ree_chat_each_text(const char *jinja, bool (*visit)(void *user, const char *text), void *user);

#endif
