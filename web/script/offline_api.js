// SPDX-License-Identifier: Apache-2.0
//
// The query API for the views of a page with embedded data: the operations flame, top, sandwich and diff, answered from
// one call tree. Its "(other)" nodes stay single frames.
'use strict';
const CairnOfflineApi = (() => {
  const matchesOf = (d, pattern) => pattern ? CairnSearch.matchFrames(d.frames, pattern) : null;
  const named = (d, name) => d.frames.map(f => f[0] === name || f[5] === name || f[6] === name);

  function filter(d, { focus, ignore, hide, show }) {
    if (!focus && !ignore && !hide && !show) return d;
    return CairnChange.filterStacks(d, { focus: matchesOf(d, focus), ignore: matchesOf(d, ignore), hide: matchesOf(d, hide), show: matchesOf(d, show) });
  }
  function turn(d, { callees_of, callers_of, callers_matching }) {
    if (callees_of) return CairnChange.takeCallees(d, named(d, callees_of), callees_of);
    if (callers_of) return CairnChange.takeCallers(d, named(d, callers_of), callers_of);
    return callers_matching ? CairnChange.takeCallers(d, null, null) : d;
  }
  const summary = d => ({ ...d.sides[0], type: d.type, unit: d.unit, total: d.total[0] });

  // Functions of that name: compared for equality, while the service takes a pattern.
  function sandwich(d, name) {
    const isTarget = named(d, name), rows = CairnTable.topRows(d).filter(r => r.function === name || r.short_name === name);
    return { ...summary(d), rows, callers: { columns: CairnChange.takeCallers(d, isTarget, null) }, callees: { columns: CairnChange.takeCallees(d, isTarget, null) } };
  }

  function create(data) {
    return {
      async query(operation, params) {
        const d = filter(data, params);
        if (operation === 'flame' || operation === 'diff') return { columns: turn(d, params) };
        const single = d.diff ? CairnChange.takeSide(d, 1) : d;
        if (operation === 'top') return { ...summary(single), rows: CairnTable.topRows(single).slice(0, params.limit || undefined) };
        if (operation === 'sandwich') return sandwich(single, params.function_name);
        throw new Error(`this page has no data for ${operation}`);
      },
    };
  }

  return { create };
})();
