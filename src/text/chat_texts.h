// The texts that a chat template (Jinja) can write: its string literals, those that + joins as one,
// and what stands outside its tags.
#ifndef REE_TEXT_CHAT_TEXTS_H
#define REE_TEXT_CHAT_TEXTS_H

#include <stdbool.h>

// Calls `visit` with each until it returns false; false then, also when the template is not
// understood or memory is short. White space that Jinja drops (trim_blocks, lstrip_blocks, as
// transformers sets them), comments and what raise_exception says are left out.
bool ree_chat_each_text(const char *jinja, bool (*visit)(void *user, const char *text), void *user);

#endif
