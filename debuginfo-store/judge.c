/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The identity of a file is its GNU build-id, else its Go build-id, else its
 * htlhash; all others of these that it has are aliases. A supplementary file
 * and a .dwo file have ids of their own. A package of split DWARF has none: it
 * is under the build-id of the file it belongs to, as its uploader says, and
 * if that file is here, it must ask for units that the package has. As long as
 * the file is not here the package has no quality, so that one that is known to
 * fit replaces it.
 */
#include "debuginfo-store/judge.h"

#include <string.h>
#include <unistd.h>

#include "elf-image/elf_identity.h"

void judged_deinit(struct judged *j)
{
        verified_deinit(&j->found);
}

static void add_alias(struct judged *j, const struct build_id *id, bool is_claimed)
{
        if (!id->size || build_id_equal(id, &j->build_id))
                return;
        for (size_t i = 0; i < j->links.alias_count; i++)
                if (build_id_equal(&j->links.aliases[i].id, id))
                        return;
        j->links.aliases[j->links.alias_count++] = (struct object_alias){ *id, is_claimed };
}

/* The hash of the file as it is executed: of what was split it says nothing. */
static enum status find_identity(struct judged *j, const struct object_claim *claim, int fd, uint64_t size, struct error *err)
{
        struct build_id htlhash = { 0 };
        enum status st = j->found.has_code ? elf_htlhash(fd, size, &htlhash, err) : ST_OK;

        if (st)
                return st;
        j->build_id = j->found.build_id.size ? j->found.build_id : htlhash;
        add_alias(j, &j->found.go_id, false);
        add_alias(j, &htlhash, false);
        if ((claim->kind == OBJECT_DEBUGINFO || claim->kind == OBJECT_SYMBOLS) && !htlhash.size)
                add_alias(j, &claim->htlhash, true);
        return ST_OK;
}

static enum status check_identity(struct judged *j, const struct object_claim *claim, enum refusal *why, struct error *err)
{
        char claimed_hex[BUILD_ID_HEX_MAX], found_hex[BUILD_ID_HEX_MAX];

        if (build_id_equal(&j->build_id, &claim->build_id))
                return ST_OK;
        for (size_t i = 0; i < j->links.alias_count; i++)
                if (!j->links.aliases[i].is_claimed && build_id_equal(&j->links.aliases[i].id, &claim->build_id))
                        return ST_OK;
        *why = REFUSED_BUILD_ID;
        return error_set(err, ST_BAD_DATA, "the file's build-id is %s, not the claimed %s",
                         j->build_id.size ? build_id_hex(&j->build_id, found_hex) : "absent",
                         build_id_hex(&claim->build_id, claimed_hex));
}

static enum object_kind kind_of(enum verified_form form, enum object_kind claimed)
{
        switch (form) {
        case VERIFIED_SOURCE:
                return OBJECT_SOURCE;
        case VERIFIED_SUPPLEMENTARY:
                return OBJECT_SUPPLEMENTARY;
        case VERIFIED_DWP:
                return OBJECT_DWP;
        case VERIFIED_DWO:
                return OBJECT_DWO;
        case VERIFIED_SYMBOLS:
                return OBJECT_SYMBOLS;
        default:
                return claimed == OBJECT_EXECUTABLE ? OBJECT_EXECUTABLE : OBJECT_DEBUGINFO;
        }
}

/* Clients that know no supplementary files, and upstreams, have them as debuginfo. */
static enum status check_kind(struct judged *j, const struct object_claim *claim, enum refusal *why, struct error *err)
{
        j->kind = kind_of(j->found.form, claim->kind);
        if (j->kind == claim->kind || (j->kind == OBJECT_SUPPLEMENTARY && claim->kind == OBJECT_DEBUGINFO))
                return ST_OK;
        if (claim->kind == OBJECT_SOURCE) {
                *why = REFUSED_NOT_SOURCE;
                return error_set(err, ST_BAD_DATA, "the file is no source bundle: cairn-upload --sources makes one");
        }
        if (claim->kind == OBJECT_SYMBOLS) {
                *why = REFUSED_NOT_SYMBOLS;
                return error_set(err, ST_BAD_DATA, "the file is no symbol file: cairn-upload --symbols-only makes one");
        }
        *why = j->kind == OBJECT_SOURCE ? REFUSED_NOT_ELF : REFUSED_KIND;
        return error_set(err, ST_BAD_DATA, "the file is no %s: send it as %s", object_kind_name(claim->kind),
                         object_kind_name(j->kind));
}

/* An uploader claims the quality when it asks whether they are wanted, so it must be the one that counts from then on. */
static enum status check_symbols(struct judged *j, const struct object_claim *claim, enum refusal *why, struct error *err)
{
        if (!j->found.quality) {
                *why = REFUSED_NO_SYMBOLS;
                return error_set(err, ST_BAD_DATA, "the file holds no symbols");
        }
        if (!claim->has_quality || claim->quality == j->found.quality)
                return ST_OK;
        *why = REFUSED_QUALITY;
        return error_set(err, ST_BAD_DATA, "the file holds symbols of quality %s, not of the claimed %s",
                         symbol_quality_name(j->found.quality), symbol_quality_name(claim->quality));
}

static enum status check_content(struct judged *j, const struct object_claim *claim, enum refusal *why, struct error *err)
{
        if (j->kind == OBJECT_EXECUTABLE && !j->found.has_code) {
                *why = REFUSED_NO_SYMBOLS;
                return error_set(err, ST_BAD_DATA, "the file holds no code: send it as debuginfo, not as executable");
        }
        /* What an upstream has is taken as it is: clients may want its sections. */
        if (j->kind == OBJECT_DEBUGINFO && claim->source == SOURCE_UPLOAD && !j->found.quality) {
                *why = REFUSED_NO_SYMBOLS;
                return error_set(err, ST_BAD_DATA, "the file holds no symbols; send the one from before strip, or its .debug file");
        }
        return j->kind == OBJECT_SYMBOLS ? check_symbols(j, claim, why, err) : ST_OK;
}

/* The file with the skeletons, of which its executable has them too; -1 when it is not stored. */
static enum status open_owner(struct debuginfo_store *store, const struct build_id *id, int *ret, struct error *err)
{
        enum status st = debuginfo_store_unpack(store, id, OBJECT_DEBUGINFO, ret, err);

        if (st == ST_NOT_FOUND)
                st = debuginfo_store_unpack(store, id, OBJECT_EXECUTABLE, ret, err);
        return st == ST_NOT_FOUND ? ST_OK : st;
}

static enum status judge_package(struct judged *j, const struct object_claim *claim, bool has_owner, enum refusal *why,
                                 struct error *err)
{
        j->build_id = claim->build_id;
        j->quality = has_owner ? QUALITY_DWARF : QUALITY_NONE;
        if (!has_owner || j->found.asked_units)
                return ST_OK;
        *why = REFUSED_BUILD_ID;
        return error_set(err, ST_BAD_DATA, "the stored file of this build-id asks for none of the %u units of the package: "
                         "it belongs to another build", j->found.package_units);
}

static enum status judge(struct debuginfo_store *store, const struct object_claim *claim, int fd, uint64_t size,
                         struct judged *j, enum refusal *why, struct error *err)
{
        _cleanup_close_ int owner = -1;
        enum status st = claim->kind == OBJECT_DWP ? open_owner(store, &claim->build_id, &owner, err) : ST_OK;

        if (st)
                return st;
        st = verify_object(fd, owner, &j->found, err);
        if (st) {
                if (st == ST_BAD_DATA)
                        *why = claim->kind == OBJECT_SYMBOLS ? REFUSED_NOT_SYMBOLS : REFUSED_NOT_ELF;
                return st;
        }
        j->quality = j->found.quality;
        j->links.needs = j->found.needs;
        j->links.need_count = j->found.need_count;
        if (j->found.form == VERIFIED_DWP && claim->kind == OBJECT_DWP) {
                j->kind = OBJECT_DWP;
                return judge_package(j, claim, owner >= 0, why, err);
        }
        st = find_identity(j, claim, fd, size, err);
        if (!st)
                st = check_kind(j, claim, why, err);
        if (!st)
                st = check_identity(j, claim, why, err);
        return st ? st : check_content(j, claim, why, err);
}

enum status object_judge(struct debuginfo_store *store, const struct object_claim *claim, int fd, uint64_t size,
                         struct judged *ret, enum refusal *why, struct error *err)
{
        struct judged j = { .found.form = VERIFIED_ELF };
        enum status st = judge(store, claim, fd, size, &j, why, err);

        if (st)
                judged_deinit(&j);
        else
                *ret = j;
        return st;
}

static bool set_quality(void *context, struct stored_object *object)
{
        const struct stored_object *seen = context;

        if (memcmp(object->sha256, seen->sha256, sizeof object->sha256) != 0)
                return false;
        object->quality = QUALITY_DWARF;
        return true;
}

void object_confirm_package(struct debuginfo_store *store, const struct build_id *id)
{
        const struct object_name name = { *id, OBJECT_DWP };
        const struct object_claim claim = { .build_id = *id, .kind = OBJECT_DWP };
        _cleanup_judged_ struct judged j = { .found.form = VERIFIED_ELF };
        _cleanup_close_ int fd = -1;
        struct stored_object package;
        enum refusal why;

        if (meta_get(store->meta, id, OBJECT_DWP, &package, NULL) || package.quality > QUALITY_NONE ||
            debuginfo_store_unpack(store, id, OBJECT_DWP, &fd, NULL) ||
            object_judge(store, &claim, fd, package.size_bytes, &j, &why, NULL) || j.quality == QUALITY_NONE)
                return;
        pthread_mutex_lock(&store->publish);
        (void)!meta_edit(store->meta, &name, 1, set_quality, &package, NULL);
        pthread_mutex_unlock(&store->publish);
}
