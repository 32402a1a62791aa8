/* SPDX-License-Identifier: Apache-2.0 */
#include "query/formats/assets.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/hash/sha256.h"
#include "common/limits.h"
#include "common/text/base64.h"

/* Embed a file in the program. Paths are relative to the top of the source tree, where the build runs, or to the
 * folder of concatenated scripts and styles (WEB_PARTS of the Makefile). */
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
ASSET(offline_script, "offline.js");
ASSET(style, "style.css");

struct page_part {
        const char *mark; /* placeholder in the page */
        const char *text;
        size_t n;
};

#define PART(mark, name)                                                                                               \
        {                                                                                                              \
                mark, asset_##name##_text, asset_##name##_size                                                         \
        }

/* Copy a page with the first occurrence of each mark replaced by its part. Parts are in page order. */
static void put_page(struct buf *ret, const char *page, size_t n, const struct page_part *parts, size_t count)
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

/* ---- names and policy, computed once ---- */

#define HASH_DIGITS 16 /* in an asset's name */

enum asset_number { ASSET_STYLE, ASSET_SHARED, ASSET_SERVICE, ASSET_COUNT };

static struct page_asset assets[ASSET_COUNT];
static char asset_names[ASSET_COUNT][40];
static struct buf flame_policy;

static void hash_asset_text(const char *text, size_t n, uint8_t ret[static SHA256_BYTES])
{
        _cleanup_sha256_ struct sha256 s = { 0 };
        struct error err;

        memset(ret, 0, SHA256_BYTES);
        if (sha256_init(&s, &err))
                return; /* no memory: names and policy stay wrong until a restart, and browsers show blank pages */
        sha256_update(&s, text, n);
        sha256_final(&s, ret);
}

static void add_asset(enum asset_number number, const char *stem, const char *suffix, const char *content_type,
                      const char *text, size_t n)
{
        uint8_t digest[SHA256_BYTES];
        char hex[SHA256_HEX_MAX];

        hash_asset_text(text, n, digest);
        snprintf(asset_names[number], sizeof asset_names[number], "%s.%.*s.%s", stem, HASH_DIGITS,
                 sha256_hex(digest, hex), suffix);
        assets[number] = (struct page_asset){ asset_names[number], content_type, text, n };
}

/* A hash-source (Content Security Policy Level 3, 2.3.1). */
static void put_hash_source(struct buf *ret, const char *text, size_t n)
{
        uint8_t digest[SHA256_BYTES];

        hash_asset_text(text, n, digest);
        buf_append_str(ret, " 'sha256-");
        base64_encode_append(ret, digest, sizeof digest);
        buf_append_str(ret, "'");
}

static void prepare_assets(void)
{
        static const char script[] = "text/javascript; charset=utf-8";

        add_asset(ASSET_STYLE, "style", "css", "text/css; charset=utf-8", asset_style_text, asset_style_size);
        add_asset(ASSET_SHARED, "shared", "js", script, asset_shared_script_text, asset_shared_script_size);
        add_asset(ASSET_SERVICE, "service", "js", script, asset_service_script_text, asset_service_script_size);
        buf_init(&flame_policy, KiB(4));
        buf_append_str(&flame_policy, "default-src 'none'; script-src");
        put_hash_source(&flame_policy, asset_shared_script_text, asset_shared_script_size);
        put_hash_source(&flame_policy, asset_offline_script_text, asset_offline_script_size);
        buf_append_str(&flame_policy, "; style-src");
        put_hash_source(&flame_policy, asset_style_text, asset_style_size);
        buf_append_str(&flame_policy, "; img-src data:; base-uri 'none'; form-action 'none'; "
                                      "require-trusted-types-for 'script'");
        buf_cstr(&flame_policy);
}

static void prepare_assets_once(void)
{
        static pthread_once_t once = PTHREAD_ONCE_INIT;

        pthread_once(&once, prepare_assets);
}

const struct page_asset *page_find_asset(const char *name)
{
        prepare_assets_once();
        for (size_t i = 0; i < ASSET_COUNT; i++)
                if (strcmp(assets[i].name, name) == 0)
                        return &assets[i];
        return NULL;
}

const char *page_flame_policy(void)
{
        prepare_assets_once();
        return flame_policy.failed ? "default-src 'none'" : (const char *)flame_policy.data;
}

/* ---- the pages ---- */

#define TEXT_PART(mark, text)                                                                                          \
        {                                                                                                              \
                mark, text, strlen(text)                                                                               \
        }

void page_put_index(struct buf *ret)
{
        prepare_assets_once();
        {
                const struct page_part parts[] = { TEXT_PART("{style}", assets[ASSET_STYLE].name),
                                                   TEXT_PART("{shared}", assets[ASSET_SHARED].name),
                                                   TEXT_PART("{service}", assets[ASSET_SERVICE].name) };

                put_page(ret, asset_index_text, asset_index_size, parts, 3);
        }
}

/* Escape "<", which could end the script element; in JSON it occurs in strings only. */
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
                const struct page_part parts[] = { TEXT_PART("{policy}", page_flame_policy()),
                                                   PART("/*style.css*/", style),
                                                   { "/*data*/", (const char *)data.data, data.size },
                                                   PART("/*shared.js*/", shared_script),
                                                   PART("/*offline.js*/", offline_script) };

                put_page(ret, asset_offline_page_text, asset_offline_page_size, parts, 5);
        }
}
