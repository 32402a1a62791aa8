// SPDX-License-Identifier: Apache-2.0
//
// The page at "/": wires the views to the selection. A view is { create(root, context) }, which returns
// { show(selection, signal), destroy() }; show may return a promise; its failure is shown above the view. signal is
// aborted when another selection is to be shown. The context:
//   api            CairnApi.create()
//   go(change, replaces)   changes keys of the selection (null removes one) and shows it, in place of the current
//                  entry of the browser's history if `replaces`
//   keep(keys)     changes keys for what the view shows by itself, such as a zoom, in the address and links only
//   about(text)    sets the description below the chart
//   note(text, kind)   shows a note above the view, which can be dismissed
//   canShow(id)    whether the view exists
//   theme          CairnTheme; its changes are the event "cairn-theme"
'use strict';
{
  const VIEWS = [
    { id: 'services', title: 'Services', view: CairnServicesView },
    { id: 'changes', title: 'Changes', view: CairnChangesView, ignoresFilters: () => true },
    { id: 'flame', title: 'Flame graph', view: CairnFlameView },
    { id: 'top', title: 'Top functions', view: CairnTopView },
    { id: 'sandwich', title: 'Callers and callees', view: CairnSandwich },
    { id: 'trend', title: 'Trend', view: CairnTrendView, ignoresFilters: () => true },
    { id: 'diff', title: 'Compare', view: CairnDiffView },
    { id: 'source', title: 'Source', view: CairnSourceView },
    { id: 'traces', title: 'Traces', view: CairnTracesView, ignoresFilters: () => true },
    { id: 'debuginfo', title: 'Debuginfo', view: CairnDebuginfoView, hasNoCosts: true, ignoresFilters: ({ panel, function: name }) => panel !== 'why' || !name },
    { id: 'status', title: 'Status', view: CairnStatusView, hasNoCosts: true, ignoresFilters: () => true },
  ];
  const WAIT_MS = 1000; // between the times shown while an answer is pending
  const LIVE_MS = 5000; // as in the label of the switch
  const REVOKE_MS = 60000; // when a download has begun for certain
  const { make } = CairnDom, $ = id => document.getElementById(id);
  const api = CairnApi.create({
    unauthorized: () => dispatchEvent(new Event('cairn-unauthorized')),
    tenant: () => selection.tenant || '',
    // What an answer leaves out concerns costs; the chart above the other views asks for some, too.
    note: text => { if (!viewOf(selection.view).hasNoCosts) notes.add(text); },
  });
  const panels = new Map(); // id of a view: { tab, root, instance, about }
  let selection = readAddress(), running = null, timer = 0, waiting = 0;

  // ---- the selection ------------------------------------------------------------------------------

  // Without a selection in the address the page lists the services.
  function readAddress() {
    const read = CairnSelection.parse(location.hash);
    return /^#?$/.test(location.hash) ? { ...read, view: 'services' } : read;
  }
  function go(changes, replaces) {
    const next = CairnSelection.change(selection, changes), address = CairnSelection.format(next);
    if (address !== location.hash) history[replaces ? 'replaceState' : 'pushState'](null, '', address);
    selection = next;
    refresh();
  }
  function keep(keys) {
    selection = CairnSelection.change(selection, keys);
    const address = CairnSelection.format(selection);
    const isSeen = location.hash || Object.values(keys).some(Boolean); // the start page has no selection in its address
    if (isSeen && address !== location.hash) history.replaceState(null, '', address);
  }
  addEventListener('popstate', () => {
    selection = readAddress();
    refresh();
  });

  function fillControls() {
    builder.show(selection.selector);
    times.show(selection);
    addOption($('type'), selection.type, CairnSelection.typeText);
    $('type').value = selection.type || '';
    addOption($('by'), selection.by);
    $('by').value = selection.by || '';
    filters.show(selection, Boolean(viewOf(selection.view).ignoresFilters?.(selection)));
    const p = { ...CairnSelection.params(selection), ...CairnFilters.params(selection) };
    $('pprof').href = CairnApi.makeUrl('api/v1/query/pprof', p);
    $('folded').href = CairnApi.makeUrl('api/v1/query/folded', p);
    $('csv').href = CairnApi.makeUrl('api/v1/query/top', { ...p, by: selection.by, format: 'csv' });
    $('page').href = CairnApi.makeUrl('api/v1/query/flame', { ...p, format: 'html' });
  }

  // A link sends no header, which names the tenant.
  async function download(event) {
    const link = event.currentTarget;
    if (!selection.tenant) return;
    event.preventDefault();
    try {
      const file = URL.createObjectURL(await (await api.send(link.href)).blob());
      make('a', { href: file, download: link.download }).click();
      setTimeout(() => URL.revokeObjectURL(file), REVOKE_MS);
    } catch (e) {
      showError(e);
    }
  }
  for (const id of ['pprof', 'folded', 'csv', 'page']) $(id).addEventListener('click', download);

  // ---- the views ----------------------------------------------------------------------------------

  const viewOf = id => VIEWS.find(v => v.id === id) || VIEWS.find(v => v.id === 'flame');

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
    const panel = panels.get(id), tabs = $('tabs'), { tab } = panel;
    tabs.scrollLeft = Math.min(tab.offsetLeft - tabs.offsetLeft, Math.max(tabs.scrollLeft, tab.offsetLeft - tabs.offsetLeft + tab.offsetWidth - tabs.clientWidth)); // in narrow windows
    series.about(panel.about);
    if (!panel.instance) {
      const about = text => {
        panel.about = text;
        if (!panel.root.hidden) series.about(text);
      };
      panel.instance = viewOf(id).view.create(panel.root, { api, go, keep, about, note: notes.add, theme: CairnTheme, canShow: id => panels.has(id) });
    }
    return panel;
  }

  const series = CairnSeries.create($('series'), { api, go });

  function showError(e) {
    $('error').textContent = CairnNames.sentence(e.message);
    $('error').hidden = false;
  }
  async function refresh() {
    if (running) running.abort();
    const mine = running = new AbortController(), { signal } = mine;
    const panel = showPanel(viewOf(selection.view).id);
    fillControls();
    loadChoicesOnce();
    notes.begin();
    panel.root.setAttribute('aria-busy', 'true');
    $('progress').hidden = false;
    showWaiting();
    document.title = (selection.selector ? CairnNames.display(selection.selector, 100) + ' · ' : '') + 'Cairn';
    try {
      await Promise.all([panel.instance.show(selection, signal), series.show(selection, signal)]);
      if (running !== mine) return;
      $('error').hidden = true;
      document.body.classList.remove('stale');
      CairnRecent.add(selection);
    } catch (e) {
      if (running !== mine || e.name === 'AbortError') return;
      showError(e);
      document.body.classList.add('stale'); // what is shown is the result of another selection
    } finally {
      if (running === mine) {
        notes.end();
        endWaiting();
      }
    }
  }
  function showWaiting() {
    const since = performance.now();
    clearInterval(waiting);
    $('waiting').hidden = true;
    waiting = setInterval(() => {
      $('waited').textContent = `Waiting for the service: ${Math.round((performance.now() - since) / 1000)} s`;
      $('waiting').hidden = false;
    }, WAIT_MS);
  }
  function endWaiting() {
    clearInterval(waiting);
    $('waiting').hidden = $('progress').hidden = true;
    for (const { root } of panels.values()) root.setAttribute('aria-busy', 'false');
  }
  $('cancel').addEventListener('click', () => {
    running.abort();
    running = null;
    endWaiting();
    showError(new Error('cancelled: what is shown belongs to another selection'));
    document.body.classList.add('stale');
  });

  // ---- controls -----------------------------------------------------------------------------------

  function addOption(select, value, text = v => v) {
    if (value && ![...select.options].some(o => o.value === value)) select.add(new Option(CairnNames.label(text(value)), value));
  }
  // Types and labels to choose from; a failure is shown with the query itself.
  async function loadChoices() {
    const { from, to, selector } = selection;
    const [types, labels] = await Promise.all([api.query('types', { from, to, selector }), api.query('labels', { from, to })]);
    $('type').replaceChildren(new Option('CPU (default)', ''), ...types.map(t => new Option(CairnNames.label(CairnSelection.typeText(t)), t)));
    $('by').replaceChildren(new Option('nothing', ''), ...CairnSelection.orderLabels(labels).map(l => new Option(CairnNames.label(l), l)));
    addOption($('type'), selection.type, CairnSelection.typeText);
    addOption($('by'), selection.by);
    $('type').value = selection.type || '';
    $('by').value = selection.by || '';
  }
  let choicesOf = '';
  function loadChoicesOnce() {
    const { from, to, selector } = selection, of = JSON.stringify([from, to, selector]);
    if (of === choicesOf) return;
    choicesOf = of;
    loadChoices().catch(() => { choicesOf = ''; });
  }

  async function copyLink() {
    const link = location.href.replace(/#.*/, '') + CairnSelection.format(CairnSelection.makeAbsolute(selection, Date.now()));
    $('link').value = link;
    try {
      await navigator.clipboard.writeText(link);
      $('link-state').textContent = 'Link copied';
    } catch { // not permitted, or plain HTTP
      $('link-dialog').showModal();
      $('link').select();
    }
  }

  function run() {
    const selector = $('selector').value.trim();
    if (selector === (selection.selector || '')) refresh();
    else go({ selector });
  }
  $('ask').addEventListener('submit', event => { event.preventDefault(); run(); });
  $('type').addEventListener('change', () => go({ type: $('type').value }));
  $('by').addEventListener('change', () => go({ by: $('by').value }));
  $('refresh').addEventListener('click', refresh);
  $('live').addEventListener('change', () => {
    clearInterval(timer);
    if ($('live').checked) timer = setInterval(() => { if (!document.hidden) refresh(); }, LIVE_MS);
  });
  $('copy-link').addEventListener('click', copyLink);
  for (const [id, icon] of [['earlier', 'M10 3 5 8l5 5'], ['later', 'm6 3 5 5-5 5'], ['wider', 'M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9M10.5 10.5 14 14M5 7h4'],
    ['refresh', 'M13 8a5 5 0 1 1-1.5-3.5L13 6M13 2.5V6H9.5'], ['theme', 'M13 9.5A5.5 5.5 0 1 1 6.5 3 4.5 4.5 0 0 0 13 9.5']]) {
    $(id).prepend(CairnIcons.makeIcon(icon));
    $(id).title = $(id).getAttribute('aria-label');
  }
  CairnTheme.connectButton($('theme'));
  CairnSignIn.create($('account'));
  const current = () => selection;
  const builder = CairnQueryBuilder.create({ input: $('selector'), list: $('completions'), add: $('add-filter'), recent: $('recent'), recentPanel: $('recent-panel') },
    { api, selection: current, run, go });
  const times = CairnTimePicker.create({ button: $('range'), note: $('range-note'), panel: $('range-panel'), earlier: $('earlier'), later: $('later'), wider: $('wider') },
    { go, selection: current });
  const filters = CairnFilters.attach({ button: $('filter'), clear: $('no-filter'), panel: $('filter-panel') }, go);
  const notes = CairnNotes.create({ list: $('note'), again: $('notes-again') }, go);
  makeTabs();
  refresh();
}
