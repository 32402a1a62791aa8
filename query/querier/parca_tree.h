/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_QUERIER_PARCA_TREE_H
#define CAIRN_QUERY_QUERIER_PARCA_TREE_H

/**
 * @file
 * Call trees as messages inside one another, as Parca's clients read them. Private to query/querier/.
 *
 * Source: parca/query/v1alpha1/query.proto, FlamegraphRootNode and FlamegraphNode.
 */
#include "profile-formats/proto/parca_query.pb-c.h"
#include "query/querier/querier_call.h"
#include "query/views.h"

/** What a node says of its frame; in the memory of the answer. NULL with the error. */
ParcaQuery__NodeMeta *parca_make_meta(struct querier_call *c, const struct query_frame *frame, int64_t line);

/**
 * Encode a FlamegraphRootNode, never of no bytes.
 *
 * The values are those of the last side; diff is what they have more than the first. Sizes are computed once, children
 * before parents, so that the time is linear in the nodes however deep they are.
 * @param ret  in the memory of the answer.
 */
enum status parca_tree_encode(struct querier_call *c, const struct loaded_sides *l, const struct drawing *d,
                              ProtobufCBinaryData *ret) MUST_CHECK;

#endif
