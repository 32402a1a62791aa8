// SPDX-License-Identifier: Apache-2.0
//
// The page with one flame graph, which has its data inside.
'use strict';
{
  const data = CairnFlame.parse(JSON.parse(document.getElementById('data').textContent));
  const $ = id => document.getElementById(id);
  $('about').textContent = CairnFlame.about(data);
  document.title = (data.sides[0].selector || data.type || 'Flame graph') + ' · Cairn';
  CairnTheme.connectButton($('theme'));
  const view = CairnFlame.create($('view-flame'), data, {});
  $('view-top').append(CairnFlame.table(data, CairnFlame.topRows(data), name => { show(true); view.search(name); }));
  function show(flame) {
    $('view-flame').hidden = !flame;
    $('view-top').hidden = flame;
    $('tab-flame').setAttribute('aria-selected', flame);
    $('tab-top').setAttribute('aria-selected', !flame);
    if (flame) view.resize();
  }
  $('tab-flame').onclick = () => show(true);
  $('tab-top').onclick = () => show(false);
}
