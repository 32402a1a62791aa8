/* SPDX-License-Identifier: Apache-2.0 */
#include "query/assets.h"

#include <stdint.h>
#include <string.h>

/* The files are part of the program. Paths are relative to the top of the source tree, where the build runs, or to the
 * folder where it joins scripts and styles (WEB_PARTS of the Makefile). */
#define ASSET(name, path)                                                                                              \
        __asm__(".section .rodata, \"a\"\n"                                                                            \
                "asset_" #name "_text: .incbin \"" path "\"\n"                                                         \
                "asset_" #name "_end: .balign 8\n"                                                                     \
                "asset_" #name "_size: .quad asset_" #name "_end - asset_" #name "_text\n"                             \
                ".previous\n");                                                                                        \
        extern const char asset_##name##_text[] __attribute__((visibility("hidden")));                                 \
        extern const uint64_t asset_##name##_size __attribute__((visibility("hidden")))

ASSET(index, "web/index.html");
ASSET(offline_page, "web/offline.html");
ASSET(shared_script, "shared.js");
ASSET(service_script, "service.js");
ASSET(style, "style.css");

struct part {
        const char *mark; /* placeholder in the page */
        const char *text;
        size_t n;
};

#define PART(mark, name)                                                                                               \
        {                                                                                                              \
                mark, asset_##name##_text, asset_##name##_size                                                         \
        }

/* Copy a page with the first occurrence of each mark replaced by its part. Parts are in the order of the page. */
static void put_page(struct buf *ret, const char *page, size_t n, const struct part *parts, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                const char *mark = memmem(page, n, parts[i].mark, strlen(parts[i].mark));
                size_t before = mark ? (size_t)(mark - page) : n;

                buf_append(ret, page, before);
                if (!mark)
                        return;
                buf_append(ret, parts[i].text, parts[i].n);
                page = mark + strlen(parts[i].mark);
                n -= before + strlen(parts[i].mark);
        }
        buf_append(ret, page, n);
}

void page_put_index(struct buf *ret)
{
        const struct part parts[] = { PART("/*style.css*/", style), PART("/*shared.js*/", shared_script),
                                      PART("/*service.js*/", service_script) };

        put_page(ret, asset_index_text, asset_index_size, parts, 3);
}

/* "<" could end the script element, so it is escaped; in JSON it occurs in strings only. */
static void put_json_for_script(struct buf *ret, const char *json, size_t n)
{
        while (n) {
                const char *angle = memchr(json, '<', n);
                size_t before = angle ? (size_t)(angle - json) : n;

                buf_append(ret, json, before);
                if (!angle)
                        return;
                buf_append_str(ret, "\\u003c");
                json = angle + 1;
                n -= before + 1;
        }
}

void page_put_flame(struct buf *ret, const char *json, size_t n)
{
        _cleanup_buf_ struct buf data;

        buf_init(&data, ret->max);
        put_json_for_script(&data, json, n);
        if (data.failed) {
                ret->failed = data.failed;
                return;
        }
        {
                const struct part parts[] = { PART("/*style.css*/", style),
                                              { "/*data*/", (const char *)data.data, data.size },
                                              PART("/*shared.js*/", shared_script) };

                put_page(ret, asset_offline_page_text, asset_offline_page_size, parts, 3);
        }
}
