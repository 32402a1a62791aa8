// SPDX-License-Identifier: Apache-2.0
// shell.js URL FILE: the service's page with the recorded profile: every view, in light, dark and narrow windows; and a
// standalone page with one flame graph.
'use strict';
const { run, check, equal, match, openPage, noProblems, axe, screenshot, fitsWidth } = require('./support');

const [url, saved] = process.argv.slice(2);
const VIEWS = ['services', 'changes', 'flame', 'top', 'sandwich', 'diff', 'source', 'traces']; // debuginfo and status: debuginfo.js
// Colours are the same in narrow windows; checking them takes most of axe's time.
const WITHOUT_CONTRAST = { rules: { 'color-contrast': { enabled: false } } };
const LOOKS = [['light', {}], ['dark', { dark: true }], ['narrow', { width: 360, height: 740 }]];

// The response for the current view has arrived.
const ready = page => page.waitForFunction(() => {
  const shown = document.querySelector('[role=tabpanel]:not([hidden])');
  return shown && shown.getAttribute('aria-busy') === 'false';
});

// No two controls that are shown have the same accessible name, except in rows of tables and lists, which repeat.
async function uniqueNames(page, name) {
  const names = await page.$$eval('button, select, input, [role=tab]', all => all.filter(e => e.offsetParent && !e.closest('tr, li, .legend, .table-box'))
    .map(e => (e.getAttribute('aria-label') || [...(e.labels || [])].map(l => l.textContent).join(' ') || e.textContent || e.placeholder).trim()).filter(Boolean));
  const twice = names.filter((n, i) => names.indexOf(n) !== i);
  check(!twice.length, name, twice);
}

async function look(browser) {
  for (const [name, options] of LOOKS) {
    const page = await openPage(browser, url + '/', options);
    for (const view of VIEWS) {
      await page.click('#tab-' + view);
      await ready(page);
      equal(await page.getAttribute('#tab-' + view, 'aria-selected'), 'true', `${name}: the tab ${view} is selected`);
      check(await page.isHidden('#error'), `  without an error`, await page.textContent('#error'));
      await axe(page, `  axe has no complaint`, name === 'narrow' ? WITHOUT_CONTRAST : {});
      await fitsWidth(page, `  it fits the window`);
      const heights = await page.$$eval('[role=tabpanel]:not([hidden]) :is(canvas, .table-box .table-scroll)', all => all.filter(e => e.offsetParent).map(e => e.clientHeight));
      check(heights.every(h => h > 60 && h < page.viewportSize().height), '  and no part is higher than it', heights);
      const cut = await page.$$eval('[role=tabpanel]:not([hidden]) .table-scroll', all => all.filter(e => e.offsetParent).flatMap(e => [...e.querySelectorAll('tbody td:has(button.link)')]
        .filter(td => td.getBoundingClientRect().right > e.getBoundingClientRect().right + 1).map(td => td.textContent)));
      check(!cut.length, '  names of functions end in sight', cut.slice(0, 3));
      if (name === 'light') await uniqueNames(page, '  its controls have names of their own');
      await screenshot(page, `${view}-${name}`);
    }
    await noProblems(page, `${name}: no console error, no policy violation`);
    await page.context().close();
  }
}

async function lookAtSaved(browser) {
  for (const [name, options] of LOOKS) {
    const page = await openPage(browser, 'file://' + saved, options);
    await page.waitForSelector('#view-flame canvas');
    match(await page.textContent('#about'), / samples, /, `saved page, ${name}: its data is shown`);
    await axe(page, '  axe has no complaint');
    await fitsWidth(page, '  it fits the window');
    await screenshot(page, 'saved-' + name);
    await page.click('#tab-top');
    check(await page.isVisible('#view-top table'), '  with its table');
    await axe(page, '  axe has no complaint');
    await screenshot(page, 'saved-table-' + name);
    await page.click('#tab-sandwich');
    check(await page.isVisible('#view-sandwich canvas'), '  with callers and callees');
    await axe(page, '  axe has no complaint');
    await screenshot(page, 'saved-sandwich-' + name);
    await noProblems(page, '  no console error, no policy violation');
    await page.context().close();
  }
}

// Attempts to execute injected script, as a malicious function name might.
async function tryPolicy(browser) {
  for (const [name, address] of [['the service', url + '/'], ['a saved page', 'file://' + saved]]) {
    const page = await openPage(browser, address, { expected: [/Content Security Policy|^console: policy:|TrustedHTML|TrustedScript/] });
    // In a timer, because code evaluated by the debugger itself has more rights.
    const outcome = await page.evaluate(() => new Promise(done => setTimeout(() => {
      const attempts = {
        html: () => { document.body.innerHTML = '<img src=x onerror="window.reached=1">'; },
        script: () => { const s = document.createElement('script'); s.text = 'window.reached=1'; document.body.append(s); },
        eval: () => (0, eval)('window.reached=1'),
        style: () => { const p = document.createElement('p'); p.setAttribute('style', 'width:77px;display:block'); document.body.append(p);
          if (p.offsetWidth !== 77) throw new Error('not applied'); },
      };
      done(Object.entries(attempts).map(([what, f]) => { try { f(); return what + ' was possible'; } catch { return what; } }));
    }, 0)));
    equal(outcome, ['html', 'script', 'eval', 'style'], `${name} refuses text as HTML, script and style`);
    equal(await page.evaluate(() => window.reached), undefined, '  and nothing of it ran');
    await page.context().close();
  }
}

const selectionOf = page => Object.fromEntries(new URLSearchParams(new URL(page.url()).hash.slice(1)));
const total = page => page.textContent('#series .readout');
const hasSelection = (page, name, pattern) => page.waitForFunction(([n, p]) =>
  new RegExp(p).test(new URLSearchParams(location.hash.slice(1)).get(n) || ''), [name, pattern.source]);

async function goThroughHistory(browser) {
  const page = await openPage(browser, url + '/');
  await ready(page);
  await page.click('#tab-top');
  await ready(page);
  match(page.url(), /#view=top&from=now-15m&to=now$/, 'the selection is in the address');
  await page.goBack();
  await page.waitForSelector('#tab-services[aria-selected=true]');
  await page.goForward();
  await page.waitForSelector('#tab-top[aria-selected=true]');
  check(true, 'the browser goes back and forward through selections');
  await page.focus('#tab-top');
  await page.keyboard.press('ArrowRight');
  await page.waitForSelector('#tab-sandwich[aria-selected=true]:focus');
  check(true, 'arrow keys move between tabs');

  await page.click('#theme');
  equal(await page.evaluate(() => [document.documentElement.dataset.theme, getComputedStyle(document.body).backgroundColor]),
    ['dark', 'rgb(22, 24, 27)'], 'the switch makes it dark');
  await page.reload();
  await ready(page);
  equal(await page.getAttribute('#theme', 'aria-pressed'), 'true', '  and a reload leaves it so');
  await page.click('#theme');
  equal(await page.evaluate(() => localStorage.getItem('cairn-theme')), null, '  as the system has it is not kept');
  await noProblems(page, '  no console error, no policy violation');
  await page.context().close();
}

async function chooseTimes(browser) {
  const page = await openPage(browser, url + '/#view=top&from=now-15m&to=now');
  await ready(page);
  await page.click('#range');
  await page.click('text=Last 1 hour');
  equal([selectionOf(page).from, await page.textContent('#range')], ['now-1h', 'Last 1 hour'], 'a relative range is chosen');
  check(await page.isDisabled('#later'), '  with nothing later');
  await page.click('#wider');
  equal(selectionOf(page).from, 'now-2h', '  and doubled');

  await page.click('#range');
  await page.fill('#range-panel input >> nth=0', 'yesterdayish');
  await page.keyboard.press('Enter');
  match(await page.textContent('#range-panel [role=alert]'), /"yesterdayish" is not a time/, 'a wrong time is refused');
  await page.fill('#range-panel input >> nth=0', '2026-01-31 12:00');
  await page.fill('#range-panel input >> nth=1', '2026-01-31T14:00:00+01:00');
  await page.keyboard.press('Enter');
  await ready(page);
  equal([selectionOf(page).from, selectionOf(page).to], ['2026-01-31T12:00:00Z', '2026-01-31T13:00:00Z'], '  fields take what the API takes');
  equal(await page.textContent('#range'), '2026-01-31 12:00:00 – 13:00:00', '  and the button shows it');
  await page.waitForSelector('.empty');
  match(await page.textContent('.empty'), /No samples in this range.*cairn-agent --server http/s, '  an empty range says where profiles come from');
  match(await page.textContent('#note'), /^No samples are in this time range; there are some from \d{4}-/, '  and the note which range has some');
  await page.click('[role=tab]:has-text("Status")');
  await ready(page);
  equal(await page.isHidden('#note'), true, '  the status has no note about samples');
  await page.goBack();
  await ready(page);
  await axe(page, '  axe has no complaint');
  await screenshot(page, 'empty');
  await page.click('#earlier');
  equal([selectionOf(page).from, selectionOf(page).to], ['2026-01-31T11:00:00Z', '2026-01-31T12:00:00Z'], '  one range earlier');
  await page.click('#later');
  await page.click('#later');
  equal(selectionOf(page).from, '2026-01-31T13:00:00Z', '  and later');
  await page.click('#wider');
  equal([selectionOf(page).from, selectionOf(page).to], ['2026-01-31T12:30:00Z', '2026-01-31T14:30:00Z'], '  and wider, around its middle');
  await page.click('#range');
  await page.keyboard.press('Escape');
  check(await page.isHidden('#range-panel') && await page.evaluate(() => document.activeElement.id === 'range'), '  Escape closes the panel');

  await page.goto(url + '/#view=top&from=now-15m&to=now');
  await ready(page);
  const before = await total(page), chart = await page.locator('.chart').boundingBox();
  await page.mouse.move(chart.x + chart.width * 0.3, chart.y + 40);
  await page.mouse.down();
  await page.mouse.move(chart.x + chart.width * 0.4, chart.y + 40);
  await page.mouse.move(chart.x + chart.width * 0.6, chart.y + 40);
  match(await page.textContent('#series .readout'), /^2.* – .*: [0-9.]+ cores \([0-9.]+ m?s\)/, 'dragging over the chart says what it selects');
  await page.mouse.up();
  await hasSelection(page, 'from', /^20.*Z$/);
  await ready(page);
  const { from, to } = selectionOf(page), length = Date.parse(to) - Date.parse(from);
  check(length > 240e3 && length < 340e3, '  and selects that range', `${from} ${to}`);
  check(await total(page) !== before, '  with its cost', await total(page));

  await page.focus('.chart');
  for (const key of ['Home', 'ArrowRight', 'ArrowRight', 'Shift+ArrowRight', 'Shift+ArrowRight']) await page.keyboard.press(key);
  await page.keyboard.press('Enter');
  await page.waitForFunction(old => new URLSearchParams(location.hash.slice(1)).get('from') !== old, from);
  await ready(page);
  const keyed = selectionOf(page);
  check(Date.parse(keyed.to) - Date.parse(keyed.from) < 20e3 && Date.parse(keyed.from) >= Date.parse(from), 'keys select a range on the chart', JSON.stringify(keyed));
  await noProblems(page, '  no console error, no policy violation');
  await page.context().close();
}

// Times in the zone of the browser, if that is chosen; links and the API have UTC.
async function useLocalTime(browser) {
  const page = await openPage(browser, url + '/#view=top&from=2026-01-31T12:00:00Z&to=2026-01-31T13:00:00Z', { timezoneId: 'Asia/Kolkata' });
  await ready(page);
  equal(await page.textContent('#range'), '2026-01-31 12:00:00 – 13:00:00', 'times are in UTC');
  await page.click('#range');
  await Promise.all([page.waitForEvent('load'), page.selectOption('#range-panel select', { label: 'local time (UTC+05:30)' })]);
  await ready(page);
  equal([await page.textContent('#range'), await page.textContent('#range-note')], ['2026-01-31 17:30:00 – 18:30:00', 'Time range, in UTC+05:30'], '  or in local time');
  await page.click('#range');
  await axe(page, '  axe has no complaint');
  await page.fill('#range-panel input >> nth=0', '2026-01-31 18:00');
  await page.keyboard.press('Enter');
  await ready(page);
  equal([selectionOf(page).from, selectionOf(page).to], ['2026-01-31T12:30:00Z', '2026-01-31T13:00:00Z'], '  as are the fields, while the address has UTC');
  await page.goto(url + '/#view=top&from=now-15m&to=now');
  await page.reload();
  await ready(page);
  match(await total(page), / UTC\+05:30$/, '  which the line below the chart says');
  await page.click('#range');
  await Promise.all([page.waitForEvent('load'), page.selectOption('#range-panel select', { label: 'UTC' })]);
  equal(await page.evaluate(() => localStorage.getItem('cairn-times')), null, '  UTC is chosen again');
  await noProblems(page, '  no console error, no policy violation');
  await page.context().close();
}

// All controls are reachable with the Tab key, have a visible focus, and do not trap it.
async function walkByKeyboard(browser) {
  const page = await openPage(browser, url + '/#view=flame&selector=' + encodeURIComponent('service_name="zstd"'));
  for (const view of VIEWS) {
    await page.click('#tab-' + view);
    await ready(page);
    const seen = [];
    let wrong = [], again = false;
    while (!again && seen.length < 150) {
      await page.keyboard.press('Tab');
      const at = await page.evaluate(n => {
        const e = document.activeElement, style = getComputedStyle(e), box = e.getBoundingClientRect();
        if (e === document.body) return { out: true };
        const known = e.dataset.walked === String(n);
        e.dataset.walked = n;
        return { known, what: `${e.tagName} ${e.id} ${(e.getAttribute('aria-label') || e.textContent).slice(0, 30)}`,
          lined: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2,
          shown: box.width > 0 && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth };
      }, VIEWS.indexOf(view));
      again = at.known;
      if (at.out || again) continue;
      seen.push(at.what);
      if (!at.lined || !at.shown) wrong.push(at);
    }
    check(again && seen.length > 20 && ['selector', 'copy-link', 'tab-' + view].every(id => seen.some(s => s.split(' ')[1] === id)), `${view}: Tab goes around`, seen);
    check(!wrong.length, '  and one sees where one is', wrong);
  }
  await noProblems(page, '  no console error, no policy violation');
  await page.context().close();
}

// A note stays away in this browser until its text changes, and can be shown again.
async function dismissNotes(browser) {
  const page = await openPage(browser, url + '/#view=top&from=now-13h&to=now-11h'), notes = () => page.$$eval('#note p', all => all.map(p => p.textContent));
  await ready(page);
  const omitted = 'Not included: samples of type memory · inuse space; choose one with type.';
  equal(await notes(), [omitted], 'a note names what is left out in words');
  await axe(page, '  axe has no complaint');
  await page.focus('#note .close');
  await page.keyboard.press('Enter');
  equal([await page.isVisible('#note'), await page.textContent('#notes-again:focus')], [false, 'Show 1 note'], '  it is dismissed by keyboard, and the focus is where it is shown again');
  await axe(page, '  axe has no complaint');
  await page.reload();
  await ready(page);
  equal([await page.isVisible('#note'), await page.isVisible('#notes-again')], [false, true], '  a reload leaves it away');
  await page.click('#tab-flame');
  await ready(page);
  check(await page.isHidden('#note') && await page.isVisible('#notes-again'), '  as does another view');
  await page.click('#tab-status');
  await ready(page);
  check(await page.isHidden('#notes-again'), '  a view without that note has nothing to show');
  await page.click('#tab-top');
  await ready(page);
  await page.route('**/api/v1/query/top*', async route => {
    const response = await route.fetch();
    await route.fulfill({ response, headers: { ...response.headers(), 'x-cairn-note': 'not included: samples of type goroutine:goroutine:count:goroutine:count; choose one with type' } });
  });
  await page.click('#refresh');
  await ready(page);
  equal(await notes(), ['Not included: samples of type goroutine · goroutine; choose one with type.'], '  with another text it is back');
  await page.unroute('**/api/v1/query/top*');
  await page.click('#refresh');
  await ready(page);
  check(await page.isHidden('#note'), '  what was dismissed stays away');
  await page.click('#notes-again');
  equal([await notes(), await page.evaluate(() => localStorage.getItem('cairn-notes')), await page.isVisible('#note .close:focus')], [[omitted], null, true], '  until it is shown again');
  await page.click('#note button:text-is("memory · inuse space")');
  await hasSelection(page, 'type', /^memory:inuse_space:/);
  await ready(page);
  check(await page.isHidden('#note'), '  its type leads to the samples of that type');
  await noProblems(page, '  no console error, no policy violation');
  await page.context().close();
}

// The order and filter of the tables of each view are in the address, by the name of the table where a view has several.
async function shareTables(browser) {
  for (const [view, table, head, keys] of [['services', 'services', 'Samples', { sort: '-samples' }], ['sandwich', 'sandwich .part:nth-of-type(3)', 'Function', { callees_sort: 'function' }],
    ['source', 'source', 'Total', { sort: '-cumulative' }]]) {
    const page = await openPage(browser, `${url}/#view=${view}&from=now-1h&to=now${view === 'sandwich' ? '&function=_PyEval_EvalFrameDefault' : ''}`), texts = p => p.$$eval(`#view-${table} tbody tr`, all => all.map(tr => tr.textContent));
    await ready(page);
    const before = await texts(page);
    await page.click(`#view-${table} th button:text-is("${head}")`);
    const sorted = await texts(page), seen = selectionOf(page);
    equal(Object.fromEntries(Object.keys(keys).map(k => [k, seen[k]])), keys, `${view}: the order of a table is in the address`);
    const other = await openPage(browser, page.url());
    await ready(other);
    const tree = JSON.stringify(await texts(other));
    check(tree === JSON.stringify(sorted) && (view === 'services' || tree !== JSON.stringify(before)), '  and another page shows the same', [before.slice(0, 5), sorted.slice(0, 5), await texts(other).then(t => t.slice(0, 5))]);
    await other.context().close();
    await page.click('#refresh');
    await ready(page);
    equal([await texts(page), selectionOf(page)], [sorted, seen], '  as does a refresh');
    await noProblems(page, '  no console error, no policy violation');
    await page.context().close();
  }
  const page = await openPage(browser, url + '/');
  await ready(page);
  await page.click('#view-services th button:text-is("service_name")');
  equal([selectionOf(page).view, selectionOf(page).sort], ['services', 'name'], 'the start page gets an address with the order');
  await page.context().close();
}

async function chooseType(browser) {
  const page = await openPage(browser, url + '/#view=top&from=now-13h&to=now-11h');
  await ready(page);
  match(await total(page), /^CPU time · 4\.10 µs in 1 stack,/, 'without a type, CPU time is shown');
  await page.waitForFunction(() => document.querySelectorAll('#type option').length === 3);
  await page.selectOption('#type', { label: 'memory · inuse space' });
  await hasSelection(page, 'type', /^memory:inuse_space:/);
  await ready(page);
  match(await total(page), /4\.00 KiB, average of 1 snapshot,/, '  another type is chosen from those of the selection');
  await noProblems(page, '  no console error, no policy violation');
  await page.context().close();
}

// Omitted nodes are summed up and can be loaded, inlined frames are marked, and the graph is updated when more data arrives.
async function drawRecorded(browser) {
  const page = await openPage(browser, url + '/#view=flame&from=now-1h&to=now&max_nodes=60', { expected: [/willReadFrequently/] }), rest = () => page.textContent('#view-flame > .bar:last-child');
  const left = async () => Number(/^([\d,]+) small frames are grouped as \(other\); totals are exact\./.exec(await rest())[1].replaceAll(',', ''));
  await ready(page);
  const few = await left(), root = await page.textContent('#view-flame .flame-status'), sum = /· (\d.*?) in/.exec(await total(page))[1];
  check(few > 500 && root.startsWith(`all — ${sum}, 100`), 'a graph of 60 frames has the total of all', `${few} ${root} ${sum}`);
  await page.fill('#view-flame input[type=search]', '(other)');
  await page.waitForFunction(() => document.querySelector('#view-flame input[type=search] ~ [role=status]').textContent);
  match(await page.textContent('#view-flame input[type=search] ~ [role=status]'), /^\d+\.\d\d% in \d+ frames$/, '  what is left out is there as (other)');
  await page.fill('#view-flame input[type=search]', '');
  await page.click('text=Show more');
  await hasSelection(page, 'max_nodes', /^600$/);
  await ready(page);
  check(await left() < few && await page.textContent('#view-flame .flame-status') === root, '  more of it is drawn, of the same total');

  await page.goto(url + '/#' + new URLSearchParams({ view: 'flame', from: 'now-1h', to: 'now', callees_of: '_PyEval_EvalFrame' }));
  await page.reload();
  await ready(page);
  match(await page.textContent('#view-flame .legend'), /inlined/, 'the legend has inlined frames');
  await page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));
  // Changes of colour from left to right in the right half of the two rows that have the full width: no names there.
  const changes = await page.$eval('#view-flame canvas', canvas => [0, 1].map(row => {
    const from = Math.floor(canvas.width / 2), width = canvas.width - from - 20, { data } = canvas.getContext('2d').getImageData(from, 20 * row, width, 20);
    return Math.max(...Array.from({ length: 18 }, (_, y) => {
      let n = 0;
      for (let x = 1; x < width; x++) if (Math.abs(data[4 * ((y + 1) * width + x)] - data[4 * ((y + 1) * width + x - 1)]) > 60) n++;
      return n;
    }));
  }));
  check(changes[0] === 0 && changes[1] > 40, '  which have a broken line', changes);

  const asked = page.waitForRequest('**/api/v1/query/flame?*');
  await page.check('#live');
  await asked;
  check(true, 'the picture is asked for again by itself');
  await ready(page);
  await page.uncheck('#live');
  await noProblems(page, '  no console error, no policy violation');
  await page.context().close();
}

// The search, zoom, colours and order that one sees are in the address, and so in a link.
async function shareWhatIsSeen(browser) {
  const page = await openPage(browser, url + '/#view=flame&from=now-1h&to=now'), canvas = '#view-flame canvas', status = () => page.textContent('#view-flame .flame-status');
  await ready(page);
  await page.fill('#view-flame input[type=search]', 'sre_');
  await hasSelection(page, 'search', /^sre_$/);
  await page.selectOption('#view-flame select[aria-label="Colours by"]', 'kind');
  await page.focus(canvas);
  for (const key of ['ArrowDown', 'ArrowDown', 'Enter', 'i', 'r']) await page.keyboard.press(key);
  await hasSelection(page, 'zoom', /^2\.[0-9a-f]+$/);
  const zoomed = await status(), seen = selectionOf(page);
  equal([seen.colours, seen.flip, seen.recursion], ['kind', '1', '1'], 'search, zoom, colours and direction are in the address');
  const other = await openPage(browser, page.url());
  await ready(other);
  equal([await other.textContent('#view-flame .flame-status'), await other.inputValue('#view-flame input[type=search]'), await other.inputValue('#view-flame select[aria-label="Colours by"]'),
    await other.isDisabled('#view-flame button:text-is("Reset zoom")'), ...await other.$$eval('#view-flame button[aria-pressed=true]', all => all.map(b => b.textContent))],
  [zoomed, 'sre_', 'kind', false, 'Collapse recursion', 'Flip'], '  and another page shows the same');
  equal(selectionOf(other), seen, '  with the same address');
  await other.context().close();
  await page.click('#view-flame button:text-is("Reset zoom")');
  await page.waitForFunction(() => !/zoom=/.test(location.hash));
  check(true, '  without a zoom the address has none');

  await page.goto(url + '/#view=top&from=now-1h&to=now');
  await page.reload();
  await ready(page);
  await page.click('#view-top th button:text-is("Function")');
  await page.fill('#view-top input[type=search]', 'sre_ucs1_');
  await hasSelection(page, 'filter', /^sre_ucs1_$/);
  const rows = p => p.$$eval('#view-top tbody button.link', all => all.map(b => b.textContent)), listed = await rows(page);
  check(selectionOf(page).sort === 'function' && listed.length > 1, 'so are the order and filter of a table', page.url());
  await page.reload();
  await ready(page);
  equal([await rows(page), await page.inputValue('#view-top input[type=search]'), await page.getAttribute('#view-top th:has-text("Function")', 'aria-sort')],
    [listed, 'sre_ucs1_', 'ascending'], '  which a reload leaves as they are');

  await page.selectOption('#by', 'version');
  await hasSelection(page, 'by', /^version$/);
  await page.waitForSelector('#view-top th:has-text("version")');
  await ready(page);
  const grouped = await rows(page);
  equal(grouped, listed.flatMap(name => [name, name]), 'grouped, each function has a row for each version');
  await axe(page, '  axe has no complaint');
  await page.click('#view-top tbody tr[aria-rowindex="3"]', { button: 'right' });
  await page.click('[role=menuitem]:text-matches("^Only [12]$")');
  await hasSelection(page, 'selector', /^version="[12]"$/);
  await ready(page);
  equal([await rows(page), selectionOf(page).by], [listed, undefined], '  and leads to its version alone');
  await noProblems(page, '  no console error, no policy violation');
  await page.context().close();
}

// While an answer is pending one sees for how long, and can give up.
async function giveUp(browser) {
  const page = await openPage(browser, url + '/#view=flame&from=now-1h&to=now');
  await ready(page);
  let release;
  const held = new Promise(done => { release = done; });
  await page.route('**/api/v1/query/top*', async route => { await held; await route.abort().catch(() => {}); });
  await page.click('#tab-top');
  await page.waitForSelector('#waiting:not([hidden])');
  match(await page.textContent('#waiting'), /^Waiting for the service: \d+ sCancel$/, 'a pending answer has a time');
  await page.click('#cancel');
  check(await page.isHidden('#waiting') && await page.isHidden('#progress'), '  and can be cancelled');
  match(await page.textContent('#error'), /^Cancelled: what is shown/, '  which is said');
  release();
  await page.unroute('**/api/v1/query/top*');
  await page.click('#refresh');
  await ready(page);
  check(await page.isHidden('#error') && await page.isVisible('#view-top tbody tr'), '  until it is asked for again');
  await noProblems(page, '  no console error, no policy violation');
  await page.context().close();
}

// The graph begins in sight, also at 200% of a laptop's window and on a phone.
async function beginInSight(browser) {
  const COMPARED = 'diff&compare=label&label=version&before=1&after=2';
  for (const [width, height, most] of [[1440, 900, 360], [720, 450, 410], [360, 740, 700]])
    for (const view of ['flame', COMPARED]) {
      const page = await openPage(browser, `${url}/#view=${view}&from=now-15m&to=now`, { width, height });
      await ready(page);
      const { y } = await page.locator(`#view-${view.replace(/&.*/, '')} canvas`).first().boundingBox();
      check(y <= most, `at ${width}x${height} the graph of ${view === COMPARED ? 'a comparison' : 'one side'} begins in sight`, y);
      if (view === COMPARED) await screenshot(page, `compare-${width}`);
      await page.context().close();
    }
}

async function compareTimes(browser) {
  const page = await openPage(browser, url + '/#view=diff&from=now-9m&to=now');
  const said = () => page.textContent('#view-diff .bar [role=status]:not(:empty)');
  await ready(page);
  match(await said(), /^before [\d.]+ s \([\d,]+ samples\), after [\d.]+ s \([\d,]+ samples\)$/, 'a range is compared with the one before');
  equal(await page.textContent('#view-diff .sides-chip'), 'Sides: the range before', '  as the button says in which sides are chosen');
  await page.click('#view-diff .sides-chip');
  await axe(page, '  axe has no complaint about its panel');
  await page.keyboard.press('Escape');
  check(await page.evaluate(() => document.activeElement.className === 'sides-chip'), '  which Escape closes');
  await page.keyboard.press('Enter');
  await page.selectOption('[aria-label="Range before"]', 'week');
  await page.click('#view-diff button[type=submit]:text-is("Apply")');
  await hasSelection(page, 'base_from', /^20.*Z$/);
  await ready(page);
  match(await page.textContent('#view-diff .empty'), /^The baseline has no samples, so there is nothing to compare with\.A day earlierA week earlier/, '  or with that of a week ago, which has no samples');
  const { base_from, base_to } = selectionOf(page);
  const days = (Date.now() - Date.parse(base_to)) / 86400e3, length = Date.parse(base_to) - Date.parse(base_from);
  check(days > 6.9 && days < 7.1 && Math.abs(length - 540e3) < 2000, '  of the same length', `${base_from} ${base_to}`);
  await page.click('#view-diff .sides-chip');
  await page.fill('[aria-label="Before, from"]', 'now-20m');
  await page.fill('[aria-label="Before, to"]', 'now-5m');
  await page.click('#view-diff button[type=submit]:text-is("Apply")');
  await hasSelection(page, 'base_to', /^now-5m$/);
  await ready(page);
  match(await said(), /^before [\d.]+ s \(/, '  or with any other');
  await page.click('#view-diff .sides-chip');
  await page.selectOption('[aria-label="Compare by"]', 'selector');
  await page.fill('[aria-label="Before, selector"]', '{service_name="zstd"}');
  await page.click('#view-diff button[type=submit]:text-is("Apply")');
  await hasSelection(page, 'base_selector', /zstd/);
  await ready(page);
  match(await page.textContent('#series .readout'), /\{service_name="zstd"\}.*→/, '  or with another selector');
  await noProblems(page, '  no console error, no policy violation');
  await page.context().close();
}

async function buildQueries(browser) {
  const page = await openPage(browser, url + '/#view=top&from=now-1h&to=now', { permissions: ['clipboard-read', 'clipboard-write'] });
  await ready(page);
  const all = await total(page);
  await page.click('#add-filter');
  await page.waitForSelector('.option');
  const names = await page.$$eval('.option', rows => rows.map(r => [...r.querySelectorAll('.option-label, .option-detail')].map(e => e.textContent)));
  equal(names.filter(n => /^(version|zone)$/.test(n[0])), [['version', '2 values'], ['zone', '2 values']], 'names are completed, with how many values each has');
  await page.keyboard.type('serv');
  await page.waitForFunction(() => document.querySelectorAll('.option').length === 1);
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => / samples$/.test(document.querySelector('.option')?.textContent)); // no names any more
  const values = await page.$$eval('.option', rows => rows.map(r => r.textContent));
  match(values[0], /^zstd40\.\d\d% · [\d,]+ samples$/, 'values are completed with their share, the greatest first');
  check(values.length >= 5, '  all of them', values);
  await axe(page, '  axe has no complaint about the list');
  await screenshot(page, 'values');
  await page.keyboard.type('"py');
  await page.waitForFunction(() => document.querySelectorAll('.option').length === 1);
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await hasSelection(page, 'selector', /python/);
  await ready(page);
  equal(selectionOf(page).selector, 'service_name="python3.11"', '  and the chosen one is the query');
  check(await total(page) !== all, '  which is shown', await total(page));
  await page.click('#add-filter');
  await page.waitForSelector('.option >> text=version');
  await page.keyboard.type('version="');
  await page.waitForFunction(() => { // names have details, too
    const rows = [...document.querySelectorAll('.option')];
    return rows.length === 2 && rows.every(r => /^[12]\d+\.\d\d% · [\d,]+ samples$/.test(r.textContent));
  });
  await page.click('.option >> nth=0');
  await hasSelection(page, 'selector', /version/);
  match(selectionOf(page).selector, /^service_name="python3.11", version="[12]"$/, 'another filter is added with the mouse');
  await ready(page);

  await page.click('#recent');
  await page.click('#recent-panel .menu-item >> nth=1');
  await hasSelection(page, 'selector', /^service_name="python3.11"$/);
  check(true, 'recent queries are offered');
  await page.fill('#selector', '');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => !/selector/.test(location.hash));

  await page.selectOption('#by', 'service_name');
  await page.waitForSelector('.group-legend .group');
  await ready(page);
  match(await page.textContent('.group-legend'), /^zstd40\.\d\d%python3\.11/, 'groups are stacked, with a legend');
  const stacked = await page.locator('.chart').boundingBox();
  await page.mouse.move(stacked.x + stacked.width * 0.75, stacked.y + 30);
  await page.mouse.down();
  await page.mouse.move(stacked.x + stacked.width * 0.99, stacked.y + 30);
  match(await page.textContent('#series .readout'), /: [0-9.]+ cores \([0-9.]+ m?s\) · zstd [0-9.]+ cores · python3.11 [0-9.]+ cores · /, '  which says what groups cost in a range');
  await page.keyboard.press('Escape');
  await page.mouse.up();
  await page.click('text=Side by side');
  await page.waitForSelector('.charts-apart .chart');
  await ready(page);
  check(await page.locator('.charts-apart .chart').count() >= 5, '  or each has its chart');
  await axe(page, '  axe has no complaint');
  await screenshot(page, 'groups');
  await page.click('.charts-apart .group >> nth=0');
  await hasSelection(page, 'selector', /zstd/);
  await ready(page);
  equal([selectionOf(page).selector, selectionOf(page).by], ['service_name="zstd"', undefined], '  a group is gone into');

  for (const [id, type, begin] of [['pprof', 'application/octet-stream', /^\x1f/], ['folded', 'text/plain', /^\S+;/], ['csv', 'text/csv', /^function,file/],
    ['page', 'text/html', /^<!doctype html>/]]) {
    const answer = await page.request.get(new URL(await page.getAttribute('#' + id, 'href'), url + '/').href);
    const text = (await answer.body()).toString('latin1');
    check(answer.ok() && answer.headers()['content-type'].startsWith(type) && begin.test(text), `the selection is exported: ${id}`,
      answer.headers()['content-type'] + ' ' + text.slice(0, 40));
  }

  await page.click('#copy-link');
  await page.waitForSelector('text=Link copied');
  const link = await page.evaluate(() => navigator.clipboard.readText()), shared = new URLSearchParams(new URL(link).hash.slice(1));
  match(`${shared.get('from')} ${shared.get('to')} ${shared.get('selector')}`, /^20\S+Z 20\S+Z service_name="zstd"$/, 'a copied link has absolute times');
  const here = await total(page);
  await page.goto('about:blank');
  await page.goto(link);
  await ready(page);
  equal((await total(page)).split(',')[0], here.split(',')[0], '  and shows the same');

  await page.goto(url + '/#view=top&selector=' + encodeURIComponent('{broken'));
  await page.waitForSelector('#error:not([hidden])');
  match(await page.textContent('#error'), /\S/, 'a wrong selector is an error in words');
  check(Number(await page.$eval('#views', e => getComputedStyle(e).opacity)) < 1, '  and the result of the selector before is dimmed');
  page.problems = page.problems.filter(p => !/status of 400/.test(p));
  await noProblems(page, '  no console error, no policy violation');
  await page.context().close();
}

// Labels with markup, bidirectional control characters, or very long text are displayed visibly, bounded, and as plain text in
// all views.
async function showHostileLabels(browser) {
  const page = await openPage(browser, url + '/#view=flame&from=now-7h&to=now-5h&by=team,turned');
  await ready(page);
  const legend = await page.textContent('.group-legend');
  match(legend, /<img src=x onerror="window.reached=1">, a\\u\{202e\}b\\x1b\[31mc/, 'labels are shown as text, what cannot be seen as escapes');
  await page.click('.group-legend button');
  await hasSelection(page, 'selector', /img/);
  await ready(page);
  check(await page.isHidden('#error') && !/^0 in/.test(await total(page)), '  and select what they say', await page.textContent('#error'));
  await page.selectOption('#by', 'long');
  await page.waitForSelector('.group-legend >> text=more]');
  check((await page.textContent('.group-legend')).length < 500, '  a long one is cut');
  await page.click('#recent');
  check(await page.isVisible('#recent-panel .menu-item'), '  and the query is kept');
  await page.keyboard.press('Escape');
  await fitsWidth(page, '  all of it fits the window');
  equal(await page.evaluate(() => [window.reached, document.images.length]), [undefined, 0], '  nothing of it became markup');
  await screenshot(page, 'hostile');
  await noProblems(page, '  no console error, no policy violation');
  await page.context().close();
}

run(async browser => {
  await look(browser);
  await lookAtSaved(browser);
  await tryPolicy(browser);
  await goThroughHistory(browser);
  await walkByKeyboard(browser);
  await chooseTimes(browser);
  await useLocalTime(browser);
  await buildQueries(browser);
  await chooseType(browser);
  await dismissNotes(browser);
  await shareTables(browser);
  await drawRecorded(browser);
  await shareWhatIsSeen(browser);
  await giveUp(browser);
  await beginInSight(browser);
  await compareTimes(browser);
  await showHostileLabels(browser);
});
