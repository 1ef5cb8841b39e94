#include "ptx_text.h"

#include <stdlib.h>
#include <string.h>

namespace ree_ptx {

std::string trim(const std::string &s) {
    size_t begin = s.find_first_not_of(" \t\r\n"), end = s.find_last_not_of(" \t\r\n");
    return begin == std::string::npos ? "" : s.substr(begin, end - begin + 1);
}

std::vector<std::string> split(const std::string &s) {
    std::vector<std::string> parts;
    std::string part;
    int depth = 0;
    for (char c : s) {
        depth += (c == '{' || c == '(' || c == '[') - (c == '}' || c == ')' || c == ']');
        if (c == ',' && depth == 0) {
            parts.push_back(trim(part));
            part.clear();
        } else {
            part += c;
        }
    }
    part = trim(part);
    if (!part.empty()) parts.push_back(part);
    return parts;
}

std::vector<std::string> split_at(const std::string &s, char separator) {
    std::vector<std::string> parts(1);
    for (char c : s)
        if (c == separator)
            parts.emplace_back();
        else
            parts.back() += c;
    return parts;
}

namespace {

bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || c == '%' || c == '.';
}

bool starts(const char *at, const char *end, const char *with) {
    size_t n = strlen(with);
    return (size_t)(end - at) >= n && memcmp(at, with, n) == 0;
}

// Skips spaces and comments. The stored modules have one pragma as a comment (cuda/ptx/README.md).
const char *skip(const char *at, const char *end, int *line) {
    while (at < end) {
        if (*at == '\n') ++*line;
        if (starts(at, end, "// .pragma \"used_bytes_mask ")) {
            at += 2;
        } else if (*at == '/' && at + 1 < end && at[1] == '/') {
            while (at < end && *at != '\n')
                at++;
        } else if (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n') {
            at++;
        } else {
            break;
        }
    }
    return at;
}

std::string name_at(const char *at, const char *end) {
    const char *from = at;
    while (at < end && is_name(*at))
        at++;
    return std::string(from, (size_t)(at - from));
}

// Returns the end of what begins at `at`: after ";", or after the body in braces.
const char *find_end(const char *at, const char *end, int *line, struct item *item) {
    int braces = 0;
    bool in_value = false; // of a variable
    for (; at < end; at++) {
        if (*at == '/' && at + 1 < end && at[1] == '/') {
            const void *newline = memchr(at, '\n', (size_t)(end - at));
            if (!newline) return NULL;
            at = (const char *)newline;
        }
        if (*at == '\n') ++*line;
        if (*at == '=' && braces == 0) in_value = true;
        if (*at == ';' && braces == 0) return at + 1;
        if (*at == '{' && braces++ == 0 && !in_value) {
            item->body = at + 1;
            item->body_line = *line;
        }
        if (*at == '}' && --braces == 0 && !in_value) return at + 1;
    }
    return NULL;
}

} // namespace

bool split_module(const char *text, std::vector<struct item> *out) {
    const char *end = text + strlen(text), *at = text;
    int line = 1;
    while ((at = skip(at, end, &line)) < end) {
        if (starts(at, end, ".version") || starts(at, end, ".target") ||
            starts(at, end, ".address_size")) {
            while (at < end && *at != '\n')
                at++;
            continue;
        }
        struct item item = {};
        item.begin = at;
        item.line = line;
        item.end = find_end(at, end, &line, &item);
        if (!item.end) return false;
        // The words before the name
        const char *word = at;
        item.kind = item::VARIABLE;
        while (word < item.end && *word == '.') {
            const std::string directive = name_at(word, item.end);
            int ignored = 0;
            word = skip(word + directive.size(), item.end, &ignored);
            if (directive == ".align") {
                while (word < item.end && is_name(*word))
                    word++;
                word = skip(word, item.end, &ignored);
            }
            if (directive == ".entry") item.kind = item::KERNEL;
            if (directive == ".func") item.kind = item::FUNCTION;
            if (item.kind == item::FUNCTION && *word == '(') {
                while (word < item.end && *word != ')')
                    word++;
                word = skip(word + 1, item.end, &ignored);
            }
        }
        item.name = name_at(word, item.end);
        out->push_back(item);
        at = item.end;
    }
    return true;
}

bool parse_declaration(const std::string &text, struct declaration *out) {
    *out = {};
    uint64_t element = 0;
    const char *at = text.data(), *end = at + text.size();
    int line = 0;
    out->align = 1;
    for (at = skip(at, end, &line); at < end && *at == '.'; at = skip(at, end, &line)) {
        const std::string word = name_at(at, end);
        at += word.size();
        if (word == ".align") {
            at = skip(at, end, &line);
            out->align = strtoull(at, (char **)&at, 10);
        } else if (word == ".extern") {
            out->is_extern = true;
        } else if (word == ".global" || word == ".shared" || word == ".param" || word == ".const") {
            out->space = word;
        } else if (word.size() > 2 && strchr("bsuf", word[1]) && word[2] >= '0' && word[2] <= '9') {
            element = strtoull(word.c_str() + 2, NULL, 10) / 8;
        } else if (word != ".visible" && word != ".weak") {
            return false;
        }
    }
    out->name = name_at(at, end);
    at = skip(at + out->name.size(), end, &line);
    uint64_t n = 1;
    if (at < end && *at == '[') {
        n = strtoull(at + 1, NULL, 10);
        while (at < end && *at != ']')
            at++;
        at = skip(at + 1, end, &line);
    }
    out->size = n * element;
    if (element > out->align) out->align = element;
    if (at < end && *at == '=') {
        const std::string value(at, (size_t)(end - at));
        size_t open = value.find('{'), close = value.find('}');
        if (open == std::string::npos || close == std::string::npos) return false;
        for (auto &v : split_at(value.substr(open + 1, close - open - 1), ',')) {
            const uint64_t x = strtoull(trim(v).c_str(), NULL, 0);
            for (uint64_t i = 0; i < element; i++)
                out->data.push_back((uint8_t)(x >> 8 * i));
        }
    }
    return element != 0 && !out->name.empty();
}

bool parse_signature(const struct item &item, std::vector<struct declaration> *params,
                     std::vector<struct declaration> *results) {
    const char *end = item.body ? item.body - 1 : item.end;
    const std::string head(item.begin, (size_t)(end - item.begin));
    // Results are in parentheses before the name, parameters after it.
    const size_t name = head.find(item.name + "(");
    size_t named = name == std::string::npos ? head.find(item.name) : name;
    bool ok = true;
    for (size_t open = head.find('('); open != std::string::npos; open = head.find('(', open + 1)) {
        const size_t close = head.find(')', open);
        if (close == std::string::npos) return false;
        for (auto &text : split(head.substr(open + 1, close - open - 1))) {
            struct declaration d;
            ok = ok && parse_declaration(text, &d);
            (open < named ? results : params)->push_back(d);
        }
    }
    return ok;
}

uint32_t max_threads_of(const struct item &item) {
    const std::string head(item.begin, (size_t)(item.body - item.begin));
    const size_t at = head.find(".maxntid");
    if (at == std::string::npos) return 1024;
    uint32_t n = 1;
    const char *text = head.c_str() + at + strlen(".maxntid");
    for (int d = 0; d < 3; d++) {
        n *= (uint32_t)strtoul(text, (char **)&text, 10);
        if (*text != ',') break;
        text++;
    }
    return n;
}

enum what next(struct reader *r, struct statement *s, std::string *text) {
    r->at = skip(r->at, r->end, &r->line);
    if (r->at >= r->end) return END;
    if (*r->at == '{' || *r->at == '}') return *r->at++ == '{' ? OPEN : CLOSE;
    const int line = r->line;
    const std::string name = name_at(r->at, r->end);
    const char *after = r->at + name.size();
    if (!name.empty() && after < r->end && *after == ':') {
        *text = name;
        r->at = after + 1;
        return LABEL;
    }
    text->clear();
    while (r->at < r->end && *r->at != ';') {
        if (*r->at == '/' && r->at + 1 < r->end && r->at[1] == '/') {
            r->at = skip(r->at, r->end, &r->line);
            continue;
        }
        if (*r->at == '\n') r->line++;
        *text += *r->at++;
    }
    if (r->at < r->end) r->at++;
    if ((*text)[0] == '.') return DIRECTIVE;
    *s = {};
    s->line = line;
    size_t from = 0;
    if ((*text)[0] == '@') {
        const size_t space = text->find_first_of(" \t\n");
        s->is_guarded = true;
        s->if_not = (*text)[1] == '!';
        s->guard = text->substr(s->if_not ? 2 : 1, space - (s->if_not ? 2 : 1));
        from = text->find_first_not_of(" \t\n", space);
        if (from == std::string::npos) from = text->size();
    }
    const size_t space = text->find_first_of(" \t\n{", from);
    s->opcode = text->substr(from, space - from);
    if (space != std::string::npos) s->operands = split(text->substr(space));
    return STATEMENT;
}

} // namespace ree_ptx
