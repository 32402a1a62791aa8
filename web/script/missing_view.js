// SPDX-License-Identifier: Apache-2.0
//
// Objects whose samples lack symbols, the most sampled first.
'use strict';
const CairnMissingView = (() => {
  const { make } = CairnDom;
  const COLUMNS = [['Samples', 'n'], ['Locations', 'n'], ['State', ''], ['Build id', ''], ['Object', '']];

  function create(root, context) {
    const box = make('div', { className: 'table-scroll', tabIndex: 0, role: 'region', 'aria-label': 'Missing debuginfo' });
    root.append(box);
    return {
      async show(selection, signal) {
        const rows = await context.api.query('missing', CairnSelection.params({ ...selection, type: '' }), signal);
        const table = make('table', { className: 'rows' }), head = table.createTHead().insertRow(), body = table.createTBody();
        head.append(...COLUMNS.map(([title, kind]) => make('th', { textContent: title, className: kind, scope: 'col' })));
        for (const r of rows) {
          const tr = body.insertRow();
          for (const v of [r.samples.toLocaleString('en'), r.locations.toLocaleString('en'), r.state.replaceAll('_', ' '), r.build_id, r.object])
            tr.insertCell().textContent = v;
          tr.cells[0].className = tr.cells[1].className = 'n';
          tr.cells[3].className = tr.cells[4].className = 'mono f';
        }
        if (!rows.length) body.insertRow().append(make('td', { colSpan: COLUMNS.length, textContent: 'Nothing is missing in this range.' }));
        box.replaceChildren(table);
        context.about('');
      },
      destroy() {},
    };
  }

  return { create };
})();
