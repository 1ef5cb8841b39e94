#!/usr/bin/env python3
"""Compares chat prompts with Jinja, if it is installed (REE_ORACLE_PYTHON names a Python that has
it; by default the current one). The templates follow the formats that the model cards of the
families describe. Each contains the marks by which ree recognises a template of its family."""

import argparse
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402
from harness import check  # noqa: E402

harness.use_oracle_python()

try:
    import jinja2
    import jinja2.sandbox
except ImportError as error:
    harness.skip(error)

import pipe


TURNS = """{%- set offset = 1 if messages[0]['role'] == 'system' else 0 -%}
{%- for message in messages[offset:] -%}
{%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
{{- raise_exception('user and assistant take turns') -}}
{%- endif -%}{%- endfor -%}"""

LLAMA2 = TURNS + r"""{%- for message in messages[offset:] -%}
{%- if loop.first and offset -%}
{%- set content = '<<SYS>>\n' + messages[0]['content'] + '\n<</SYS>>\n\n' + message['content'] -%}
{%- else -%}{%- set content = message['content'] -%}{%- endif -%}
{%- if message['role'] == 'user' -%}{{- bos_token + '[INST] ' + content.strip() + ' [/INST]' -}}
{%- else -%}{{- ' ' + content.strip() + ' ' + eos_token -}}{%- endif -%}{%- endfor -%}"""

LLAMA3 = r"""{%- for message in messages -%}
{%- set turn = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' + message['content'] | trim + '<|eot_id|>' -%}
{{- bos_token if loop.first -}}{{- turn -}}{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' -}}{%- endif -%}"""

LLAMA31 = r"""{{- bos_token -}}{%- set date = date_string if date_string is defined else '26 Jul 2024' -%}
{%- set offset = 1 if messages[0]['role'] == 'system' else 0 -%}
{{- '<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\n' -}}
{{- 'Today Date: ' + date + '\n\n' -}}{{- (messages[0]['content'] | trim) if offset -}}{{- '<|eot_id|>' -}}
{%- for message in messages[offset:] -%}
{{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' + message['content'] | trim + '<|eot_id|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' -}}{%- endif -%}"""

MISTRAL = r"""{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('turns') }}{% endif %}{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}{% else %}{{ message['content'] + eos_token }}{% endif %}{% endfor %}"""

MISTRAL3 = TURNS + r"""{{- bos_token -}}{#- [AVAILABLE_TOOLS] go here when there are tools -#}
{%- for message in messages[offset:] -%}
{%- if message['role'] == 'user' -%}
{%- if loop.last and offset -%}{{- "[INST] " + messages[0]['content'] + "\n\n" + message['content'] + "[/INST]" -}}
{%- else -%}{{- "[INST] " + message['content'] + "[/INST]" -}}{%- endif -%}
{%- else -%}{{- " " + message['content'] | trim + eos_token -}}{%- endif -%}{%- endfor -%}"""

CHATML = r"""{%- for message in messages -%}PRESET
{{- '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' -}}{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}"""


def preset(text):
    first = "{%- if loop.first and message['role'] != 'system' -%}"
    return CHATML.replace("PRESET", first + "{{- '<|im_start|>system\\n" + text +
                          "<|im_end|>\\n' -}}{%- endif -%}")


QWEN3 = r"""{%- set ns = namespace(last_query_index=messages | length - 1) -%}
{%- for message in messages -%}{%- if message.role == 'user' -%}{%- set ns.last_query_index = loop.index0 -%}{%- endif -%}{%- endfor -%}
{%- for message in messages -%}
{%- if message.role != 'assistant' -%}{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' -}}
{%- else -%}{%- set content = message.content -%}{%- set reasoning_content = '' -%}
{%- if '</think>' in content -%}
{%- set reasoning_content = content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') -%}
{%- set content = content.split('</think>')[-1].lstrip('\n') -%}{%- endif -%}
{%- if loop.index0 > ns.last_query_index and (loop.last or reasoning_content) -%}
{{- '<|im_start|>assistant\n<think>\n' + reasoning_content.strip('\n') + '\n</think>\n\n' + content.lstrip('\n') -}}
{%- else -%}{{- '<|im_start|>assistant\n' + content -}}{%- endif -%}{{- '<|im_end|>\n' -}}{%- endif -%}{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}
{%- if enable_thinking is defined and not enable_thinking -%}{{- '<think>\n\n</think>\n\n' -}}{%- endif -%}{%- endif -%}"""

PHI3 = r"""{{- bos_token -}}{%- for message in messages -%}
{%- if message['role'] == 'system' -%}{{- '<|system|>\n' + message['content'] + '<|end|>\n' -}}
{%- elif message['role'] == 'user' -%}{{- '<|user|>\n' + message['content'] + '<|end|>\n' -}}
{%- else -%}{{- '<|assistant|>\n' + message['content'] + '<|end|>\n' -}}{%- endif -%}{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|assistant|>\n' -}}{%- else -%}{{- eos_token -}}{%- endif -%}"""

GEMMA_TURNS = r"""{{- '<start_of_turn>' + ('model' if message['role'] == 'assistant' else message['role']) + '\n' -}}"""
GEMMA = r"""{{- bos_token -}}{%- if messages[0]['role'] == 'system' -%}{{- raise_exception('System role not supported') -}}{%- endif -%}
""" + TURNS + "{%- for message in messages -%}" + GEMMA_TURNS + r"""
{{- message['content'] | trim + '<end_of_turn>\n' -}}{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<start_of_turn>model\n' -}}{%- endif -%}"""
GEMMA3 = r"""{{- bos_token -}}""" + TURNS + r"""
{%- set first_user_prefix = messages[0]['content'] + '\n\n' if offset else '' -%}
{%- for message in messages[offset:] -%}""" + GEMMA_TURNS + r"""
{{- first_user_prefix if loop.first -}}{{- message['content'] | trim + '<end_of_turn>\n' -}}{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<start_of_turn>model\n' -}}{%- endif -%}"""

OLMO2 = r"""{{- bos_token -}}{%- for message in messages -%}
{%- if message['role'] == 'system' -%}{{- '<|system|>\n' + message['content'] + '\n' -}}
{%- elif message['role'] == 'user' -%}{{- '<|user|>\n' + message['content'] + '\n' -}}
{%- elif not loop.last -%}{{- '<|assistant|>\n' + message['content'] + eos_token + '\n' -}}
{%- else -%}{{- '<|assistant|>\n' + message['content'] + eos_token -}}{%- endif -%}
{%- if loop.last and add_generation_prompt -%}{{- '<|assistant|>\n' -}}{%- endif -%}{%- endfor -%}"""

FAMILIES = {
    "llama2": (LLAMA2, "<s>", "</s>"),
    "llama3": (LLAMA3, "<|begin_of_text|>", "<|eot_id|>"),
    "llama3.1": (LLAMA31, "<|begin_of_text|>", "<|eot_id|>"),
    "mistral": (MISTRAL, "<s>", "</s>"),
    "mistral-v3": (MISTRAL3, "<s>", "</s>"),
    "chatml": (CHATML.replace("PRESET", ""), None, "<|im_end|>"),
    "qwen2": (preset("You are a helpful assistant."), None, "<|im_end|>"),
    "qwen2.5": (preset("You are Qwen, created by Alibaba Cloud. You are a helpful assistant."), None,
                "<|im_end|>"),
    "smollm2": (preset("You are a helpful AI assistant named SmolLM, trained by Hugging Face"), None,
                "<|im_end|>"),
    "qwen3": (QWEN3, None, "<|im_end|>"),
    "phi3": (PHI3, "<s>", "<|endoftext|>"),
    "gemma": (GEMMA, "<bos>", "<eos>"),
    "gemma3": (GEMMA3, "<bos>", "<eos>"),
    "olmo2": (OLMO2, "<|endoftext|>", "<|endoftext|>"),
}

# Templates that are written differently and give the same prompts.
ALSO = {
    "chatml": ["{% for message in messages %}\n{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}"
               "{% endfor %}\n{# end #}{% if add_generation_prompt %}\n{{ '<|im_start|>assistant\\n' }}{% endif %}\n"],
    "llama3": ["{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + "
               "message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}"
               "{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}"
               "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}"],
}

# Templates of no known family, or of a known family with a change that alters the prompt.
UNKNOWN = [
    "{% for m in messages %}{{ m['content'] }}{% endfor %}", "",
    preset("You are a pirate."), LLAMA31.replace("26 Jul 2024", "1 Jan 2030"),
    CHATML.replace("PRESET", "{{- bos_token if loop.first -}}"),
    CHATML.replace("PRESET", "").replace("message['content']", "message['content'] | trim"),
    MISTRAL.replace("eos_token }}", "eos_token + ' ' }}"),
    QWEN3.replace("reasoning_content", "reasoning"),
    # Mistral-Nemo's marks without spaces; a preset in braces, in a variable, in llama3; other
    # roles.
    MISTRAL3.replace("[INST] ", "[INST]"), MISTRAL3.replace('{{- " " + ', "{{- "),
    preset("Please reason step by step, and put your final answer within \\\\boxed{}."),
    "{% set s = 'You are X.' %}" + CHATML.replace(
        "PRESET", "{{- '<|im_start|>system\\n' + s + '<|im_end|>\\n' if loop.first -}}"),
    CHATML.replace("PRESET", "").replace(
        "message['role']", "('human' if message['role'] == 'user' else message['role'])"),
    CHATML.replace("PRESET", "").replace("<|im_end|>\\n", "<|im_end|>"),
    CHATML.replace("PRESET", "").replace("assistant\\n", "assistant"),
    CHATML.replace("PRESET", "") + "Answer:", CHATML.replace("PRESET", "").replace("-}}", "}}\n x"),
    CHATML.replace("PRESET", "").replace("message['content']", "message['content'] | upper"),
    "{{ '<|start_header_id|>system<|end_header_id|>\\n\\nYou are X.<|eot_id|>' }}" + LLAMA3,
    LLAMA31.replace("'Today Date: '", "'You are X. Today Date: '"),
    LLAMA2.replace("'<<SYS>>\\n' + messages[0]['content']", "'<<SYS>>\\nBe brief.'"),
    PHI3.replace("<|end|>\\n", "<|end|>"), GEMMA.replace("'model'", "'assistant'"),
    OLMO2.replace("'<|system|>\\n'", "'<|system|>\\nYou are X. '"),
    QWEN3.replace("'<|im_start|>' + message.role + '\\n'", "'<|im_start|>' + message.role + ': '"),
]

CONVERSATIONS = [
    [("user", "Hi")], [("user", "  Hi there \n")], [("system", " Be brief. "), ("user", "Hi\n")],
    [("user", "a"), ("assistant", " b "), ("user", "c")],
    [("system", "s"), ("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d")],
    [("user", "a"), ("assistant", "<think>\nhm\n</think>\n\nb"), ("user", "c")],
    [("user", "a"), ("assistant", "<think>\nhm\n</think>\n\nb")], [("user", "a"), ("assistant", "b")],
    [("user", "a"), ("assistant", "</think>x</think>y<think>")],
    [("user", "q"), ("assistant", "<think>\n\n</think>\n\nx"), ("assistant", "y")],
    [("user", "q"), ("assistant", "<think>\nh\n</think>\n\nx"), ("assistant", "<think></think>y")],
    [("user", "q"), ("assistant", "<think>\n \n</think>x"), ("assistant", "<think>\nh</think>\n")],
    [("assistant", "b"), ("user", "a")], [("user", "a"), ("user", "b")],
    [("user", ""), ("assistant", "")], [("system", "s"), ("user", " \n")],
    [("user", "\u4f60\u597d \U0001f680 \\n \"'{{ }}"), ("assistant", "\x1fa\u3000")],
]


def refuse(message):
    raise jinja2.TemplateError(message)


def chat(tokenizer, *arguments):
    """Returns ree's prompt, or None if ree refuses the conversation."""
    try:
        return tokenizer.chat(*arguments)
    except pipe.Failure:
        return None


def tokenizer_files(template, bos, eos):
    names = ["a", "b"] + sorted({t for t in (bos, eos) if t})
    added = [{"id": i, "content": name, "special": True, "single_word": False, "lstrip": False,
              "rstrip": False, "normalized": False} for i, name in enumerate(names) if i > 1]
    model = {"type": "WordLevel", "unk_token": "a", "vocab": {n: i for i, n in enumerate(names)}}
    return ({"added_tokens": added, "model": model},
            {"bos_token": bos, "eos_token": eos, "chat_template": template})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pipe", required=True)
    parser.add_argument("--shared")
    options = parser.parse_args()
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.globals["raise_exception"] = refuse
    also = [(family, (template, *FAMILIES[family][1:])) for family in ALSO for template in ALSO[family]]
    for family, (template, bos, eos) in [*FAMILIES.items(), *also]:
        whole, config = tokenizer_files(template, bos, eos)
        compiled = environment.from_string(template)
        with pipe.Tokenizer(options.pipe, whole, tokenizer_config=config) as tokenizer:
            check(tokenizer.family == family, f"{family} is taken for {tokenizer.family}")
            for conversation in CONVERSATIONS:
                messages = [{"role": role, "content": content} for role, content in conversation]
                for reply in (True, False):
                    try:
                        want = compiled.render(messages=messages, add_generation_prompt=reply,
                                               bos_token=bos, eos_token=eos)
                    except jinja2.TemplateError:
                        want = None
                    got, named = chat(tokenizer, messages, reply), chat(tokenizer, messages, reply, family)
                    # None: refused, by the template and by ree. Mistral's first format refuses a
                    # system message because the turns must alternate.
                    check(got == want == named, f"{family}: {conversation}, {reply}:\n  {got!a}\n"
                                                f"  {named!a}\n  {want!a}")
    for template in UNKNOWN:
        whole, config = tokenizer_files(template, "<s>", "</s>")
        with pipe.Tokenizer(options.pipe, whole, tokenizer_config=config) as tokenizer:
            check(tokenizer.family == "-", f"{template!a} is taken for {tokenizer.family}")
            try:
                tokenizer.chat([{"role": "user", "content": "a"}])
                check(False, "a prompt of no family")
            except pipe.Failure as failure:
                check("--raw-prompt" in str(failure), str(failure))
    whole, config = tokenizer_files(CHATML.replace("PRESET", ""), None, None)
    with pipe.Tokenizer(options.pipe, whole, tokenizer_config=config) as tokenizer:
        for messages in ([], {}, [3], [{"role": "user"}], [{"role": "x", "content": "a"}],
                         [{"role": "user", "content": [1]}], [{"role": "system", "content": "a"}],
                         [{"role": "user", "content": "a"}, {"role": "system", "content": "b"}]):
            try:
                tokenizer.chat(messages)
                check(False, f"{messages} is a conversation")
            except pipe.Failure as failure:
                check("messages" in str(failure) or "conversation" in str(failure), str(failure))
    print(f"Jinja {jinja2.__version__}")
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
