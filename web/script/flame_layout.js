// SPDX-License-Identifier: Apache-2.0
//
// The call tree of docs/formats/query-api.md as columns instead of objects, and its layout. Each node is followed by
// its descendants, so that [node, end[node]) is a subtree, and nodes of one depth are in order from left to right:
// `rowNodes` lists them by depth, from rowStart[depth]. x and w are shares of the whole width, so that panning and
// zooming need no new layout.
'use strict';
const CairnLayout = (() => {
  const { formatValue, things } = CairnUnits, { toText, zoneText } = CairnTimes, { display, label } = CairnNames;
  const KINDS = ['native', 'inlined', 'kernel', 'unresolved', 'other', 'label'];
  const KIND_TEXT = { native: 'native', inlined: 'inlined', kernel: 'kernel', unresolved: 'not resolved', other: 'callees too small to be drawn each', label: 'samples with this label' };
  const OTHER = 4;

  // What a side's value is the sum or the average of: samples if their number is known, else stacks as they were sent.
  function countText(s) {
    return s.aggregation === 'average' ? 'average of ' + things(s.snapshots, 'snapshot') : things(s.samples, s.samples_are === 'stacks' ? 'stack' : 'sample');
  }
  // The side of an answer without a list of sides; suffix: "_after" for the second.
  const sideOf = (json, selector, suffix = '') => ({ selector, from_ms: json.from_ms, to_ms: json.to_ms, total: json['total' + suffix], samples: json['samples' + suffix],
    samples_are: json[`samples${suffix}_are`], snapshots: json['snapshots' + suffix], aggregation: json.aggregation });

  function about(d) {
    const [first, last] = [d.sides[0], d.sides[d.sides.length - 1]], isOneTime = first.from_ms === last.from_ms && first.to_ms === last.to_ms;
    const end = s => { const [from, to] = [toText(s.from_ms), toText(s.to_ms)]; return from.slice(0, 10) === to.slice(0, 10) ? to.slice(11) : to; };
    const time = s => `, ${toText(s.from_ms)} to ${end(s)} ${zoneText(s.to_ms)}`;
    const side = s => `${formatValue(s.total, d.unit)}${s.aggregation === 'average' ? ', ' : ' in '}${countText(s)}` + (isOneTime ? '' : time(s)) + (s.selector ? ` ${display(s.selector)}` : '');
    return (d.type ? display(CairnSelection.typeText(d.type)) + ' · ' : '') + d.sides.map(side).join('  →  ') + (isOneTime ? time(last) : '');
  }

  // Columns for n nodes, and the properties of the whole answer; only a diff has `self2` and `total2`.
  function makeColumns(like, n) {
    const diff = like.sides.length > 1, none = new Float64Array(diff ? n : 0);
    return {
      type: like.type, unit: like.unit, sides: like.sides, frames: like.frames, focus: like.focus, inverted: like.inverted,
      full: like.full, leftOut: like.leftOut, negative: like.negative, diff, count: n,
      parent: new Int32Array(n), frame: new Int32Array(n), line: new Int32Array(n),
      self: new Float64Array(n), total: new Float64Array(n), self2: none, total2: diff ? new Float64Array(n) : none,
    };
  }

  // Parse an answer of `flame` or `diff`; one that already has columns is returned unchanged.
  function parse(json) {
    if (json.columns) return json.columns;
    const n = json.nodes.length, nodes = json.nodes;
    const d = makeColumns({ ...json, full: json.names === 'full', leftOut: json.left_out, negative: (json.negative || 0) + (json.negative_after || 0) }, n);
    for (let i = 0; i < n; i++) {
      const v = nodes[i];
      d.parent[i] = v[0]; d.frame[i] = v[1]; d.self[i] = v[2]; d.total[i] = v[3]; d.line[i] = v[4];
      if (d.diff) { d.self2[i] = v[5]; d.total2[i] = v[6]; }
    }
    return place(d);
  }

  // The share of the width of a node. Both sides of a diff have equal weight, or, with d.absolute, the weight of their
  // totals.
  function weightOf(d) {
    const total = d.count ? d.total[0] : 0, total2 = d.count && d.diff ? d.total2[0] : 0;
    if (!d.diff) return i => total ? d.total[i] / total : 0;
    if (d.absolute) return i => total + total2 ? (d.total[i] + d.total2[i]) / (total + total2) : 0;
    const sides = (total ? 1 : 0) + (total2 ? 1 : 0) || 1;
    return i => ((total ? d.total[i] / total : 0) + (total2 ? d.total2[i] / total2 : 0)) / sides;
  }

  // Compute depth, end, x and w of each node, and the rows.
  function place(d) {
    const n = d.count, weight = weightOf(d);
    const depth = d.depth = new Int32Array(n), end = d.end = new Int32Array(n), x = d.x = new Float64Array(n), w = d.w = new Float64Array(n);
    const used = new Float64Array(n);
    d.depths = 0;
    for (let i = 0; i < n; i++) {
      const p = d.parent[i];
      w[i] = Math.max(0, weight(i));
      if (i) {
        depth[i] = depth[p] + 1;
        x[i] = x[p] + used[p];
        used[p] += w[i];
      }
      if (depth[i] >= d.depths) d.depths = depth[i] + 1;
    }
    for (let i = n - 1; i >= 0; i--) {
      if (end[i] <= i) end[i] = i + 1;
      if (i && end[d.parent[i]] < end[i]) end[d.parent[i]] = end[i];
    }
    const rowStart = d.rowStart = new Int32Array(d.depths + 2), rowNodes = d.rowNodes = new Int32Array(n), rank = d.rank = new Int32Array(n);
    for (let i = 0; i < n; i++) rowStart[depth[i] + 2]++;
    for (let r = 2; r < rowStart.length; r++) rowStart[r] += rowStart[r - 1];
    for (let i = 0; i < n; i++) rowNodes[rank[i] = rowStart[depth[i] + 1]++] = i;
    return d;
  }

  // ---- description of a node ---------------------------------------------------------------------- A frame is [name,
  // file, object, kind, state, short name, linkage name]; the last two only if they differ. The returned names are
  // unescaped: display them through CairnNames.

  const shortOf = f => f[5] || f[0];
  const nameOf = (d, i) => i === 0 ? (d.focus ? d.focus : 'all') : d.frames[d.frame[i]][0];
  const labelOf = (d, i) => i === 0 || d.full ? nameOf(d, i) : shortOf(d.frames[d.frame[i]]);
  const linkageOf = (d, i) => i === 0 ? '' : d.frames[d.frame[i]][6] || '';
  const kindOf = (d, i) => i === 0 ? 'native' : KINDS[d.frames[d.frame[i]][3]];
  const baseName = path => path.slice(path.lastIndexOf('/') + 1);

  function placeOf(d, i) {
    if (i === 0) return '';
    const [, file, object, , state] = d.frames[d.frame[i]];
    const parts = [];
    if (file) parts.push(d.line[i] ? `${file}:${d.line[i]}` : file);
    if (object) parts.push(object);
    if (state) parts.push(state.replaceAll('_', ' '));
    return parts.map(p => label(p)).join(' · ');
  }

  // A node in links: its depth and a hash of the names from the root to it, which it also has in later answers.
  function hashName(before, name) {
    let h = before ^ 0x811c9dc5;
    for (let k = 0; k < name.length; k++) h = Math.imul(h ^ name.charCodeAt(k), 0x01000193);
    return h >>> 0;
  }
  function keyOf(d, i) {
    const path = [];
    for (let at = i; at > 0; at = d.parent[at]) path.push(nameOf(d, at));
    return path.length ? `${d.depth[i]}.${path.reduceRight(hashName, 0).toString(16)}` : '';
  }
  // The node of a key; 0 if there is none.
  function findKey(d, key) {
    const [depth, hash] = key.split('.'), wanted = parseInt(hash, 16), hashes = new Uint32Array(d.count);
    for (let i = 1; i < d.count; i++) {
      hashes[i] = hashName(hashes[d.parent[i]], nameOf(d, i));
      if (hashes[i] === wanted && d.depth[i] === Number(depth)) return i;
    }
    return 0;
  }

  return { keyOf, findKey, parse, place, makeColumns, about, countText, sideOf, nameOf, labelOf, linkageOf, kindOf, placeOf, shortOf, baseName, KIND_TEXT, KINDS, OTHER };
})();
