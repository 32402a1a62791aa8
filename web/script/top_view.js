// SPDX-License-Identifier: Apache-2.0
//
// What each function costs, as a table.
'use strict';
const CairnTopView = (() => {
  function create(root, context) {
    const box = CairnDom.make('div', { className: 'table-scroll', tabIndex: 0, role: 'region', 'aria-label': 'Functions' });
    root.append(box);
    return {
      async show(selection, signal) {
        const top = await context.api.query('top', { ...CairnSelection.params(selection), limit: 500 }, signal);
        const side = { selector: selection.selector, from_ms: top.from_ms, to_ms: top.to_ms, total: top.total, samples: top.samples };
        const data = { type: top.type, unit: top.unit, sides: [side], diff: false };
        box.replaceChildren(CairnTable.create(data, top.rows, f => context.go({ view: 'flame', callees_of: f })));
        context.about(CairnLayout.about(data));
      },
      destroy() {},
    };
  }

  return { create };
})();
