// Recognises the family of a model's chat template. Templates are programs (Jinja), which are not
// run here. A template is recognised by strings that all templates of its family contain, and by
// the texts that it can write into a prompt: each text must be one of the family's. An unknown
// template is rejected, not guessed.
#include "text/chat_texts.h"
#include "text/tokenizer.h"

#include <ctype.h>

static bool has(const char *template, const char *mark) {
    return strstr(template, mark) != NULL;
}

// The texts that the templates of a family write in addition to messages. `common` has those of all
// families: roles and names of members.
static const char *const common[] = {"system",  "user", "assistant", "role",
                                     "content", "",     "equalto",   NULL};
static const char *const chatml[] = {"<|im_start|>",
                                     "<|im_start|>system\n",
                                     "<|im_start|>user\n",
                                     "<|im_start|>assistant\n",
                                     "<|im_end|>\n",
                                     "\n",
                                     NULL};
static const char *const qwen3[] = {"<|im_start|>assistant\n<think>\n",
                                    "<think>",
                                    "</think>",
                                    "<think>\n",
                                    "\n<think>\n",
                                    "\n</think>\n\n",
                                    "<think>\n\n</think>\n\n",
                                    "\n\n",
                                    NULL};
static const char *const llama2[] = {"[INST] ",        " [/INST]", "<<SYS>>\n",
                                     "\n<</SYS>>\n\n", " ",        NULL};
static const char *const llama3[] = {"<|start_header_id|>", "<|end_header_id|>\n\n", "<|eot_id|>",
                                     "<|start_header_id|>assistant<|end_header_id|>\n\n", NULL};
static const char *const llama31[] = {
    "<|start_header_id|>system<|end_header_id|>\n\n",
    "<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\n",
    "<|start_header_id|>user<|end_header_id|>\n\n",
    "<|start_header_id|>ipython<|end_header_id|>\n\n",
    "Cutting Knowledge Date: December 2023\n",
    "Today Date: ",
    "26 Jul 2024",
    "%d %b %Y",
    "\n\n",
    "ipython",
    "Environment: ipython\n",
    "code_interpreter",
    "Do not use variables.\n\n",
    "with its proper arguments that best answers the given prompt.\n\n",
    "<|python_tag|>",
    ".call(",
    "<|eom_id|>",
    NULL};
static const char *const mistral[] = {"[INST] ", " [/INST]", NULL};
static const char *const mistral3[] = {"[INST] ", "[/INST]", "\n\n", " ", NULL};
static const char *const phi3[] = {"<|system|>\n", "<|user|>\n", "<|assistant|>\n", "<|end|>\n",
                                   NULL};
static const char *const gemma[] = {
    "<start_of_turn>", "<start_of_turn>model\n", "model", "\n", "<end_of_turn>\n", NULL};
static const char *const gemma3[] = {"\n\n", "image", "text", "type", "<start_of_image>", NULL};
static const char *const olmo2[] = {"<|system|>\n", "<|user|>\n", "<|assistant|>\n", "\n", NULL};

static bool among(const char *text, const char *const *list) {
    while (*list && strcmp(text, *list) != 0)
        list++;
    return *list != NULL;
}

// Returns whether a template writes this text only if tools are offered or called, which the
// prompts made here never do. Such a text mentions tools, or consists of JSON punctuation and names
// of members.
static bool of_tools(const char *text) {
    if (has(text, "tool") || has(text, "Tool") || has(text, "TOOL") || has(text, "function"))
        return (!has(text, "You are") || has(text, "\n\nYou are provided with function")) &&
               !has(text, "<|start_header_id|>");
    static const char *const names[] = {"name",    "arguments", "parameters", "id",
                                        "results", "call_id",   "type",       "properties"};
    while (*text) {
        size_t i = 0, n = sizeof names / sizeof *names;
        if (strchr("{}[]\":,()=. \n", *text)) {
            text++;
            continue;
        }
        while (i < n && (strncmp(text, names[i], strlen(names[i])) != 0 ||
                         isalnum((unsigned char)text[strlen(names[i])])))
            i++;
        if (i == n) return false;
        text += strlen(names[i]);
    }
    return true;
}

struct known {
    const char *const *texts, *const *more; // `more` may be NULL
    bool tools;
    // preset: name of the family whose default system message was found; NULL: none found yet.
    // same: all default system messages found so far are of one family.
    const char *preset;
    bool same;
};

// Returns the name of the family whose default system message PRESET is, if the text is PRESET or
// '<|im_start|>system\nPRESET<|im_end|>\n'; NULL if there is none.
static const char *family_of_preset(const char *text) {
    static const char head[] = "<|im_start|>system\n", tail[] = "<|im_end|>\n";
    size_t n = strlen(text);
    if (strncmp(text, head, sizeof head - 1) == 0 && n >= sizeof head + sizeof tail - 2 &&
        strcmp(text + n - (sizeof tail - 1), tail) == 0) {
        text += sizeof head - 1;
        n -= sizeof head + sizeof tail - 2;
    }
    return ree_chat_family_of_preset(text, n);
}

static bool is_known(void *user, const char *text) {
    struct known *known = user;
    if (among(text, common) || among(text, known->texts) ||
        (known->more && among(text, known->more)))
        return true;
    if (known->texts == chatml && !known->more) {
        const char *family = family_of_preset(text);
        if (family) {
            known->same &= !known->preset || strcmp(known->preset, family) == 0;
            known->preset = family;
            return known->same;
        }
    }
    if (!known->tools) return false;
    // Qwen's families put the answers of tools into a turn of the user.
    if (known->texts == chatml && strcmp(text, "<|im_start|>user") == 0) return true;
    return of_tools(text) || strcmp(text, "return") == 0;
}

// Returns whether every text of the template is one of the family's.
static bool writes_only(const char *t, const char *const *texts, const char *const *more) {
    struct known known = {texts, more, has(t, "tool"), NULL, true};
    return ree_chat_each_text(t, is_known, &known);
}

static const char *recognise_chatml(const char *t) {
    if (!has(t, "<|im_end|>") || !has(t, "add_generation_prompt")) return NULL;
    if (has(t, "think")) {
        bool known = has(t, "last_query_index") && has(t, "enable_thinking") &&
                     has(t, "reasoning_content") && writes_only(t, chatml, qwen3);
        return known ? "qwen3" : NULL;
    }
    if (has(t, "bos_token") || has(t, "trim") || has(t, "strip")) return NULL;
    struct known known = {chatml, NULL, has(t, "tool"), NULL, true};
    if (!ree_chat_each_text(t, is_known, &known)) return NULL;
    return known.preset ? known.preset : "chatml";
}

static const char *recognise_inst(const char *t) {
    if (has(t, "<<SYS>>")) {
        bool known = has(t, "'[INST] '") && has(t, "' [/INST]'") && has(t, "strip()");
        return known && writes_only(t, llama2, NULL) ? "llama2" : NULL;
    }
    if (has(t, "tool")) {
        bool known = has(t, "[AVAILABLE_TOOLS]") && has(t, "\"[/INST]\"") && has(t, "loop.last") &&
                     has(t, "\" \" + message");
        return known && writes_only(t, mistral3, NULL) ? "mistral-v3" : NULL;
    }
    bool known = has(t, "'[INST] ' + message['content'] + ' [/INST]'") &&
                 has(t, "message['content'] + eos_token") && !has(t, "system") &&
                 has(t, "{{ bos_token }}");
    return known && writes_only(t, mistral, NULL) ? "mistral" : NULL;
}

static const char *recognise_llama3(const char *t) {
    if (!has(t, "<|eot_id|>") || !has(t, "bos_token") || !has(t, "add_generation_prompt") ||
        !has(t, "trim"))
        return NULL;
    if (has(t, "Cutting Knowledge Date: December 2023"))
        return has(t, "26 Jul 2024") && writes_only(t, llama3, llama31) ? "llama3.1" : NULL;
    return !has(t, "tool") && writes_only(t, llama3, NULL) ? "llama3" : NULL;
}

const char *ree_chat_recognise(const struct ree_tokenizer *tokenizer) {
    const char *t = tokenizer->chat_template;
    if (!t) return NULL;
    // Templates with these filters would change a message.
    static const char *const changes[] = {"upper", "lower",      "replace",
                                          "title", "capitalize", "format("};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        if (has(t, changes[i])) return NULL;
    if (has(t, "<|start_header_id|>")) return recognise_llama3(t);
    if (has(t, "[INST]")) return recognise_inst(t);
    if (has(t, "<|im_start|>")) return recognise_chatml(t);
    if (has(t, "<start_of_turn>")) {
        if (has(t, "tool") || !has(t, "trim") || !has(t, "bos_token") || !has(t, "model'"))
            return NULL;
        if (has(t, "first_user_prefix")) return writes_only(t, gemma, gemma3) ? "gemma3" : NULL;
        bool known = has(t, "System role not supported") && writes_only(t, gemma, NULL);
        return known ? "gemma" : NULL;
    }
    if (!has(t, "<|user|>") || !has(t, "<|assistant|>") || !has(t, "<|system|>") ||
        !has(t, "add_generation_prompt") || has(t, "tool") || has(t, "trim") || has(t, "strip"))
        return NULL;
    if (has(t, "<|end|>")) return writes_only(t, phi3, NULL) ? "phi3" : NULL;
    bool olmo = has(t, "bos_token") && has(t, "eos_token + '\\n'") &&
                has(t, "loop.last and add_generation_prompt") && writes_only(t, olmo2, NULL);
    return olmo ? "olmo2" : NULL;
}
