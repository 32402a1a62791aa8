/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_STACK_TRIE_H
#define CAIRN_PROFILE_FORMATS_STACK_TRIE_H

/**
 * @file
 * The two binary formats of Pyroscope's first agents: format=trie and format=tree of /ingest.
 *
 * Both are nodes in pre-order, each an unsigned LEB128 length, that many bytes of text, an unsigned LEB128 value and an
 * unsigned LEB128 number of children. The stack of a node is the texts from the root to it: in a trie concatenated
 * (they contain the ';' between frames, and may end inside a frame), in a tree joined by ';', without the root's.
 *
 * Threads: no shared state.
 * Source: grafana/pyroscope pkg/og/structs/transporttrie/serialize.go, pkg/og/storage/tree/serialize.go.
 */
#include "profile-formats/profile.h"

enum stack_trie_kind { STACK_TRIE, STACK_TREE };

/**
 * @param type_id  the samples' type, five parts.
 * @param ret      initialised here; profile_deinit() it on success only.
 * @return ST_BAD_DATA: cut off, or bytes after the end; ST_TOO_BIG: a limit, LIMIT_TRIE_DEPTH for nodes inside one
 *         another, and profile_limit_work() for the frames of all stacks.
 */
enum status stack_trie_decode(const void *data, size_t n, enum stack_trie_kind kind, const char *type_id,
                              struct profile *ret, struct error *err) MUST_CHECK;

#endif
