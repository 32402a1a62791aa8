/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file is identified by its GNU build-id, else its Go build-id, else its htlhash; its other ids become aliases.
 * Supplementary and .dwo files have their own ids. A package of split DWARF has no id: it is stored under the build-id
 * that the uploader claims, and if that executable or debuginfo is stored, it must reference units of the package.
 * Until then the package has quality none, so that a verified matching package replaces it.
 */
#include "debuginfo-store/validate_upload.h"

#include <string.h>
#include <unistd.h>

#include "elf-image/elf_identity.h"

void validated_upload_deinit(struct validated_upload *v)
{
        verify_result_deinit(&v->verified);
}

static void add_validated_alias(struct validated_upload *v, const struct build_id *id, bool is_claimed)
{
        if (!id->size || build_id_equal(id, &v->build_id))
                return;
        for (size_t i = 0; i < v->links.alias_count; i++)
                if (build_id_equal(&v->links.aliases[i].id, id))
                        return;
        v->links.aliases[v->links.alias_count++] = (struct object_alias){ *id, is_claimed };
}

/*
 * The htlhash identifies the executable; a split debuginfo file has a different one, and so has a program before it is
 * stripped. A file without an id is stored under the htlhash unless its uploader claims another id.
 */
static enum status find_file_identity(struct validated_upload *v, const struct object_claim *claim, int fd,
                                      uint64_t size, struct error *err)
{
        struct build_id htlhash = { 0 };
        enum status st = v->verified.has_code ? elf_htlhash(fd, size, &htlhash, err) : ST_OK;

        if (st)
                return st;
        v->build_id = v->verified.build_id.size ? v->verified.build_id : htlhash;
        if (!v->build_id.size && !claim->build_id.size)
                v->build_id = claim->htlhash;
        add_validated_alias(v, &v->verified.go_id, false);
        add_validated_alias(v, &htlhash, false);
        if (claim->kind == OBJECT_DEBUGINFO || claim->kind == OBJECT_SYMBOLS)
                add_validated_alias(v, &claim->htlhash, true);
        return ST_OK;
}

static enum status check_claimed_identity(struct validated_upload *v, const struct object_claim *claim,
                                          struct error *err)
{
        char claimed_hex[BUILD_ID_HEX_MAX], found_hex[BUILD_ID_HEX_MAX];

        if (build_id_is_placeholder(&claim->build_id))
                return error_refuse(err, ST_BAD_DATA, REFUSED_BUILD_ID, BUILD_ID_PLACEHOLDER_TEXT);
        if (!claim->build_id.size || build_id_equal(&v->build_id, &claim->build_id))
                return ST_OK;
        for (size_t i = 0; i < v->links.alias_count; i++)
                if (!v->links.aliases[i].is_claimed && build_id_equal(&v->links.aliases[i].id, &claim->build_id))
                        return ST_OK;
        return error_refuse(err, ST_BAD_DATA, REFUSED_BUILD_ID, "the file's build-id is %s, not the claimed %s",
                            v->build_id.size ? build_id_hex(&v->build_id, found_hex) : "absent",
                            build_id_hex(&claim->build_id, claimed_hex));
}

static enum object_kind object_kind_from_form(enum verified_form form, enum object_kind claimed)
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

/* Upstreams, and clients that do not distinguish supplementary files, claim them as debuginfo. */
static enum status check_claimed_kind(struct validated_upload *v, const struct object_claim *claim, struct error *err)
{
        v->kind = object_kind_from_form(v->verified.form, claim->kind);
        if (v->kind == claim->kind || (v->kind == OBJECT_SUPPLEMENTARY && claim->kind == OBJECT_DEBUGINFO))
                return ST_OK;
        if (claim->kind == OBJECT_SOURCE) {
                return error_refuse(err, ST_BAD_DATA, REFUSED_NOT_SOURCE,
                                    "not a source bundle; create one with cairn-upload --sources");
        }
        if (claim->kind == OBJECT_SYMBOLS) {
                return error_refuse(err, ST_BAD_DATA, REFUSED_NOT_SYMBOLS,
                                    "not a symbol file; create one with cairn-upload --symbols-only");
        }
        return error_refuse(err, ST_BAD_DATA, v->kind == OBJECT_SOURCE ? REFUSED_NOT_ELF : REFUSED_KIND,
                            "the file is not of kind %s; send it as %s", object_kind_name(claim->kind),
                            object_kind_name(v->kind));
}

/* The uploader claimed this quality in its offer, so the file must have it. */
static enum status check_symbol_file_quality(struct validated_upload *v, const struct object_claim *claim,
                                             struct error *err)
{
        if (!v->verified.quality) {
                return error_refuse(err, ST_BAD_DATA, REFUSED_NO_SYMBOLS, "the file has no symbols");
        }
        if (!claim->has_quality || claim->quality == v->verified.quality)
                return ST_OK;
        return error_refuse(err, ST_BAD_DATA, REFUSED_QUALITY,
                            "the file has symbols of quality %s, not of the claimed %s",
                            symbol_quality_name(v->verified.quality), symbol_quality_name(claim->quality));
}

static enum status check_object_content(struct validated_upload *v, const struct object_claim *claim, struct error *err)
{
        if (v->kind == OBJECT_EXECUTABLE && !v->verified.has_code) {
                return error_refuse(err, ST_BAD_DATA, REFUSED_NO_SYMBOLS,
                                    "the file has no code; send it as debuginfo, not as executable");
        }
        /* Debuginfo without symbols is accepted from upstreams: clients may request its sections. */
        if (v->kind == OBJECT_DEBUGINFO && claim->source == SOURCE_UPLOAD && !v->verified.quality) {
                return error_refuse(err, ST_BAD_DATA, REFUSED_NO_SYMBOLS,
                                    "the file has no symbols; send the unstripped file or its .debug file");
        }
        return v->kind == OBJECT_SYMBOLS ? check_symbol_file_quality(v, claim, err) : ST_OK;
}

/* Open the file that the package belongs to: debuginfo, else executable; -1 if neither is stored. */
static enum status open_package_owner(struct debuginfo_store *store, const struct build_id *id, int *ret,
                                      struct error *err)
{
        enum status st = debuginfo_store_unpack(store, id, OBJECT_DEBUGINFO, ret, err);

        if (st == ST_NOT_FOUND)
                st = debuginfo_store_unpack(store, id, OBJECT_EXECUTABLE, ret, err);
        return st == ST_NOT_FOUND ? ST_OK : st;
}

static enum status validate_package(struct validated_upload *v, const struct object_claim *claim, bool has_owner,
                                    struct error *err)
{
        v->build_id = claim->build_id;
        v->quality = has_owner ? QUALITY_DWARF : QUALITY_NONE;
        if (!has_owner || v->verified.asked_units)
                return ST_OK;
        return error_refuse(err, ST_BAD_DATA, REFUSED_BUILD_ID,
                            "the stored file with this build-id references none of the %u units of the package, which "
                            "belongs to another build",
                            v->verified.package_units);
}

static enum status validate_file(struct debuginfo_store *store, const struct object_claim *claim, int fd, uint64_t size,
                                 struct validated_upload *v, struct error *err)
{
        _cleanup_close_ int owner = -1;
        enum status st = claim->kind == OBJECT_DWP ? open_package_owner(store, &claim->build_id, &owner, err) : ST_OK;

        if (st)
                return st;
        st = verify_file_in_worker(fd, owner, &v->verified, err);
        if (st == ST_BAD_DATA)
                return error_add_reason(err, st, claim->kind == OBJECT_SYMBOLS ? REFUSED_NOT_SYMBOLS : REFUSED_NOT_ELF);
        if (st) /* the reason is one of worker_run(), no enum refusal */
                return error_add_reason(err, st, REFUSED_NOT);
        v->quality = v->verified.quality;
        v->links.companions = v->verified.companions;
        v->links.companion_count = v->verified.companion_count;
        if (v->verified.form == VERIFIED_DWP && claim->kind == OBJECT_DWP) {
                v->kind = OBJECT_DWP;
                return validate_package(v, claim, owner >= 0, err);
        }
        st = find_file_identity(v, claim, fd, size, err);
        if (!st)
                st = check_claimed_kind(v, claim, err);
        if (!st)
                st = check_claimed_identity(v, claim, err);
        return st ? st : check_object_content(v, claim, err);
}

enum status validate_upload(struct debuginfo_store *store, const struct object_claim *claim, int fd, uint64_t size,
                            struct validated_upload *ret, struct error *err)
{
        struct validated_upload v = { .verified.form = VERIFIED_ELF };
        enum status st = validate_file(store, claim, fd, size, &v, err);

        if (st)
                validated_upload_deinit(&v);
        else
                *ret = v;
        return st;
}

void validate_stored_package(struct debuginfo_store *store, const struct build_id *id)
{
        const struct object_claim claim = { .build_id = *id, .kind = OBJECT_DWP };
        _cleanup_validated_upload_ struct validated_upload v = { .verified.form = VERIFIED_ELF };
        _cleanup_close_ int fd = -1;
        struct stored_object package;

        if (meta_get(store->meta, id, OBJECT_DWP, &package, NULL) || package.quality > QUALITY_NONE ||
            debuginfo_store_unpack(store, id, OBJECT_DWP, &fd, NULL) ||
            validate_upload(store, &claim, fd, package.size_bytes, &v, NULL) || v.quality == QUALITY_NONE)
                return;
        (void)!debuginfo_store_set_quality(store, &package, QUALITY_DWARF, NULL);
}
