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
        [SYMBOL_RESOLVED] = { "it has frames", "nothing is to be done", false },
        [SYMBOL_SENDER] = { "the sender gave frames with the sample", "nothing is to be done", false },
        [SYMBOL_NO_BUILD_ID] = { "the sample does not say which object the address belongs to",
                                 "link the program with --build-id; code made at run time needs a perf map or a "
                                 "jitdump",
                                 false },
        [SYMBOL_NO_ADDRESS] = { "the sender named an object but gave neither an address nor frames",
                                "look at the sender: there is nothing to look up", false },
        [SYMBOL_NO_DEBUGINFO] = { "nothing is stored of the object, and no upstream had it",
                                  "upload the object with cairn-upload, or name an upstream that has it", true },
        [SYMBOL_PENDING] = { "the object is stored and waits to be indexed", "wait; the past heals by itself", false },
        [SYMBOL_FAILED] = { "what is stored of the object could not be read, or its record in the index is damaged",
                            "see the error in cairn debuginfo list, and upload a sound file; cairn index verify checks "
                            "the index",
                            true },
        [SYMBOL_STRIPPED] = { "the object is stored and indexed, and names no code at all",
                              "upload its debuginfo: the file that is stored was stripped", true },
        [SYMBOL_UNCOVERED] = { "the address is in the object, but no symbol covers it",
                               "upload the debuginfo if only a stripped file is stored; else it is padding, data or "
                               "code without a symbol",
                               true },
        [SYMBOL_NOT_IN_OBJECT] = { "the address is in none of the object's loaded segments",
                                   "look at the sender's mappings: the address or the build-id is wrong", false },
        [SYMBOL_OUTSIDE] = { "no symbol covers the address, and without the executable it is unknown whether the "
                             "address is in the object",
                             "upload the executable too, then ask again", true },
        [SYMBOL_TOO_LARGE] = { "so many calls are inlined at the address that its frames had no room beside the others "
                               "of the flush",
                               "ask for the address with cairn symbolize, or run cairn resymbolize with its build-id",
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
