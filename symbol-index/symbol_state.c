/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-index/symbol_state.h"

#include <assert.h>
#include <string.h>

#include "symbol-index/block_bits.h"

static const char *const state_names[] = {
        [SYMBOL_RESOLVED] = "resolved",
        [SYMBOL_NO_BUILD_ID] = "no_build_id",
        [SYMBOL_NO_DEBUGINFO] = "no_debuginfo",
        [SYMBOL_PENDING] = "pending",
        [SYMBOL_FAILED] = "failed",
        [SYMBOL_OUTSIDE] = "outside",
        [SYMBOL_SENDER] = "sender",
        [SYMBOL_NO_ADDRESS] = "no_address",
        [SYMBOL_STRIPPED] = "stripped",
        [SYMBOL_UNCOVERED] = "uncovered",
        [SYMBOL_NOT_IN_OBJECT] = "not_in_object",
        [SYMBOL_TOO_LARGE] = "too_large",
};

struct reason {
        const char *meaning, *next_step;
        bool wants_debuginfo;
};

static const struct reason reasons[SYMBOL_STATE_COUNT] = {
        [SYMBOL_RESOLVED] = { "it has frames", "nothing needs to be done", false },
        [SYMBOL_SENDER] = { "the sender sent frames with the sample", "nothing needs to be done", false },
        [SYMBOL_NO_BUILD_ID] = { "the sample does not identify the object of the address",
                                 "link the program with --build-id; JIT-compiled code requires a perf map or a jitdump",
                                 false },
        [SYMBOL_NO_ADDRESS] = { "the sender named an object but sent neither an address nor frames",
                                "check the sender: there is no address to look up", false },
        [SYMBOL_NO_DEBUGINFO] = { "the object is not stored, and no upstream has it",
                                  "upload the object with cairn-upload, or configure an upstream that has it; if it "
                                  "is stripped, upload its debug file or build it with -g",
                                  true },
        [SYMBOL_PENDING] = { "the object is stored but not indexed yet",
                             "wait; stored samples are re-symbolized automatically", false },
        [SYMBOL_FAILED] = { "the stored files of the object could not be read, or its record in the index is damaged",
                            "see the error in cairn debuginfo list, and upload an undamaged file; cairn index verify "
                            "checks "
                            "the index",
                            true },
        [SYMBOL_STRIPPED] = { "the object is stored and indexed, but has no symbols for code",
                              "upload its debug file, or build it with -g: the stored file is stripped", true },
        [SYMBOL_UNCOVERED] = { "the address is in the object, but no symbol covers it",
                               "upload the debuginfo if only a stripped file is stored; else it is padding, data or "
                               "code without a symbol",
                               true },
        [SYMBOL_NOT_IN_OBJECT] = { "the address is outside of the object's loaded segments",
                                   "check the sender's mappings: the address or the build-id is wrong", false },
        [SYMBOL_OUTSIDE] = { "no symbol covers the address, and without the executable it is unknown whether the "
                             "address is in the object",
                             "upload the executable, too, and repeat the lookup; for a file of a distribution, "
                             "configure its debuginfod server as an upstream",
                             true },
        [SYMBOL_TOO_LARGE] = { "so many calls are inlined at the address that its frames exceeded the limit of the "
                               "flush",
                               "look up the address with cairn symbolize, or run cairn resymbolize with its build-id",
                               false },
};

static const struct reason *get_reason(enum symbol_state s)
{
        assert((unsigned)s < SYMBOL_STATE_COUNT);
        return &reasons[s];
}

const char *symbol_state_name(enum symbol_state s)
{
        assert((unsigned)s < SYMBOL_STATE_COUNT);
        return state_names[s];
}

bool symbol_state_parse(const char *name, enum symbol_state *ret)
{
        for (enum symbol_state s = 0; s < SYMBOL_STATE_COUNT; s++) {
                if (strcmp(symbol_state_name(s), name) == 0) {
                        *ret = s;
                        return true;
                }
        }
        return false;
}

const char *symbol_state_meaning(enum symbol_state s)
{
        return get_reason(s)->meaning;
}

const char *symbol_state_next_step(enum symbol_state s)
{
        return get_reason(s)->next_step;
}

bool symbol_state_is_reason(enum symbol_state s)
{
        return s != SYMBOL_RESOLVED && s != SYMBOL_SENDER;
}

bool symbol_state_wants_debuginfo(enum symbol_state s)
{
        return get_reason(s)->wants_debuginfo;
}

bool symbol_state_wants_upstream(enum symbol_state s, enum symbol_quality quality)
{
        switch (s) {
        case SYMBOL_NO_DEBUGINFO:
        case SYMBOL_STRIPPED:
                return true;
        case SYMBOL_RESOLVED:
        case SYMBOL_UNCOVERED:
                return quality > QUALITY_NONE && quality <= QUALITY_SYMTAB;
        default:
                return false;
        }
}

void symbol_inputs_add(struct symbol_inputs *inputs, const uint8_t sha256[32])
{
        assert(inputs->count < SYMBOL_INPUTS_MAX);
        inputs->items[inputs->count++] = load_le64(sha256);
}

bool symbol_inputs_contain(const struct symbol_inputs *inputs, const uint8_t sha256[32])
{
        for (unsigned i = 0; i < inputs->count; i++)
                if (inputs->items[i] == load_le64(sha256))
                        return true;
        return false;
}
