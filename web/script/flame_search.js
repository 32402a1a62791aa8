// SPDX-License-Identifier: Apache-2.0
//
// The matches of a search in a call tree: nodes, share of the total, and next match.
'use strict';
const CairnFlameSearch = (() => {
  const { percent } = CairnUnits;

  // { matches (by node), matchedBefore (by rank), count, text }, or null without words. Of several matches in one stack
  // only the outermost counts for the share.
  function find(d, words) {
    if (!words || !d.count) return null;
    const frames = CairnSearch.findFrames(d, words), matches = new Uint8Array(d.count), matchedBefore = new Int32Array(d.count + 1);
    let sum = 0, sum2 = 0, count = 0;
    for (let i = 1, covered = 0; i < d.count; i++) {
      if (!frames[d.frame[i]]) continue;
      matches[i] = 1;
      count++;
      if (i < covered) continue;
      sum += d.total[i];
      if (d.diff) sum2 += d.total2[i];
      covered = d.end[i];
    }
    for (let k = 0; k < d.count; k++) matchedBefore[k + 1] = matchedBefore[k] + matches[d.rowNodes[k]];
    const text = frames.stopped ? 'The pattern takes too long: search for a part of the name instead' :
      count ? `${percent(sum, d.total[0])}${d.diff ? ' → ' + percent(sum2, d.total2[0]) : ''} in ${CairnUnits.things(count, 'frame')}` : 'nothing found';
    return { matches, matchedBefore, count, text };
  }

  // The match after (step 1) or before (-1) a node in tree order, wrapping around; -1 if none.
  function step(result, from, way) {
    const { matches } = result, n = matches.length;
    for (let k = 1; k <= n; k++) {
      const i = (from + way * k % n + n) % n;
      if (matches[i]) return i;
    }
    return -1;
  }

  return { find, step };
})();
