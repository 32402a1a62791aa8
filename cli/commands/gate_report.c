/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of the gate: the verdict, sentences that all formats share, then one section for each format. */
#include "cli/commands/gate_report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/json/json_out.h"
#include "common/text.h"
#include "common/text/number_text.h"
#include "common/text/utf8.h"
#include "common/text/xml_text.h"
#include "query/engine/unit_text.h"

enum gate_verdict gate_report_get_verdict(const struct gate_report *r)
{
        const struct json_node *rule;
        bool is_unknown = false;

        for (struct json_node_list l = json_node_list(r->answer, "rules"); (rule = json_node_next(&l));) {
                if (strcmp(json_node_text(rule, "state"), "failed") == 0)
                        return GATE_FAILED;
                is_unknown = is_unknown || strcmp(json_node_text(rule, "state"), "unknown") == 0;
        }
        return is_unknown ? GATE_UNKNOWN : GATE_PASSED;
}

/* ---- sentences ---- */

#define SENTENCE_BYTES 400

static const char *get_headline(const struct gate_report *r)
{
        static const char *const texts[] = { [GATE_PASSED] = "no regression",
                                             [GATE_FAILED] = "regression",
                                             [GATE_UNKNOWN] = "not enough data to see the smallest change asked for" };

        return texts[gate_report_get_verdict(r)];
}

static const char *format_gate_change(double percent, char ret[static 32])
{
        if (isnan(percent))
                snprintf(ret, 32, "new");
        else
                snprintf(ret, 32, "%+.1f%%", percent);
        return ret;
}

/* What the clusters are, as "20 and 20 hosts". */
static const char *describe_clusters(const struct gate_report *r, char ret[static SENTENCE_BYTES])
{
        uint64_t before = json_node_uint(r->answer, "clusters"), after = json_node_uint(r->answer, "clusters_after");
        const char *cluster = PRINTABLE(json_node_text(r->answer, "cluster"));
        bool runs = strcmp(cluster, "cairn.run") == 0;

        if (runs && (before < 2 || after < 2))
                snprintf(ret, SENTENCE_BYTES,
                         "one file on a side: compared with thresholds only, nothing is said about chance");
        else if (before < 2 || after < 2)
                snprintf(ret, SENTENCE_BYTES,
                         "%" PRIu64 " and %" PRIu64
                         " values of %.100s on the sides: compared with thresholds only, nothing is said about chance",
                         before, after, cluster);
        else if (runs)
                snprintf(ret, SENTENCE_BYTES, "%s, %" PRIu64 " after; %s", COUNTED(before, "run before", "runs before"),
                         after, COUNTED(json_node_uint(r->answer, "tested"), "function tested", "functions tested"));
        else
                snprintf(ret, SENTENCE_BYTES, "%" PRIu64 " %s %.100s before, %" PRIu64 " after; %s", before,
                         strcmp(json_node_text(r->answer, "clusters_are"), "parts") == 0
                                 ? "parts of the time of values of"
                                 : "values of",
                         cluster, after,
                         COUNTED(json_node_uint(r->answer, "tested"), "function tested", "functions tested"));
        return ret;
}

/* What the changes of functions are. */
static const char *describe_changes(const struct gate_report *r)
{
        return strcmp(json_node_text(r->answer, "compare"), "shares") == 0
                       ? "changes of functions are those of their share of the total"
                       : "changes of functions are those of their cost";
}

#define SHARE_ONLY "only its share rose, not its cost"

/* "an increase of 3.0% would have been seen": what a rule could have found, and what else its number means. May be "".
 */
static const char *describe_reach(const struct json_node *rule, char ret[static SENTENCE_BYTES])
{
        double smallest = json_node_double(rule, "smallest_percent");

        *ret = '\0';
        if (json_node_member(rule, "functions") && !json_node_uint(rule, "functions"))
                snprintf(ret, SENTENCE_BYTES, "no function of either side has this name");
        else if (!isnan(smallest))
                snprintf(ret, SENTENCE_BYTES, "%san increase of %.1f%% would have been seen",
                         json_node_flag(rule, "is_share_only") ? SHARE_ONLY "; " : "", smallest);
        else if (json_node_flag(rule, "is_share_only"))
                snprintf(ret, SENTENCE_BYTES, SHARE_ONLY);
        return ret;
}

static const char *format_cost(const struct gate_report *r, const struct json_node *row, const char *key,
                               char ret[static 40])
{
        return format_value(json_node_int(row, key), json_node_text(r->answer, "unit"), ret, 40);
}

#define RISEN_FUNCTIONS "no function fails a rule; the cost of these rose most:"

/* ---- text and Markdown ---- */

static void put_report_text(const struct gate_report *r, struct buf *to)
{
        char sentence[SENTENCE_BYTES], change[32], before[40], after[40];
        const struct json_node *rule;

        buf_printf(to, "%s\n", get_headline(r));
        buf_printf(to, "%s; %s\n", describe_clusters(r, sentence), describe_changes(r));
        buf_printf(to, "total %s -> %s\n", format_cost(r, r->answer, "total", before),
                   format_cost(r, r->answer, "total_after", after));
        for (struct json_node_list l = json_node_list(r->answer, "rules"); (rule = json_node_next(&l));) {
                double percent = json_node_double(rule, "change_percent");

                buf_append_str(to, "  ");
                utf8_append_escaped(to, json_node_text(rule, "rule"));
                buf_printf(to, ": %s", json_node_text(rule, "state"));
                if (!isnan(percent))
                        buf_printf(to, ", %s", format_gate_change(percent, change));
                if (*describe_reach(rule, sentence))
                        buf_printf(to, "; %s", sentence);
                buf_append_u8(to, '\n');
        }
        if (r->are_details_risen && r->detail_count)
                buf_append_str(to, "\n" RISEN_FUNCTIONS "\n");
        for (size_t i = 0; i < r->detail_count; i++) {
                const struct gate_detail *d = &r->details[i];

                buf_append_u8(to, '\n');
                utf8_append_escaped(to, json_node_text(d->row, "function"));
                buf_printf(to, ": %s -> %s, %s\n", format_cost(r, d->row, "flat", before),
                           format_cost(r, d->row, "flat_after", after),
                           format_gate_change(json_node_double(d->row, "change_percent"), change));
                if (d->file) {
                        buf_append_str(to, "  line: ");
                        utf8_append_escaped(to, d->file);
                        buf_printf(to, ":%" PRIu64 "\n", d->line);
                }
                for (size_t k = 0; k < d->caller_count; k++) {
                        buf_append_str(to, "  called by: ");
                        utf8_append_escaped(to, d->callers[k]);
                        buf_append_u8(to, '\n');
                }
        }
        if (r->link)
                buf_printf(to, "\n%s\n", r->link);
}

/* Text in a cell of a table, as code, escaped as in a terminal: neither '|' nor '`' may end it. */
static void put_markdown_code(struct buf *to, const char *text)
{
        _cleanup_buf_ struct buf escaped;

        buf_init(&escaped, to->max);
        utf8_append_escaped(&escaped, text);
        buf_append_u8(to, '`');
        for (size_t i = 0; i < escaped.size; i++) {
                if (escaped.data[i] == '|')
                        buf_append_str(to, "\\|");
                else
                        buf_append_u8(to, escaped.data[i] == '`' ? '\'' : escaped.data[i]);
        }
        buf_append_u8(to, '`');
}

static void put_report_markdown(const struct gate_report *r, struct buf *to)
{
        char sentence[SENTENCE_BYTES], change[32], before[40], after[40];
        const struct json_node *rule;

        buf_printf(to, "### Profile: %s\n\n%s; %s\n\n| rule | state | change | |\n| --- | --- | --- | --- |\n",
                   get_headline(r), describe_clusters(r, sentence), describe_changes(r));
        for (struct json_node_list l = json_node_list(r->answer, "rules"); (rule = json_node_next(&l));) {
                double percent = json_node_double(rule, "change_percent");

                buf_append_str(to, "| ");
                put_markdown_code(to, json_node_text(rule, "rule"));
                buf_printf(to, " | %s | %s | %s |\n", json_node_text(rule, "state"),
                           isnan(percent) ? "" : format_gate_change(percent, change), describe_reach(rule, sentence));
        }
        if (r->are_details_risen && r->detail_count)
                buf_append_str(to, "\n" RISEN_FUNCTIONS "\n");
        if (r->detail_count)
                buf_append_str(to, "\n| function | before | after | change | line | called by |\n"
                                   "| --- | ---: | ---: | ---: | --- | --- |\n");
        for (size_t i = 0; i < r->detail_count; i++) {
                const struct gate_detail *d = &r->details[i];

                buf_append_str(to, "| ");
                put_markdown_code(to, json_node_text(d->row, "function"));
                buf_printf(to, " | %s | %s | %s | ", format_cost(r, d->row, "flat", before),
                           format_cost(r, d->row, "flat_after", after),
                           format_gate_change(json_node_double(d->row, "change_percent"), change));
                if (d->file) {
                        put_markdown_code(to, d->file);
                        buf_printf(to, " line %" PRIu64, d->line);
                }
                buf_append_str(to, " | ");
                for (size_t k = 0; k < d->caller_count; k++) {
                        buf_append_str(to, k ? ", " : "");
                        put_markdown_code(to, d->callers[k]);
                }
                buf_append_str(to, " |\n");
        }
        if (r->link)
                buf_printf(to, "\n[The comparison](%s)\n", r->link);
}

/* ---- JUnit ---- */

static void put_junit_case(const struct gate_report *r, const struct json_node *rule, struct buf *to)
{
        const char *state = json_node_text(rule, "state");
        char sentence[SENTENCE_BYTES];
        _cleanup_buf_ struct buf text;

        buf_init(&text, to->max);
        buf_append_str(to, "  <testcase classname=\"cairn.gate\" name=\"");
        xml_append_text(to, json_node_text(rule, "rule"));
        if (strcmp(state, "passed") == 0) {
                buf_append_str(to, "\"/>\n");
                return;
        }
        put_report_text(r, &text);
        if (strcmp(state, "failed") == 0) {
                buf_append_str(to, "\">\n    <failure message=\"regression\">");
                xml_append_text(to, buf_cstr(&text) ? (const char *)text.data : "");
                buf_append_str(to, "</failure>\n  </testcase>\n");
        } else {
                buf_append_str(to, "\">\n    <skipped message=\"not judged: ");
                xml_append_text(to, *describe_reach(rule, sentence) ? sentence : "too few hosts or runs");
                buf_append_str(to, "\"/>\n  </testcase>\n");
        }
}

static void put_report_junit(const struct gate_report *r, struct buf *to)
{
        const struct json_node *rule;
        unsigned count = 0, failed = 0, unknown = 0;

        for (struct json_node_list l = json_node_list(r->answer, "rules"); (rule = json_node_next(&l)); count++) {
                failed += strcmp(json_node_text(rule, "state"), "failed") == 0;
                unknown += strcmp(json_node_text(rule, "state"), "unknown") == 0;
        }
        buf_printf(to,
                   "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"cairn gate\" tests=\"%u\" "
                   "failures=\"%u\" skipped=\"%u\">\n",
                   count, failed, unknown);
        for (struct json_node_list l = json_node_list(r->answer, "rules"); (rule = json_node_next(&l));)
                put_junit_case(r, rule, to);
        buf_append_str(to, "</testsuite>\n");
}

/* ---- SARIF ---- */

/* What a result is about: a function, or the total. */
struct sarif_subject {
        const char *name;
        const struct json_node *costs; /* has `before` and `after` */
        const char *before, *after;
        double percent;
        const struct gate_detail *detail; /* NULL: no place */
};

static void put_sarif_message(const struct gate_report *r, const struct sarif_subject *s, struct json_out *j)
{
        char change[32], before[40], after[40];
        _cleanup_buf_ struct buf text;

        buf_init(&text, j->buf->max);
        utf8_append_escaped(&text, s->name);
        buf_printf(&text, ": %s -> %s, %s", format_cost(r, s->costs, s->before, before),
                   format_cost(r, s->costs, s->after, after), format_gate_change(s->percent, change));
        json_out_object(j, "message");
        json_out_str(j, "text", buf_cstr(&text));
        json_out_object_end(j);
}

/* A place in a file, whose path is a reference of RFC 3986. */
static void put_sarif_place(const struct gate_detail *d, struct json_out *j)
{
        _cleanup_buf_ struct buf uri;

        buf_init(&uri, j->buf->max);
        buf_append_url_encoded(&uri, d->file, "/");
        json_out_object(j, NULL);
        json_out_object(j, "physicalLocation");
        json_out_object(j, "artifactLocation");
        json_out_str(j, "uri", buf_cstr(&uri));
        json_out_object_end(j);
        if (d->line) {
                json_out_object(j, "region");
                json_out_uint(j, "startLine", d->line);
                json_out_object_end(j);
        }
        json_out_object_end(j);
        json_out_object_end(j);
}

static void put_sarif_result(const struct gate_report *r, const struct sarif_subject *s, struct json_out *j)
{
        const struct gate_detail *d = s->detail;

        json_out_object(j, NULL);
        json_out_str(j, "ruleId", "regression");
        json_out_str(j, "level", "error");
        put_sarif_message(r, s, j);
        json_out_array(j, "locations");
        if (d && d->file)
                put_sarif_place(d, j);
        json_out_array_end(j);
        if (r->link)
                json_out_str(j, "hostedViewerUri", r->link);
        json_out_object_end(j);
}

/* A result for each failed rule of the total, then one for each failing function; at its place, or the first risen one.
 */
static void put_sarif_results(const struct gate_report *r, struct json_out *j)
{
        const struct json_node *rule;

        for (struct json_node_list l = json_node_list(r->answer, "rules"); (rule = json_node_next(&l));) {
                const struct sarif_subject s = { "total",
                                                 r->answer,
                                                 "total",
                                                 "total_after",
                                                 json_node_double(rule, "change_percent"),
                                                 r->are_details_risen && r->detail_count ? &r->details[0] : NULL };

                if (strcmp(json_node_text(rule, "state"), "failed") == 0 &&
                    starts_with(json_node_text(rule, "rule"), "total>"))
                        put_sarif_result(r, &s, j);
        }
        for (size_t i = 0; !r->are_details_risen && i < r->detail_count; i++) {
                const struct gate_detail *d = &r->details[i];
                const struct sarif_subject s = {
                        json_node_text(d->row, "function"),         d->row, "flat", "flat_after",
                        json_node_double(d->row, "change_percent"), d
                };

                put_sarif_result(r, &s, j);
        }
}

static void put_report_sarif(const struct gate_report *r, struct buf *to)
{
        struct json_out j;

        json_out_init(&j, to);
        json_out_object(&j, NULL);
        json_out_str(&j, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
        json_out_str(&j, "version", "2.1.0");
        json_out_array(&j, "runs");
        json_out_object(&j, NULL);
        json_out_object(&j, "tool");
        json_out_object(&j, "driver");
        json_out_str(&j, "name", "cairn gate");
        json_out_array(&j, "rules");
        json_out_object(&j, NULL);
        json_out_str(&j, "id", "regression");
        json_out_object_end(&j);
        json_out_array_end(&j);
        json_out_object_end(&j);
        json_out_object_end(&j);
        json_out_array(&j, "results");
        put_sarif_results(r, &j);
        json_out_array_end(&j);
        json_out_object_end(&j);
        json_out_array_end(&j);
        json_out_object_end(&j);
        buf_append_u8(to, '\n');
}

/* ---- JSON ---- */

/* The answer, with the verdict, the details and the link as further members. */
static void put_report_json(const struct gate_report *r, struct buf *to)
{
        static const char *const verdicts[] = { "passed", "failed", "unknown" };
        struct json_out j;
        size_t end = r->answer_size;

        while (end && r->answer_text[end - 1] != '}')
                end--;
        json_out_init(&j, to);
        json_out_object(&j, NULL);
        json_out_str(&j, "verdict", verdicts[gate_report_get_verdict(r)]);
        json_out_str(&j, "link", r->link);
        json_out_str(&j, "details_are", r->are_details_risen ? "risen" : "failures");
        json_out_array(&j, "details");
        for (size_t i = 0; i < r->detail_count; i++) {
                const struct gate_detail *d = &r->details[i];

                json_out_object(&j, NULL);
                json_out_str(&j, "function", json_node_text(d->row, "function"));
                json_out_str(&j, "file", d->file);
                json_out_uint(&j, "line", d->line);
                json_out_array(&j, "callers");
                for (size_t k = 0; k < d->caller_count; k++)
                        json_out_str(&j, NULL, d->callers[k]);
                json_out_array_end(&j);
                json_out_object_end(&j);
        }
        json_out_array_end(&j);
        json_out_object_end(&j);
        if (end && to->size && !to->failed) { /* continue the object with the members of the answer */
                to->size--;
                buf_append_u8(to, ',');
                buf_append(to, r->answer_text + 1, end - 1);
        }
        buf_append_u8(to, '\n');
}

enum status gate_report_find_format(const char *name, gate_report_format **ret, struct error *err)
{
        static const struct {
                const char *name;
                gate_report_format *put;
        } formats[] = {
                { "text", put_report_text },   { "markdown", put_report_markdown }, { "junit", put_report_junit },
                { "sarif", put_report_sarif }, { "json", put_report_json },
        };

        for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
                if (strcmp(formats[i].name, name) != 0)
                        continue;
                *ret = formats[i].put;
                return ST_OK;
        }
        return error_set(err, ST_USAGE, "format '%.40s' is not one of text, markdown, junit, sarif, json", name);
}
