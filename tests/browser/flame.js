// SPDX-License-Identifier: Apache-2.0
// flame.js URL FILE DIFF: flame graphs, tables, callers and callees, and comparison, in the UI of the service at URL and in the
// standalone pages FILE and DIFF. The profiles are those of browser-flame.t, whose content is known.
'use strict';
const { run, check, equal, match, openPage, noProblems, axe, screenshot } = require('./support');
const { pathToFileURL } = require('url');

const [url, file, diffFile] = process.argv.slice(2);
const hash = (view, more = {}) => '#' + new URLSearchParams({ view, selector: '{service_name="shapes"}', from: 'now-1h', to: 'now', ...more });

const ready = page => page.waitForFunction(() => {
  const shown = document.querySelector('[role=tabpanel]:not([hidden])');
  return shown && shown.getAttribute('aria-busy') === 'false';
});
const panel = '[role=tabpanel]:not([hidden])';
const status = page => page.textContent(`${panel} .flame-status`);
const press = async (page, ...keys) => { for (const k of keys) await page.keyboard.press(k); };
const select = async (page, ...keys) => {
  await page.focus(`${panel} canvas`);
  await press(page, 'Home', ...keys);
};
const button = (page, text) => page.locator(`${panel} button:has-text("${text}")`).first();
async function search(page, words) {
  await page.fill(`${panel} input[type=search]`, words);
  await page.press(`${panel} input[type=search]`, 'Enter');
  return page.locator(`${panel} input[type=search] ~ [role=status]`).first().textContent();
}
const rows = page => page.$$eval(`${panel} .table-box:not([hidden]) tbody tr`, trs => trs.map(tr => [...tr.cells].map(c => c.textContent)));

async function useKeyboard(page) {
  await select(page);
  match(await status(page), /^all — 1\.00 s, 100\.00%$/, 'the root is everything');
  await press(page, 'ArrowDown');
  match(await status(page), /^main — 900\.0 ms, 90\.00%$/, '  down is its heaviest callee');
  await press(page, 'ArrowRight');
  match(await status(page), /^idle — 100\.0 ms/, '  right is the next frame of the row');
  await press(page, 'ArrowLeft', 'ArrowDown', 'ArrowDown');
  match(await status(page), /^leaf — 500\.0 ms, .*self 500/, '  and left, and down');
  check(await button(page, 'Reset zoom').isDisabled(), '  nothing is zoomed');
  await press(page, 'Enter');
  check(await button(page, 'Reset zoom').isEnabled(), '  Enter zooms');
  await press(page, 'Escape');
  match(await status(page), /^work — /, '  Escape goes to the caller');
  await press(page, 'Home', '+', '+');
  check(await button(page, 'Reset zoom').isEnabled(), '  plus zooms a little');
  await press(page, 'Home', '/');
  equal(await page.evaluate(() => document.activeElement.type), 'search', '  slash searches');
  await press(page, 'Escape', '?');
  await page.waitForSelector('dialog.keys[open]');
  await axe(page, '  question mark lists the keys, and axe has no complaint');
  await press(page, 'Escape');
  await page.waitForSelector('dialog.keys', { state: 'detached' });
  check(await page.evaluate(() => document.activeElement.tagName === 'CANVAS'), '  and gives the focus back');
  await page.waitForFunction(p => /depth 1|^all/.test(document.querySelector(p + ' [aria-live=polite]').textContent), panel);
  check(true, '  what is selected is said');
}

// The graph beside the table, whose rows mark their frames.
async function useBoth(page, offline) {
  await button(page, 'Both').click();
  await page.waitForSelector(`${panel} .table-box:not([hidden]) tbody button.link`);
  await ready(page);
  equal((await rows(page))[0], ['60.00%', '60.00%', 'leaf'], 'the graph can be beside the table');
  const [graph, table] = await Promise.all(['.flame-scroll', '.table-scroll'].map(c => page.locator(`${panel} ${c}`).first().boundingBox()));
  check(graph.width > 500 && table.width > 300 && table.x >= graph.x + graph.width && table.y < graph.y + graph.height, '  with room for both', [graph, table]);
  await page.click(`${panel} tbody button.link:text-is("leaf")`);
  match(await page.locator(`${panel} .flame input[type=search] ~ [role=status]`).first().textContent(), /^60\.00% in 2 frames$/, '  a row marks its frames');
  match(page.url(), offline ? /both=1/ : /both=1.*search=|search=.*both=1/, '  which is in the link');
  await axe(page, '  axe has no complaint');
  await screenshot(page, 'flame-both');
  await page.setViewportSize({ width: 360, height: 740 });
  const [above, below] = await Promise.all(['.flame-scroll', '.table-scroll'].map(c => page.locator(`${panel} ${c}`).first().boundingBox()));
  check(below.y > above.y + above.height && below.height > 100, '  in a narrow window the table is below', [above, below]);
  await page.setViewportSize({ width: 1280, height: 800 });
  await button(page, 'Both').click();
  await page.waitForSelector(`${panel} .table-box`, { state: 'hidden' });
  await page.fill(`${panel} input[type=search]`, '');
  await ready(page);
}

async function searchFor(page) {
  equal(await search(page, 'leaf'), '60.00% in 2 frames', 'search finds a part of a name');
  equal(await search(page, '^(leaf|rec)$'), '85.00% in 5 frames', '  and a regular expression; the topmost match of a stack counts');
  equal(await search(page, 'nowhere'), 'nothing found', '  and says when there is nothing');
  await search(page, '^rec$');
  await select(page);
  await press(page, 'n');
  const first = await status(page);
  await press(page, 'n', 'n');
  check(/^rec — 250\.0 ms, 25\.00%$/.test(first) && /self 250/.test(await status(page)), '  n goes to the next match', first + await status(page));
  await button(page, 'Collapse recursion').click();
  equal(await page.locator(`${panel} input[type=search] ~ [role=status]`).first().textContent(), '25.00% in 1 frame', 'direct recursion collapses');
  await select(page, 'n');
  match(await status(page), /^rec — 250.*self 250/, '  and the function has all of its self');
  await button(page, 'Collapse recursion').click();
  await search(page, '');
}

async function useMenu(page) {
  await select(page, 'ArrowDown', 'ArrowDown', 'ArrowDown');
  await press(page, 'Shift+F10');
  await page.waitForSelector('[role=menu] :focus');
  await axe(page, 'a menu opens by keyboard, and axe has no complaint');
  const entries = await page.$$eval('[role=menuitem]', all => all.map(e => e.textContent));
  check(['Copy its name', 'Callers and callees', 'Exclude stacks with it', 'Hide frame (merge into caller)', 'Only what calls it'].every(t => entries.includes(t)), '  with what can be done', entries);
  await screenshot(page, 'menu');
  await press(page, 'ArrowDown', 'Escape');
  check(await page.evaluate(() => document.activeElement.tagName === 'CANVAS'), '  Escape closes it');
  await press(page, 'Shift+F10', 'End', 'Home', 'c');
  equal(await page.evaluate(() => document.activeElement.textContent), 'Copy its name', '  letters choose in it');
  await press(page, 'Enter');
  await page.waitForFunction(p => /^Copied: leaf/.test(document.querySelector(p + ' .flame-status').textContent), panel);
  check(true, '  a name is copied');

  const box = await page.locator(`${panel} canvas`).boundingBox();
  await page.mouse.move(box.x + 30, box.y + 50);
  await page.waitForSelector('.flame-tip:not([hidden])');
  match(await page.textContent('.flame-tip'), /^work/, 'the pointer shows what it is on');
  await page.mouse.click(box.x + 30, box.y + 50, { button: 'right' });
  await page.click('[role=menuitem]:has-text("Exclude stacks with it")');
  await ready(page);
  await select(page);
  match(await status(page), /^all — 350\.0 ms/, '  and a menu by its right button, which leaves out stacks');
  equal(await page.textContent('#filter'), 'Filter: without work', '  which the filter chip says');
  await page.click('#no-filter');
  await ready(page);
  equal([await page.textContent('#filter'), await page.isHidden('#no-filter'), await page.evaluate(() => document.activeElement.id)], ['Filter', true, 'filter'], '  its × empties the chip');
  await select(page);
  match(await status(page), /^all — 1\.00 s/, '  and the stacks are back');
  await select(page, 'ArrowDown', 'ArrowDown', 'ArrowDown', 'x');
  await ready(page);
  await select(page);
  match(await status(page), /^all — 400\.0 ms/, '  x does so by keyboard');
  await page.click('#no-filter');
  await ready(page);
  await changeFilters(page);

  await button(page, 'Reverse').click();
  await page.waitForSelector(`${panel} button[aria-pressed=true]:has-text("Reverse")`);
  await ready(page);
  await select(page, 'ArrowDown');
  match(await status(page), /^leaf — 600/, 'reversed, the functions that cost stand on top');
  await press(page, 'ArrowDown', 'ArrowDown');
  match(await status(page), /^main — 500/, '  with their callers below');
  await button(page, 'Reverse').click();
  await page.waitForSelector(`${panel} button[aria-pressed=false]:has-text("Reverse")`);
  await ready(page);
  await button(page, 'Flip').click();
  await select(page, 'ArrowUp');
  match(await status(page), /^main — 900/, 'flipped, callees are above');
  await button(page, 'Flip').click();
}

// Actions on the selected frame that need no menu.
async function useButtons(page, offline) {
  await select(page);
  check(await button(page, 'Show callers and callees').isDisabled(), 'of everything there are no callers');
  await select(page, 'ArrowDown', 'ArrowDown', 'ArrowDown');
  await button(page, 'More').click();
  await page.waitForSelector('[role=menu] :focus');
  await press(page, 'Escape');
  match(await page.evaluate(() => document.activeElement.textContent), /^More/, '  a button opens the menu of the selected frame, without a right click');
  equal(await button(page, 'Show source').count(), offline ? 0 : 1, offline ? '  there is no source without a service' : '  and one its source');
  await button(page, 'Show callers and callees').click();
  await page.waitForSelector('#tab-sandwich[aria-selected=true]');
  await ready(page);
  equal(await page.textContent(`${panel} h2.name`), 'leaf', '  and one its callers and callees');
  await page.goBack();
  await page.waitForSelector('#tab-flame[aria-selected=true]');
  await ready(page);
  if (offline) return;
  await select(page, 'ArrowDown', 'ArrowDown', 'ArrowDown', 'o');
  await page.waitForSelector('#tab-source[aria-selected=true]');
  await ready(page);
  equal(new URLSearchParams(new URL(page.url()).hash.slice(1)).get('function'), 'leaf', '  the key o leads to the source, too');
  await page.goBack();
  await page.waitForSelector('#tab-flame[aria-selected=true]');
  await ready(page);
}

async function usePointer(page) {
  const box = await page.locator(`${panel} canvas`).boundingBox(), reset = button(page, 'Reset zoom');
  await page.mouse.click(box.x + 30, box.y + 50);
  check(await reset.isEnabled(), 'a click zooms');
  match(await status(page), /^work — /, '  to what is there');
  await press(page, 'Home');
  await page.mouse.move(box.x + box.width / 2, box.y + 30);
  await page.keyboard.down('Control');
  await page.mouse.wheel(0, -400);
  await page.keyboard.up('Control');
  await page.waitForFunction(p => ![...document.querySelectorAll(p + ' button')].find(b => b.textContent === 'Reset zoom').disabled, panel);
  await page.mouse.move(box.x + 10, box.y + 30);
  const name = async () => (await page.textContent('.flame-tip b'));
  await page.waitForSelector('.flame-tip:not([hidden])');
  equal(await name(), 'main', 'the wheel zooms with Control');
  await page.mouse.down();
  await page.mouse.move(box.x + 200, box.y + 32, { steps: 3 });
  await page.mouse.move(box.x + 400, box.y + 34, { steps: 3 });
  await page.mouse.up();
  check(await reset.isEnabled(), '  and dragging moves the picture, without a click');
  await reset.click();
  for (const mode of ['file', 'package', 'kind', 'object']) await page.selectOption(`${panel} [aria-label="Colours by"]`, mode);
  check((await page.textContent(`${panel} .legend`)).includes('kernel'), 'colours have a legend');
}

async function useTable(page) {
  await page.click('#tab-top');
  await ready(page);
  const all = await rows(page);
  equal(all[0].slice(0, 5), [await page.textContent(`${panel} tbody td`), '60.00%', all[0][2], '60.00%', 'leaf'], 'the table begins with what costs most');
  const heads = await page.$$eval(`${panel} thead th button`, all => all.map(b => b.textContent));
  equal(heads, ['Self', 'Self %', 'Total', 'Total %', 'Function', 'File', 'Object', ...(page.url().startsWith('file:') ? [] : ['Over time'])], '  and has a button for each column');
  const firsts = [];
  for (let i = 0; i < heads.length; i++) {
    const th = page.locator(`${panel} thead th`).nth(i), b = th.locator('button');
    await b.click();
    const once = await th.getAttribute('aria-sort'), up = (await rows(page))[0][i];
    await b.click();
    const twice = await th.getAttribute('aria-sort'), down = (await rows(page))[0][i];
    firsts.push(once !== twice && /^(a|de)scending$/.test(once) && (up !== down || i > 4)); // these profiles have no files
  }
  equal(firsts, heads.map(() => true), '  which sorts by it, and again the other way');
  await page.fill(`${panel} .table-box input[type=search]`, '^(rec|leaf)$');
  equal((await rows(page)).length, 2, '  it has a filter, a regular expression');
  await page.locator(`${panel} button.link`, { hasText: 'leaf' }).focus();
  await press(page, 'Shift+F10');
  await page.waitForSelector('[role=menu] :focus');
  await press(page, 'Escape');
  await page.locator(`${panel} button.link`, { hasText: 'leaf' }).click();
  await page.waitForSelector('#tab-sandwich[aria-selected=true]');
  await ready(page);
  equal(await page.textContent(`${panel} h2.name`), 'leaf', 'a function opens its callers and callees');
  const [callers] = await page.$$eval(`${panel} .sandwich table`, all => all.map(t => [...t.tBodies[0].rows].map(r => [...r.cells].slice(1, 3).map(c => c.textContent))));
  equal(callers, [['83.33%', 'work'], ['16.67%', 'idle']], '  callers with their share');
  equal(await page.locator(`${panel} canvas`).count(), 2, '  and two flame graphs');
  await page.locator(`${panel} .sandwich button.link`, { hasText: 'work' }).click();
  await page.waitForFunction(() => document.querySelector('h2.name').textContent === 'work');
  await ready(page);
  const tables = await page.$$eval(`${panel} .sandwich table`, all => all.map(t => [...t.tBodies[0].rows].map(r => r.cells[2].textContent)));
  equal(tables, [['main'], ['leaf', 'sys_read']], '  from function to function');
  await axe(page, '  axe has no complaint');
  await screenshot(page, 'sandwich');
}

async function seeNames(page) {
  const text = await page.evaluate(() => document.body.innerText);
  check(!/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069\u200b]/.test(text), 'no control or bidirectional character is in the page', JSON.stringify(text).slice(0, 300));
  check(text.includes('\\x1b[31mred') && text.includes('safe\\u{202e}gpj') && text.includes('<img src=x onerror='), '  but what stands for it', text.slice(0, 2000));
  check(/\[[\d,]+ more\]/.test(text), '  and long names are cut');
  equal(await page.evaluate(() => window.reached), undefined, '  and nothing of them ran');
}

async function seeNone(page) {
  await page.goto(`${url}/${hash('sandwich', { function: 'nobody_calls_me' })}`);
  await page.reload();
  await ready(page);
  match(await page.textContent(`${panel} .sandwich-title`), /No function of that name has samples here/, 'a function without samples is said to have none');
  check(await page.isHidden(`${panel} button:has-text("Flame graph of what")`), '  and there is nothing to be done with it');
}

async function seeLines(page) {
  await page.goto(`${url}/${hash('sandwich', { selector: '{of="recorded"}', function: '_PyEval_EvalFrameDefault' })}`);
  await page.reload();
  await ready(page);
  const lines = await page.$$eval(`${panel} .lines tbody tr`, all => all.map(r => [parseFloat(r.cells[2].textContent), r.cells[3].textContent, r.cells[4].textContent]));
  check(lines.length > 3 && lines.every(l => /^\d+$/.test(l[1]) && /ceval\.c/.test(l[2])), 'each line of a function has its cost', JSON.stringify(lines.slice(0, 5)));
  check(lines.every((l, i) => !i || l[0] <= lines[i - 1][0]), '  the most expensive first');
  await screenshot(page, 'lines');
}

async function compare(page) {
  await page.goto(`${url}/${hash('diff', { selector: '{service_name="builds"}', compare: 'label', label: 'version', before: '1', after: '2' })}`);
  await page.reload();
  await ready(page);
  match(await page.textContent(`${panel} .flame-status`), /^all — 100\.00% → 100\.00%/, 'two values of a label are compared');
  equal(await search(page, '^(read_.*|write_.*)$'), '20.00% → 60.00% in 2 frames', '  in one flame graph, as shares');
  await screenshot(page, 'comparison-search');
  await search(page, '');
  await screenshot(page, 'comparison');
  await page.selectOption(`${panel} [aria-label="Scale"]`, 'values');
  await ready(page);
  await page.selectOption(`${panel} [aria-label="Colours by"]`, 'difference');
  await button(page, 'Side by side').click();
  await page.waitForFunction(p => document.querySelectorAll(p + ' .sides:not([hidden]) canvas').length === 2, panel);
  await ready(page);
  equal(await page.$$eval(`${panel} .sides .flame-status`, all => all.map(e => e.textContent.replace(/ s,.*/, ''))), ['all — 1.00', 'all — 2.00'], '  side by side');
  await button(page, 'Largest changes').click();
  await page.waitForSelector(`${panel} .table-box:not([hidden]) tbody button`);
  await ready(page);
  const changes = (await rows(page)).map(r => [r[0], r[2], r[3], r[6]]);
  equal(changes[0], ['▲ +800.0 ms, ×9.00', '100.0 ms', '900.0 ms', 'write_log'], '  and as a table of the largest changes');
  equal(changes.find(c => c[3] === 'gone').slice(0, 3), ['▼ -100.0 ms, ×0.00', '100.0 ms', '0'], '  with what vanished');
  await page.selectOption(`${panel} [aria-label="Scale"]`, 'shares');
  await page.waitForFunction(p => /35\.00 pp/.test(document.querySelector(p + ' tbody').textContent), panel);
  equal((await rows(page))[0].slice(0, 7), ['▲ +35.00 pp, ×4.50', '▲ +35.00 pp, ×4.50', '10.00%', '45.00%', '10.00%', '45.00%', 'write_log'], '  or of shares, never of scaled times');
  await page.click(`${panel} th button:text-is("Change of total")`);
  check((await rows(page)).every((r, i, all) => !i || Math.abs(parseFloat(r[1].slice(2)) || 0) <= Math.abs(parseFloat(all[i - 1][1].slice(2)) || 0)), '  or by the change of total');
  match(await page.textContent(`${panel} .bar [role=status]`), /before 1\.00 s \(5 stacks\), after 2\.00 s \(4 stacks\)/, '  but the totals are said as they are');
  const [content, room] = await page.$eval(`${panel} .table-box:not([hidden]) .table-scroll`, e => [e.scrollWidth, e.clientWidth]);
  check(content <= room, '  and all its columns are in sight', `${content} px in ${room}`);
  await axe(page, '  axe has no complaint');
  await screenshot(page, 'changes');
  await page.click(`${panel} .sides-chip`);
  await button(page, 'Baseline alone').click();
  await page.waitForSelector('#tab-flame[aria-selected=true]');
  await ready(page);
  await select(page);
  match(await status(page), /^all — 1\.00 s/, '  one side alone is a click away');

  await page.goto(`${url}/${hash('diff', { selector: '{service_name="builds"}' })}`);
  await page.reload();
  await ready(page);
  await page.click(`${panel} .sides-chip`);
  await page.selectOption(`${panel} [aria-label="Compare by"]`, 'label');
  await page.waitForFunction(() => document.querySelector('[aria-label="Label"]').value === 'version');
  await page.waitForFunction(() => document.querySelector('[aria-label="Value after"]').options.length >= 2);
  await page.selectOption('[aria-label="Value before"]', '1');
  await page.selectOption('[aria-label="Value after"]', '2');
  await page.click(`${panel} button[type=submit]:text-is("Apply")`);
  await page.waitForFunction(() => /before=1/.test(location.hash));
  await ready(page);
  match(await status(page), /100\.00% → 100\.00%/, 'builds are chosen from their values');
  const all = await page.locator(`${panel} canvas`).first().boundingBox();
  await page.mouse.move(all.x + 10, all.y + 8);
  await page.waitForSelector('.flame-tip:not([hidden])');
  const tip = await page.$$eval('.flame-tip tr', trs => trs.map(tr => [...tr.cells].map(c => c.textContent)));
  equal(tip.slice(0, 3), [['', 'before', 'after', 'change'], ['total', '1.00 s', '2.00 s', '+1.00 s, ×2.00'], ['of all', '100.00%', '100.00%', '0']],
    'the pointer shows each change beside the values that changed');
}

async function compareOffline(browser) {
  const page = await openPage(browser, pathToFileURL(diffFile).href);
  await ready(page);
  match(await page.textContent(`${panel} .flame-status`), /^all — 100\.00% → 100\.00%/, 'a page of a comparison works without a service');
  await button(page, 'Side by side').click();
  await page.waitForFunction(p => document.querySelectorAll(p + ' .sides:not([hidden]) canvas').length === 2, panel);
  await axe(page, '  axe has no complaint');
  await button(page, 'Largest changes').click();
  await page.waitForSelector(`${panel} .table-box:not([hidden]) tbody button`);
  equal((await rows(page))[0][6], 'write_log', '  with a table of the largest changes');
  await page.click('#tab-top');
  await ready(page);
  equal((await rows(page))[0][4], 'write_log', '  and the table of the side after');
  await noProblems(page, '  no console error, no policy violation');
  await page.context().close();
}

// Filters are added and removed in the panel of the chip, by keyboard.
async function changeFilters(page) {
  const addFilter = async (kind, pattern) => {
    await page.focus('#filter');
    await press(page, 'Enter');
    await page.waitForSelector('#filter-panel input:focus');
    await page.selectOption('#filter-panel select', kind);
    await page.fill('#filter-panel input', pattern);
    await page.press('#filter-panel input', 'Enter');
    await page.waitForSelector('#filter-panel', { state: 'hidden' });
    await ready(page);
  };
  for (const [kind, pattern, total, text] of [['focus', 'rec', '250\\.0 ms', 'with rec'], ['hide', '^idle$', '1\\.00 s', 'hidden idle'],
    ['show', 'leaf', '600\\.0 ms', 'only frames leaf'], ['ignore', 'main|nothing', '100\\.0 ms', 'without main + 1']]) {
    await addFilter(kind, pattern);
    await select(page);
    match(await status(page), new RegExp(`^all — ${total}`), `${kind} is a filter`);
    equal(await page.textContent('#filter'), 'Filter: ' + text, '  which the chip says');
    if (kind === 'ignore') break;
    await page.click('#no-filter');
    await ready(page);
  }
  await page.click('#filter');
  equal(await page.$$eval('#filter-panel .chips li', all => all.map(li => li.textContent)), ['Without stacks with main×', 'Without stacks with nothing×'], 'the panel lists them');
  await axe(page, '  axe has no complaint');
  await screenshot(page, 'filters');
  await page.focus('#filter-panel .chips button');
  await press(page, 'Enter');
  await ready(page);
  equal([await page.$$eval('#filter-panel .chips li', all => all.map(li => li.textContent)), await page.isVisible('#filter-panel')], [['Without stacks with nothing×'], true], '  and removes one of them');
  await press(page, 'Escape');
  equal(await page.evaluate(() => document.activeElement.id), 'filter', '  Escape closes it');
  await page.click('#no-filter');
  await ready(page);
  await select(page);
  match(await status(page), /^all — 1\.00 s/, '  without filters all of it is there');
}

run(async browser => {
  const options = { permissions: ['clipboard-read', 'clipboard-write'] };
  for (const offline of [false, true]) {
    console.log(offline ? 'the page without a service' : 'the page of the service');
    const page = await openPage(browser, offline ? pathToFileURL(file).href : `${url}/${hash('flame')}`, options);
    await ready(page);
    await useKeyboard(page);
    await searchFor(page);
    await useBoth(page, offline);
    await useMenu(page);
    await useButtons(page, offline);
    await usePointer(page);
    await axe(page, 'axe has no complaint');
    await useTable(page);
    await page.goBack();
    await page.goBack();
    await page.waitForSelector('#tab-top[aria-selected=true]');
    await ready(page);
    await page.fill(`${panel} .table-box input[type=search]`, '');
    await seeNames(page);
    if (!offline) {
      await seeLines(page);
      await seeNone(page);
      await compare(page);
    }
    await noProblems(page, 'no console error, no policy violation');
    await page.context().close();
  }
  await compareOffline(browser);
  const page = await openPage(browser, `${url}/${hash('flame')}`, { forcedColors: 'active', width: 360, height: 740 });
  await ready(page);
  await select(page, 'ArrowDown');
  await screenshot(page, 'flame-forced-colours');
  await noProblems(page, 'the system may force its colours');
  await page.context().close();
});
