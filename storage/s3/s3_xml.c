/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/s3/s3_xml.h"

#include <expat.h>
#include <limits.h>
#include <string.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/limits.h"
#include "common/memory/buf.h"

struct open_element {
        char name[64];
        size_t text_offset; /* in texts */
};

struct xml_walk {
        XML_Parser parser;
        struct open_element open[LIMIT_S3_XML_DEPTH];
        size_t depth;
        struct buf texts; /* those of the open elements */
        s3_xml_visit *visit;
        void *context;
        enum status st;
        struct error *err;
};

static void stop_walk(struct xml_walk *w, enum status st)
{
        w->st = st;
        XML_StopParser(w->parser, XML_FALSE);
}

/* Expat may call handlers once more after XML_StopParser(). */
static void on_element_start(void *context, const XML_Char *name, const XML_Char **attributes)
{
        struct xml_walk *w = context;

        (void)attributes;
        if (w->st)
                return;
        if (w->depth == LIMIT_S3_XML_DEPTH || strlen(name) >= sizeof w->open[0].name) {
                stop_walk(w, error_set(w->err, ST_TOO_BIG, "its elements are nested too deep, or have long names"));
                return;
        }
        snprintf(w->open[w->depth].name, sizeof w->open[0].name, "%s", name);
        w->open[w->depth++].text_offset = w->texts.size;
}

static void on_text(void *context, const XML_Char *text, int n)
{
        struct xml_walk *w = context;

        if (!w->st && buf_append(&w->texts, text, (size_t)n))
                stop_walk(w, buf_status(&w->texts, w->err, "a text of an XML answer"));
}

static void on_element_end(void *context, const XML_Char *name)
{
        struct xml_walk *w = context;
        const char *texts;
        enum status st;

        if (w->st)
                return;
        texts = buf_cstr(&w->texts);
        w->depth--;
        st = texts ? w->visit(w->context, w->depth ? w->open[w->depth - 1].name : "", name,
                              texts + w->open[w->depth].text_offset, w->err)
                   : buf_status(&w->texts, w->err, "a text of an XML answer");
        w->texts.size = w->open[w->depth].text_offset;
        if (st)
                stop_walk(w, st);
}

static void on_document_type(void *context, const XML_Char *name, const XML_Char *system, const XML_Char *public,
                             int has_subset)
{
        struct xml_walk *w = context;

        (void)name, (void)system, (void)public, (void)has_subset;
        stop_walk(w, error_set(w->err, ST_BAD_DATA, "it has a document type"));
}

enum status s3_xml_parse(const void *data, size_t n, s3_xml_visit *visit, void *context, struct error *err)
{
        struct xml_walk w = { .visit = visit, .context = context, .err = err };
        enum XML_Status parsed;

        if (n > INT_MAX)
                return error_set(err, ST_TOO_BIG, "an XML answer has %zu bytes", n);
        w.parser = XML_ParserCreate("UTF-8");
        if (!w.parser)
                return error_no_memory(err);
        buf_init(&w.texts, LIMIT_S3_XML_TEXT_BYTES);
        XML_SetUserData(w.parser, &w);
        XML_SetElementHandler(w.parser, on_element_start, on_element_end);
        XML_SetCharacterDataHandler(w.parser, on_text);
        XML_SetStartDoctypeDeclHandler(w.parser, on_document_type);
        parsed = XML_Parse(w.parser, data, (int)n, 1);
        if (parsed != XML_STATUS_OK && !w.st)
                w.st = error_at(err, XML_GetErrorCode(w.parser) == XML_ERROR_NO_MEMORY ? ST_NO_MEMORY : ST_BAD_DATA,
                                (uint64_t)XML_GetCurrentByteIndex(w.parser), "an XML answer is malformed: %s",
                                XML_ErrorString(XML_GetErrorCode(w.parser)));
        XML_ParserFree(w.parser);
        buf_deinit(&w.texts);
        return w.st;
}

struct xml_search {
        const char *name;
        char *ret;
        size_t size;
        bool is_found;
};

static enum status note_found_text(void *context, const char *parent, const char *name, const char *text,
                                   struct error *err)
{
        struct xml_search *s = context;

        (void)parent;
        if (s->is_found || strcmp(name, s->name) != 0)
                return ST_OK;
        s->is_found = true;
        return (size_t)snprintf(s->ret, s->size, "%s", text) < s->size
                       ? ST_OK
                       : error_set(err, ST_TOO_BIG, "the text of <%s> is too long", name);
}

enum status s3_xml_find(const void *data, size_t n, const char *name, char *ret, size_t size, struct error *err)
{
        struct xml_search s = { .name = name, .ret = ret, .size = size };
        enum status st = s3_xml_parse(data, n, note_found_text, &s, err);

        if (!st && !s.is_found)
                st = error_set(err, ST_NOT_FOUND, "an XML answer has no <%s>", name);
        if (st)
                ret[0] = 0;
        return st;
}

int64_t s3_parse_time(const char *text)
{
        struct tm utc = { 0 };
        const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &utc);
        int64_t ms = 0;

        if (!rest)
                return -1;
        if (*rest == '.') {
                for (int64_t unit = 100; *++rest >= '0' && *rest <= '9'; unit /= 10)
                        ms += unit * (*rest - '0');
        }
        return strcmp(rest, "Z") == 0 ? timegm(&utc) * 1000 + ms : -1;
}
