/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a skeleton to its other half. The reader's main context is set up for
 * the other half, with what the skeleton says for it; so everything that reads
 * units afterwards need not know that there are two.
 *
 * A companion belongs to the result it was opened for, which may be emptied by
 * another thread: a reader keeps nothing of it once its unit is read.
 */
#include <unistd.h>

#include "dwarf/reader.h"

#define ATTEMPTS_MAX 16

static bool is_of_object(const struct dwarf_reader *r, const struct dwarf_context *x)
{
        return x->file == &r->object->main || x->file == &r->object->alt;
}

void dwarf_reader_forget_companions(struct dwarf_reader *r)
{
        if (!r->main.file || is_of_object(r, &r->main))
                return;
        dwarf_context_forget(&r->main);
        dwarf_context_forget(&r->types);
        for (size_t i = 0; i < DWARF_OTHER_CONTEXTS; i++)
                if (r->others[i].file && !is_of_object(r, &r->others[i]))
                        dwarf_context_forget(&r->others[i]);
}

static enum status damage_of(const struct dwarf_file *file)
{
        return file->sections.damage.code ? file->sections.damage.code : file->units.damage.code;
}

/* Before version 5 only the unit's own DIE has the id. */
static enum status enter_half(struct dwarf_reader *r, struct dwarf_file *file, uint64_t id)
{
        enum status why = damage_of(file);

        for (size_t i = 0; i < file->units.count; i++) {
                const struct dwarf_unit *u = &file->units.items[i];
                enum status st;

                if (u->format.version >= 5 ? u->type != DW_UT_split_compile || u->signature != id : u->type != DW_UT_none)
                        continue;
                st = dwarf_context_enter(&r->main, r->object, file, u);
                if (!st && r->main.dwo_id == id)
                        return ST_OK;
                if (st == ST_NO_MEMORY)
                        return st;
                why = st ? st : why;
        }
        return why ? why : ST_NOT_FOUND;
}

/* Takes the companion. */
static enum status use(struct dwarf_reader *r, struct dwarf_code *code, const struct dwarf_context *skeleton,
                       struct dwarf_companion *c)
{
        enum status st = ST_TOO_BIG;

        if (dwarf_object_allow(r->object, &c->file.sections))
                st = enter_half(r, &c->file, skeleton->dwo_id);
        if (st) {
                dwarf_reader_forget_companions(r);
                dwarf_companion_close(c);
                return st;
        }
        dwarf_context_inherit(&r->main, skeleton);
        code->companion = c;
        if (!code->damage)
                code->damage = damage_of(&c->file);
        return ST_OK;
}

static enum status try_package(struct dwarf_reader *r, struct dwarf_code *code, const struct dwarf_context *skeleton)
{
        const struct dwarf_package *package = r->object->companions.package;
        struct dwarf_companion *c;
        enum status st = package ? dwarf_companion_from_package(package, skeleton->dwo_id, &c) : ST_NOT_FOUND;

        return st ? st : use(r, code, skeleton, c);
}

static enum status try_files(struct dwarf_reader *r, struct dwarf_code *code, const struct dwarf_context *skeleton)
{
        const struct dwarf_dwo_source *from = &r->object->companions.dwo;
        enum status why = ST_NOT_FOUND;

        for (unsigned attempt = 0; from->open && attempt < ATTEMPTS_MAX; attempt++) {
                struct dwarf_companion *c;
                enum status st;
                int fd;

                if (from->open(from->context, skeleton->dwo_id, skeleton->directory, skeleton->dwo_name, attempt, &fd))
                        break;
                st = dwarf_companion_from_fd(fd, &c);
                close(fd);
                if (!st)
                        st = use(r, code, skeleton, c);
                if (!st || st == ST_NO_MEMORY)
                        return st;
                if (st != ST_NOT_FOUND)
                        why = st;
        }
        return why;
}

enum status dwarf_reader_enter_companion(struct dwarf_reader *r, struct dwarf_code *code)
{
        const struct dwarf_context skeleton = r->main; /* its abbreviations are not looked at */
        enum status st = try_package(r, code, &skeleton);

        if (st && st != ST_NO_MEMORY) {
                enum status of_files = try_files(r, code, &skeleton);

                st = of_files == ST_NOT_FOUND ? st : of_files;
        }
        if (!st || st == ST_NO_MEMORY)
                return st;
        code->misses_companion = true;
        if (r->main.file != skeleton.file || r->main.unit != skeleton.unit) {
                enum status back = dwarf_context_enter(&r->main, r->object, skeleton.file, skeleton.unit);

                if (back)
                        return back;
        }
        return st == ST_NOT_FOUND ? ST_OK : st;
}

enum status dwarf_reader_return_to_companion(struct dwarf_reader *r, const struct dwarf_code *code)
{
        const struct dwarf_context skeleton = r->main; /* its abbreviations are not looked at */
        enum status st = enter_half(r, &code->companion->file, skeleton.dwo_id);

        if (!st)
                dwarf_context_inherit(&r->main, &skeleton);
        return st;
}
