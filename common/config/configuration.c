/* SPDX-License-Identifier: Apache-2.0 */
/*
 * configuration_parse() applies the sources from the strongest to the weakest: command line, environment, file,
 * credentials. `sources` has one entry per option; a source sets an option only if its entry is still OPTION_DEFAULT,
 * so nothing is overwritten. A deprecated name of an option has the same target, and mark_source() marks all names of
 * a target.
 *
 * Values of the environment and the file are set by apply_value(), which puts their place in front of its errors. All
 * values are borrowed: from argv, the file, or c->environment, which has copies of variables and the paths of
 * credentials.
 *
 * Order: properties of options, the sources in the order above, configuration_parse(), the report (--print-config,
 * --check-config), changes at a reload.
 */
#include "common/config/configuration.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/json/json_out.h"
#include "common/limits.h"
#include "common/memory/buf.h"
#include "common/text/number_text.h"
#include "common/text/utf8.h"

#define HIDDEN "HIDDEN"
#define CREDENTIAL_PREFIX "cairn."

/* Options for a single run, not settings. */
static const char *const command_line_only[] = { "config",  "check-config", "print-config", "version", "doctor", "json",
                                                 "dry-run", "force",        "once",         "output",  "strip" };

/* Options that name output files; a credential is an input. */
static const char *const written_files[] = { "port-file", "metrics-file" };

static bool is_command_line_only(const char *name)
{
        for (size_t i = 0; i < sizeof command_line_only / sizeof *command_line_only; i++)
                if (strcmp(command_line_only[i], name) == 0)
                        return true;
        return false;
}

static bool takes_credential(const struct option_spec *s)
{
        for (size_t i = 0; i < sizeof written_files / sizeof *written_files; i++)
                if (strcmp(written_files[i], s->name) == 0)
                        return false;
        return s->kind == OPTION_KIND_STRING && strcmp(s->value_name, "FILE") == 0 && !is_command_line_only(s->name);
}

static size_t count_specs(const struct option_spec *specs)
{
        size_t n = 0;

        while (specs[n].kind != OPTION_KIND_END)
                n++;
        return n;
}

/* A deprecated name of an option has the same target. */
static void mark_source(struct configuration *c, const struct option_spec *specs, size_t at, enum option_source source)
{
        for (size_t i = 0; specs[i].kind != OPTION_KIND_END; i++)
                if (specs[i].target == specs[at].target)
                        c->sources[i] = source;
}

static void variable_of(const char *option, char *ret, size_t size)
{
        int n = snprintf(ret, size, "CAIRN_%s", option);

        for (int i = 0; i < n && (size_t)i < size - 1; i++)
                ret[i] = ret[i] == '-' ? '_' : (char)toupper((unsigned char)ret[i]);
}

static bool parse_switch(const char *text, bool *ret)
{
        static const char *const on[] = { "true", "yes", "on", "1" }, *const off[] = { "false", "no", "off", "0" };

        for (size_t i = 0; i < sizeof on / sizeof *on; i++) {
                if (strcasecmp(text, on[i]) == 0 || strcasecmp(text, off[i]) == 0) {
                        *ret = strcasecmp(text, on[i]) == 0;
                        return true;
                }
        }
        return false;
}

/* Apply a value from the file or the environment; where is its source, for messages. */
static enum status apply_value(const struct option_spec *s, const char *value, const char *where, struct error *err)
{
        bool on;

        if (s->kind != OPTION_KIND_FLAG) {
                enum status st = options_set_value(s, value, err);

                return st ? error_prefix(err, st, "%s", where) : ST_OK;
        }
        if (!parse_switch(value, &on))
                return error_set(err, ST_USAGE, "%s: '%s' takes true or false, not '%s'", where, s->name,
                                 PRINTABLE(value));
        *(bool *)s->target = on;
        return ST_OK;
}

static enum status apply_variable(struct configuration *c, const struct option_spec *s, const char *variable,
                                  const char *text, struct error *err)
{
        char *copy = strdup(text), *rest = copy;
        enum status st = ST_OK;

        if (!copy)
                return error_no_memory(err);
        c->environment[c->environment_count++] = copy;
        if (s->kind != OPTION_KIND_LIST)
                return apply_value(s, copy, variable, err);
        while (!st && rest) {
                char *line = strsep(&rest, "\n");

                if (*line)
                        st = apply_value(s, line, variable, err);
        }
        return st;
}

static enum status apply_environment(struct configuration *c, const struct option_spec *specs, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; specs[i].kind != OPTION_KIND_END && !st; i++) {
                char variable[80];
                const char *text;

                variable_of(specs[i].name, variable, sizeof variable);
                if (c->sources[i] != OPTION_DEFAULT || is_command_line_only(specs[i].name))
                        continue;
                text = getenv(variable);
                if (!text)
                        continue;
                mark_source(c, specs, i, OPTION_FROM_ENVIRONMENT);
                st = apply_variable(c, &specs[i], variable, text, err);
        }
        return st;
}

static enum status apply_entry(struct configuration *c, const struct option_spec *specs,
                               const struct config_entry *entry, struct error *err)
{
        _cleanup_buf_ struct buf where;
        enum status st = ST_OK;
        size_t i = 0;

        buf_init(&where, KiB(64));
        buf_printf(&where, "%s:%zu", c->file.path, entry->line);
        while (specs[i].kind != OPTION_KIND_END && strcmp(specs[i].name, entry->name) != 0)
                i++;
        if (specs[i].kind == OPTION_KIND_END)
                return error_set(err, ST_USAGE, "%s: '%s' has no option '%s' (--help lists them, without the dashes)",
                                 buf_cstr(&where), c->section, PRINTABLE(entry->name));
        if (is_command_line_only(entry->name))
                return error_set(err, ST_USAGE, "%s: '%s' belongs on the command line", buf_cstr(&where), entry->name);
        if (specs[i].kind != OPTION_KIND_LIST && entry->count != 1)
                return error_set(err, ST_USAGE, "%s: '%s' takes one value, not a list", buf_cstr(&where), entry->name);
        if (c->sources[i] == OPTION_FROM_FILE)
                return error_set(err, ST_USAGE, "%s: '%s' is set under an older name too", buf_cstr(&where),
                                 entry->name);
        if (c->sources[i] != OPTION_DEFAULT)
                return ST_OK;
        for (size_t v = 0; v < entry->count && !st; v++)
                st = apply_value(&specs[i], entry->values[v], buf_cstr(&where), err);
        mark_source(c, specs, i, OPTION_FROM_FILE);
        c->lines[i] = entry->line;
        return st;
}

static enum status apply_file(struct configuration *c, const struct option_spec *specs, struct error *err)
{
        const char *named = c->path ? c->path : getenv("CAIRN_CONFIG");
        struct error why = { 0 };
        enum status st;

        if (named && !*named)
                return ST_OK;
        st = config_section_read(named ? named : CONFIGURATION_FILE, c->section, &c->file, &why);
        c->is_unreadable = st == ST_OS && why.os_errno == EACCES && !named;
        if (!named && (st == ST_NOT_FOUND || c->is_unreadable))
                return ST_OK;
        if (st && err)
                *err = why;
        for (size_t i = 0; i < c->file.count && !st; i++)
                st = apply_entry(c, specs, &c->file.entries[i], err);
        return st;
}

/* @param ret  its path, owned; NULL if it does not exist. Source: systemd.exec(5), Credentials. */
static enum status find_credential(const char *dir, const char *option, char **ret, struct error *err)
{
        _cleanup_free_ char *path = NULL;

        if (asprintf(&path, "%s/" CREDENTIAL_PREFIX "%s", dir, option) < 0)
                return error_no_memory(err);
        if (access(path, R_OK) == 0)
                *ret = steal_ptr(path);
        else if (errno != ENOENT) /* ignoring it could, for example, start a service without tokens */
                return error_os(err, errno, "cannot read the credential '%s'", path);
        else
                *ret = NULL;
        return ST_OK;
}

static enum status apply_credentials(struct configuration *c, const struct option_spec *specs, struct error *err)
{
        const char *dir = getenv("CREDENTIALS_DIRECTORY");
        enum status st = ST_OK;

        for (size_t i = 0; dir && *dir && specs[i].kind != OPTION_KIND_END && !st; i++) {
                char *path = NULL;

                if (!takes_credential(&specs[i]) || c->sources[i] != OPTION_DEFAULT)
                        continue;
                st = find_credential(dir, specs[i].name, &path, err);
                if (!path)
                        continue;
                c->environment[c->environment_count++] = path;
                *(const char **)specs[i].target = path;
                mark_source(c, specs, i, OPTION_FROM_CREDENTIAL);
        }
        return st;
}

enum status configuration_parse(struct configuration *c, const struct usage *usage, const struct option_spec *specs,
                                int *argc, char ***argv, struct error *err)
{
        size_t n = count_specs(specs);
        _cleanup_free_ bool *given = calloc(n + 1, sizeof *given);
        enum status st;

        c->sources = calloc(n + 1, sizeof *c->sources);
        c->lines = calloc(n + 1, sizeof *c->lines);
        c->environment = calloc(n + 1, sizeof *c->environment);
        if (!given || !c->sources || !c->lines || !c->environment)
                return error_no_memory(err);
        st = options_parse_given(usage, specs, argc, argv, given, err);
        for (size_t i = 0; i < n; i++)
                if (given[i])
                        mark_source(c, specs, i, OPTION_FROM_COMMAND_LINE);
        if (!st)
                st = apply_environment(c, specs, err);
        if (!st)
                st = apply_file(c, specs, err);
        return st ? st : apply_credentials(c, specs, err);
}

/* Append a URL without user and password, which may be a token: the output is shown to others. */
static void put_shown_text(struct buf *out, const char *text)
{
        const char *scheme = strstr(text, "://"), *host = scheme ? scheme + 3 : text;
        const char *at = scheme ? memrchr(host, '@', strcspn(host, "/?#")) : NULL;
        _cleanup_buf_ struct buf shown;

        buf_init(&shown, strlen(text) + sizeof HIDDEN);
        buf_append(&shown, text, at ? (size_t)(host - text) : strlen(text));
        if (at) {
                buf_append_str(&shown, HIDDEN);
                buf_append_str(&shown, at);
        }
        json_out_quote(out, buf_cstr(&shown) ? buf_cstr(&shown) : "", shown.size);
}

static void put_option_value(struct buf *out, const struct option_spec *s)
{
        const struct option_list *list = s->target;
        char number[NUMBER_TEXT_SIZE];
        const char *text;
        uint64_t n;

        switch (s->kind) {
        case OPTION_KIND_FLAG:
                buf_append_str(out, *(const bool *)s->target ? "true" : "false");
                break;
        case OPTION_KIND_UINT:
                buf_printf(out, "%" PRIu64, *(const uint64_t *)s->target);
                break;
        case OPTION_KIND_SIZE:
                buf_append_str(out, format_bytes(*(const uint64_t *)s->target, number));
                break;
        case OPTION_KIND_AGE:
                n = *(const uint64_t *)s->target;
                buf_append_str(out, n ? format_age(n, number) : "any");
                break;
        case OPTION_KIND_CHOICE:
                buf_append_str(out, s->choices[*(const unsigned *)s->target]);
                break;
        case OPTION_KIND_STRING:
                text = *(const char *const *)s->target;
                put_shown_text(out, text ? text : "");
                break;
        case OPTION_KIND_LIST:
                buf_append_str(out, "[");
                for (size_t i = 0; i < list->count; i++) {
                        buf_append_str(out, i ? ", " : "");
                        put_shown_text(out, list->items[i]);
                }
                buf_append_str(out, "]");
                break;
        case OPTION_KIND_END:
                break;
        }
}

/* An unset option whose default is not a valid value (NULL, no list, 0) is printed as a comment, so that the output can
 * be used as a file. */
static bool has_value(const struct option_spec *s, enum option_source source)
{
        if (s->kind == OPTION_KIND_STRING)
                return *(const char *const *)s->target;
        if (s->kind == OPTION_KIND_LIST)
                return ((const struct option_list *)s->target)->count;
        if (s->kind != OPTION_KIND_UINT && s->kind != OPTION_KIND_SIZE)
                return true;
        return source != OPTION_DEFAULT || *(const uint64_t *)s->target;
}

static void put_option(struct buf *out, const struct configuration *c, const struct option_spec *specs, size_t i)
{
        char variable[80];

        variable_of(specs[i].name, variable, sizeof variable);
        if (!has_value(&specs[i], c->sources[i])) {
                buf_printf(out, "  # %s:  # %s\n", specs[i].name, specs[i].help);
                return;
        }
        buf_printf(out, "  %s: ", specs[i].name);
        put_option_value(out, &specs[i]);
        switch (c->sources[i]) {
        case OPTION_DEFAULT:
                buf_append_str(out, "  # default\n");
                break;
        case OPTION_FROM_CREDENTIAL:
                buf_printf(out, "  # credential " CREDENTIAL_PREFIX "%s\n", specs[i].name);
                break;
        case OPTION_FROM_FILE:
                buf_printf(out, "  # %s:%zu\n", c->file.path, c->lines[i]);
                break;
        case OPTION_FROM_ENVIRONMENT:
                buf_printf(out, "  # %s\n", variable);
                break;
        case OPTION_FROM_COMMAND_LINE:
                buf_append_str(out, "  # command line\n");
                break;
        }
}

/* The first option with this target: the others are its deprecated names. */
static bool is_first_of_target(const struct option_spec *specs, size_t at)
{
        for (size_t i = 0; i < at; i++)
                if (specs[i].target == specs[at].target)
                        return false;
        return true;
}

bool configuration_report(const struct configuration *c, const struct option_spec *specs)
{
        _cleanup_buf_ struct buf out;

        buf_init(&out, MiB(16));
        if (!c->print && !c->check)
                return false;
        if (c->print) {
                buf_printf(&out, "%s:\n", c->section);
                for (size_t i = 0; specs[i].kind != OPTION_KIND_END; i++)
                        if (!is_command_line_only(specs[i].name) && is_first_of_target(specs, i))
                                put_option(&out, c, specs, i);
        } else if (c->file.path) {
                buf_printf(&out, "the configuration is valid: %s, section '%s', %zu option%s\n", c->file.path,
                           c->section, c->file.count, c->file.count == 1 ? "" : "s");
        } else if (c->is_unreadable) {
                buf_printf(&out,
                           "the configuration is valid without " CONFIGURATION_FILE ", which this user may not read\n");
        } else {
                buf_printf(&out, "the configuration is valid; there is no configuration file\n");
        }
        fwrite(out.data, 1, out.size, stdout);
        return true;
}

static bool is_reloadable_option(const char *const *names, const char *name)
{
        for (; *names; names++)
                if (strcmp(*names, name) == 0)
                        return true;
        return false;
}

size_t configuration_list_changes(const struct parsed_again *p, struct option_change *ret)
{
        size_t count = 0;

        for (size_t i = 0; p->fresh[i].kind != OPTION_KIND_END; i++) {
                bool is_reloadable = is_reloadable_option(p->reloadable, p->fresh[i].name);
                const struct option_spec *before = is_reloadable ? &p->current[i] : &p->running[i];

                if (is_first_of_target(p->fresh, i) && !option_values_are_equal(&p->fresh[i], before))
                        ret[count++] = (struct option_change){ p->fresh[i].name, !is_reloadable };
        }
        return count;
}

enum status configuration_check_reread(const struct configuration *before, const struct configuration *fresh,
                                       struct error *err)
{
        if (fresh->is_unreadable && !before->is_unreadable)
                return error_os(err, EACCES, "cannot open '" CONFIGURATION_FILE "'");
        if (before->file.path && !fresh->file.path)
                return error_set(err, ST_NOT_FOUND, "'%s' is gone", before->file.path);
        if (fresh->file.is_empty && !before->file.is_empty)
                return error_set(err, ST_USAGE, "'%s' is empty: it may be about to be written", fresh->file.path);
        return ST_OK;
}

bool configuration_has(const struct configuration *c, size_t i)
{
        return c->sources[i] != OPTION_DEFAULT;
}

void configuration_deinit(struct configuration *c)
{
        config_section_deinit(&c->file);
        for (size_t i = 0; i < c->environment_count; i++)
                free(c->environment[i]);
        free(c->environment);
        free(c->sources);
        free(c->lines);
}
