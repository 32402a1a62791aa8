// SPDX-License-Identifier: Apache-2.0
//
// The page at "/": wires the views to the selection. A view is { create(root, context) }, which returns
// { show(selection, signal), destroy() }; show may return a promise, whose failure is shown above the view. signal is
// aborted when another selection is to be shown. The context:
//   api            CairnApi.create()
//   go(change)     changes keys of the selection (null removes one) and shows it
//   about(text)    says what is shown, beside the tabs
//   theme          CairnTheme; its changes are the event "cairn-theme"
'use strict';
{
  const VIEWS = [
    { id: 'flame', title: 'Flame graph', view: CairnFlameView },
    { id: 'top', title: 'Top functions', view: CairnTopView },
    { id: 'diff', title: 'Compare', view: CairnDiffView },
    { id: 'missing', title: 'Missing debuginfo', view: CairnMissingView },
  ];
  const LIVE_MS = 5000;
  const { make } = CairnDom, $ = id => document.getElementById(id);
  const api = CairnApi.create({
    unauthorized: () => dispatchEvent(new Event('cairn-unauthorized')),
    note: text => { $('note').textContent = text; $('note').hidden = false; },
  });
  const panels = new Map(); // id of a view: { tab, root, instance, about }
  let selection = CairnSelection.parse(location.hash), running = null, timer = 0;

  // ---- the selection ------------------------------------------------------------------------------

  function go(changes) {
    const next = CairnSelection.change(selection, changes), address = CairnSelection.format(next);
    if (address !== location.hash) history.pushState(null, '', address);
    selection = next;
    refresh();
  }
  addEventListener('popstate', () => {
    selection = CairnSelection.parse(location.hash);
    refresh();
  });

  function fillForm() {
    for (const name of ['selector', 'from', 'to']) $(name).value = selection[name] || '';
    addType(selection.type);
    $('type').value = selection.type || '';
    const p = CairnSelection.params(selection);
    $('pprof').href = CairnApi.makeUrl('api/v1/query/pprof', p);
    $('folded').href = CairnApi.makeUrl('api/v1/query/folded', p);
    $('page').href = CairnApi.makeUrl('api/v1/query/flame', { ...p, format: 'html' });
  }

  // ---- the views ----------------------------------------------------------------------------------

  const viewOf = id => VIEWS.find(v => v.id === id) || VIEWS[0];

  function makeTabs() {
    for (const { id, title } of VIEWS) {
      const root = make('section', { id: 'view-' + id, className: 'view', role: 'tabpanel', 'aria-labelledby': 'tab-' + id, hidden: true });
      const tab = make('button', { id: 'tab-' + id, type: 'button', role: 'tab', textContent: title, tabIndex: -1,
        'aria-controls': root.id, 'aria-selected': 'false', onclick: () => go({ view: id }) });
      $('tabs').append(tab);
      $('views').append(root);
      panels.set(id, { tab, root, instance: null, about: '' });
    }
    $('tabs').addEventListener('keydown', event => {
      const at = VIEWS.findIndex(v => v.id === viewOf(selection.view).id), last = VIEWS.length - 1;
      const to = { ArrowRight: at === last ? 0 : at + 1, ArrowLeft: at === 0 ? last : at - 1, Home: 0, End: last }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      go({ view: VIEWS[to].id });
      panels.get(VIEWS[to].id).tab.focus();
    });
  }

  function showPanel(id) {
    for (const [other, panel] of panels) {
      panel.root.hidden = other !== id;
      panel.tab.setAttribute('aria-selected', other === id);
      panel.tab.tabIndex = other === id ? 0 : -1;
    }
    const panel = panels.get(id);
    $('about').textContent = panel.about;
    if (!panel.instance) {
      const about = text => {
        panel.about = text;
        if (!panel.root.hidden) $('about').textContent = text;
      };
      panel.instance = viewOf(id).view.create(panel.root, { api, go, about, theme: CairnTheme });
    }
    return panel;
  }

  const series = CairnSeries.create($('series'), (from, to) => go({ from: CairnTimes.toIso(Math.floor(from)), to: CairnTimes.toIso(Math.ceil(to)) }));

  async function refresh() {
    if (running) running.abort();
    const mine = running = new AbortController(), { signal } = mine;
    const panel = showPanel(viewOf(selection.view).id);
    fillForm();
    $('note').hidden = true;
    panel.root.setAttribute('aria-busy', 'true');
    try {
      await Promise.all([panel.instance.show(selection, signal),
        api.query('series', CairnSelection.params(selection), signal).then(s => { if (!signal.aborted) series.show(s); })]);
      if (running === mine) $('error').hidden = true;
    } catch (e) {
      if (running !== mine || e.name === 'AbortError') return;
      $('error').textContent = e.message;
      $('error').hidden = false;
    } finally {
      if (running === mine) panel.root.setAttribute('aria-busy', 'false');
    }
  }

  // ---- controls -----------------------------------------------------------------------------------

  function addType(id) {
    if (id && ![...$('type').options].some(o => o.value === id)) $('type').add(new Option(id.split(':').slice(0, 3).join(' · '), id));
  }
  async function loadHints() {
    const { from, to } = selection;
    const [types, labels] = await Promise.all([api.query('types', { from, to }), api.query('labels', { from, to })]);
    types.forEach(addType);
    $('hints').replaceChildren(...labels.map(l => new Option(`{${l}=""}`)));
  }
  $('selector').addEventListener('change', async () => { // {comm=""} offers the values of comm
    const open = /([\w.\/-]+)\s*=~?\s*""/.exec($('selector').value);
    if (!open) return;
    const { from, to } = selection;
    const values = await api.query('label/' + encodeURIComponent(open[1]) + '/values', { from, to, limit: 200 }).catch(() => []);
    $('hints').replaceChildren(...values.map(v => new Option($('selector').value.replace('""', JSON.stringify(v)))));
  });

  async function copyLink() {
    const link = location.href.replace(/#.*/, '') + CairnSelection.format(CairnSelection.makeAbsolute(selection, Date.now()));
    $('link').value = link;
    try {
      await navigator.clipboard.writeText(link);
      $('link-state').textContent = 'Link copied';
    } catch { // not allowed, or plain http
      $('link-dialog').showModal();
      $('link').select();
    }
  }

  $('ask').addEventListener('submit', event => {
    event.preventDefault();
    loadHints().catch(() => {});
    go({ selector: $('selector').value.trim(), from: $('from').value.trim(), to: $('to').value.trim() });
  });
  $('type').addEventListener('change', () => go({ type: $('type').value }));
  $('live').addEventListener('change', () => {
    clearInterval(timer);
    if ($('live').checked) timer = setInterval(() => { if (!document.hidden) refresh(); }, LIVE_MS);
  });
  $('copy-link').addEventListener('click', copyLink);
  CairnTheme.connectButton($('theme'));
  $('type').add(new Option('CPU, or what there is', ''));
  makeTabs();
  loadHints().catch(() => {});
  refresh();
}
