// SPDX-License-Identifier: Apache-2.0
//
// The cost of each function, as a table. Opening a function shows its callers and callees.
'use strict';
const CairnTopView = (() => {
  const { make } = CairnDom;

  // Menu entries of a row, for the available actions and links.
  function menuOf(actions, links) {
    const entry = (key, text) => actions[key] ? row => ({ text, run: () => actions[key](row.function, [row.function, row.file], row.line) }) : null;
    const entries = [entry('callees', 'Flame graph of what it calls'), entry('callers', 'Flame graph of what calls it'), entry('focus', 'Only stacks with it'),
      entry('ignore', 'Exclude stacks with it'), entry('hide', 'Hide frame (merge into caller)'), entry('source', 'Show its source')].filter(Boolean);
    const kindOf = row => typeof row.kind === 'number' ? row.kind : Math.max(0, CairnLayout.KINDS.indexOf(row.kind)); // a number in trees, a word in tables
    return row => [...entries.map(e => e(row)), ...links(row.function, [row.function, row.file, row.object, kindOf(row)], row.line)];
  }

  function create(root, context) {
    let current = {}, about = { unit: '', total: 0 };
    const filters = CairnFilters.create(root, context.go), actions = CairnActions.create(context, () => current), links = CairnActions.links(context, () => current);
    const box = make('div', { className: 'table-box' });
    root.append(box);
    const table = CairnTable.create(box, CairnTable.costColumns(() => about, CairnActions.sourceOf(context, () => current)), { caption: 'Functions', sort: 'flat', filter: ['function', 'file', 'object', 'short_name'],
      open: row => actions.sandwich(row.function), menu: menuOf(actions, links) });
    return {
      async show(selection, signal) {
        current = selection;
        filters.show(selection);
        const top = await context.api.query('top', { ...CairnSelection.params(selection), ...CairnFilters.params(selection), limit: CairnTable.ROWS_MAX }, signal);
        about = top;
        table.show(top.rows);
        context.about(CairnLayout.about({ type: top.type, unit: top.unit, sides: [CairnLayout.sideOf(top, selection.selector)] }));
      },
      destroy() {},
    };
  }

  return { create, menuOf };
})();
