// Which family's chat template a model has. Templates are programs (Jinja) that are not run here:
// one is known by marks that its family's have, and by the lack of those that would change the
// prompt. A template that is not known is refused rather than guessed at.
#include "text/tokenizer.h"

static bool has(const char *template, const char *mark) {
    return strstr(template, mark) != NULL;
}

// The text that a ChatML template puts where no system message is: literal, between the header of a
// system turn and its end. Sets *out_size; NULL when there is none.
static const char *preset_of(const char *template, size_t *out_size) {
    static const char head[] = "<|im_start|>system";
    for (const char *at = template; (at = strstr(at, head));) {
        at += sizeof head - 1;
        if (at[0] == '\\' && at[1] == 'n')
            at += 2;
        else if (at[0] == '\n')
            at++;
        else
            continue;
        const char *end = strstr(at, "<|im_end|>");
        if (!end) return NULL;
        *out_size = (size_t)(end - at);
        // A quote ends the literal: what follows is put together from variables.
        if (!memchr(at, '\'', *out_size) && !memchr(at, '"', *out_size) &&
            !memchr(at, '{', *out_size))
            return at;
    }
    return NULL;
}

static const char *recognise_chatml(const char *t) {
    if (!has(t, "<|im_end|>") || !has(t, "add_generation_prompt")) return NULL;
    if (has(t, "think")) {
        bool known =
            has(t, "last_query_index") && has(t, "enable_thinking") && has(t, "reasoning_content");
        return known ? "qwen3" : NULL;
    }
    if (has(t, "bos_token") || has(t, "trim") || has(t, "strip")) return NULL;
    size_t size;
    const char *preset = preset_of(t, &size);
    if (!preset) return "chatml";
    return ree_chat_family_of_preset(preset, size);
}

static const char *recognise_inst(const char *t) {
    if (has(t, "<<SYS>>"))
        return has(t, "'[INST] '") && has(t, "' [/INST]'") && has(t, "strip()") ? "llama2" : NULL;
    if (has(t, "tool")) {
        bool known = has(t, "[AVAILABLE_TOOLS]") && has(t, "\"[/INST]\"") && has(t, "loop.last");
        return known ? "mistral-v3" : NULL;
    }
    bool known = has(t, "'[INST] ' + message['content'] + ' [/INST]'") &&
                 has(t, "message['content'] + eos_token") && !has(t, "eos_token + ' '") &&
                 !has(t, "system") && has(t, "{{ bos_token }}");
    return known ? "mistral" : NULL;
}

const char *ree_chat_recognise(const struct ree_tokenizer *tokenizer) {
    const char *t = tokenizer->chat_template;
    if (!t) return NULL;
    if (has(t, "<|start_header_id|>")) {
        if (!has(t, "<|eot_id|>")) return NULL;
        if (has(t, "Cutting Knowledge Date: December 2023"))
            return has(t, "26 Jul 2024") ? "llama3.1" : NULL;
        return has(t, "tool") || !has(t, "trim") ? NULL : "llama3";
    }
    if (has(t, "[INST]")) return recognise_inst(t);
    if (has(t, "<|im_start|>")) return recognise_chatml(t);
    if (has(t, "<start_of_turn>")) {
        if (has(t, "first_user_prefix")) return "gemma3";
        return has(t, "System role not supported") ? "gemma" : NULL;
    }
    if (!has(t, "<|user|>") || !has(t, "<|assistant|>") || !has(t, "<|system|>") ||
        !has(t, "add_generation_prompt"))
        return NULL;
    if (has(t, "<|end|>")) return has(t, "tool") ? NULL : "phi3";
    bool olmo = has(t, "bos_token") && has(t, "eos_token + '\\n'") &&
                has(t, "loop.last and add_generation_prompt");
    return olmo ? "olmo2" : NULL;
}
