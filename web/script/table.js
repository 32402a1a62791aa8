// SPDX-License-Identifier: Apache-2.0
//
// Functions and what they cost, as a table.
'use strict';
const CairnTable = (() => {
  const { formatValue, percent } = CairnUnits, { shortOf } = CairnLayout;

  // Flat and cumulative per function and file; a function that is above itself counts once.
  function topRows(d) {
    const rows = new Map(), open = [];
    for (let i = 1; i < d.count; i++) {
      const f = d.frames[d.frame[i]], key = f[0] + '\0' + f[1];
      while (open.length && open[open.length - 1].end <= i) open.pop().row.depth--;
      let row = rows.get(key);
      if (!row) rows.set(key, row = { function: f[0], label: d.full ? f[0] : shortOf(f), file: f[1], line: d.line[i], object: f[2], flat: 0, cumulative: 0,
        flat_after: 0, cumulative_after: 0, depth: 0 });
      row.flat += d.self[i];
      row.flat_after += d.self2[i];
      if (row.depth === 0) { row.cumulative += d.total[i]; row.cumulative_after += d.total2[i]; }
      row.depth++;
      open.push({ end: d.end[i], row });
    }
    const change = r => Math.abs(r.flat_after - r.flat);
    return [...rows.values()].sort((a, b) => d.diff ? change(b) - change(a) : b.flat - a.flat || b.cumulative - a.cumulative);
  }

  function table(d, rows, onFunction) {
    const e = document.createElement('table'), head = e.createTHead().insertRow(), body = e.createTBody();
    const columns = d.diff ? ['Flat before', 'Flat after', 'Change'] : ['Flat', '%', 'Cumulative', '%'];
    e.className = 'rows';
    for (const c of [...columns, 'Function', 'File']) {
      const th = document.createElement('th');
      th.textContent = c;
      th.scope = 'col';
      if (c !== 'Function' && c !== 'File') th.className = 'n';
      head.append(th);
    }
    for (const r of rows.slice(0, 1000)) {
      const tr = body.insertRow(), total = d.sides[0].total;
      const values = d.diff ? [formatValue(r.flat, d.unit), formatValue(r.flat_after, d.unit), formatValue(r.flat_after - r.flat, d.unit)] :
        [formatValue(r.flat, d.unit), percent(r.flat, total), formatValue(r.cumulative, d.unit), percent(r.cumulative, total)];
      for (const v of values) { const td = tr.insertCell(); td.className = 'n'; td.textContent = v; }
      const button = document.createElement('button'), name = tr.insertCell(), file = tr.insertCell();
      button.type = 'button';
      button.className = 'link mono';
      button.textContent = r.label || r.short_name || r.function;
      button.title = r.function;
      button.onclick = () => onFunction(r.function);
      name.className = 'f';
      name.append(button);
      file.className = 'f soft mono';
      file.textContent = r.file ? (r.line ? `${r.file}:${r.line}` : r.file) : r.object;
    }
    if (!rows.length) {
      const cell = body.insertRow().insertCell();
      cell.colSpan = columns.length + 2;
      cell.textContent = 'No samples here. Try a longer time range or another selector.';
    }
    return e;
  }

  return { topRows, create: table };
})();
