// SPDX-License-Identifier: Apache-2.0
//
// The selector field: completes label names, with their number of values, and values, with their share of the cost.
'use strict';
const CairnQueryBuilder = (() => {
  const { make } = CairnDom, { label: visible } = CairnNames;
  const VALUES_MAX = 500;

  // parts: input, list, add (button), recent (button), recentPanel. api, selection() and go(change) as in the page;
  // run() shows the selection in the field.
  function create({ input, list, add, recent, recentPanel }, { api, selection, run, go }) {
    let edited = null; // the context of the offered completions

    async function offerNames(context, text, signal) {
      const { from, to } = selection(), used = new Set(CairnSelectorText.matchers(text).map(m => m.name));
      const fits = ({ name }) => name.toLowerCase().includes(context.prefix.toLowerCase()) && !used.has(name);
      const makeItem = ({ name, values, more }) => ({ label: visible(name), name, detail: values === undefined ? '' : more ? `${values.toLocaleString('en')}+ values` : CairnUnits.things(values, 'value') });
      let labels;
      try {
        labels = await api.query('labels', { from, to, selector: CairnSelectorText.without(text, context), counts: 1 }, signal);
      } catch (e) { // the rest of the selector is incomplete, or there are too many values to count
        if (e.name === 'AbortError') throw e;
        labels = (await api.query('labels', { from, to }, signal)).map(name => ({ name }));
      }
      return { title: 'Labels', items: CairnSelection.orderLabels(labels.filter(fits), l => l.name).map(makeItem) };
    }
    async function offerValues(context, text, signal) {
      const { from, to, type } = selection();
      const range = CairnTimes.resolveRange(selection(), Date.now());
      const params = { from, to, type, by: context.name, groups: VALUES_MAX, step: Math.max(1, Math.ceil((range.to - range.from) / 1000)) + 's' };
      const series = await api.query('series', { ...params, selector: CairnSelectorText.without(text, context) }, signal);
      const groups = series.groups.filter(g => g.labels), sum = series.groups.reduce((s, g) => s + g.total, 0);
      const fits = groups.map(g => ({ ...g, value: g.labels[context.name] ?? Object.values(g.labels)[0] }))
        .filter(g => g.value.toLowerCase().includes(context.prefix.toLowerCase()));
      return {
        title: `Values of ${context.name}`,
        items: fits.map(g => ({ label: g.value === '' ? '(none)' : visible(g.value), value: g.value, share: sum ? g.total / sum : 0,
          detail: `${CairnUnits.percent(g.total, sum)} · ${CairnLayout.countText({ samples: g.samples, samples_are: series.samples_are })}` })),
      };
    }
    function offer(text, caret, signal) {
      edited = CairnSelectorText.contextAt(text, caret);
      if (!edited) return null;
      return edited.kind === 'name' ? offerNames(edited, text, signal) : offerValues(edited, text, signal);
    }

    function replaceEdited(text) {
      input.setRangeText(text, edited.start, edited.end, 'end');
    }
    function accept(item) {
      if (item.name !== undefined) {
        replaceEdited(item.name + '=');
        completion.open();
      } else {
        replaceEdited(CairnSelectorText.quote(item.value));
        run();
      }
    }
    const completion = CairnCompletion.attach(input, list, offer, accept);

    add.addEventListener('click', () => {
      const text = input.value.trim().replace(/^\{|\}$/g, '').replace(/[,\s]+$/, '');
      input.value = text ? text + ', ' : '';
      input.focus();
      input.setSelectionRange(input.value.length, input.value.length);
      completion.open();
    });

    const panel = CairnPopover.attach(recent, recentPanel, () => {
      const queries = CairnRecent.read();
      const rows = queries.map(q => make('button', { type: 'button', className: 'menu-item', onclick: () => { panel.close(); go({ selector: null, type: null, by: null, ...q }); } },
        make('span', { className: 'mono', textContent: visible(q.selector) }),
        make('span', { className: 'soft', textContent: visible([q.type && CairnSelection.typeText(q.type), q.by && 'by ' + q.by].filter(Boolean).join(' · ')) })));
      const clear = make('button', { type: 'button', textContent: 'Clear history', onclick: () => { CairnRecent.clear(); panel.close(); } });
      recentPanel.replaceChildren(make('h2', { textContent: 'Recent queries' }),
        ...(rows.length ? [...rows, clear] : [make('p', { className: 'soft', textContent: 'None yet. Queries are kept only in this browser.' })]));
    });

    return { show(selector) { if (document.activeElement !== input || input.value === '') input.value = selector || ''; } };
  }

  return { create };
})();
