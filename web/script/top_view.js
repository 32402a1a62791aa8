// SPDX-License-Identifier: Apache-2.0
//
// The cost of each function, with `by` in each group, as a table. Opening a function shows its callers and callees.
'use strict';
const CairnTopView = (() => {
  const { make } = CairnDom;
  const GROUP_ROWS = 2000; // of each of 20 groups and the rest

  // Menu entries of a row, for the available actions and links.
  function menuOf(actions, links) {
    const entry = (key, text) => actions[key] ? row => ({ text, run: () => actions[key](row.function, [row.function, row.file], row.line) }) : null;
    const entries = [entry('callees', 'Flame graph of what it calls'), entry('callers', 'Flame graph of what calls it'), entry('focus', 'Only stacks with it'),
      entry('ignore', 'Exclude stacks with it'), entry('hide', 'Hide frame (merge into caller)'), entry('trend', 'Show its trend'), entry('source', 'Show its source')].filter(Boolean);
    const kindOf = row => typeof row.kind === 'number' ? row.kind : Math.max(0, CairnLayout.KINDS.indexOf(row.kind)); // a number in trees, a word in tables
    return row => [...entries.map(e => e(row)), ...links(row.function, [row.function, row.file, row.object, kindOf(row)], row.line)];
  }

  function create(root, context) {
    let current = {}, about = { unit: '', total: 0 };
    const actions = CairnActions.create(context, () => current), links = CairnActions.links(context, () => current);
    const box = make('div', { className: 'table-box' });
    root.append(box);
    const menu = menuOf(actions, links), only = row => row.labels ? [{ text: 'Only ' + row.group, run: () => context.go({ by: null, selector: CairnSelectorText.withLabels(current.selector, row.labels) }) }] : [];
    let table = null, grouped = null;

    // With labels in `by` there is a row for each group of a function.
    function makeTable(by) {
      const columns = CairnTable.costColumns(() => about, CairnActions.sourceOf(context, () => current)), at = columns.findIndex(c => c.name);
      if (by) columns.splice(at, 0, { title: by, key: 'group', share: 0.6 });
      const trendOf = CairnActions.trendOf(context, () => current);
      if (trendOf) columns.push({ title: 'Over time', key: 'cumulative', width: 6.6, wide: true, text: r => trendOf(r) ? 'Trend' : '', href: trendOf });
      table = CairnTable.create(box, columns, { caption: 'Functions', sort: 'flat', filter: ['function', 'file', 'object', 'short_name'], noun: by ? 'functions of groups' : undefined,
        open: row => actions.sandwich(row.function), menu: row => [...menu(row), ...only(row)], keyOf: row => [row.group, row.function, row.file].join('\0'), keep: context.keep });
      grouped = by;
    }
    const groupOf = labels => labels ? CairnNames.label(Object.values(labels).map(v => v || '(none)').join(', ')) : 'all others';
    return {
      async show(selection, signal) {
        current = selection;
        const by = !context.offline && selection.by || '', top = await context.api.query('top', { ...CairnSelection.params(selection), ...CairnFilters.params(selection), by, limit: by ? GROUP_ROWS : CairnTable.ROWS_MAX }, signal);
        about = top;
        if (grouped !== by) makeTable(by);
        table.show(by ? top.groups.flatMap(g => g.rows.map(r => ({ ...r, labels: g.labels, group: groupOf(g.labels) }))) : top.rows);
        table.restore(selection);
        context.about(CairnLayout.about({ type: top.type, unit: top.unit, sides: [CairnLayout.sideOf(top, selection.selector)] }));
      },
      destroy() {},
    };
  }

  return { create, menuOf };
})();
