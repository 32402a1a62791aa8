/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/unwinding/unwind_table_command.h"

#include <inttypes.h>

#include "common/config/options.h"
#include "common/json/json_out.h"
#include "common/limits.h"
#include "common/text/utf8.h"
#include "unwind-tables/unwind_table.h"

#define OUT_BYTES KiB(256)

static const struct usage USAGE = {
        .synopsis = "cairn-agent unwind-table FILE [--json] [--statistics]",
        .about = "Prints the unwind table that the agent builds for an ELF file: the rule that leads to the caller's\n"
                 "frame from each address on, and the size of the table.",
        .examples = "  cairn-agent unwind-table /usr/bin/python3\n"
                    "  cairn-agent unwind-table --json --statistics /lib/x86_64-linux-gnu/libc.so.6",
};

struct printer {
        const struct unwind_table *t;
        const struct unwind_rules *rules;
        const struct elf_image *img;
        struct buf out;
        struct json_out json;
        bool as_json;
};

static void flush_output(struct printer *p)
{
        fwrite(p->out.data, 1, p->out.size, stdout);
        buf_clear(&p->out);
}

/* Register names are short; the buffer is the caller's. */
static const char *format_base(const struct printer *p, uint32_t base, char *to, size_t size)
{
        static const char *const X86[UNWIND_SCRATCH_MAX] = { "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
                                                             "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15" };

        if (base == UNWIND_BASE_SP)
                return "sp";
        if (base == UNWIND_BASE_FP)
                return "fp";
        if (base == UNWIND_BASE_LR)
                return "lr";
        if (p->img->machine == EM_X86_64)
                return X86[(base - UNWIND_BASE_SCRATCH) % UNWIND_SCRATCH_MAX];
        snprintf(to, size, "x%u", (unsigned)(base - UNWIND_BASE_SCRATCH));
        return to;
}

static void format_cfa(const struct printer *p, const struct unwind_rule *r, char *to, size_t size)
{
        char name[8];

        switch (r->cfa) {
        case UNWIND_CFA_REGISTER:
                snprintf(to, size, "%s%+d", format_base(p, r->base, name, sizeof name), r->cfa_offset);
                break;
        case UNWIND_CFA_DEREF:
                snprintf(to, size, "*(%s%+d)%+d", format_base(p, r->base, name, sizeof name), r->cfa_offset,
                         r->cfa_add);
                break;
        case UNWIND_CFA_PLT:
                snprintf(to, size, "sp%+d+8*(pc&15>=%d)", r->cfa_offset, r->cfa_add);
                break;
        case UNWIND_CFA_STOP:
                snprintf(to, size, "stop");
                break;
        case UNWIND_CFA_UNKNOWN:
                snprintf(to, size, "unknown:%s", unwind_reason_to_text(r->reason));
                break;
        default:
                snprintf(to, size, "none");
        }
}

static void format_register_rule(const struct printer *p, uint8_t where, int32_t offset, char *to, size_t size)
{
        char name[8];

        switch (where) {
        case UNWIND_AT_CFA:
                snprintf(to, size, "*(cfa%+d)", offset);
                break;
        case UNWIND_AT_SP:
                snprintf(to, size, "*(sp%+d)", offset);
                break;
        case UNWIND_AT_FP:
                snprintf(to, size, "*(fp%+d)", offset);
                break;
        case UNWIND_CFA_PLUS:
                snprintf(to, size, "cfa%+d", offset);
                break;
        case UNWIND_IN_REGISTER:
                snprintf(to, size, "%s", format_base(p, (uint32_t)offset, name, sizeof name));
                break;
        default:
                snprintf(to, size, "%s", where == UNWIND_SAME ? "same" : "undefined");
        }
}

static void print_unwind_row(struct printer *p, uint64_t address, uint16_t index)
{
        const struct unwind_rule *r = &p->rules->items[index];
        bool steps = r->cfa == UNWIND_CFA_REGISTER || r->cfa == UNWIND_CFA_DEREF || r->cfa == UNWIND_CFA_PLT;
        char cfa[64], fp[32] = "", ra[32] = "";

        format_cfa(p, r, cfa, sizeof cfa);
        if (steps) {
                format_register_rule(p, r->fp, r->fp_offset, fp, sizeof fp);
                format_register_rule(p, r->ra, r->ra_offset, ra, sizeof ra);
        }
        if (p->as_json) {
                json_out_object(&p->json, NULL);
                json_out_uint(&p->json, "address", address);
                json_out_uint(&p->json, "rule", index);
                json_out_str(&p->json, "cfa", cfa);
                if (steps) {
                        json_out_str(&p->json, "fp", fp);
                        json_out_str(&p->json, "ra", ra);
                        json_out_bool(&p->json, "signal", (r->flags & UNWIND_FLAG_SIGNAL) != 0);
                }
                json_out_object_end(&p->json);
        } else {
                buf_printf(&p->out, "%016" PRIx64 " %5u  %-24s %-12s %-12s%s\n", address, index, cfa, fp, ra,
                           r->flags & UNWIND_FLAG_SIGNAL ? " signal" : "");
        }
        if (p->out.size > OUT_BYTES / 2)
                flush_output(p);
}

static void print_unwind_rows(struct printer *p)
{
        if (p->as_json)
                json_out_array(&p->json, "rows");
        else
                buf_printf(&p->out, "%-16s %5s  %-24s %-12s %s\n", "address", "rule", "cfa", "fp", "ra");
        for (size_t i = 0; i < p->t->page_count; i++) {
                const struct unwind_page *page = &p->t->pages[i];

                for (uint32_t k = 0; k < page->row_count; k++) {
                        const struct unwind_row *row = &p->t->rows[page->first_row + k];

                        print_unwind_row(p, (page->number << UNWIND_PAGE_BITS) + row->offset, row->rule);
                }
        }
        if (p->as_json)
                json_out_array_end(&p->json);
}

struct figure {
        const char *name;
        uint64_t value;
};

static void print_table_statistics(struct printer *p)
{
        const struct unwind_table *t = p->t;
        const struct unwind_stats *s = &t->stats;
        uint64_t bytes = t->row_count * sizeof *t->rows + t->page_count * sizeof *t->pages;
        const struct figure figures[] = {
                { "rows", t->row_count },
                { "pages", t->page_count },
                { "unique_rules", s->rules },
                { "table_bytes", bytes },
                { "rule_bytes", s->rules * sizeof(struct unwind_rule) },
                { "functions", s->functions },
                { "gap_rows", s->gap_rows },
                { "stop_rows", s->stop_rows },
                { "unknown_rows", unwind_stats_count_unknown(s) },
                { "fdes", s->fdes },
                { "fdes_discarded", s->fdes_discarded },
                { "fdes_outside_code", s->fdes_outside },
                { "fdes_double", s->fdes_double },
                { "fdes_unreadable", s->fdes_unreadable },
                { "trampolines", s->trampolines },
                { "entries", s->entries },
        };
        double per_row = t->row_count ? (double)bytes / (double)t->row_count : 0;

        if (p->as_json)
                json_out_object(&p->json, "statistics");
        for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
                if (p->as_json)
                        json_out_uint(&p->json, figures[i].name, figures[i].value);
                else
                        buf_printf(&p->out, "# %s %" PRIu64 "\n", figures[i].name, figures[i].value);
        }
        if (p->as_json) {
                json_out_double(&p->json, "bytes_per_row", per_row);
                json_out_object(&p->json, "unknown");
        } else {
                buf_printf(&p->out, "# bytes_per_row %.2f\n", per_row);
        }
        for (size_t i = 1; i < UNWIND_REASON_COUNT; i++) {
                if (p->as_json)
                        json_out_uint(&p->json, unwind_reason_to_text(i), s->unknown_rows[i]);
                else if (s->unknown_rows[i])
                        buf_printf(&p->out, "# unknown %s %" PRIu64 "\n", unwind_reason_to_text(i), s->unknown_rows[i]);
        }
        if (p->as_json) {
                json_out_object_end(&p->json);
                json_out_object_end(&p->json);
        }
}

static enum status print_unwind_table(const char *path, bool as_json, bool statistics_only, struct error *err)
{
        _cleanup_elf_image_ struct elf_image img = { 0 };
        _cleanup_unwind_rules_ struct unwind_rules rules = { 0 };
        _cleanup_unwind_table_ struct unwind_table t = { 0 };
        struct printer p = { .t = &t, .rules = &rules, .img = &img, .as_json = as_json };
        enum status st = elf_image_open(path, &img, err);

        if (!st)
                st = unwind_rules_init(&rules, err);
        if (!st)
                st = unwind_table_build(&img, &rules, &t, err);
        if (st)
                return st;
        buf_init(&p.out, OUT_BYTES);
        json_out_init(&p.json, &p.out);
        if (as_json) {
                json_out_object(&p.json, NULL);
                json_out_str(&p.json, "file", path);
        }
        if (!statistics_only)
                print_unwind_rows(&p);
        print_table_statistics(&p);
        if (as_json) {
                json_out_object_end(&p.json);
                buf_append_str(&p.out, "\n");
        }
        flush_output(&p);
        st = buf_status(&p.out, err, "the output");
        buf_deinit(&p.out);
        return st;
}

int run_unwind_table_command(int argc, char **argv)
{
        bool json = false, statistics = false;
        const struct option_spec specs[] = {
                OPTION_FLAG("json", 0, &json, "print one JSON object"),
                OPTION_FLAG("statistics", 0, &statistics, "print the figures only"),
                OPTION_END,
        };
        struct error err = { 0 };
        enum status st = options_parse(&USAGE, specs, &argc, &argv, &err);

        if (!st && argc != 1)
                st = error_set(&err, ST_USAGE, "unwind-table takes one file (try --help)");
        if (!st)
                st = print_unwind_table(argv[0], json, statistics, &err);
        if (st)
                fprintf(stderr, "cairn-agent: %s\n", PRINTABLE(err.text));
        return st ? exit_code_from_status(st) : EXIT_DONE;
}
