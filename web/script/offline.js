// SPDX-License-Identifier: Apache-2.0
//
// The page with one flame graph and embedded data: those views of the service's page that need no other data.
'use strict';
{
  const { make } = CairnDom, $ = id => document.getElementById(id);
  const data = CairnLayout.parse(JSON.parse($('data').textContent));
  const VIEWS = data.diff ? [['diff', 'Comparison', CairnDiffView], ['top', 'Table', CairnTopView]] :
    [['flame', 'Flame graph', CairnFlameView], ['top', 'Table', CairnTopView], ['sandwich', 'Callers and callees', CairnSandwich]];
  const api = CairnOfflineApi.create(data), panels = new Map();
  const viewOf = id => panels.has(id) ? id : VIEWS[0][0];
  let selection = CairnSelection.parse(location.hash);

  function go(changes) {
    selection = CairnSelection.change(selection, changes);
    const address = CairnSelection.format(selection);
    if (address !== location.hash) history.pushState(null, '', address);
    refresh();
  }
  addEventListener('popstate', () => {
    selection = CairnSelection.parse(location.hash);
    refresh();
  });

  const filters = CairnFilters.attach({ button: $('filter'), clear: $('no-filter'), panel: $('filter-panel') }, go);

  async function refresh() {
    const id = viewOf(selection.view);
    filters.show(selection);
    for (const [other, { tab, root }] of panels) {
      root.hidden = other !== id;
      tab.setAttribute('aria-selected', other === id);
      tab.tabIndex = other === id ? 0 : -1;
    }
    const panel = panels.get(id);
    if (!panel.instance) panel.instance = panel.view.create(panel.root, { api, go, about: () => {}, theme: CairnTheme, offline: true });
    panel.root.setAttribute('aria-busy', 'true');
    try {
      await panel.instance.show(selection);
      $('error').hidden = true;
    } catch (e) {
      $('error').textContent = CairnNames.sentence(e.message);
      $('error').hidden = false;
    }
    panel.root.setAttribute('aria-busy', 'false');
  }

  for (const [id, title, view] of VIEWS) {
    const root = make('section', { id: 'view-' + id, className: 'view', role: 'tabpanel', 'aria-labelledby': 'tab-' + id, hidden: true });
    const tab = make('button', { id: 'tab-' + id, type: 'button', role: 'tab', textContent: title, tabIndex: -1, 'aria-controls': root.id, onclick: () => go({ view: id }) });
    $('tabs').append(tab);
    $('views').append(root);
    panels.set(id, { tab, root, view, instance: null });
  }
  $('tabs').addEventListener('keydown', event => {
    const at = VIEWS.findIndex(v => v[0] === viewOf(selection.view)), last = VIEWS.length - 1;
    const to = { ArrowRight: at === last ? 0 : at + 1, ArrowLeft: at === 0 ? last : at - 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    go({ view: VIEWS[to][0] });
    panels.get(VIEWS[to][0]).tab.focus();
  });
  // An answer of the service has this in a header.
  const negative = data.negative ? ` · stacks with negative values are not drawn: ${CairnUnits.formatValue(data.negative, data.unit)} together` : '';
  $('about').textContent = CairnLayout.about(data) + negative;
  document.title = CairnNames.display(data.sides[0].selector || data.type || 'Flame graph', 200) + ' · Cairn';
  CairnTheme.connectButton($('theme'));
  refresh();
}
