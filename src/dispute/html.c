#include "dispute/html_internal.h"

#include <string.h>

// Text

// Returns the length in bytes of the UTF-8 character at s; 0 if the bytes are not valid UTF-8, or
// the character is a control character or one that XML does not allow.
static size_t character(const unsigned char *s) {
    if (s[0] < 0x80) return s[0] >= 0x20 && s[0] != 0x7F;
    size_t n = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
    if (s[0] < 0xC2 || s[0] > 0xF4) return 0;
    uint32_t code = s[0] & (0xFFu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80) return 0;
        code = code << 6 | (s[i] & 0x3Fu);
    }
    bool too_long = (n == 3 && code < 0x800) || (n == 4 && code < 0x10000);
    bool no_text = (code >= 0xD800 && code < 0xE000) || code > 0x10FFFF || code == 0xFFFE ||
                   code == 0xFFFF || code < 0xA0;
    return too_long || no_text ? 0 : n;
}

void ree_html_escape(struct ree_strbuf *out, const char *text) {
    static const struct {
        char c;
        const char *name;
    } special[] = {{'<', "&lt;"}, {'>', "&gt;"}, {'&', "&amp;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        size_t n = character(s), k = 0;
        while (k < sizeof special / sizeof *special && special[k].c != (char)*s)
            k++;
        if (k < sizeof special / sizeof *special)
            ree_strbuf_append(out, special[k].name, strlen(special[k].name));
        else if (n)
            ree_strbuf_append(out, (const char *)s, n);
        else
            ree_strbuf_append(out, "\xEF\xBF\xBD", 3);
        s += n ? n : 1;
    }
}

void ree_page_begin(struct ree_strbuf *out, const char *title) {
    ree_strbuf_printf(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n<title>%s</title>\n"
        "<style>\n"
        "body{font:14px/1.5 system-ui,sans-serif;max-width:62em;margin:2em auto;padding:0 1em;"
        "color:#222;background:#fff}\n"
        "svg{width:100%%;height:auto;background:#fafafa;border:1px solid #ddd}\n"
        "svg text{font-size:11px;fill:#555}\n"
        ".grid{stroke:#e2e2e2;stroke-width:1}\n"
        ".line{fill:none;stroke-width:1.3}\n"
        ".agree{fill:#cfe3d2}.differ{fill:#e8a33d}.new{fill:#c22f2f}.input{fill:#5b6cc9}\n"
        "table{border-collapse:collapse;margin-top:1em}\n"
        "th,td{text-align:right;padding:.1em .8em;border-bottom:1px solid #eee}\n"
        "th:last-child,td:last-child{text-align:left}\n"
        ".key span{display:inline-block;margin-right:1.2em}\n"
        ".swatch{display:inline-block;width:1em;height:.7em;margin-right:.4em}\n"
        "</style></head><body>\n<h1>%s</h1>\n",
        title, title);
}

void ree_page_end(struct ree_strbuf *out) {
    ree_strbuf_printf(out, "</body></html>\n");
}

void ree_page_node(struct ree_strbuf *out, uint32_t number, const char *name, const char *domain,
                   const char *op_type) {
    ree_strbuf_printf(out, "%u ", number);
    ree_html_escape(out, name ? name : "");
    ree_strbuf_printf(out, " (");
    ree_html_escape(out, domain);
    if (domain[0]) ree_strbuf_printf(out, ".");
    ree_html_escape(out, op_type);
    ree_strbuf_printf(out, ")");
}
