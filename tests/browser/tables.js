// SPDX-License-Identifier: Apache-2.0
// tables.js URL FILE: tables of 50,000 functions, in the UI of the service at URL and in the standalone page FILE, and the
// trace view.
// The profiles are those of browser-tables.t.
'use strict';
const { run, check, equal, match, openPage, noProblems, axe, screenshot, fitsWidth } = require('./support');
const { pathToFileURL } = require('url');

const [url, file] = process.argv.slice(2);
const FUNCTIONS = 50000, SPANS = 300;
const hash = (view, more = {}) => '#' + new URLSearchParams({ view, from: 'now-1h', to: 'now', ...more });
const panel = '[role=tabpanel]:not([hidden])';
const ready = page => page.waitForFunction(() => {
  const shown = document.querySelector('[role=tabpanel]:not([hidden])');
  return shown && shown.getAttribute('aria-busy') === 'false';
});
const grid = `${panel} table[role=grid]`;
const rows = page => page.$$eval(`${grid} tbody tr`, trs => trs.map(tr => [Number(tr.getAttribute('aria-rowindex')), ...[...tr.cells].map(c => c.textContent)]));
const press = async (page, ...keys) => { for (const k of keys) await page.keyboard.press(k); };
const current = page => page.$eval(grid, table => {
  const row = document.getElementById(table.getAttribute('aria-activedescendant'));
  return row && { index: Number(row.getAttribute('aria-rowindex')), selected: row.getAttribute('aria-selected'), cells: [...row.cells].map(c => c.textContent) };
});
// The current row is visible below the table header.
const inSight = page => page.$eval(grid, table => {
  const row = document.getElementById(table.getAttribute('aria-activedescendant')).getBoundingClientRect(), box = table.closest('.table-scroll').getBoundingClientRect();
  return row.top >= table.querySelector('th').getBoundingClientRect().bottom - 1 && row.bottom <= box.bottom + 1;
});
const name = k => 'function_' + String(k).padStart(5, '0'); // the k-th by cost, from 0, has 50,000 - k units

// Function k of 50,000 has 50,000 - k units; its file is file_(k % 100).c.
async function useLongTable(page, offline) {
  await page.waitForSelector(`${grid} tbody tr`);
  await ready(page);
  const some = await rows(page);
  check(some.length > 10 && some.length < 100, 'only rows in sight are in the page', some.length);
  equal(await page.getAttribute(grid, 'aria-rowcount'), String(FUNCTIONS + 1), '  which says how many there are');
  equal([some[0][0], some[0][5]], [2, name(0)], '  from the first on');
  match(await page.textContent(`${panel} .table-box [role=status]`), /^Top 50,000 functions$/, '  as people see');

  await page.focus(grid);
  equal((await current(page)).index, 2, 'the first row is the current one');
  await press(page, 'ArrowDown', 'ArrowDown');
  equal([(await current(page)).index, (await current(page)).selected], [4, 'true'], '  arrow keys move');
  await press(page, 'PageDown', 'PageDown', 'PageDown', 'PageUp');
  check((await current(page)).index > 20 && await inSight(page), '  Page Up and Down go on, in sight');
  await press(page, 'End');
  equal([(await current(page)).index, (await current(page)).cells[4], await inSight(page)], [FUNCTIONS + 1, name(FUNCTIONS - 1), true], '  End is the last of all');
  const last = await rows(page);
  check(last.length < 100 && last[last.length - 1][0] === FUNCTIONS + 1, '  with few rows in the page', last.length);
  await press(page, 'ArrowDown', 'ArrowUp', 'ArrowUp');
  equal([(await current(page)).index, await inSight(page)], [FUNCTIONS - 1, true], '  and up again');
  await press(page, 'Home');
  equal([(await current(page)).index, await inSight(page)], [2, true], '  Home is the first');
  await page.$eval(`${panel} .table-scroll`, box => { box.scrollTop = 26 * 25000; });
  await page.waitForFunction(g => Number(document.querySelector(g + ' tbody tr').getAttribute('aria-rowindex')) > 24000, grid);
  const middle = (await rows(page)).find(r => r[0] === 25010);
  equal(middle && middle[5], name(25008), 'scrolling shows the rows that belong there');
  const heads = await page.$eval(grid, t => t.querySelector('th').getBoundingClientRect().top - t.closest('.table-scroll').getBoundingClientRect().top);
  check(Math.abs(heads) < 3, '  below the head, which stays', heads);
  await page.$eval(`${panel} .table-scroll`, box => { box.scrollTop = 0; });

  const sort = title => page.locator(`${grid} th button:text-is("${title}")`).click();
  for (const [title, first, again] of [['Self', name(FUNCTIONS - 1), name(0)], ['Function', name(0), name(FUNCTIONS - 1)], ['Total %', name(0), name(FUNCTIONS - 1)]]) {
    await sort(title);
    const one = (await rows(page))[0][5];
    await sort(title);
    equal([one, (await rows(page))[0][5]], [first, again], `sorted by ${title}, both ways`);
  }
  if (!offline) {
    await sort('File');
    match((await rows(page))[0][6], /^file_00\.c:/, 'sorted by File');
  }
  await sort('Self');

  await page.fill(`${panel} .table-box input[type=search]`, '^function_000[12]7$');
  equal((await rows(page)).map(r => r[5]).sort(), [name(17), name(27)], 'the filter takes a regular expression');
  equal([await page.getAttribute(grid, 'aria-rowcount'), await page.textContent(`${panel} .table-box [role=status]`)], ['3', '2 of 50,000'], '  and says what is left');
  await page.fill(`${panel} .table-box input[type=search]`, 'nowhere');
  match(await page.textContent(`${grid} tbody`), /^Nothing matches\.$/, '  or that nothing is');
  await page.fill(`${panel} .table-box input[type=search]`, name(42));
  await press(page, 'ArrowDown');
  equal((await current(page)).cells[4], name(42), '  the arrow key goes from the filter to the rows');
  await press(page, 'Shift+F10');
  await page.waitForSelector('[role=menu] :focus');
  await axe(page, '  a row has a menu, and axe has no complaint');
  await press(page, 'Escape');
  check(await page.evaluate(() => document.activeElement.getAttribute('role') === 'grid'), '  which gives the focus back');
  if (offline) {
    await press(page, 'Enter');
    await page.waitForSelector('#tab-sandwich[aria-selected=true]');
    await ready(page);
    equal(await page.textContent(`${panel} h2.name`), name(42), '  Enter opens its callers and callees');
    return;
  }
  equal(await page.$eval(`${grid} tbody a.link`, a => new URLSearchParams(a.hash.slice(1)).get('view') + ' ' + new URLSearchParams(a.hash.slice(1)).get('line')),
    'source 142', 'the place of a row leads to its most expensive line');
  await page.fill(`${panel} .table-box input[type=search]`, '');
  await axe(page, '  axe has no complaint about the table');
  await screenshot(page, 'table-long');
  await page.fill(`${panel} .table-box input[type=search]`, name(42));
  await press(page, 'Enter', 'ArrowDown', 's');
  await page.waitForSelector('#tab-source[aria-selected=true]');
  await page.waitForFunction(() => /function=function_00042/.test(location.hash) && /line=142/.test(location.hash));
  await ready(page);
  match(await page.getAttribute(`${panel} .code-row.current`, 'aria-rowindex'), /^\d+$/, '  s goes there');
}

// Without a function the view of sources lists those that cost most.
async function useFunctionList(page) {
  await page.goto(`${url}/${hash('source', { selector: '{service_name="many"}' })}`);
  await page.reload();
  await ready(page);
  equal(await page.getAttribute(grid, 'aria-rowcount'), '1001', 'Source without a function lists 1,000 of 50,000 functions');
  equal((await rows(page))[0][5] || (await rows(page))[0][4], name(0), '  the most expensive first');
  match(await page.textContent('#view-source'), /These are the 1,000 most expensive; enter the name of any other\./, '  and says so');
  await page.fill('#view-source input[name=function]', name(49000));
  await press(page, 'Enter');
  await page.waitForFunction(() => /function=function_49000/.test(location.hash));
  await ready(page);
  check(await page.locator('#view-source .code-row').count() > 0, '  any other can be entered');
}

// In the flame graph each of the functions is much narrower than a pixel, and some are in (other).
async function useSlivers(page) {
  await page.goto(`${url}/${hash('flame', { selector: '{service_name="many"}' })}`);
  await page.reload();
  await ready(page);
  const colours = await page.evaluate(p => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => {
    const canvas = document.querySelector(p + ' canvas'), seen = new Map(), { data } = canvas.getContext('2d').getImageData(20, 20, 200, 18);
    for (let i = 0; i < data.length; i += 4) {
      const colour = data.slice(i, i + 3).join();
      seen.set(colour, (seen.get(colour) || 0) + 1);
    }
    done([...seen.values()].sort((a, b) => b - a));
  }))), panel);
  check(colours.length > 1 && colours.slice(1).reduce((a, b) => a + b, 0) > 200, 'functions narrower than a pixel are hatched, not one block of a colour', colours.slice(0, 5));
  await screenshot(page, 'flame-slivers');
}

// Span k of 300 has k milliseconds; one sample of 10 has none.
async function useTraces(page) {
  const total = SPANS * (SPANS + 1) / 2;
  await page.goto(`${url}/${hash('traces', { selector: '{service_name=~"shop|cart"}' })}`);
  await page.reload();
  await ready(page);
  const first = (await rows(page))[0];
  equal(first, [2, '300.0 ms', (100 * 300 / (total + 10)).toFixed(2) + '%', '300', 'ab0000000000012c', 'POST /buy', 'cart', 'ab' + '96'.padStart(30, '0')], 'the span that costs most comes first');
  equal(await page.getAttribute(grid, 'aria-rowcount'), String(SPANS + 1), '  all spans are there');
  match(await page.textContent(`${panel} .bar [role=status]`), /\(99\.98%\) in 45,150 samples with ids$/, '  and how much of the selection has any');
  const heads = await page.$$eval(`${grid} thead th button`, all => all.map(b => b.textContent));
  for (const title of heads) {
    const th = page.locator(`${grid} thead th`).nth(heads.indexOf(title));
    await th.locator('button').click();
    const once = await th.getAttribute('aria-sort');
    await th.locator('button').click();
    check(once && once !== await th.getAttribute('aria-sort'), `  sorted by ${title}`);
  }
  await page.fill(`${panel} .table-box input[type=search]`, 'GET');
  match(await page.textContent(`${panel} .table-box [role=status]`), /^150 of 300$/, '  with a filter');
  const order = new URLSearchParams(new URL(page.url()).hash.slice(1)).get('sort'), listed = await rows(page);
  await page.reload();
  await ready(page);
  equal([order !== null, await page.inputValue(`${panel} .table-box input[type=search]`), await rows(page)], [true, 'GET', listed], '  and the address has order and filter');
  await page.fill(`${panel} .table-box input[type=search]`, '');
  await axe(page, '  axe has no complaint');

  await page.selectOption(`${panel} select`, 'traces');
  await page.waitForFunction(g => document.querySelector(g).getAttribute('aria-rowcount') === '151', grid);
  equal((await rows(page))[0].slice(1, 5), ['599.0 ms', (100 * 599 / (total + 10)).toFixed(2) + '%', '599', 'ab' + '96'.padStart(30, '0')], 'traces have the sums of their spans');
  await page.selectOption(`${panel} select`, 'span_name');
  await page.waitForFunction(g => document.querySelector(g).getAttribute('aria-rowcount') === '3', grid);
  equal((await rows(page)).map(r => r[4]).sort(), ['GET /x', 'POST /buy'], '  and names theirs');
  await page.selectOption(`${panel} select`, 'spans');
  await page.waitForFunction(g => document.querySelector(g).getAttribute('aria-rowcount') === '301', grid);
  await ready(page);

  await page.locator(`${grid} tbody button.link`).first().click();
  await page.waitForSelector('#tab-flame[aria-selected=true]');
  await ready(page);
  match(await page.textContent(`${panel} .flame-status`), /^all — 300\.0 ms/, 'a span opens its flame graph');
  match(new URLSearchParams(new URL(page.url()).hash.slice(1)).get('selector'), /^\{service_name=~"shop\|cart", trace_id="ab0{28}96", span_id="ab0{11}12c"\}$/, '  by its ids');
  await page.goBack();
  await page.waitForSelector('#tab-traces[aria-selected=true]');
  await ready(page);
  await page.locator(`${grid} tbody a.link`).first().click();
  await page.waitForSelector('#tab-flame[aria-selected=true]');
  await ready(page);
  match(await page.textContent(`${panel} .flame-status`), /^all — 599\.0 ms/, '  and its trace the flame graph of that');

  for (const [text, status] of [['00-ab000000000000000000000000000001-ab00000000000002-01', /^all — 2\.00 ms/], [' AB000000000000000000000000000001 ', /^all — 3\.00 ms/],
    ['https://tracing.example/trace/ab000000000000000000000000000001', /^all — 3\.00 ms/], ['ab00000000000007', /^all — 7\.00 ms/], ['ab000000-0000-0000-0000-000000000001', /^all — 3\.00 ms/]]) {
    await page.click('#tab-traces');
    await ready(page);
    await page.fill(`${panel} [aria-label="Id of a trace or span"]`, text);
    await press(page, 'Enter');
    await page.waitForSelector('#tab-flame[aria-selected=true]');
    await ready(page);
    match(await page.textContent(`${panel} .flame-status`), status, `"${text}" is opened`);
  }
  await page.goto(`${url}/${hash('traces', { selector: '{service_name=~"shop|cart"}' })}`);
  await ready(page);
  await page.fill(`${panel} [aria-label="Id of a trace or span"]`, 'what?');
  await press(page, 'Enter');
  match(await page.textContent(`${panel} [role=alert]`), /32 hexadecimal digits/, 'what is no id is refused in words');

  await page.click(`${panel} summary`);
  for (const bad of ['javascript:alert("{trace_id}")', 'tracing.example/{trace_id}', 'https://tracing.example/{nothing}']) {
    await page.fill(`${panel} .trace-links input`, bad);
    await press(page, 'Enter');
    match(await page.textContent(`${panel} .trace-links [role=status]`), /^Not an address/, `"${bad}" is no address of a tracing UI`);
  }
  equal(await page.locator(`${grid} a[target=_blank]`).count(), 0, '  and makes no links');
  await page.fill(`${panel} .trace-links input`, 'https://tracing.example/trace/{trace_id}?span={span_id}&from={from_ms}');
  await press(page, 'Enter');
  await page.reload();
  await ready(page);
  match(await page.locator(`${grid} a[target=_blank]`).first().getAttribute('href'), /^https:\/\/tracing\.example\/trace\/ab0{28}96\?span=ab0{11}12c&from=\d{13}$/, 'an address is kept, and rows lead there');
  equal(await page.locator(`${grid} a[target=_blank]`).first().getAttribute('rel'), 'noopener noreferrer', '  without telling from where');
  await axe(page, '  axe has no complaint');
  await screenshot(page, 'traces-links');

  await page.goto(`${url}/${hash('traces', { selector: '{service_name="many"}' })}`);
  await page.reload();
  await ready(page);
  match(await page.textContent(`${grid} tbody`), /^No sample here has the id of a trace or span/, 'without ids the view says where they come from');
  await page.goto(`${url}/${hash('traces', { selector: '{service_name="labelled"}' })}`);
  await page.reload();
  await ready(page);
  equal([(await rows(page))[0][4], await page.$eval(`${panel} select`, s => s.value)], ['77', 'profile_id'], '  and looks for the label profile_id');
}

run(async browser => {
  for (const offline of [false, true]) {
    console.log(offline ? 'the page without a service' : 'the page of the service');
    const page = await openPage(browser, offline ? pathToFileURL(file).href + '#view=top' : `${url}/${hash('top', { selector: '{service_name="many"}' })}`);
    await useLongTable(page, offline);
    if (!offline) {
      await useFunctionList(page);
      await useSlivers(page);
      await useTraces(page);
    }
    await noProblems(page, 'no console error, no policy violation');
    await page.context().close();
  }
  for (const [look, options] of [['light', {}], ['dark', { dark: true }], ['narrow', { width: 360, height: 740 }]]) {
    const page = await openPage(browser, `${url}/${hash('traces', { selector: '{service_name=~"shop|cart"}' })}`, options);
    await ready(page);
    const made = await page.$$eval(`${grid} tbody tr`, all => all.length);
    check(made > 3 && made < 100, `${look}: rows in sight alone are made`, made);
    equal((await page.$$eval(`${grid} thead th`, all => all.map(th => th.textContent))).slice(0, 3), look === 'narrow' ? ['Cost', 'Span', 'Name'] : ['Cost', '%', 'Samples'],
      '  and the columns that matter');
    await fitsWidth(page, '  the view fits the window');
    await screenshot(page, 'traces-ids-' + look);
    await noProblems(page, '  no console error, no policy violation');
    await page.context().close();
  }
});
