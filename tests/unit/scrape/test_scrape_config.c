/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "relabel/relabel_rules.h"
#include "scrape/fetch_profile.h"
#include "scrape/target.h"
#include "tests/support/profiles.h"
#include "tests/support/suite.h"

/* A file with this text. @param path_ret  valid while the descriptor is open */
static int make_file(const char *text, char path_ret[64])
{
        int fd = memfd_create("config", 0);

        ck_assert_int_eq(file_write_all(fd, text, strlen(text), "config", NULL), ST_OK);
        snprintf(path_ret, 64, "/proc/self/fd/%d", fd);
        return fd;
}

/* Parse a text and a line end as a configuration, or as a target file. */
static enum status read_text(const char *text, struct scrape_config *config, struct target_groups *groups,
                             struct error *err)
{
        char path[64];
        _cleanup_close_ int fd = make_file(text, path);

        ck_assert_int_eq(file_write_all(fd, "\n", 1, "config", NULL), ST_OK);
        return config ? scrape_config_read(path, config, err) : target_file_read(path, groups, err);
}

#define JOB "scrape_configs:\n- job_name: a\n"

START_TEST(settings_have_defaults_and_jobs_override_global_ones)
{
        _cleanup_scrape_config_ struct scrape_config c = { 0 };
        const struct scrape_job *job;

        ck_assert_int_eq(read_text("scrape_configs:\n"
                                   "- job_name: a\n"
                                   "- job_name: b\n"
                                   "  scrape_interval: 1m30s\n"
                                   "  scrape_timeout: 250ms\n"
                                   "  scheme: https\n"
                                   "  body_size_limit: 2MB\n"
                                   "  profiling_config:\n"
                                   "    pprof_prefix: /app\n"
                                   "    pprof_config:\n"
                                   "      memory: {path: /heap, delta: true}\n"
                                   "      block: {enabled: false}\n"
                                   "      wall: {path: /debug/fgprof, seconds: 9}\n"
                                   "global: {scrape_interval: 5s}\n",
                                   &c, NULL, NULL),
                         ST_OK);
        ck_assert_uint_eq(c.job_count, 2);
        job = &c.jobs[0];
        ck_assert_uint_eq(job->interval_ms, 5000);
        ck_assert_uint_eq(job->timeout_ms, 5000); /* the default of 10 s is longer than the interval */
        ck_assert_uint_eq(job->http.body_max_bytes, LIMIT_HTTP_BODY_BYTES);
        ck_assert_uint_eq(job->profile_count, 5);
        ck_assert_uint_eq(scrape_profile_seconds(job, &job->profiles[0]), 4);
        ck_assert(job->profiles[1].cumulative && !job->profiles[1].delta);
        job = &c.jobs[1];
        ck_assert_uint_eq(job->interval_ms, 90000);
        ck_assert_uint_eq(job->timeout_ms, 250);
        ck_assert_uint_eq(job->http.body_max_bytes, MiB(2));
        ck_assert_uint_eq(job->profile_count, 6);
        ck_assert_str_eq(job->profiles[1].path, "/heap");
        ck_assert(!job->profiles[1].cumulative && job->profiles[1].delta);
        ck_assert_uint_eq(scrape_profile_seconds(job, &job->profiles[1]), 89);
        ck_assert(!job->profiles[3].enabled);
        ck_assert_uint_eq(scrape_profile_seconds(job, &job->profiles[5]), 9);
}
END_TEST

START_TEST(errors_have_line_numbers)
{
        static const struct {
                const char *text, *error;
        } cases[] = {
                { "", "there is no job" },
                { "scrape_configs: []", "there is no job" },
                { "a: 1", ":1: 'a' is not known here" },
                { JOB "  metrics_path: /x", ":3: 'metrics_path' is not known here" },
                { JOB "- job_name: a", ":3: there are two jobs 'a'" },
                { "scrape_configs:\n- scheme: http", ":2: a job needs a job_name" },
                { JOB "  scheme: ftp", ":3: scheme must be http or https" },
                { JOB "  scheme: http\n  scheme: http", ":4: 'scheme' is there twice" },
                { JOB "  scrape_interval: 5", NULL }, /* seconds */
                { JOB "  scrape_interval: five", ":3: a time as 15s" },
                { JOB "  scrape_interval: 1ms", ":3: a time from 100ms to 1d" },
                { JOB "  scrape_interval: 1s\n  scrape_timeout: 2s", "scrape_timeout is longer than scrape_interval" },
                { JOB "  static_configs: {}", ":3: a list is expected here" },
                { JOB "  static_configs: [{targets: {a: b}}]", ":3: a list is expected here" },
                { JOB "  static_configs: [{labels: {'1a': b}}]", ":3: '1a' is not the name of a label" },
                { JOB "  tls_config: {insecure_skip_verify: true}", "certificates are always verified" },
                { JOB "  tls_config: {insecure_skip_verify: false}", NULL },
                { JOB "  tls_config: {cert_file: x}", "cert_file and key_file go together" },
                { JOB "  basic_auth: {password: x}", "basic_auth needs a username" },
                { JOB "  basic_auth: {username: x}\n  bearer_token: y", "has basic_auth and a token" },
                { JOB "  bearer_token: \"y\\r\\nHost: z\"", ":3: a text of one line" },
                { JOB "  authorization: {type: x}", "needs one of credentials and credentials_file" },
                { JOB "  body_size_limit: 1GB", ":3: a body has at most 64 MiB" },
                { JOB "  body_size_limit: much", ":3: a size as 10MB" },
                { JOB "  relabel_configs: [{action: explode}]", ":3: unknown action 'explode'" },
                { JOB "  relabel_configs: [{regex: '('}]", "needs target_label" },
                { JOB "  relabel_configs: [{action: keep, regex: '('}]", "bad regular expression '('" },
                { JOB "  relabel_configs: [{action: hashmod, target_label: x}]", "needs a modulus" },
                { JOB "  relabel_configs: [{target_label: 'a b'}]", "'a b' is not the name of a label" },
                { JOB "  profiling_config: {pprof_config: {memory: {path: heap}}}", ":3: a path must begin with '/'" },
                { JOB "  profiling_config: {pprof_config: {mine: {enabled: true}}}", "profile 'mine' needs a path" },
                { JOB "  profiling_config: {pprof_config: {process_cpu: {seconds: 99}}}",
                  "profile 'process_cpu' takes longer than scrape_interval" },
                { JOB "  profiling_config: {pprof_config: {process_cpu: {enabled: no}}}", ":3: true or false" },
                { JOB "  file_sd_configs: [{files: 3}]", ":3: a list is expected here" },
                { "scrape_configs: [", "not YAML" },
                { "- a", "a mapping of names to values is expected here" },
                { "scrape_configs: &a [*a]", "a mapping of names to values is expected here" },
        };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                struct scrape_config c;
                struct error err = { 0 };
                enum status st = read_text(cases[i].text, &c, NULL, &err);

                if (!st)
                        scrape_config_deinit(&c);
                ck_assert_msg(cases[i].error ? st == ST_USAGE && strstr(err.text, cases[i].error) != NULL : !st,
                              "%s: %d %s", cases[i].text, st, err.text);
        }
}
END_TEST

/* "regex: a" in place of "regex: all" would drop other samples; and an empty file none. */
START_TEST(files_that_are_cut_off_are_refused)
{
        static const struct {
                const char *text, *error;
        } cases[] = {
                { "", "' is empty" },
                { "relabel_configs:\n- action: drop\n  source_labels: [env]\n  regex: a",
                  "' does not end with a line end" },
                { "relabel_configs:\n- action: drop\n  source_labels: [env]\n  regex: all\n", NULL },
                { " {relabel_configs: [{action: drop, source_labels: [env], regex: all}]}", NULL },
                { "{relabel_configs: [{action: drop, source_labels: [env], regex: a", "not YAML" },
        };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                struct relabel_rules rules;
                struct error err = { 0 };
                char path[64];
                _cleanup_close_ int fd = make_file(cases[i].text, path);
                enum status st = relabel_file_read(path, &rules, &err);

                if (!st)
                        relabel_rules_deinit(&rules);
                ck_assert_msg(cases[i].error ? st == ST_USAGE && strstr(err.text, cases[i].error) != NULL &&
                                                       strstr(err.text, path) != NULL
                                             : !st,
                              "%s: %d %s", cases[i].text, st, err.text);
        }
}
END_TEST

START_TEST(target_files_are_json_or_yaml)
{
        static const struct {
                const char *text, *error;
        } cases[] = {
                { "[{\"targets\": [\"a:1\", \"b:2\"], \"labels\": {\"env\": \"x\"}}, {\"targets\": [\"c:3\"]}]", NULL },
                { "- targets: ['a:1', 'b:2', 'c:3']\n  labels: {env: x}\n", NULL },
                { "[{\"targets\": [\"a:1\"}]", "not YAML" },
                { "{\"targets\": []}", "a list is expected here" },
                { "[{\"targets\": [[]]}]", "a text is expected here" },
                { "[{\"hosts\": []}]", "'hosts' is not known here" },
        };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                _cleanup_target_groups_ struct target_groups g = { 0 };
                struct error err = { 0 };
                enum status st = read_text(cases[i].text, NULL, &g, &err);

                ck_assert_msg(cases[i].error ? st == ST_USAGE && strstr(err.text, cases[i].error) != NULL : !st,
                              "%s: %s", cases[i].text, err.text);
                if (st)
                        continue;
                ck_assert_uint_eq(g.address_count, 3);
                ck_assert_str_eq(label_set_get(&g.items[0].labels, "env"), "x");
                ck_assert(strncmp(label_set_get(&g.items[0].labels, "__meta_filepath"), "/proc/", 6) == 0);
        }
}
END_TEST

/* The target's labels as "name=value name=value", "dropped", or the error. */
static const char *relabel_text(const char *rules, const char *labels, char *out, size_t size)
{
        _cleanup_scrape_config_ struct scrape_config c = { 0 };
        _cleanup_scrape_target_ struct scrape_target t = { 0 };
        char text[4096];
        struct error err = { 0 };
        size_t n = 0;
        bool keep = true;
        enum status st;

        snprintf(text, sizeof text,
                 "global: {external_labels: {cluster: z}}\n" JOB
                 "  static_configs: [{targets: ['h:1'], labels: {%s}}]\n  relabel_configs: [%s]\n",
                 labels, rules);
        ck_assert_msg(read_text(text, &c, NULL, &err) == ST_OK, "%s: %s", text, err.text);
        st = scrape_target_build(&c, &c.jobs[0], &c.jobs[0].groups.items[0], "h:1", &t, &keep, &err);
        if (st)
                snprintf(out, size, "%s", err.text);
        else if (!keep)
                snprintf(out, size, "dropped");
        else
                for (size_t i = 0; i < t.labels.count; i++)
                        n += (size_t)snprintf(out + n, size - n, "%s%s=%s", i ? " " : "", t.labels.items[i].name,
                                              t.labels.items[i].value);
        return out;
}

#define REST "cluster=z instance=h:1 job=a service_name=a"

START_TEST(relabeling_agrees_with_prometheus)
{
        static const struct {
                const char *rules, *labels, *want;
        } cases[] = {
                { "", "", REST },
                { "", "x: ''", REST },
                { "", "job: j, service_name: s, instance: i, cluster: y", "cluster=y instance=i job=j service_name=s" },
                { "", "service.name: s", "cluster=z instance=h:1 job=a service.name=s" },
                { "", "__x: y", REST },
                { "{source_labels: [__address__], target_label: instance, regex: '(.*):.*', replacement: 'i-${1}'}", "",
                  "cluster=z instance=i-h job=a service_name=a" },
                { "{source_labels: [x, y], separator: '/', target_label: b}", "x: 1, y: 2", "b=1/2 " REST " x=1 y=2" },
                { "{source_labels: [x], regex: nothing, target_label: b}", "x: 1", REST " x=1" },
                { "{source_labels: [x], regex: 1, target_label: x, replacement: ''}", "x: 1", REST },
                { "{source_labels: [x], target_label: 'a_${1}', replacement: v$1$$}", "x: k", "a_k=vk$ " REST " x=k" },
                { "{source_labels: [x], regex: '(?P<a>.)(?<b>.*)', target_label: 'a_$b', replacement: '${a}-$2-$c'}",
                  "x: kv", "a_v=k-v- " REST " x=kv" },
                { "{source_labels: [x], regex: 'a2[[:digit:]]', target_label: y, replacement: v}", "x: a24",
                  REST " x=a24 y=v" },
                { "{source_labels: [x], target_label: '${1}', replacement: v}", "x: a b", REST " x=a b" },
                { "{target_label: x, replacement: 'a$', action: Replace}", "", REST " x=a$" },
                { "{source_labels: [x], target_label: x, replacement: '$1x|${1}x|$9|$name'}", "x: k", REST " x=|kx||" },
                { "{source_labels: [x], regex: 'b.*', action: keep}", "x: abc", "dropped" },
                { "{source_labels: [x], regex: 'a.*', action: keep}", "x: abc", REST " x=abc" },
                { "{source_labels: [x], regex: 'a.*', action: drop}", "x: abc", "dropped" },
                { "{source_labels: [x], regex: 'b', action: drop}", "x: abc", REST " x=abc" },
                { "{source_labels: [x], target_label: y, action: keepequal}", "x: 1, y: 1", REST " x=1 y=1" },
                { "{source_labels: [x], target_label: y, action: keepequal}", "x: 1, y: 2", "dropped" },
                { "{source_labels: [x], target_label: y, action: dropequal}", "x: 1, y: 1", "dropped" },
                { "{source_labels: [__address__], target_label: shard, modulus: 1000, action: hashmod}", "",
                  REST " shard=59" }, /* computed with Python's hashlib */
                { "{source_labels: [x], target_label: y, action: uppercase}", "x: aB", REST " x=aB y=AB" },
                { "{source_labels: [x], target_label: y, action: lowercase}", "x: aB", REST " x=aB y=ab" },
                { "{regex: '__meta_(.+)', action: labelmap}", "__meta_a: 1, __meta_b: 2", "a=1 b=2 " REST },
                { "{regex: 'x.*', action: labeldrop}", "x1: 1, x2: 2, y: 3", REST " y=3" },
                { "{regex: '__.*|job|x', action: labelkeep}", "x: 1, y: 3", REST " x=1" },
                { "{target_label: __address__, replacement: 'other:2'}", "",
                  "cluster=z instance=other:2 job=a service_name=a" },
                { "{target_label: __address__, replacement: 'a/b'}", "",
                  "job 'a': target 'h:1': 'a/b' is not HOST:PORT" },
                { "{target_label: __address__, replacement: 'u:p@h'}", "",
                  "job 'a': target 'h:1': 'u:p@h' is not HOST:PORT" },
                { "{target_label: __address__, replacement: ''}", "", "job 'a': target 'h:1': '' is not HOST:PORT" },
                { "{target_label: __scheme__, replacement: 'file'}", "",
                  "job 'a': target 'h:1': 'h:1': scheme 'file' is neither http nor https" },
        };
        char out[1024];

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
                ck_assert_msg(strcmp(relabel_text(cases[i].rules, cases[i].labels, out, sizeof out), cases[i].want) ==
                                      0,
                              "%s {%s}: %s, not %s", cases[i].rules, cases[i].labels, out, cases[i].want);
}
END_TEST

START_TEST(labels_are_limited)
{
        _cleanup_label_set_ struct label_set l = { 0 };
        static char big[LIMIT_LABEL_BYTES + 2];
        struct error err = { 0 };
        char name[16];

        memset(big, 'a', sizeof big - 1);
        ck_assert_int_eq(label_set_put(&l, "x", big, &err), ST_TOO_BIG);
        ck_assert_int_eq(label_set_put(&l, big, "x", &err), ST_TOO_BIG);
        big[LIMIT_LABEL_BYTES] = 0;
        for (int i = 0; i < 4; i++) {
                snprintf(name, sizeof name, "n%d", i);
                ck_assert_int_eq(label_set_put(&l, name, big, &err), i < 3 ? ST_OK : ST_TOO_BIG);
        }
        ck_assert_msg(strstr(err.text, "label 'n3' exceeds the limit") != NULL, "%s", err.text);
        for (int i = 0; i < LIMIT_RELABEL_LABELS; i++) {
                snprintf(name, sizeof name, "n%d", i);
                ck_assert_int_eq(label_set_put(&l, name, "v", &err), ST_OK);
        }
        ck_assert_int_eq(label_set_put(&l, "one_more", "v", &err), ST_TOO_BIG);
        ck_assert_int_eq(label_set_put(&l, "n3", "w", &err), ST_OK);
        ck_assert_uint_eq(l.count, LIMIT_RELABEL_LABELS);
}
END_TEST

START_TEST(a_target_cannot_choose_its_own_labels)
{
        static const char *const own[] = { "job=evil", "service.name=evil", "kept=yes", NULL };
        _cleanup_label_set_ struct label_set l = { 0 };
        struct test_profile t;
        uint32_t location;
        char text[200] = "";

        ck_assert_int_eq(label_set_put(&l, "job", "good", NULL), ST_OK);
        ck_assert_int_eq(label_set_put(&l, "service_name", "good", NULL), ST_OK);
        test_profile_init(&t, "00112233445566778899aabbccddeeff00112233", "/bin/shop");
        location = test_location(&t, 1);
        test_sample(&t, 1, 1, &location, 1, own);
        test_sample(&t, 1, 1, &location, 1, own);
        test_sample(&t, 1, 1, &location, 1, (const char *const[]){ NULL });
        ck_assert_int_eq(profile_apply_target_labels(&t.p, &l, NULL), ST_OK);
        for (uint32_t i = 0; i < 3; i++) {
                const struct profile_sample *s = &t.p.samples.items[i];

                for (uint32_t j = 0; j < s->label_count; j++) {
                        const struct profile_label *label = &t.p.labels.items[s->first_label + j];

                        snprintf(text + strlen(text), sizeof text - strlen(text), "%s=%s ",
                                 profile_text(&t.p, label->key), profile_text(&t.p, label->value));
                }
        }
        ck_assert_str_eq(text, "job=good kept=yes service_name=good job=good kept=yes service_name=good job=good "
                               "service_name=good ");
        test_profile_deinit(&t);
}
END_TEST

TEST_SUITE("scrape_config", settings_have_defaults_and_jobs_override_global_ones, errors_have_line_numbers,
           files_that_are_cut_off_are_refused, target_files_are_json_or_yaml, relabeling_agrees_with_prometheus,
           labels_are_limited, a_target_cannot_choose_its_own_labels)
