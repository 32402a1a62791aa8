// SPDX-License-Identifier: Apache-2.0
//
// Instructions of two builds beside each other, those that correspond in one row, with the cost on both sides.
'use strict';
const CairnComparedCode = (() => {
  const { make } = CairnDom, { formatValue } = CairnUnits, { visible } = CairnCodeList, { makeInstruction, placeText } = CairnDisassembly;
  const SIDES = ['before', 'after'];

  const boundsText = r => ['base_', ''].map(p => r[p + 'start'] ? `${r[p + 'start']} – ${r[p + 'end']}` + (r[p + 'is_cut'] ? ' (cut)' : '') : 'not there');
  // Costs of an item, and how much its share changed.
  function costsOf(row, answer) {
    if (row.cumulative === undefined) return { rank: 0 };
    const shares = [answer.total ? row.cumulative / answer.total : 0, answer.total_after ? row.cumulative_after / answer.total_after : 0];
    return { before: row.cumulative, after: row.cumulative_after, self: [row.flat, row.flat_after], rank: Math.abs(shares[1] - shares[0]),
      change: CairnUnits.pointsText(...shares).replace(/,.*/, '') };
  }
  const kindOf = row => !row.after ? 'code removed' : !row.before ? 'code added' : row.is_changed ? 'code changed' : 'code';

  // The answer as rows: a heading for each function, a row for each change of the line on a side, and the instructions.
  // byAddress: for each side the row of each address.
  function makeItems(answer) {
    const items = [], byAddress = [new Map(), new Map()];
    for (const range of answer.ranges) {
      items.push({ kind: 'range', rank: 0, name: range.function || '(unknown function)', bounds: boundsText(range) });
      for (const row of range.rows) {
        const places = SIDES.map(side => row[side]?.place).map(p => p && (p.file || p.function) ? p : null);
        if (places[0] || places[1]) items.push({ kind: places[1] ? 'place' : 'place only-before', rank: 0, places, range });
        SIDES.forEach((side, i) => { if (row[side]) byAddress[i].set(row[side].address, items.length); });
        items.push({ kind: kindOf(row), row, ...costsOf(row, answer) });
      }
    }
    return { items, byAddress };
  }

  // go(changes) as in the context.
  function create(root, go, moved) {
    let byAddress = [], unit = '';
    const list = CairnCodeList.create(root, { label: 'Instructions of both sides', columns: ['Address', 'Code before', 'Address', 'Code after'], fill, open, moved,
      costs: [['Before', 'before', 'self'], ['After', 'after', 'all'], ['Change', 'change', 'change']] });
    const cell = (className, props) => make('span', { role: 'gridcell', className, ...props });

    function fill(item, row) {
      if (item.kind === 'range') {
        for (const bounds of item.bounds) row.append(cell('c-line', {}), cell('c-text', { textContent: `${visible(item.name)}  ${bounds}` }));
      } else if (item.places) {
        for (const place of item.places) row.append(cell('c-line', {}), cell('c-text', place ? placeText(place, item.range) : {}));
      } else {
        if (item.self) row.title = `Self: ${formatValue(item.self[0], unit)} before, ${formatValue(item.self[1], unit)} after`;
        SIDES.forEach((side, i) => {
          const code = item.row[side];
          row.append(cell('c-line', { textContent: code ? code.address.slice(2) : '' }), code ? makeInstruction(code, byAddress[i], list.moveTo, go) : cell('c-text', {}));
        });
      }
    }
    function open(item, at, key) {
      const code = item.row && (item.row.after || item.row.before), rows = byAddress[item.row?.after ? 1 : 0];
      if (!code || key === 'ArrowLeft') return;
      if (code.flow && rows.has(code.target)) list.moveTo(rows.get(code.target));
      else if (code.target_name) go({ function: code.target_name });
    }

    return {
      ...list,
      show(answer) {
        const made = makeItems(answer);
        byAddress = made.byAddress;
        unit = answer.unit;
        list.show(made.items, { total: Math.max(answer.total, answer.total_after), unit });
      },
    };
  }

  return { create, makeItems };
})();
