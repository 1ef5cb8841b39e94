#!/usr/bin/env python3
"""Makes tools/sample/stories: a small Llama that tells stories, with its tokenizer.

The training text is written by this script: a grammar of short stories about animals and children
who want, lose, find and share things, with seeded draws. So there is no other source and no other
licence. Needs torch, transformers, tokenizers and safetensors from PyPI. Takes ten minutes of one
core (OMP_NUM_THREADS=1: steps this small gain nothing from threads).

    python3 tools/sample/make_stories.py [--steps 2000] [--out tools/sample/stories]

Training is not bit-reproducible on other machines; therefore the result is committed with the
script.
"""
import argparse
import json
import pathlib
import random

NAMES = ["Anna", "Ben", "Clara", "David", "Ella", "Finn", "Greta", "Hugo", "Ida", "Jonas", "Klara", "Leo",
         "Mira", "Nils", "Olga", "Paul", "Rosa", "Sam", "Tilda", "Wim"]
ANIMALS = ["fox", "bear", "rabbit", "mouse", "owl", "frog", "duck", "hedgehog", "squirrel", "cat", "dog", "goat",
           "badger", "otter", "crow", "snail"]
TRAITS = ["small", "brave", "shy", "clever", "curious", "lazy", "kind", "hungry", "proud", "gentle", "cheerful"]
PLACES = [("forest", "in"), ("garden", "in"), ("village", "in"), ("meadow", "in"), ("old mill", "near"),
          ("river", "near"), ("hill", "on"), ("lake", "by"), ("farm", "on"), ("castle", "in"), ("market", "at"),
          ("beach", "on")]
THINGS = ["red ball", "golden key", "warm scarf", "silver bell", "wooden boat", "big apple", "blue kite",
          "old map", "shiny stone", "little lamp", "sweet cake", "round drum", "green hat", "paper star"]
HIDING = ["under a stone", "behind a tree", "in the tall grass", "at the bottom of a well", "in an empty nest",
          "under the bridge", "behind the door", "inside a hollow log", "between two rocks"]
WEATHER = ["The sun was shining.", "It was raining.", "The wind was strong.", "It was a cold morning.",
           "There was snow on the ground.", "It was a warm evening.", "The sky was grey."]
FEELINGS = {"happy": ["smiled", "laughed", "danced", "sang a song", "jumped with joy"],
            "sad": ["cried", "sighed", "sat down", "looked at the ground", "was very quiet"]}
LESSONS = ["It is better to share than to keep.", "A friend is worth more than a treasure.",
           "Those who look carefully find what they need.", "Small steps lead to big hills.",
           "Asking for help is not a weakness.", "Kind words cost nothing.",
           "Whoever waits too long misses the boat."]
OPENINGS = ["Once upon a time", "One day", "Long ago", "Last summer", "Early one morning"]


class Story:
    """One story: hero, place and thing stay the same from beginning to end."""

    def __init__(self, rng):
        self.rng = rng
        person = rng.random() < 0.5
        self.hero = rng.choice(NAMES) if person else "the " + rng.choice(ANIMALS)
        self.other = "the " + rng.choice([a for a in ANIMALS if "the " + a != self.hero])
        self.is_girl = self.hero in ("Anna", "Clara", "Ella", "Greta", "Ida", "Klara", "Mira", "Olga", "Rosa", "Tilda")
        self.pronoun = ("she" if self.is_girl else "he") if person else "it"
        self.possessive = {"she": "her", "he": "his", "it": "its"}[self.pronoun]
        self.object = {"she": "her", "he": "him", "it": "it"}[self.pronoun]
        self.person = person
        self.trait = rng.choice(TRAITS)
        self.place, self.preposition = rng.choice(PLACES)
        self.thing = rng.choice(THINGS)
        self.hiding = rng.choice(HIDING)

    def cap(self, text):
        return text[0].upper() + text[1:]

    def feel(self, kind):
        return self.rng.choice(FEELINGS[kind])

    def opening(self):
        where = f"{self.preposition} the {self.place}"
        trait_article = "an" if self.trait[0] in "aeiou" else "a"
        if self.person:
            kind = "girl" if self.is_girl else "boy"
            who = f"{trait_article} {self.trait} {kind} named {self.hero}"
        else:
            who = f"{trait_article} {self.trait} {self.hero[4:]}"
        start = self.rng.choice(OPENINGS)
        if start == "Once upon a time" or start == "Long ago":
            return f"{start}, there was {who}, who lived {where}."
        return f"{start}, {who} was walking {where}. {self.rng.choice(WEATHER)}"

    def lose(self):
        return self.rng.choice([
            f"{self.cap(self.hero)} had a {self.thing}, and {self.pronoun} liked it more than anything else. "
            f"But one day the {self.thing} was gone.",
            f"{self.cap(self.pronoun)} always carried a {self.thing}. Then, on the way home, "
            f"{self.pronoun} lost it.",
        ]) + f" {self.cap(self.hero)} {self.feel('sad')}."

    def want(self):
        return self.rng.choice([
            f"{self.cap(self.hero)} wanted a {self.thing}, but {self.pronoun} did not know where to look.",
            f"{self.cap(self.pronoun)} had heard of a {self.thing} that nobody had ever seen.",
        ])

    def search(self):
        first = self.rng.choice([h for h in HIDING if h != self.hiding])
        lines = [f"{self.cap(self.pronoun)} looked {first}, but there was nothing.",
                 f"{self.cap(self.pronoun)} looked everywhere, {first} and {self.hiding.replace('at the bottom of', 'even in')}."]
        return self.rng.choice(lines)

    def meet(self):
        question = self.rng.choice(["Why are you so sad?", "What are you looking for?", "Can I help you?"])
        answer = self.rng.choice([f"I am looking for a {self.thing}", f"I need a {self.thing}"])
        verb = self.rng.choice(["came by", "sat on a branch" if self.other in ("the owl", "the crow") else "came along",
                                "heard that"])
        return (f"Then {self.other} {verb}. \"{question}\" asked {self.other}. "
                f"\"{answer},\" said {self.hero}.")

    def advice(self):
        return self.rng.choice([
            f"\"I have seen one {self.hiding},\" said {self.other}.",
            f"{self.cap(self.other)} thought for a while. \"Have you looked {self.hiding}?\"",
            f"\"Come with me,\" said {self.other}, and they went together.",
        ])

    def find(self):
        return (f"And there, {self.hiding}, was the {self.thing}. " +
                self.rng.choice([f"{self.cap(self.hero)} {self.feel('happy')}.",
                                 f"{self.cap(self.pronoun)} {self.feel('happy')} and thanked {self.other}."]))

    def share(self):
        return self.rng.choice([
            f"\"Thank you,\" said {self.hero}. \"The {self.thing} is for both of us.\"",
            f"{self.cap(self.hero)} gave the {self.thing} to {self.other}, who {self.feel('happy')}.",
            f"From that day on, {self.hero} and {self.other} were friends.",
        ])

    def ending(self):
        return self.rng.choice([
            "In the evening they went home together.",
            f"{self.cap(self.hero)} slept well that night.",
            self.rng.choice(LESSONS),
            f"And {self.hero} never forgot that day {self.preposition} the {self.place}.",
        ])

    def text(self):
        parts = [self.opening(), self.rng.choice([self.lose, self.want])()]
        if self.rng.random() < 0.6:
            parts.append(self.search())
        parts += [self.meet(), self.advice(), self.find()]
        if self.rng.random() < 0.8:
            parts.append(self.share())
        parts.append(self.ending())
        return " ".join(parts)


def stories(n, seed):
    rng = random.Random(seed)
    return [Story(rng).text() for _ in range(n)]


def make_tokenizer(texts, folder, vocab_size):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, special_tokens=["<|begin|>", "<|end|>"],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="<|begin|> $A",
                                                             special_tokens=[("<|begin|>", 0)])
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"bos_token": "<|begin|>", "eos_token": "<|end|>", "tokenizer_class": "PreTrainedTokenizerFast"}, indent=1) + "\n")
    return tokenizer


def train(model, rows, steps, batch, seed):
    import torch
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.95), weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=steps, pct_start=0.05)
    for step in range(steps):
        at = torch.randint(rows.shape[0], (batch,), generator=generator)
        ids = rows[at]
        loss = model(input_ids=ids, labels=ids).loss
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 100 == 0 or step == steps - 1:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--stories", type=int, default=40000)
    parser.add_argument("--length", type=int, default=160, help="tokens per training row (default 160)")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "stories")
    args = parser.parse_args()

    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    torch.manual_seed(1)
    args.out.mkdir(parents=True, exist_ok=True)
    texts = stories(args.stories, seed=1)
    print(texts[0], f"\n{sum(map(len, texts)) / 1e6:.1f} MB of stories", flush=True)
    tokenizer = make_tokenizer(texts[:10000], args.out, 640)
    stream = []
    for encoding in tokenizer.encode_batch(texts):
        stream += encoding.ids + [1]
    n = len(stream) // args.length
    rows = torch.tensor(stream[:n * args.length]).view(n, args.length)
    config = LlamaConfig(vocab_size=640, hidden_size=128, intermediate_size=352, num_hidden_layers=4,
                         num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=512,
                         rms_norm_eps=1e-5, tie_word_embeddings=True, bos_token_id=0, eos_token_id=1)
    model = LlamaForCausalLM(config)
    print(f"{sum(p.numel() for p in model.parameters())} parameters, {rows.numel()} tokens", flush=True)
    train(model, rows, args.steps, 16, seed=2)
    model.to(torch.bfloat16).save_pretrained(args.out, safe_serialization=True)


if __name__ == "__main__":
    main()
