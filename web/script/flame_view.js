// SPDX-License-Identifier: Apache-2.0
//
// The flame graph of the selection, of a function's callees (callees_of) or of its callers (callers_of).
'use strict';
const CairnFlameView = (() => {
  const { make } = CairnDom;

  function create(root, context) {
    const name = make('b', { className: 'mono' });
    const callees = make('button', { type: 'button', textContent: 'what it calls' });
    const callers = make('button', { type: 'button', textContent: 'what calls it' });
    const all = make('button', { type: 'button', textContent: 'everything' });
    const focus = make('div', { className: 'bar', hidden: true }, make('span', {}, 'Only ', name), callees, callers, all);
    const graph = make('div', { className: 'flame' });
    let flame = null, current = {};
    root.append(focus, graph);

    const focused = () => current.callees_of || current.callers_of || '';
    callees.onclick = () => context.go({ callees_of: focused(), callers_of: null });
    callers.onclick = () => context.go({ callers_of: focused(), callees_of: null });
    all.onclick = () => context.go({ callers_of: null, callees_of: null });

    return {
      async show(selection, signal) {
        const { callees_of, callers_of, by } = selection;
        current = selection;
        focus.hidden = !focused();
        name.textContent = focused();
        callees.setAttribute('aria-pressed', Boolean(callees_of));
        callers.setAttribute('aria-pressed', !callees_of && Boolean(callers_of));
        const json = await context.api.query('flame', { ...CairnSelection.params(selection), callees_of, callers_of, by }, signal);
        const words = flame ? flame.query() : '', data = CairnLayout.parse(json);
        if (flame) flame.destroy();
        flame = CairnFlame.create(graph, data, { onFunction: f => context.go({ callees_of: f, callers_of: null }) });
        if (words) flame.search(words);
        context.about(CairnLayout.about(data));
      },
      destroy() { if (flame) flame.destroy(); },
    };
  }

  return { create };
})();
