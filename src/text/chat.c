// Chat prompts. The chat templates of models are programs (Jinja), which are not run here. This
// file has the formats of known families. chat_recognise.c decides which family a template belongs
// to; an unknown template is rejected, not guessed.
//
// Sources: the model cards' descriptions of the prompt formats of Llama 2, Llama 3, Mistral, Qwen,
// SmolLM, Phi-3, Gemma and OLMo 2.
#include "text/json.h"
#include "base/float_env.h"
#include "base/memory.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

#include <stdlib.h>

enum role { SYSTEM, USER, ASSISTANT };
static const char *const role_names[] = {"system", "user", "assistant"};

struct message {
    enum role role;
    struct ree_str content;
};

struct chat {
    const struct message *messages;
    size_t n;
    const char *bos, *eos;
    const char *preset; // the family's default system message; NULL: none
    bool reply;
    struct ree_strbuf *out;
};

static void put(struct chat *chat, const char *text) {
    ree_strbuf_append(chat->out, text, strlen(text));
}

static void put_str(struct chat *chat, struct ree_str text) {
    ree_strbuf_append(chat->out, text.data, text.size);
}

// Removes white space at both ends, as Python's str.strip does.
static struct ree_str trim(struct ree_str text) {
    size_t step;
    while (text.size) {
        uint32_t c = ree_utf8_get(text.data, &step);
        if (!ree_char_is_space(c) && !(c >= 0x1C && c <= 0x1F)) break;
        text.data += step;
        text.size -= step;
    }
    while (text.size) {
        size_t last = ree_utf8_last_size(text.data, text.size);
        uint32_t c = ree_utf8_get(text.data + text.size - last, &step);
        if (!ree_char_is_space(c) && !(c >= 0x1C && c <= 0x1F)) break;
        text.size -= last;
    }
    return text;
}

// Fails unless user and assistant alternate from message `from` on, beginning with user.
static enum ree_status want_turns(const struct chat *chat, size_t from, struct ree_error *err) {
    for (size_t i = from; i < chat->n; i++) {
        enum role role = (i - from) % 2 ? ASSISTANT : USER;
        if (chat->messages[i].role != role)
            return ree_fail(err, REE_INVALID,
                            "messages[%zu] has the role %s; this family alternates user "
                            "and assistant, and expects %s here",
                            i, role_names[chat->messages[i].role], role_names[role]);
    }
    return REE_OK;
}

static enum ree_status refuse_system(const struct chat *chat, struct ree_error *err) {
    if (chat->messages[0].role != SYSTEM) return REE_OK;
    return ree_fail(err, REE_UNSUPPORTED, "this family has no system message");
}

static enum ree_status llama2(struct chat *chat, struct ree_error *err) {
    size_t first = chat->messages[0].role == SYSTEM;
    REE_TRY(want_turns(chat, first, err));
    for (size_t i = first; i < chat->n; i++) {
        struct ree_str content = chat->messages[i].content;
        if (chat->messages[i].role == ASSISTANT) {
            put(chat, " ");
            put_str(chat, trim(content));
            put(chat, " ");
            put(chat, chat->eos);
            continue;
        }
        put(chat, chat->bos);
        put(chat, "[INST] ");
        bool system = i == first && first;
        if (system) {
            put(chat, "<<SYS>>\n");
            put_str(chat, chat->messages[0].content);
            put(chat, "\n<</SYS>>\n\n");
            // The template trims the system and the user text together. So only the end of the user
            // text is trimmed here.
            struct ree_str trimmed = trim(content);
            content.size = trimmed.size ? (size_t)(trimmed.data - content.data) + trimmed.size : 0;
            put_str(chat, content);
            while (!trimmed.size && chat->out->data[chat->out->size - 1] == '\n')
                chat->out->size--;
        } else {
            put_str(chat, trim(content));
        }
        put(chat, " [/INST]");
    }
    return REE_OK;
}

static void llama3_turn(struct chat *chat, const char *role) {
    put(chat, "<|start_header_id|>");
    put(chat, role);
    put(chat, "<|end_header_id|>\n\n");
}

static void llama3_turns(struct chat *chat, size_t from) {
    for (size_t i = from; i < chat->n; i++) {
        llama3_turn(chat, role_names[chat->messages[i].role]);
        put_str(chat, trim(chat->messages[i].content));
        put(chat, "<|eot_id|>");
    }
    if (chat->reply) llama3_turn(chat, "assistant");
}

static enum ree_status llama3(struct chat *chat, struct ree_error *err) {
    (void)err;
    put(chat, chat->bos);
    llama3_turns(chat, 0);
    return REE_OK;
}

// The date is the template's default for a missing date: a prompt must not depend on the current
// day.
static enum ree_status llama31(struct chat *chat, struct ree_error *err) {
    (void)err;
    bool system = chat->messages[0].role == SYSTEM;
    put(chat, chat->bos);
    llama3_turn(chat, "system");
    put(chat, "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n");
    if (system) put_str(chat, trim(chat->messages[0].content));
    put(chat, "<|eot_id|>");
    llama3_turns(chat, system);
    return REE_OK;
}

static enum ree_status mistral(struct chat *chat, struct ree_error *err) {
    REE_TRY(refuse_system(chat, err));
    REE_TRY(want_turns(chat, 0, err));
    put(chat, chat->bos);
    for (size_t i = 0; i < chat->n; i++) {
        bool user = chat->messages[i].role == USER;
        if (user) put(chat, "[INST] ");
        put_str(chat, chat->messages[i].content);
        put(chat, user ? " [/INST]" : chat->eos);
    }
    return REE_OK;
}

// If the last message is of the user, the system message is put before it; otherwise it is left
// out.
static enum ree_status mistral3(struct chat *chat, struct ree_error *err) {
    size_t first = chat->messages[0].role == SYSTEM;
    REE_TRY(want_turns(chat, first, err));
    put(chat, chat->bos);
    for (size_t i = first; i < chat->n; i++) {
        bool user = chat->messages[i].role == USER;
        put(chat, user ? "[INST] " : " ");
        if (user && first && i + 1 == chat->n) {
            put_str(chat, chat->messages[0].content);
            put(chat, "\n\n");
        }
        put_str(chat, user ? chat->messages[i].content : trim(chat->messages[i].content));
        put(chat, user ? "[/INST]" : chat->eos);
    }
    return REE_OK;
}

static void chatml_turn(struct chat *chat, const char *role) {
    put(chat, "<|im_start|>");
    put(chat, role);
    put(chat, "\n");
}

static enum ree_status chatml(struct chat *chat, struct ree_error *err) {
    (void)err;
    if (chat->preset && chat->messages[0].role != SYSTEM) {
        chatml_turn(chat, "system");
        put(chat, chat->preset);
        put(chat, "<|im_end|>\n");
    }
    for (size_t i = 0; i < chat->n; i++) {
        chatml_turn(chat, role_names[chat->messages[i].role]);
        put_str(chat, chat->messages[i].content);
        put(chat, "<|im_end|>\n");
    }
    if (chat->reply) chatml_turn(chat, "assistant");
    return REE_OK;
}

// Qwen 3: the text between <think> and </think> is removed from an assistant turn that a user turn
// follows. A last turn of the assistant always has the tags, even if they are empty.
static void qwen3_assistant(struct chat *chat, struct ree_str content, bool answered,
                            bool last_turn) {
    static const char open[] = "<think>", close[] = "</think>";
    struct ree_str thought = {"", 0}, at = content;
    const char *found, *last = NULL, *first = memmem(content.data, content.size, close, 8);
    while ((found = memmem(at.data, at.size, close, 8))) {
        last = found + 8;
        at.size -= (size_t)(last - at.data);
        at.data = last;
    }
    if (first) {
        thought = (struct ree_str){content.data, (size_t)(first - content.data)};
        while (thought.size && thought.data[thought.size - 1] == '\n')
            thought.size--;
        while ((found = memmem(thought.data, thought.size, open, 7))) {
            thought.size -= (size_t)(found + 7 - thought.data);
            thought.data = found + 7;
        }
        content.size -= (size_t)(last - content.data);
        content.data = last;
        while (content.size && content.data[0] == '\n')
            content.data++, content.size--;
    }
    while (thought.size && thought.data[0] == '\n')
        thought.data++, thought.size--;
    if (!answered && (last_turn || thought.size)) {
        while (content.size && content.data[0] == '\n')
            content.data++, content.size--;
        put(chat, "<think>\n");
        put_str(chat, thought);
        put(chat, "\n</think>\n\n");
    }
    put_str(chat, content);
}

static enum ree_status qwen3(struct chat *chat, struct ree_error *err) {
    (void)err;
    size_t query = chat->n - 1; // the last user message
    for (size_t i = 0; i < chat->n; i++)
        if (chat->messages[i].role == USER) query = i;
    for (size_t i = 0; i < chat->n; i++) {
        const struct message *message = &chat->messages[i];
        chatml_turn(chat, role_names[message->role]);
        if (message->role == ASSISTANT)
            qwen3_assistant(chat, message->content, i <= query, i + 1 == chat->n);
        else
            put_str(chat, message->content);
        put(chat, "<|im_end|>\n");
    }
    if (chat->reply) chatml_turn(chat, "assistant");
    return REE_OK;
}

static enum ree_status phi3(struct chat *chat, struct ree_error *err) {
    (void)err;
    put(chat, chat->bos);
    for (size_t i = 0; i < chat->n; i++) {
        put(chat, "<|");
        put(chat, role_names[chat->messages[i].role]);
        put(chat, "|>\n");
        put_str(chat, chat->messages[i].content);
        put(chat, "<|end|>\n");
    }
    put(chat, chat->reply ? "<|assistant|>\n" : chat->eos);
    return REE_OK;
}

static enum ree_status gemma_turns(struct chat *chat, size_t first, struct ree_error *err) {
    REE_TRY(want_turns(chat, first, err));
    put(chat, chat->bos);
    for (size_t i = first; i < chat->n; i++) {
        put(chat, "<start_of_turn>");
        put(chat, chat->messages[i].role == USER ? "user\n" : "model\n");
        if (first && i == first) {
            put_str(chat, chat->messages[0].content);
            put(chat, "\n\n");
        }
        put_str(chat, trim(chat->messages[i].content));
        put(chat, "<end_of_turn>\n");
    }
    if (chat->reply) put(chat, "<start_of_turn>model\n");
    return REE_OK;
}

static enum ree_status gemma(struct chat *chat, struct ree_error *err) {
    REE_TRY(refuse_system(chat, err));
    return gemma_turns(chat, 0, err);
}

// The system message becomes the beginning of the first user message.
static enum ree_status gemma3(struct chat *chat, struct ree_error *err) {
    return gemma_turns(chat, chat->messages[0].role == SYSTEM, err);
}

static enum ree_status olmo2(struct chat *chat, struct ree_error *err) {
    (void)err;
    put(chat, chat->bos);
    for (size_t i = 0; i < chat->n; i++) {
        const struct message *message = &chat->messages[i];
        bool last = i + 1 == chat->n;
        put(chat, "<|");
        put(chat, role_names[message->role]);
        put(chat, "|>\n");
        put_str(chat, message->content);
        if (message->role == ASSISTANT) put(chat, chat->eos);
        if (message->role != ASSISTANT || !last) put(chat, "\n");
    }
    if (chat->reply) put(chat, "<|assistant|>\n");
    return REE_OK;
}

struct family {
    const char *name;
    enum ree_status (*write)(struct chat *chat, struct ree_error *err);
    // Used if the tokenizer has these tokens but does not declare them.
    const char *bos, *eos;
    const char *preset;
};

static const struct family families[] = {
    {"llama2", llama2, "<s>", "</s>", NULL},
    {"llama3", llama3, "<|begin_of_text|>", "<|eot_id|>", NULL},
    {"llama3.1", llama31, "<|begin_of_text|>", "<|eot_id|>", NULL},
    {"mistral", mistral, "<s>", "</s>", NULL},
    {"mistral-v3", mistral3, "<s>", "</s>", NULL},
    {"chatml", chatml, "", "", NULL},
    {"qwen2", chatml, "", "", "You are a helpful assistant."},
    {"qwen2.5", chatml, "", "",
     "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."},
    {"qwen3", qwen3, "", "", NULL},
    {"smollm2", chatml, "", "",
     "You are a helpful AI assistant named SmolLM, trained by Hugging Face"},
    {"phi3", phi3, "<s>", "<|endoftext|>", NULL},
    {"gemma", gemma, "<bos>", "<eos>", NULL},
    {"gemma3", gemma3, "<bos>", "<eos>", NULL},
    {"olmo2", olmo2, "<|endoftext|>", "<|endoftext|>", NULL},
};
#define N_FAMILIES (sizeof families / sizeof *families)

const char *const *ree_chat_families(void) {
    static const char *const names[] = {"llama2", "llama3", "llama3.1", "mistral", "mistral-v3",
                                        "chatml", "qwen2",  "qwen2.5",  "qwen3",   "smollm2",
                                        "phi3",   "gemma",  "gemma3",   "olmo2",   NULL};
    _Static_assert(sizeof names / sizeof *names == N_FAMILIES + 1, "one for each family");
    return names;
}

const char *ree_chat_family_of_preset(const char *text, size_t n) {
    for (size_t i = 0; i < N_FAMILIES; i++)
        if (families[i].preset && strlen(families[i].preset) == n &&
            memcmp(families[i].preset, text, n) == 0)
            return families[i].name;
    return NULL;
}

static enum ree_status read_message(const cJSON *json, struct message *message,
                                    struct ree_error *err) {
    const cJSON *role, *content;
    REE_TRY(ree_text_json_want(json, "role", &role, err));
    REE_TRY(ree_text_json_want(json, "content", &content, err));
    size_t i = 0;
    while (i < 3 && !(cJSON_IsString(role) && strcmp(role->valuestring, role_names[i]) == 0))
        i++;
    if (i == 3) return ree_fail(err, REE_INVALID, "'role' is not system, user or assistant");
    if (!cJSON_IsString(content)) return ree_fail(err, REE_INVALID, "'content' is not a string");
    message->role = (enum role)i;
    message->content.data = content->valuestring;
    message->content.size = ree_text_json_restore(content->valuestring);
    return REE_OK;
}

// The strings remain owned by `json`.
static enum ree_status read_messages(const cJSON *json, struct message **out, size_t *out_n,
                                     struct ree_error *err) {
    int n = cJSON_IsArray(json) ? cJSON_GetArraySize(json) : 0;
    if (n < 1) return ree_fail(err, REE_INVALID, "not an array of messages");
    *out = ree_alloc_zeroed((size_t)n, sizeof **out);
    if (!*out) return ree_fail(err, REE_NO_MEMORY, "no memory for messages");
    const cJSON *item;
    cJSON_ArrayForEach(item, json) {
        enum ree_status status = read_message(item, &(*out)[*out_n], err);
        if (status != REE_OK) return ree_fail_prefix(err, "messages[%zu]", *out_n);
        if (*out_n > 0 && (*out)[*out_n].role == SYSTEM)
            return ree_fail(err, REE_UNSUPPORTED,
                            "messages[%zu] is a system message; only the first message can be one",
                            *out_n);
        ++*out_n;
    }
    if (n == 1 && (*out)[0].role == SYSTEM)
        return ree_fail(err, REE_INVALID,
                        "a conversation requires messages other than a system message");
    return REE_OK;
}

static enum ree_status find_family(const struct ree_tokenizer *tokenizer, const char *name,
                                   const struct family **out, struct ree_error *err) {
    const char *wanted = name ? name : tokenizer->chat_family;
    if (!wanted)
        return ree_fail(
            err, REE_UNSUPPORTED,
            tokenizer->chat_template
                ? "the family of the model's chat template is unknown; write the whole prompt and "
                  "use --raw-prompt"
                : "the model has no chat template; write the whole prompt and use --raw-prompt");
    for (size_t i = 0; i < N_FAMILIES; i++) {
        if (strcmp(families[i].name, wanted) != 0) continue;
        *out = &families[i];
        return REE_OK;
    }
    return ree_fail(err, REE_NOT_FOUND, "unknown family of chat templates '%.80s'", wanted);
}

// Returns the text of the declared token or, if none is declared, of the family's usual token if
// the tokenizer has it.
static const char *end_text(const struct ree_tokenizer *tokenizer, int32_t declared,
                            const char *usual) {
    if (declared >= 0) return ree_tokenizer_token(tokenizer, declared);
    return ree_tokenizer_id(tokenizer, usual) >= 0 ? usual : "";
}

enum ree_status ree_chat_prompt(const struct ree_tokenizer *tokenizer, const char *family,
                                const char *messages, size_t nbytes, bool reply, char **out_text,
                                size_t *out_nbytes, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_error local;
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    *out_text = NULL;
    *out_nbytes = 0;
    const struct family *found = NULL;
    REE_TRY(find_family(tokenizer, family, &found, err));
    cJSON *json;
    enum ree_status status = ree_text_json_parse(messages, nbytes, &json, err);
    if (status != REE_OK) return ree_fail_prefix(err, "messages");
    struct message *list = NULL;
    struct ree_strbuf out;
    ree_strbuf_init(&out);
    struct chat chat = {.bos = end_text(tokenizer, tokenizer->bos, found->bos),
                        .eos = end_text(tokenizer, tokenizer->eos_token, found->eos),
                        .preset = found->preset,
                        .reply = reply,
                        .out = &out};
    // Templates of this family exist with and without BOS.
    if (found->write == phi3 && tokenizer->chat_template &&
        !strstr(tokenizer->chat_template, "bos_token"))
        chat.bos = "";
    status = read_messages(json, &list, &chat.n, err);
    chat.messages = list;
    if (status == REE_OK) {
        status = found->write(&chat, err);
        if (status != REE_OK) ree_fail_prefix(err, "chat family %s", found->name);
    }
    if (status == REE_OK) {
        *out_nbytes = out.size;
        *out_text = ree_strbuf_take(&out);
        if (!*out_text) status = ree_fail(err, REE_NO_MEMORY, "no memory for a prompt");
    }
    ree_free(list);
    ree_strbuf_finish(&out);
    cJSON_Delete(json);
    return status;
}
