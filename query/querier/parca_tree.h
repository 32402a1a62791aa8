/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_QUERIER_PARCA_TREE_H
#define CAIRN_QUERY_QUERIER_PARCA_TREE_H

/**
 * @file
 * Call trees as nested messages, the format of Parca's clients. Private to query/querier/.
 *
 * Source: parca/query/v1alpha1/query.proto, FlamegraphRootNode and FlamegraphNode.
 */
#include "profile-formats/proto/parca_query.pb-c.h"
#include "query/engine/loaded_sides.h"
#include "query/querier/querier_call.h"

/** Make the metadata of a frame, in the memory of the answer. NULL with the error. */
ParcaQuery__NodeMeta *parca_make_meta(struct querier_call *c, const struct query_frame *frame, int64_t line);

/**
 * Encode a FlamegraphRootNode, at least one byte.
 *
 * Values are those of the last side; diff is their difference to the first. Sizes are computed once, children before
 * parents, so that the time is linear in the number of nodes at any depth.
 * @param ret  in the memory of the answer.
 */
enum status parca_tree_encode(struct querier_call *c, const struct loaded_sides *l, const struct drawing *d,
                              ProtobufCBinaryData *ret) MUST_CHECK;

#endif
