// SPDX-License-Identifier: Apache-2.0
//
// The call tree of docs/formats/query-api.md as columns instead of objects, its layout, and what is said of its nodes.
'use strict';
const CairnLayout = (() => {
  const { formatValue, timeText } = CairnUnits;
  const KINDS = ['native', 'inlined', 'kernel', 'unresolved', 'other', 'label'];
  const KIND_TEXT = { native: 'native', inlined: 'inlined', kernel: 'kernel', unresolved: 'not resolved', other: 'many small callees', label: 'samples with this label' };

  function about(d) {
    const side = s => `${formatValue(s.total, d.unit)} in ${s.samples.toLocaleString('en')} samples, ` +
      `${timeText(s.from_ms)} to ${timeText(s.to_ms)} UTC` + (s.selector ? ` ${s.selector}` : '');
    return (d.type ? d.type + ' · ' : '') + d.sides.map(side).join('  →  ');
  }

  // Columns instead of objects; x and w are shares of the whole width.
  function parse(json) {
    const n = json.nodes.length, diff = json.sides.length > 1;
    const d = {
      type: json.type, unit: json.unit, sides: json.sides, frames: json.frames, focus: json.focus,
      inverted: json.inverted, full: json.names === 'full', leftOut: json.left_out, diff, count: n, depths: 0,
      parent: new Int32Array(n), frame: new Int32Array(n), depth: new Int32Array(n), end: new Int32Array(n),
      self: new Float64Array(n), total: new Float64Array(n), self2: new Float64Array(n), total2: new Float64Array(n),
      line: new Float64Array(n), x: new Float64Array(n), w: new Float64Array(n),
    };
    json.nodes.forEach((v, i) => {
      d.parent[i] = v[0]; d.frame[i] = v[1]; d.self[i] = v[2]; d.total[i] = v[3]; d.line[i] = v[4];
      if (diff) { d.self2[i] = v[5]; d.total2[i] = v[6]; }
      d.depth[i] = i ? d.depth[v[0]] + 1 : 0;
      d.depths = Math.max(d.depths, d.depth[i] + 1);
    });
    // In a diff both sides weigh the same, whatever their totals.
    const total = n ? d.total[0] : 0, total2 = n ? d.total2[0] : 0;
    const weight = i => !diff ? (total ? d.total[i] / total : 0) :
      ((total ? d.total[i] / total : 0) + (total2 ? d.total2[i] / total2 : 0)) / ((total ? 1 : 0) + (total2 ? 1 : 0) || 1);
    const used = new Float64Array(n);
    for (let i = 0; i < n; i++) {
      d.w[i] = weight(i);
      if (i) {
        d.x[i] = d.x[d.parent[i]] + used[d.parent[i]];
        used[d.parent[i]] += d.w[i];
      }
    }
    for (let i = n - 1; i >= 0; i--) { // one past the last node of a subtree: nodes stand parents first
      d.end[i] = Math.max(d.end[i], i + 1);
      if (i) d.end[d.parent[i]] = Math.max(d.end[d.parent[i]], d.end[i]);
    }
    return d;
  }

  // A frame is [name, file, object, kind, state, short name, linkage name]; the last two only where they differ.
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
    return parts.join(' · ');
  }

  return { parse, about, nameOf, labelOf, linkageOf, kindOf, placeOf, shortOf, baseName, KIND_TEXT };
})();
