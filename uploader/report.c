/* SPDX-License-Identifier: Apache-2.0 */
#include "uploader/report.h"

#include <inttypes.h>
#include <string.h>

#include "common/files/file.h"
#include "common/json/json_out.h"
#include "common/limits.h"
#include "common/text/utf8.h"

#define SIZE_TEXT_MAX 32

static const char *format_size(uint64_t bytes, char out[static SIZE_TEXT_MAX])
{
        static const char *const units[] = { "bytes", "KiB", "MiB", "GiB" };
        double v = (double)bytes;
        size_t unit = 0;

        while (v >= 1024 && unit < 3) {
                v /= 1024;
                unit++;
        }
        snprintf(out, SIZE_TEXT_MAX, unit ? "%.1f %s" : "%.0f %s", v, units[unit]);
        return out;
}

void report_init(struct report *r)
{
        *r = (struct report){ .is_terminal = isatty(STDERR_FILENO) };
        pthread_mutex_init(&r->lock, NULL);
}

static void clear_progress_line(struct report *r)
{
        if (r->progress_shown)
                fputs("\r\033[K", stderr);
        r->progress_shown = false;
}

static void count_report_problem(struct report *r, enum status code)
{
        if (!r->problems++)
                r->first_failure = code;
}

void report_add_problem(struct report *r, const struct error *why)
{
        pthread_mutex_lock(&r->lock);
        clear_progress_line(r);
        count_report_problem(r, why->code);
        fprintf(stderr, "cairn-upload: %s\n", PRINTABLE(why->text));
        pthread_mutex_unlock(&r->lock);
}

void report_add_unreadable(struct report *r, const struct error *why)
{
        pthread_mutex_lock(&r->lock);
        r->unreadable++;
        pthread_mutex_unlock(&r->lock);
        report_add_problem(r, why);
}

void report_add_note(struct report *r, const char *path, const char *text)
{
        pthread_mutex_lock(&r->lock);
        clear_progress_line(r);
        fprintf(stderr, "cairn-upload: '%s': %s\n", PRINTABLE(path), PRINTABLE(text));
        pthread_mutex_unlock(&r->lock);
}

static void print_report_item(const struct upload_item *item)
{
        char hex[BUILD_ID_HEX_MAX], unpacked[SIZE_TEXT_MAX], packed[SIZE_TEXT_MAX];
        const char *name = path_base(item->path);
        const bool has_symbols = item->quality != QUALITY_NONE;

        build_id_hex(&item->build_id, hex);
        if (item->state == UPLOAD_SENT)
                fprintf(stderr, "sent %s (%s, %s%s%s as %s) %s\n", name, upload_kind_name(item->kind),
                        has_symbols ? symbol_quality_name(item->quality) : "", has_symbols ? ", " : "",
                        format_size(item->size_bytes, unpacked), format_size(item->sent_bytes, packed), hex);
        else if (item->state == UPLOAD_THERE)
                fprintf(stderr, "already there: %s (%s) %s\n", name, upload_kind_name(item->kind), hex);
        else
                fprintf(stderr, "cairn-upload: %s\n", PRINTABLE(item->reason));
}

void report_add_item(struct report *r, const struct upload_item *item)
{
        pthread_mutex_lock(&r->lock);
        r->done++;
        if (item->state == UPLOAD_FAILED)
                count_report_problem(r, item->failure);
        if (!r->is_terminal || item->state == UPLOAD_FAILED) {
                clear_progress_line(r);
                print_report_item(item);
        }
        if (item->state == UPLOAD_SENT && item->partial[0]) {
                clear_progress_line(r);
                fprintf(stderr, "cairn-upload: '%s': its symbols are partial: %s\n", PRINTABLE(item->shown),
                        PRINTABLE(item->partial));
        }
        pthread_mutex_unlock(&r->lock);
}

void report_draw_progress(struct report *r)
{
        char moved[SIZE_TEXT_MAX], total[SIZE_TEXT_MAX];

        if (!r->is_terminal)
                return;
        pthread_mutex_lock(&r->lock);
        fprintf(stderr, "\r\033[Ksending: %zu of %zu files, %s of at most %s", r->done, r->total,
                format_size(atomic_load(&r->moved), moved), format_size(r->total_bytes, total));
        fflush(stderr);
        r->progress_shown = true;
        pthread_mutex_unlock(&r->lock);
}

struct item_totals {
        uint64_t sent, there, refused, failed, wanted;
        uint64_t sent_bytes, unpacked_bytes;
        const char *refused_why;
};

static struct item_totals count_item_states(const struct upload_list *list)
{
        struct item_totals t = { 0 };

        for (size_t i = 0; i < list->count; i++) {
                const struct upload_item *item = &list->items[i];

                t.sent += item->state == UPLOAD_SENT;
                t.there += item->state == UPLOAD_THERE;
                t.refused += item->state == UPLOAD_REFUSED;
                t.failed += item->state == UPLOAD_FAILED;
                t.wanted += item->state == UPLOAD_WANTED;
                if (item->state == UPLOAD_SENT) {
                        t.sent_bytes += item->sent_bytes;
                        t.unpacked_bytes += item->size_bytes;
                } else if (item->state == UPLOAD_REFUSED && !t.refused_why) {
                        t.refused_why = item->reason;
                }
        }
        return t;
}

static void print_skip_counts(const struct upload_skips *s, const struct item_totals *t)
{
        const struct {
                uint64_t count;
                const char *why;
        } parts[] = {
                { s->no_build_id, "without a build-id" },
                { s->no_symbols, "without symbols" },
                { s->duplicate, "duplicate" },
                { s->core_dump, "core dump" },
                { s->half, ".dwo, .dwp or dwz file by itself" },
                { s->broken, "not readable as ELF" },
                { t->refused, t->refused_why },
        };
        uint64_t sum = 0;
        const char *separator = "";

        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
                sum += parts[i].count;
        printf(", %" PRIu64 " skipped", sum);
        if (!sum)
                return;
        fputs(" (", stdout);
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
                if (!parts[i].count)
                        continue;
                printf("%s%" PRIu64 " %s", separator, parts[i].count, parts[i].why);
                separator = ", ";
        }
        fputs(")", stdout);
}

void report_print_summary(struct report *r, const struct upload_list *list, bool dry_run)
{
        struct item_totals t = count_item_states(list);
        char unpacked[SIZE_TEXT_MAX], packed[SIZE_TEXT_MAX];

        pthread_mutex_lock(&r->lock);
        clear_progress_line(r);
        if (dry_run)
                printf("%" PRIu64 " would be sent", t.wanted);
        else if (!t.sent && !t.wanted && !r->problems)
                fputs("nothing to send: 0 sent", stdout);
        else
                printf("%" PRIu64 " sent", t.sent);
        if (t.sent)
                printf(" (%s as %s)", format_size(t.unpacked_bytes, unpacked), format_size(t.sent_bytes, packed));
        printf(", %" PRIu64 " already there", t.there);
        print_skip_counts(&list->skips, &t);
        if (r->unreadable)
                printf(", %" PRIu64 " not readable", r->unreadable);
        if (t.failed)
                printf(", %" PRIu64 " failed", t.failed);
        if (r->stripped)
                printf(", %" PRIu64 " stripped", r->stripped);
        if (t.wanted && !dry_run)
                printf(", %" PRIu64 " not tried", t.wanted);
        putchar('\n');
        fflush(stdout);
        pthread_mutex_unlock(&r->lock);
}

static const char *item_state_name(enum upload_state state, bool dry_run)
{
        switch (state) {
        case UPLOAD_THERE:
                return "already_there";
        case UPLOAD_REFUSED:
                return "refused";
        case UPLOAD_SENT:
                return "sent";
        case UPLOAD_FAILED:
                return "failed";
        default:
                return dry_run ? "would_send" : "not_tried";
        }
}

static void write_item_json(struct json_out *j, const struct upload_item *item, bool dry_run)
{
        char hex[BUILD_ID_HEX_MAX];

        json_out_object(j, NULL);
        json_out_str(j, "path", item->shown);
        json_out_str(j, "build_id", build_id_hex(&item->build_id, hex));
        json_out_str(j, "kind", upload_kind_name(item->kind));
        json_out_str(j, "quality", symbol_quality_name(item->quality));
        json_out_str(j, "state", item_state_name(item->state, dry_run));
        json_out_str(j, "reason", item->reason);
        if (item->partial[0])
                json_out_str(j, "partial", item->partial);
        if (item->state == UPLOAD_SENT) {
                json_out_uint(j, "size_bytes", item->size_bytes);
                json_out_uint(j, "sent_bytes", item->sent_bytes);
        }
        json_out_object_end(j);
}

void report_print_json(struct report *r, const struct upload_list *list, const char *server, bool dry_run)
{
        struct item_totals t = count_item_states(list);
        _cleanup_buf_ struct buf b;
        struct json_out j;

        buf_init(&b, GiB(1));
        json_out_init(&j, &b);
        json_out_object(&j, NULL);
        json_out_str(&j, "server", server);
        json_out_uint(&j, "sent", t.sent);
        json_out_uint(&j, "already_there", t.there);
        json_out_uint(&j, "refused", t.refused);
        json_out_uint(&j, "failed", t.failed);
        json_out_uint(&j, "unreadable", r->unreadable);
        json_out_uint(&j, dry_run ? "would_send" : "not_tried", t.wanted);
        json_out_uint(&j, "sent_bytes", t.sent_bytes);
        json_out_uint(&j, "stripped", r->stripped);
        json_out_object(&j, "skipped");
        json_out_uint(&j, "no_build_id", list->skips.no_build_id);
        json_out_uint(&j, "no_symbols", list->skips.no_symbols);
        json_out_uint(&j, "duplicate", list->skips.duplicate);
        json_out_uint(&j, "core_dump", list->skips.core_dump);
        json_out_uint(&j, "broken", list->skips.broken);
        json_out_uint(&j, "half", list->skips.half);
        json_out_object_end(&j);
        json_out_array(&j, "files");
        for (size_t i = 0; i < list->count; i++)
                write_item_json(&j, &list->items[i], dry_run);
        json_out_array_end(&j);
        json_out_object_end(&j);
        pthread_mutex_lock(&r->lock);
        clear_progress_line(r);
        puts(buf_cstr(&b) ? buf_cstr(&b) : "{}");
        fflush(stdout);
        pthread_mutex_unlock(&r->lock);
}
