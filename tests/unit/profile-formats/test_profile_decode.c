/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/compress/compress.h"
#include "common/limits.h"
#include "profile-formats/input/content_kind.h"
#include "profile-formats/input/profile_decode.h"
#include "tests/support/suite.h"

#define SPEEDSCOPE(events)                                                                                             \
        "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"shared\":{\"frames\":[{\"name\":"       \
        "\"a\"}]},\"profiles\":[{\"type\":\"evented\",\"name\":\"p\",\"unit\":\"milliseconds\",\"events\":[" events    \
        "]}]}"
#define BYTES(text) text, sizeof text - 1

START_TEST(content_is_decoded_as_the_format_that_it_has)
{
        static const struct {
                const char *data;
                size_t n;
                const char *format;
        } contents[] = {
                { BYTES("main;a 5\n"), "folded" },
                { BYTES("main 5\n"), "folded" },
                { BYTES("{main};{closure} 5\n"), "folded" },
                { BYTES("[unknown];a 5\n"), "folded" },
                { BYTES("\xef\xbb\xbfmain;a 5\n"), "folded" },
                { BYTES("main;\xe9t\xe9 5\n"), "folded" },
                { BYTES("main;\033[1m 5\n"), "folded" },
                { BYTES("#main;a 5\n"), "folded" },
                { BYTES("# comment\rmain;a 5\r"), "folded" },
                { BYTES("# two words each\rmain 6\r"), "folded" },
                { BYTES("a 9 1.5: 3 cycles:\n"), "perf" },
                { BYTES("\xe6\x97\xa5\xe6\x9c 9 1.5: 3 cycles:\n"), "perf" }, /* a name cut within a character */
                { BYTES("\033[31m 9 1.5: 3 cycles:\n"), "perf" },
                { BYTES(SPEEDSCOPE("{\"type\":\"O\",\"frame\":0,\"at\":0},{\"type\":\"C\",\"frame\":0,\"at\":3}")),
                  "speedscope" },
        };
        const struct profile_decode_options o = { 0 };

        for (size_t i = 0; i < sizeof contents / sizeof *contents; i++) {
                const char *format = NULL;
                struct error err = { 0 };
                struct profile p;

                ck_assert_msg(!profile_decode(contents[i].data, contents[i].n, &o, &p, &format, &err), "%zu: %s", i,
                              err.text);
                ck_assert_str_eq(format, contents[i].format);
                ck_assert_uint_eq(p.samples.count, 1);
                ck_assert_uint_ne((uint8_t)*profile_text(&p, 1), 0xef); /* the byte order mark is not part of a name */
                profile_deinit(&p);
        }
}
END_TEST

START_TEST(other_content_is_refused_with_its_name)
{
        static const char tar[1024] = { [0] = 'a', [257] = 'u', 's', 't', 'a', 'r' };
        static const struct {
                const char *data;
                size_t n;
                const char *message;
        } contents[] = {
                { BYTES(""), "the input is empty" },
                { BYTES("{\"traceEvents\":[]}"), "Chrome trace" },
                { BYTES("[{\"name\":\"x\",\"ph\":\"B\"}]"), "Chrome trace" },
                { BYTES("{\"meta\":{},\"libs\":[],\"threads\":[{\"samples\":{}}]}"), "profile of Firefox or samply" },
                { BYTES("{\"nodes\":[],\"startTime\":1,\"endTime\":2,\"samples\":[]}"), ".cpuprofile" },
                { BYTES("{\"head\":{},\"samples\":[]}"), ".heapprofile" },
                { BYTES("{\"resourceSpans\":[]}"), "OTLP traces" },
                { BYTES("{\"resourceMetrics\":[]}"), "OTLP metrics" },
                { BYTES("{\"resourceLogs\":[]}"), "OTLP logs" },
                { BYTES("{\"resource_profiles\":[]}"), "lowerCamelCase" },
                { BYTES("{\"a\":1}"), "neither OTLP" },
                { BYTES("PERFILE2\1\2\3"), "perf script" },
                { BYTES("FLR\0\0\2\0\0"), "JFR" },
                { BYTES("\xff\xfem\0;\0a\0 \0"
                        "5\0"),
                  "UTF-16" },
                { BYTES("goroutine profile: total 3\n"), "debug=1" },
                { BYTES("goroutineleak profile: total 3\n"), "debug=1" },
                { BYTES("goroutine 18 [chan receive, 5 minutes]:\nmain.f(0x1)\n\t/a.go:3 +0x1\n"), "debug=2" },
                { BYTES("\0\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\x27\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
                  "CPU profile of gperftools" },
                { BYTES("\xfb\x29\3\xfa\1~\xe9\0\0\0\0"), "cProfile" },
                { BYTES("<!DOCTYPE html>\n"), "web page" },
                { BYTES("heap profile:   1:  24 [ 1: 24] @ heap_v2/524288\n"), "go tool pprof -proto" },
                { BYTES("heap_v2/524288\n"), "jemalloc" },
                { BYTES("\xfd\x37zXZ\0\0\4"), "compressed with xz" },
                { BYTES("BZh91AY&SY\1"), "compressed with bzip2" },
                { tar, sizeof tar, "a tar archive; unpack it first" },
                { BYTES("\xff\x06\0\0sNaPpY"), "snappy data" },
                { BYTES("\x78\x9c\xcb\x4d\xcc\xcc\xb3\x4e\x54\x30\xe5\x02\0\x0f\xd8\x02\xa1"), "this is zlib data" },
                { BYTES("GET /index 200\nGET /other 404\n"), "unknown format" },
                { BYTES("replicas: 5\nport: 80\n"), "or of settings" },
                { BYTES("workers= 5\n"), "or of settings" },
                { BYTES("# HELP up Whether it is up.\n# TYPE up gauge\nup{job=\"a\"} 5\n"), "metrics of Prometheus" },
                { BYTES("gmon\1\0\0\0\0\0\0"), "profile of gprof" },
                { BYTES("@[\n    do_sys_open+5\n    main+10\n]: 12\n"), "stacks of bpftrace" },
                { BYTES("v8-version,12,4,254,21,0\n"), "log of V8" },
                /* their own format's errors */
                { BYTES(SPEEDSCOPE("{\"type\":\"C\",\"frame\":0,\"at\":3}")),
                  "closes a frame that is not the innermost" },
                { BYTES(SPEEDSCOPE("{\"type\":\"O\",\"frame\":0,\"at\":0}")), "ends with 1 frame open" },
                { BYTES("{\"resourceProfiles\":7}"), "JSON is malformed at byte 20" },
                { BYTES("\x32\0\x32\2ab\x12\2\x08\1"), "pprof" }, /* a string table, then a malformed sample */
                /* read as protobuf, but without a sample of OTLP */
                { BYTES("\x0a\2\x12\0"), "unknown format" },
        };
        const struct profile_decode_options o = { 0 };

        for (size_t i = 0; i < sizeof contents / sizeof *contents; i++) {
                struct error err = { 0 };
                struct profile p;

                ck_assert_msg(profile_decode(contents[i].data, contents[i].n, &o, &p, NULL, &err) == ST_BAD_DATA,
                              "%zu is accepted", i);
                ck_assert_msg(strstr(err.text, contents[i].message), "%zu: '%s' in '%s'", i, contents[i].message,
                              err.text);
        }
}
END_TEST

/* Without a byte after them: a sanitizer sees reads beyond. */
START_TEST(contents_are_described_within_their_bytes)
{
        static const char *const texts[] = { "g", "goroutine ", "goroutine 12345\n", "goroutine 1 []\n", "{\"", "[" };

        ck_assert_int_eq(content_describe(NULL, 0).kind, CONTENT_UNKNOWN);
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
                size_t n = strlen(texts[i]);
                _cleanup_free_ char *bytes = malloc(n);

                memcpy(bytes, texts[i], n);
                ck_assert_int_eq(content_describe(bytes, n).kind, CONTENT_UNKNOWN);
        }
}
END_TEST

START_TEST(profile_without_samples_explains_it)
{
        static const char chrome[] = "{\"traceEvents\":[]}";
        const struct profile_decode_options otlp = { .format = "otlp" }, folded = { .format = "folded" };
        _cleanup_profile_ struct profile p;
        struct profile none;
        struct error err;

        ck_assert_int_eq(profile_decode(BYTES(chrome), &otlp, &p, NULL, NULL), ST_OK);
        ck_assert_int_eq(profile_check_samples(&p, &err), ST_BAD_DATA);
        ck_assert_ptr_nonnull(strstr(err.text, "the profile has no samples: this is a Chrome trace; open it in"));
        ck_assert_int_eq(profile_decode(BYTES(chrome), &folded, &none, NULL, &err), ST_BAD_DATA);
        ck_assert_ptr_nonnull(strstr(err.text, "this is a Chrome trace"));
}
END_TEST

START_TEST(gzip_data_of_other_formats_is_named)
{
        static const struct profile_decode_options options[] = { { .format = "folded" }, { .format = "perf" }, { 0 } };
        _cleanup_buf_ struct buf b;

        buf_init(&b, KiB(4));
        ck_assert_int_eq(gzip_compress(BYTES("main;a 5\n"), 6, &b, NULL), ST_OK);
        for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
                struct profile none;
                struct error err;

                ck_assert_int_eq(profile_decode(b.data, b.size, &options[i], &none, NULL, &err), ST_BAD_DATA);
                ck_assert_msg(strstr(err.text, "with 'Content-Encoding: gzip', or unpack"), "%s", err.text);
        }
}
END_TEST

TEST_SUITE("profile decode", gzip_data_of_other_formats_is_named, content_is_decoded_as_the_format_that_it_has,
           other_content_is_refused_with_its_name, contents_are_described_within_their_bytes,
           profile_without_samples_explains_it)
