// SPDX-License-Identifier: Apache-2.0
//
// Two selections in one flame graph. Without one to compare with it is the range just before.
'use strict';
const CairnDiffView = (() => {
  const { make } = CairnDom;

  function create(root, context) {
    const selector = make('input', { className: 'mono', size: 30, placeholder: 'the same', spellcheck: false });
    const from = make('input', { className: 'mono', size: 20, placeholder: 'one range earlier', spellcheck: false });
    const to = make('input', { className: 'mono', size: 20, placeholder: 'where this one begins', spellcheck: false });
    const bar = make('form', { className: 'bar' }, make('label', {}, 'Before: selector ', selector),
      make('label', {}, 'from ', from), make('label', {}, 'to ', to), make('button', { type: 'submit', textContent: 'Compare' }));
    const graph = make('div', { className: 'flame' });
    let flame = null;
    root.append(bar, graph);

    bar.addEventListener('submit', event => {
      event.preventDefault();
      context.go({ base_selector: selector.value.trim(), base_from: from.value.trim(), base_to: to.value.trim() });
    });

    // The range before the selected one, of the same length.
    function previous(selection) {
      const { from: first, to: last } = CairnTimes.resolveRange(selection, Date.now());
      return { base_from: CairnTimes.toIso(first - (last - first)), base_to: CairnTimes.toIso(first) };
    }

    return {
      async show(selection, signal) {
        const { base_selector, base_from, base_to } = selection;
        selector.value = base_selector || '';
        from.value = base_from || '';
        to.value = base_to || '';
        const base = base_from || base_selector ? { base_from, base_to } : previous(selection);
        const json = await context.api.query('diff', { ...CairnSelection.params(selection), base_selector, ...base }, signal);
        const words = flame ? flame.query() : '', data = CairnLayout.parse(json);
        if (flame) flame.destroy();
        flame = CairnFlame.create(graph, data, { onFunction: f => context.go({ view: 'flame', callees_of: f }) });
        if (words) flame.search(words);
        context.about(CairnLayout.about(data));
      },
      destroy() { if (flame) flame.destroy(); },
    };
  }

  return { create };
})();
