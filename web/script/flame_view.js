// SPDX-License-Identifier: Apache-2.0
//
// The flame graph of the selection: of all stacks, of a function's callees (callees_of) or callers (callers_of), or
// inverted (tree=callers). max_nodes limits the drawn nodes; the rest becomes "(other)".
'use strict';
const CairnFlameView = (() => {
  const { make } = CairnDom, { display } = CairnNames;
  const MOST_NODES = 1048576;

  function create(root, context) {
    const name = make('b', { className: 'mono' });
    const callees = make('button', { type: 'button', textContent: 'what it calls' });
    const callers = make('button', { type: 'button', textContent: 'what calls it' });
    const all = make('button', { type: 'button', textContent: 'everything' });
    const focus = make('div', { className: 'bar', hidden: true }, make('span', {}, 'Only ', name), callees, callers, all);
    const graph = make('div', { className: 'flame' }), rest = make('span', { className: 'soft' });
    const more = make('button', { type: 'button', textContent: 'Show more' }), restBar = make('div', { className: 'bar', hidden: true }, rest, more);
    let flame = null, reversed = false, current = {};
    root.append(focus, graph, restBar);

    const focused = () => current.callees_of || current.callers_of || '';
    callees.onclick = () => context.go({ callees_of: focused(), callers_of: null });
    callers.onclick = () => context.go({ callers_of: focused(), callees_of: null });
    all.onclick = () => context.go({ callers_of: null, callees_of: null });
    more.onclick = () => context.go({ max_nodes: Math.min(MOST_NODES, 10 * (Number(current.max_nodes) || 20000)) });

    function makeGraph(data) {
      const words = flame ? flame.query() : '';
      if (flame) flame.destroy();
      flame = CairnFlame.create(graph, data, {
        reversed, keep: context.keep,
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
        const json = await context.api.query('flame', { ...CairnSelection.params(selection), ...CairnFilters.params(selection),
          callees_of, callers_of, callers_matching: upside ? '.' : undefined, by, max_nodes }, signal);
        const data = CairnLayout.parse(json);
        if (upside) data.focus = null;
        if (flame && reversed === upside) flame.setData(data);
        else {
          reversed = upside;
          makeGraph(data);
        }
        flame.restore(selection);
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
