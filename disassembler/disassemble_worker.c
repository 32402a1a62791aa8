/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's side of disassemble_job.h. */
#include <capstone/capstone.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "common/memory/arena.h"
#include "common/memory/array.h"
#include "disassembler/code_ranges.h"
#include "disassembler/disassemble_internal.h"
#include "disassembler/disassemble_job.h"
#include "sandbox/worker.h"

/* The version whose header this is built with: 4 in Debian 12, 5 in Debian 13. */
#define STRING_OF(macro) STRING_OF_TEXT(macro)
#define STRING_OF_TEXT(text) #text
#define CAPSTONE "libcapstone.so." STRING_OF(CS_API_MAJOR)
#define CAPSTONE_PACKAGE "libcapstone" STRING_OF(CS_API_MAJOR)

/* ---- capstone, loaded before the worker is confined ---- */

struct capstone {
        __typeof__(cs_open) *open;
        __typeof__(cs_option) *option;
        __typeof__(cs_malloc) *make_instruction;
        __typeof__(cs_disasm_iter) *decode;
        __typeof__(cs_strerror) *describe;
        __typeof__(cs_free) *free_instruction;
        __typeof__(cs_close) *close;
};

static enum status load_capstone(struct capstone *ret, struct error *err)
{
        void *library = dlopen(CAPSTONE, RTLD_NOW | RTLD_LOCAL); /* kept until the worker ends */

        if (!library)
                return error_set(err, ST_UNSUPPORTED,
                                 "disassembly requires %s, not installed on the service's host (Debian: %s)", CAPSTONE,
                                 CAPSTONE_PACKAGE);
        ret->open = (__typeof__(cs_open) *)dlsym(library, "cs_open");
        ret->option = (__typeof__(cs_option) *)dlsym(library, "cs_option");
        ret->make_instruction = (__typeof__(cs_malloc) *)dlsym(library, "cs_malloc");
        ret->decode = (__typeof__(cs_disasm_iter) *)dlsym(library, "cs_disasm_iter");
        ret->describe = (__typeof__(cs_strerror) *)dlsym(library, "cs_strerror");
        ret->free_instruction = (__typeof__(cs_free) *)dlsym(library, "cs_free");
        ret->close = (__typeof__(cs_close) *)dlsym(library, "cs_close");
        if (!ret->open || !ret->option || !ret->make_instruction || !ret->decode || !ret->describe ||
            !ret->free_instruction || !ret->close)
                return error_set(err, ST_UNSUPPORTED, "%s lacks a function", CAPSTONE);
        return ST_OK;
}

/* ---- decoding ---- */

struct decoder {
        const struct capstone *capstone;
        const struct elf_image *img;
        csh handle;
        cs_insn *instruction;
        struct disassembly out; /* texts are in the arena, bytes in the image */
        size_t capacity;
        struct arena texts;
        uint64_t bytes_left;
};

static void decoder_deinit(struct decoder *d)
{
        if (d->instruction)
                d->capstone->free_instruction(d->instruction, 1);
        if (d->handle)
                d->capstone->close(&d->handle);
        free(d->out.ranges);
        free(d->out.instructions);
        arena_deinit(&d->texts);
}

static enum status open_decoder(struct decoder *d, bool is_att, struct error *err)
{
        bool is_arm = d->img->machine == EM_AARCH64;
        cs_err failed;

        if (!(elf_image_kind(d->img) & ELF_KIND_EXECUTABLE)) /* debuginfo: its segments have no content */
                return error_set(err, ST_NOT_FOUND, "the file has no code");
        if (d->img->type == ET_REL)
                return error_set(err, ST_UNSUPPORTED,
                                 "a relocatable file, such as a kernel module, has no addresses yet");
        if (!d->img->is_64 || d->img->big_endian || (d->img->machine != EM_X86_64 && !is_arm))
                return error_set(err, ST_UNSUPPORTED, "only code of x86-64 and AArch64 is disassembled");
        failed = d->capstone->open(is_arm ? CS_ARCH_ARM64 : CS_ARCH_X86, is_arm ? CS_MODE_LITTLE_ENDIAN : CS_MODE_64,
                                   &d->handle);
        if (!failed)
                failed = d->capstone->option(d->handle, CS_OPT_DETAIL, CS_OPT_ON);
        if (!failed && is_att && !is_arm)
                failed = d->capstone->option(d->handle, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
        if (failed)
                return error_set(err, ST_UNSUPPORTED, "cannot start capstone: %s", d->capstone->describe(failed));
        d->instruction = d->capstone->make_instruction(d->handle);
        return d->instruction ? ST_OK : error_no_memory(err);
}

static bool is_in_group(const cs_detail *detail, uint8_t group)
{
        for (uint8_t i = 0; i < detail->groups_count; i++)
                if (detail->groups[i] == group)
                        return true;
        return false;
}

static enum code_flow find_flow(const struct decoder *d)
{
        const cs_detail *detail = d->instruction->detail;
        bool is_arm = d->img->machine == EM_AARCH64;

        if (is_in_group(detail, CS_GRP_CALL) ||
            (is_arm && (d->instruction->id == ARM64_INS_BL || d->instruction->id == ARM64_INS_BLR)))
                return FLOW_CALL;
        if (is_in_group(detail, CS_GRP_RET) || (is_arm && d->instruction->id == ARM64_INS_RET))
                return FLOW_RETURN;
        return is_in_group(detail, CS_GRP_JUMP) ? FLOW_JUMP : FLOW_NEXT;
}

/* The target of a jump or call, or of an operand relative to the program counter. */
static bool find_target(const struct decoder *d, enum code_flow flow, uint64_t *ret)
{
        const cs_insn *in = d->instruction;
        bool branches = flow == FLOW_JUMP || flow == FLOW_CALL;

        if (d->img->machine == EM_AARCH64) {
                const cs_arm64 *arm = &in->detail->arm64;
                const cs_arm64_op *last = arm->op_count ? &arm->operands[arm->op_count - 1] : NULL;

                if (!last || last->type != ARM64_OP_IMM ||
                    !(branches || in->id == ARM64_INS_ADR || in->id == ARM64_INS_ADRP))
                        return false;
                *ret = (uint64_t)last->imm;
                return true;
        }
        for (uint8_t i = 0; i < in->detail->x86.op_count; i++) {
                const cs_x86_op *op = &in->detail->x86.operands[i];

                if (op->type == X86_OP_MEM && op->mem.base == X86_REG_RIP) {
                        *ret = in->address + in->size + (uint64_t)op->mem.disp;
                        return true;
                }
                if (op->type == X86_OP_IMM && branches) {
                        *ret = (uint64_t)op->imm;
                        return true;
                }
        }
        return false;
}

static const char *keep_text(struct decoder *d, const char *text)
{
        return *text ? arena_strndup(&d->texts, text, strlen(text)) : "";
}

/* Bytes that capstone cannot decode: one on x86, a word on AArch64. */
static void fill_unknown(struct decoder *d, const uint8_t *code, size_t left, struct code_instruction *ret)
{
        char text[16];
        uint32_t word;

        ret->flow = FLOW_UNKNOWN;
        if (d->img->machine == EM_AARCH64 && left >= sizeof word) {
                memcpy(&word, code, sizeof word);
                snprintf(text, sizeof text, "0x%08x", word);
                ret->size = sizeof word;
                ret->mnemonic = ".inst";
        } else {
                snprintf(text, sizeof text, "0x%02x", *code);
                ret->size = 1;
                ret->mnemonic = ".byte";
        }
        ret->operands = keep_text(d, text);
}

static enum status decode_next(struct decoder *d, const uint8_t **code, size_t *left, uint64_t *address,
                               struct error *err)
{
        struct code_instruction in = { .address = *address, .bytes = *code };
        const uint8_t *from = *code;
        size_t before = *left;

        if (d->capstone->decode(d->handle, code, left, address, d->instruction)) {
                in.size = (uint8_t)d->instruction->size;
                in.flow = (uint8_t)find_flow(d);
                in.has_target = find_target(d, (enum code_flow)in.flow, &in.target);
                in.mnemonic = keep_text(d, d->instruction->mnemonic);
                in.operands = keep_text(d, d->instruction->op_str);
        } else {
                fill_unknown(d, from, before, &in);
                *code = from + in.size;
                *left = before - in.size;
                *address = in.address + in.size;
        }
        if (!in.mnemonic || !in.operands)
                return arena_error(&d->texts, err, "instructions");
        if (!array_reserve(&d->out.instructions, &d->capacity, d->out.instruction_count))
                return error_no_memory(err);
        d->out.instructions[d->out.instruction_count++] = in;
        return ST_OK;
}

static enum status decode_range(struct decoder *d, struct code_range *r, struct error *err)
{
        uint64_t address = r->start, size = r->end - r->start;
        size_t left = (size_t)(size < d->bytes_left ? size : d->bytes_left);
        const uint8_t *code;
        enum status st = ST_OK;

        if (!elf_image_bytes_at(d->img, r->start, left, &code))
                return error_set(err, ST_BAD_DATA, "the code at 0x%llx exceeds the file", (unsigned long long)r->start);
        d->bytes_left -= left;
        r->first = d->out.instruction_count;
        while (!st && left && d->out.instruction_count < LIMIT_DISASSEMBLY_INSTRUCTIONS)
                st = decode_next(d, &code, &left, &address, err);
        r->count = d->out.instruction_count - r->first;
        r->is_cut = address < r->end;
        return st;
}

static enum status decode_ranges(struct decoder *d, struct error *err)
{
        uint32_t done = 0;
        enum status st = ST_OK;

        for (; !st && done < d->out.range_count && d->bytes_left &&
               d->out.instruction_count < LIMIT_DISASSEMBLY_INSTRUCTIONS;
             done++)
                st = decode_range(d, &d->out.ranges[done], err);
        d->out.range_count = done;
        return st;
}

/* ---- the job ---- */

static enum status choose_range(struct decoder *d, const struct disassemble_message *m, struct error *err)
{
        struct code_range r = { .start = m->start, .end = m->end, .symbol = "" };
        const uint8_t *code;

        for (size_t i = 0; i < d->img->segment_count; i++) {
                const struct elf_segment *s = &d->img->segments[i];

                if (s->type == PT_LOAD && s->flags & PF_X && r.start >= s->address &&
                    r.start - s->address < s->file_size && r.end - s->address > s->file_size)
                        r.end = s->address + s->file_size;
        }
        if (r.start >= r.end || !elf_image_bytes_at(d->img, r.start, 1, &code))
                return ST_OK;
        d->out.ranges = malloc(sizeof r);
        if (!d->out.ranges)
                return error_no_memory(err);
        d->out.ranges[0] = r;
        d->out.range_count = 1;
        return ST_OK;
}

static enum status choose_functions(struct decoder *d, uint32_t count, struct error *err)
{
        _cleanup_free_ uint64_t *addresses = calloc(count, sizeof *addresses);
        _cleanup_elf_image_ struct elf_image symbols_of = { 0 };
        bool has_symbols = fcntl(DISASSEMBLE_SYMBOLS, F_GETFD) >= 0;
        size_t bytes = count * sizeof *addresses;
        enum status st = ST_OK;

        if (!addresses)
                return error_no_memory(err);
        if (pread(DISASSEMBLE_REQUEST, addresses, bytes, sizeof(struct disassemble_message)) != (ssize_t)bytes)
                return error_set(err, ST_BAD_DATA, "the request is cut off");
        if (has_symbols)
                st = elf_image_from_fd(DISASSEMBLE_SYMBOLS, "debuginfo", &symbols_of, err);
        if (!st)
                st = code_ranges_find(d->img, has_symbols ? &symbols_of : NULL, addresses, count, &d->out.ranges,
                                      &d->out.range_count, err);
        for (uint32_t i = 0; !st && i < d->out.range_count; i++) { /* copies outlive the debuginfo image */
                d->out.ranges[i].symbol = keep_text(d, d->out.ranges[i].symbol);
                if (!d->out.ranges[i].symbol)
                        st = arena_error(&d->texts, err, "symbols");
        }
        return st;
}

static enum status answer_disassembly(struct decoder *d, const struct disassemble_message *m, struct error *err)
{
        _cleanup_buf_ struct buf answer = { 0 };
        enum status st = open_decoder(d, m->is_att, err);

        if (!st)
                st = m->address_count ? choose_functions(d, m->address_count, err) : choose_range(d, m, err);
        if (!st && !d->out.range_count)
                return error_set(err, ST_NOT_FOUND, "the file has no code at %s",
                                 m->address_count ? "the addresses of the samples" : "these addresses");
        if (!st)
                st = decode_ranges(d, err);
        if (st)
                return st;
        buf_init(&answer, LIMIT_DISASSEMBLY_ANSWER_BYTES);
        disassembly_write(&d->out, &answer);
        st = buf_status(&answer, err, "disassembly");
        if (!st)
                st = file_write_all(DISASSEMBLE_ANSWER, answer.data, answer.size, "answer", err);
        return st;
}

enum status disassemble_worker_run(struct error *err)
{
        struct capstone capstone;
        _cleanup_elf_image_ struct elf_image img = { 0 };
        _cleanup_(decoder_deinit) struct decoder d = { .capstone = &capstone,
                                                       .img = &img,
                                                       .bytes_left = LIMIT_DISASSEMBLY_BYTES };
        struct disassemble_message m;
        enum status st = load_capstone(&capstone, err);

        arena_init(&d.texts, LIMIT_DISASSEMBLY_ANSWER_BYTES);
        if (!st)
                st = worker_confine(WORKER_NEEDS_NOTHING, err);
        if (st)
                return st;
        if (pread(DISASSEMBLE_REQUEST, &m, sizeof m, 0) != (ssize_t)sizeof m)
                return error_set(err, ST_BAD_DATA, "the request is cut off");
        st = elf_image_from_fd(DISASSEMBLE_EXECUTABLE, "executable", &img, err);
        return st ? st : answer_disassembly(&d, &m, err);
}
