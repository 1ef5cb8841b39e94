#include "base/strbuf.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

int main(void) {
    struct ree_strbuf buf;
    ree_strbuf_init(&buf);
    for (int i = 0; i < 10000; i++)
        ree_strbuf_printf(&buf, "%d,", i % 10);
    CHECK(!buf.failed);
    CHECK(buf.size == 20000 && strlen(buf.data) == 20000);
    bool same = true;
    for (size_t i = 0; i < 10000; i++)
        same = same && buf.data[2 * i] == '0' + (int)(i % 10) && buf.data[2 * i + 1] == ',';
    CHECK(same);

    // A string longer than any initial capacity.
    char piece[5000];
    memset(piece, 'x', sizeof piece - 1);
    piece[sizeof piece - 1] = 0;
    ree_strbuf_printf(&buf, "%s", piece);
    CHECK(buf.size == 20000 + 4999 && buf.data[buf.size] == 0);

    // Bytes, including NUL.
    ree_strbuf_append(&buf, "a\0b", 3);
    CHECK(buf.size == 20000 + 4999 + 3 && memcmp(buf.data + buf.size - 3, "a\0b", 4) == 0);
    char *taken = ree_strbuf_take(&buf);
    CHECK(taken && strncmp(taken, "0,1,2,", 6) == 0);
    free(taken);

    // After take the buffer is empty and usable again.
    taken = ree_strbuf_take(&buf);
    CHECK(taken && taken[0] == 0);
    free(taken);
    ree_strbuf_printf(&buf, "again");
    CHECK(strcmp(buf.data, "again") == 0);
    ree_strbuf_finish(&buf);
    return test_finish();
}
