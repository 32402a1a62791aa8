// SPDX-License-Identifier: Apache-2.0
//
// The flame graph of the selection: of all stacks, of a function's callees (callees_of) or callers (callers_of), or
// inverted (tree=callers). max_nodes limits the drawn nodes; the rest becomes "(other)". both=1: beside the functions of
// the selection as a table, whose rows mark their frames.
'use strict';
const CairnFlameView = (() => {
  const { make } = CairnDom, { display, exactPattern } = CairnNames, { percent } = CairnUnits;
  const MOST_NODES = 1048576;

  function create(root, context) {
    const name = make('b', { className: 'mono' });
    const callees = make('button', { type: 'button', textContent: 'what it calls' });
    const callers = make('button', { type: 'button', textContent: 'what calls it' });
    const all = make('button', { type: 'button', textContent: 'everything' });
    const focus = make('div', { className: 'bar', hidden: true }, make('span', {}, 'Only ', name), callees, callers, all);
    const graph = make('div', { className: 'flame' }), rest = make('span', { className: 'soft' });
    const more = make('button', { type: 'button', textContent: 'Show more' }), restBar = make('div', { className: 'bar', hidden: true }, rest, more);
    const both = make('button', { type: 'button', textContent: 'Both', title: 'The flame graph beside the table of functions', onclick: () => context.go({ both: current.both ? null : 1 }) });
    const box = make('div', { className: 'table-box', hidden: true }), pair = make('div', { className: 'pair-of-views' }, graph, box);
    let flame = null, reversed = false, current = {}, table = null, total = 0;
    root.append(focus, pair, restBar);

    function putTable(top) {
      const share = (title, key, explain) => ({ title, key, number: true, width: 5.9, text: r => percent(r[key], total), explain });
      total = top.total;
      if (!table) table = CairnTable.create(box, [share('Self', 'flat', 'In the function itself'), share('Total', 'cumulative', 'With what it calls'), ...CairnTable.nameColumns().slice(0, 1)],
        { caption: 'Functions', sort: 'flat', filter: ['function', 'file', 'object', 'short_name'], open: row => flame.mark(exactPattern(row.function)), openText: 'marks its frames',
          menu: CairnTopView.menuOf(CairnActions.create(context, () => current), CairnActions.links(context, () => current)), keep: context.keep });
      table.show(top.rows);
      table.restore(current);
    }

    const focused = () => current.callees_of || current.callers_of || '';
    callees.onclick = () => context.go({ callees_of: focused(), callers_of: null });
    callers.onclick = () => context.go({ callers_of: focused(), callees_of: null });
    all.onclick = () => context.go({ callers_of: null, callees_of: null });
    more.onclick = () => context.go({ max_nodes: Math.min(MOST_NODES, 10 * (Number(current.max_nodes) || 20000)) });

    function makeGraph(data) {
      const words = flame ? flame.query() : '';
      if (flame) flame.destroy();
      flame = CairnFlame.create(graph, data, {
        reversed, keep: context.keep, controls: [both],
        actions: { ...CairnActions.create(context, () => current), reverse: () => context.go({ tree: reversed ? null : 'callers', callers_of: null, callees_of: null }) },
        links: CairnActions.links(context, () => current),
      });
      if (words) flame.search(words);
    }

    return {
      async show(selection, signal) {
        const { callees_of, callers_of, by, max_nodes } = selection, upside = !callees_of && !callers_of && selection.tree === 'callers';
        current = selection;
        focus.hidden = !focused();
        name.textContent = display(focused());
        callees.setAttribute('aria-pressed', Boolean(callees_of));
        callers.setAttribute('aria-pressed', !callees_of && Boolean(callers_of));
        const params = { ...CairnSelection.params(selection), ...CairnFilters.params(selection) }, isBoth = Boolean(selection.both) && !callees_of && !callers_of;
        const [json, top] = await Promise.all([context.api.query('flame', { ...params, callees_of, callers_of, callers_matching: upside ? '.' : undefined, by, max_nodes }, signal),
          isBoth ? context.api.query('top', { ...params, limit: CairnTable.ROWS_MAX }, signal) : null]);
        both.hidden = Boolean(callees_of || callers_of);
        both.setAttribute('aria-pressed', isBoth);
        box.hidden = !isBoth;
        pair.classList.toggle('both', isBoth);
        const data = CairnLayout.parse(json);
        if (upside) data.focus = null;
        if (flame && reversed === upside) flame.setData(data);
        else {
          reversed = upside;
          makeGraph(data);
        }
        flame.restore(selection);
        if (isBoth) putTable(top);
        restBar.hidden = !data.leftOut;
        rest.textContent = data.leftOut ? `${data.leftOut.toLocaleString('en')} small frames are grouped as (other); totals are exact.` : '';
        more.hidden = Number(max_nodes) >= MOST_NODES;
        context.about(CairnLayout.about(data));
      },
      destroy() { if (flame) flame.destroy(); },
    };
  }

  return { create };
})();
