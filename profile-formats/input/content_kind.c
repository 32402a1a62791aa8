/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/input/content_kind.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/compress/compress.h"
#include "common/json/json_scan.h"
#include "profile-formats/jfr/jfr_chunk.h"

#define CONVERT_WITH_SPEEDSCOPE "open it in speedscope and import the file that speedscope exports"
#define CONVERT_WITH_PPROF "import what 'go tool pprof -proto FILE' writes"
#define TEXT_OF_GO "the readable text of a pprof endpoint (debug=1); fetch it without the parameter debug"
#define WEB_PAGE "a web page or an image; import the profile that it was made from"
#define COMPRESSED(name) "a file compressed with " name "; unpack it first (gzip and zstd are read)"
#define METRICS "metrics of Prometheus; import a profile"
#define UTF16 "text in UTF-16; convert it to UTF-8"

/* ---- beginnings of files ---- */

static const struct {
        const char *magic, *what;
} foreign_files[] = {
        { "PERFILE2", "a perf.data file; import the text that 'perf script -i FILE' prints" },
        { "Nettrace", "a trace of .NET; import the file that 'dotnet-trace convert --format Speedscope' writes" },
        { "# callgrind format", "a profile of callgrind; " CONVERT_WITH_SPEEDSCOPE },
        { "gmon\001", "a profile of gprof, which has no stacks of samples; record with perf" },
        { "v8-version,", "a log of V8; open what 'node --prof-process --preprocess -j FILE' prints in speedscope and "
                         "import the file that speedscope exports" },
        { "@[\n", "stacks of bpftrace; import what stackcollapse-bpftrace.pl of FlameGraph prints" },
        { "# HELP ", METRICS },
        { "# TYPE ", METRICS },
        { "JAVA PROFILE 1.", "a heap dump of Java, which has no stacks of samples; record with JFR" },
        { "\177ELF", "an executable or a library; send it with cairn-upload" },
        { "goroutine profile: ", TEXT_OF_GO },
        { "goroutineleak profile: ", TEXT_OF_GO },
        { "threadcreate profile: ", TEXT_OF_GO },
        { "heap profile: ",
          "the text of a heap profile; fetch it without the parameter debug, or " CONVERT_WITH_PPROF },
        { "heap_v2/", "a heap profile of jemalloc; " CONVERT_WITH_PPROF },
        { "--- contention:", TEXT_OF_GO },
        { "--- mutex:", TEXT_OF_GO },
        { "<!DOCTYPE", WEB_PAGE },
        { "<!doctype", WEB_PAGE },
        { "<html", WEB_PAGE },
        { "<?xml", WEB_PAGE },
        { "<svg", WEB_PAGE },
        { "PK\003\004", "a zip archive; unpack it first" },
        { "\xfd\x37zXZ", COMPRESSED("xz") },
        { "BZh91AY", COMPRESSED("bzip2") },
        { "\x04\x22\x4d\x18", COMPRESSED("lz4") },
        { "\x28\xb5\x2f\xfd", "zstd data; send it with its Content-Encoding, or unpack it first" },
        { "\xff\x06", "snappy data; send it with its Content-Encoding, or unpack it first" },
        { "7z\xbc\xaf", COMPRESSED("7z") },
        { "LZIP\001", COMPRESSED("lzip") },
        { "\x1f\x9d", COMPRESSED("compress") },
        { "\xff\xfe", UTF16 },
        { "\xfe\xff", UTF16 },
};

/* The lines of a goroutine in a dump: "goroutine 1 [chan receive, 5 minutes]:". */
static bool is_goroutine_dump(const void *data, size_t n)
{
        static const char start[] = "goroutine ";
        const char *text = data;
        const char *line_end = n ? memchr(text, '\n', n) : NULL; /* text may be NULL */
        size_t at = sizeof start - 1;

        if (!line_end || (size_t)(line_end - text) < at + 5 || memcmp(text, start, at) != 0)
                return false;
        while (text[at] >= '0' && text[at] <= '9')
                at++;
        return (size_t)(line_end - text) >= at + 4 && memcmp(text + at, " [", 2) == 0 &&
               memcmp(line_end - 2, "]:", 2) == 0;
}

/* The header of CPU profiles of gperftools: words 0, 3 (its length), 0 (the version), the period. */
static bool is_gperftools_profile(const void *data, size_t n)
{
        static const uint8_t header[24] = { [8] = 3 };

        return n >= 40 && memcmp(data, header, sizeof header) == 0;
}

/* Marshalled Python: a dictionary, whose first key is a tuple of three. */
static bool is_python_statistics(const void *data, size_t n)
{
        const uint8_t *bytes = data;

        return n > 4 && (bytes[0] & 0x7f) == '{' && (bytes[1] & 0x7f) == ')' && bytes[2] == 3;
}

static bool is_tar_archive(const void *data, size_t n)
{
        static const char magic[] = "ustar";

        return n >= 512 && memcmp((const uint8_t *)data + 257, magic, sizeof magic - 1) == 0;
}

/* Contents that a few bytes do not tell. */
static const struct {
        bool (*is_it)(const void *data, size_t n);
        const char *what;
} foreign_contents[] = {
        { is_goroutine_dump, "a dump of goroutines (debug=2); fetch it without the parameter debug" },
        { is_gperftools_profile,
          "a CPU profile of gperftools; import what 'go tool pprof -proto PROGRAM FILE' writes" },
        { is_python_statistics, "statistics of Python's cProfile, which have no stacks; record with py-spy" },
        { is_tar_archive, "a tar archive; unpack it first" },
        { zlib_detect, "zlib data; compress pprof with gzip, and send other formats with 'Content-Encoding: deflate', "
                       "or unpack them first" },
};

/* ---- members of JSON ---- */

enum json_member {
        MEMBER_SCHEMA,
        MEMBER_SHARED,
        MEMBER_PROFILES,
        MEMBER_RESOURCE_PROFILES,
        MEMBER_DICTIONARY,
        MEMBER_SNAKE_PROFILES,
        MEMBER_SPANS,
        MEMBER_METRICS,
        MEMBER_LOGS,
        MEMBER_TRACE_EVENTS,
        MEMBER_META,
        MEMBER_LIBS,
        MEMBER_THREADS,
        MEMBER_NODES,
        MEMBER_TIME_DELTAS,
        MEMBER_START_TIME,
        MEMBER_HEAD,
        MEMBER_SNAPSHOT,
        MEMBER_PERF_VERSION,
        MEMBERS, /* count */
};

static const char *const member_names[MEMBERS] = {
        [MEMBER_SCHEMA] = "$schema",
        [MEMBER_SHARED] = "shared",
        [MEMBER_PROFILES] = "profiles",
        [MEMBER_RESOURCE_PROFILES] = "resourceProfiles",
        [MEMBER_DICTIONARY] = "dictionary",
        [MEMBER_SNAKE_PROFILES] = "resource_profiles",
        [MEMBER_SPANS] = "resourceSpans",
        [MEMBER_METRICS] = "resourceMetrics",
        [MEMBER_LOGS] = "resourceLogs",
        [MEMBER_TRACE_EVENTS] = "traceEvents",
        [MEMBER_META] = "meta",
        [MEMBER_LIBS] = "libs",
        [MEMBER_THREADS] = "threads",
        [MEMBER_NODES] = "nodes",
        [MEMBER_TIME_DELTAS] = "timeDeltas",
        [MEMBER_START_TIME] = "startTime",
        [MEMBER_HEAD] = "head",
        [MEMBER_SNAPSHOT] = "snapshot",
        [MEMBER_PERF_VERSION] = "linux-perf-json-version",
};

#define BIT(member) (UINT32_C(1) << (member))
#define FIREFOX "a profile of Firefox or samply; " CONVERT_WITH_SPEEDSCOPE
#define CPUPROFILE "a CPU profile of V8 (.cpuprofile); " CONVERT_WITH_SPEEDSCOPE
#define CHROME_TRACE "a Chrome trace; " CONVERT_WITH_SPEEDSCOPE

/* The first row whose members are all present counts. */
static const struct {
        uint32_t members;
        struct content_description description;
} json_kinds[] = {
        { BIT(MEMBER_RESOURCE_PROFILES), { CONTENT_OTLP_JSON, NULL } },
        { BIT(MEMBER_SHARED) | BIT(MEMBER_PROFILES), { CONTENT_SPEEDSCOPE, NULL } },
        { BIT(MEMBER_SPANS), { CONTENT_FOREIGN, "OTLP traces; profiles have the member resourceProfiles" } },
        { BIT(MEMBER_METRICS), { CONTENT_FOREIGN, "OTLP metrics; profiles have the member resourceProfiles" } },
        { BIT(MEMBER_LOGS), { CONTENT_FOREIGN, "OTLP logs; profiles have the member resourceProfiles" } },
        { BIT(MEMBER_SNAKE_PROFILES),
          { CONTENT_FOREIGN, "OTLP with names of protobuf; OTLP in JSON has resourceProfiles in lowerCamelCase" } },
        { BIT(MEMBER_TRACE_EVENTS), { CONTENT_FOREIGN, CHROME_TRACE } },
        { BIT(MEMBER_THREADS) | BIT(MEMBER_META), { CONTENT_FOREIGN, FIREFOX } },
        { BIT(MEMBER_THREADS) | BIT(MEMBER_LIBS), { CONTENT_FOREIGN, FIREFOX } },
        { BIT(MEMBER_SNAPSHOT) | BIT(MEMBER_NODES),
          { CONTENT_FOREIGN, "a heap snapshot of V8, which has no stacks of samples; record a sampling profile" } },
        { BIT(MEMBER_NODES) | BIT(MEMBER_TIME_DELTAS), { CONTENT_FOREIGN, CPUPROFILE } },
        { BIT(MEMBER_NODES) | BIT(MEMBER_START_TIME), { CONTENT_FOREIGN, CPUPROFILE } },
        { BIT(MEMBER_HEAD) | BIT(MEMBER_START_TIME), { CONTENT_FOREIGN, CPUPROFILE } },
        { BIT(MEMBER_HEAD), { CONTENT_FOREIGN, "a heap profile of V8 (.heapprofile); " CONVERT_WITH_SPEEDSCOPE } },
        { BIT(MEMBER_PERF_VERSION),
          { CONTENT_FOREIGN, "perf data in JSON; import the text that 'perf script' prints" } },
        { BIT(MEMBER_DICTIONARY), { CONTENT_OTLP_JSON, NULL } },
};

static const struct content_description foreign_json = {
        CONTENT_FOREIGN, "JSON that is neither OTLP (with the member resourceProfiles) nor speedscope (with $schema)"
};

static const struct content_description unknown_content = { CONTENT_UNKNOWN, NULL };

/* Whether the next value is the address of speedscope's schema, of any version; the value is read. */
static bool is_speedscope_schema(struct json_scan *s)
{
        struct json_span value;

        return json_scan_peek(s) == '"' ? json_scan_str(s, &value) && memmem(value.text, value.size, "speedscope", 10)
                                        : json_scan_skip(s) && false;
}

static struct content_description describe_json_object(struct json_scan *s)
{
        struct json_span key;
        uint32_t seen = 0;
        bool is_json = false;

        json_scan_object(s);
        while (json_scan_key(s, &key)) {
                unsigned i = 0;

                is_json = true;
                while (i < MEMBERS && !json_span_is(&key, member_names[i]))
                        i++;
                if (i == MEMBER_SCHEMA) {
                        if (is_speedscope_schema(s))
                                return (struct content_description){ CONTENT_SPEEDSCOPE, NULL };
                        continue;
                }
                seen |= i < MEMBERS ? BIT(i) : 0;
                json_scan_skip(s);
        }
        for (size_t i = 0; i < sizeof json_kinds / sizeof *json_kinds; i++)
                if ((seen & json_kinds[i].members) == json_kinds[i].members)
                        return json_kinds[i].description;
        return is_json ? foreign_json : unknown_content; /* the first frame may be "{main}" */
}

/* Chrome traces may be an array of events, each of which has a phase. */
static struct content_description describe_json_array(struct json_scan *s)
{
        struct json_span key;

        json_scan_array(s);
        if (json_scan_item(s) && json_scan_peek(s) == '{' && json_scan_object(s))
                while (json_scan_key(s, &key)) {
                        if (json_span_is(&key, "ph"))
                                return (struct content_description){ CONTENT_FOREIGN, CHROME_TRACE };
                        json_scan_skip(s);
                }
        return unknown_content; /* the first frame may be "[unknown]" */
}

struct content_description content_describe(const void *data, size_t n)
{
        struct json_scan s;
        uint8_t first;

        if (jfr_detect(data, n))
                return (struct content_description){ CONTENT_JFR, NULL };
        for (size_t i = 0; i < sizeof foreign_files / sizeof *foreign_files; i++) {
                size_t size = strlen(foreign_files[i].magic);

                if (n >= size && memcmp(data, foreign_files[i].magic, size) == 0)
                        return (struct content_description){ CONTENT_FOREIGN, foreign_files[i].what };
        }
        for (size_t i = 0; i < sizeof foreign_contents / sizeof *foreign_contents; i++)
                if (foreign_contents[i].is_it(data, n))
                        return (struct content_description){ CONTENT_FOREIGN, foreign_contents[i].what };
        json_scan_init(&s, data, n);
        first = json_scan_peek(&s);
        if (first == '{')
                return describe_json_object(&s);
        return first == '[' ? describe_json_array(&s) : unknown_content;
}

void content_explain(const void *data, size_t n, char *text, size_t size)
{
        const struct content_description content = content_describe(data, n);

        if (content.kind == CONTENT_FOREIGN)
                snprintf(text, size, "this is %s", content.foreign);
}

enum status content_refuse_gzip(const void *data, size_t n, struct error *err)
{
        return gzip_detect(data, n) ? error_set(err, ST_BAD_DATA,
                                                "this is gzip data; send pprof as such with its format, and other "
                                                "formats with 'Content-Encoding: gzip', or unpack it first")
                                    : ST_OK;
}

enum status content_refuse(const void *data, size_t n, struct error *err)
{
        char text[200] = "", before[sizeof err->text];

        content_explain(data, n, text, sizeof text);
        if (!*text || !err)
                return ST_BAD_DATA;
        memcpy(before, err->text, sizeof before);
        return error_set(err, ST_BAD_DATA, "%s; %s", text, before);
}
