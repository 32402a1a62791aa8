// SPDX-License-Identifier: Apache-2.0
// compared.js URL: lines and instructions of two builds beside each other, with the data of tests/e2e/query/two_builds.sh.
'use strict';
const { run, check, equal, match, openPage, noProblems, axe, screenshot, fitsWidth } = require('./support');

const [url] = process.argv.slice(2);
const ready = page => page.waitForFunction(() => document.querySelector('[role=tabpanel]:not([hidden])')?.getAttribute('aria-busy') === 'false');
const keysOf = page => Object.fromEntries(new URLSearchParams(new URL(page.url()).hash.slice(1)));
const COMPARISON = '#view=diff&shown=table&compare=label&label=version&before=old&after=new&from=now-1h';

// The list has elements for the rows in sight only.
async function allRows(page) {
  const found = new Map(), box = '#view-source .code-box:not([hidden]) .code-scroll', count = await page.getAttribute(box, 'aria-rowcount') - 1;
  for (let top = 0; found.size < count && top <= count * 50; top += 200) {
    await page.$eval(box, (e, y) => { e.scrollTop = y; }, top);
    await page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));
    for (const [i, row] of await page.$$eval(box + ' .code-row', all => all.map(r => [r.getAttribute('aria-rowindex'), { kind: r.className.replace(/code-row|current/g, '').trim(), cells: [...r.children].map(c => c.textContent.trim()) }])))
      found.set(i, row);
  }
  return [...found.values()];
}

// The instructions of both builds, in one row where they differ by addresses only. Those with a cost are at its line of
// two_builds.sh, where it was sampled.
async function compareCode(page, look) {
  const note = () => page.$$eval('#note p', all => all.map(p => p.textContent));
  equal(await note(), ['Lines are aligned by a diff of both texts; costs are totals.'], '  a note says how they are aligned');
  await page.click('#view-source button:text-is("Disassembly")');
  await ready(page);
  equal(await note(), ['Instructions are aligned by a diff that ignores addresses; costs are totals.'], `${look}: instructions are aligned, too`);
  const rows = await allRows(page);
  const withCost = rows.filter(r => r.cells[0] || r.cells[1]).map(r => r.cells.slice(0, 2));
  equal(withCost.map(c => c.join()).sort(), ['10.0 ns,11.0 ns', '20.0 ns,', '30.0 ns,31.0 ns', '40.0 ns,', ',44.0 ns', ',5.00 ns', '50.0 ns,51.0 ns'].sort(), '  each with its cost before and after');
  match((rows.find(r => r.cells[0] === '50.0 ns') || rows[0]).cells[2], /^\+\d+\.\d\d pp$/, '  and the change of its share');
  const same = rows.find(r => r.kind === 'code' && /rip/.test(r.cells[4]) && r.cells[4] !== r.cells[6]);
  check(same && same.cells[3] !== same.cells[5], '  instructions that differ in addresses only are beside each other', rows.slice(0, 12));
  check(rows.some(r => r.kind === 'code removed' && /^sub\b/.test(r.cells[4]) && !r.cells[6]), '  removed ones stand alone', rows.map(r => r.kind));
  check(rows.some(r => r.kind === 'code added' && /^or\b/.test(r.cells[6]) && !r.cells[4]), '  as do new ones');
  const places = rows.filter(r => /^place/.test(r.kind)).map(r => [r.cells[4], r.cells[6]].map(t => t.replace(/\s+/g, ' ')));
  check(places.some(p => p[0] === '3 {' && p[1] === '5 {') && places.some(p => p[0] === '7 sink ^= i;') && places.some(p => p[1] === '8 sink ^= i * 2;'), '  above them the lines of both sides', places);
  await page.focus('#view-source .code-box:not([hidden]) .code-scroll');
  await page.keyboard.press('n');
  match(await page.textContent('#view-source form [role=status]'), /^2 of 7 by cost$/, '  keys go through those whose share changed most');
  await axe(page, '  axe has no complaint');
  await fitsWidth(page, '  it fits the window');
  await screenshot(page, `compared-code-${look}`);
  const missing = { reason: 'no executable is stored' };
  await page.route('**/api/v1/query/disassembly*', async route => route.fulfill({ json: { ...await (await route.fetch()).json(), ranges: [], base_missing: missing, missing } }));
  await page.click('#refresh');
  await page.waitForSelector('#view-source .missing');
  equal(await page.$$eval('#view-source .missing', all => all.map(m => m.textContent)), ['Disassembly not available: no executable is stored.'], '  what both sides lack is said once');
  await page.unroute('**/api/v1/query/disassembly*');
}

run(async browser => {
  for (const [look, options] of [['light', { width: 1440, height: 900 }], ['dark', { dark: true, width: 1440, height: 900 }], ['narrow', { width: 360, height: 740 }]]) {
    const page = await openPage(browser, url + '/' + COMPARISON, options);
    await ready(page);
    await page.locator('#view-diff tbody tr', { hasText: 'work' }).locator('a.link').first().click();
    await page.waitForSelector('#view-source .compared .code-row');
    const { view, compared, label, before, after } = keysOf(page);
    equal([view, compared, label, before, after], ['source', '1', 'version', 'old', 'new'], `${look}: the source of a row of Compare has both sides in its link`);
    const rows = await page.$$eval('#view-source .compared .code-row', all => all.map(r => [...r.children].map(c => c.textContent.trim())));
    const row = text => rows.find(r => r.includes(text)) || [];
    equal(row('sink -= 1;').slice(3), ['5', 'sink -= 1;', '', ''], '  a removed line stands alone');
    equal(row('sink |= 4;').slice(3), ['', '', '9', 'sink |= 4;'], '  as does a new one');
    equal(row('sink ^= i;').slice(3), ['7', 'sink ^= i;', '8', 'sink ^= i * 2;'], '  a changed line is beside what it was');
    equal(row('sink += x;').slice(0, 2), ['10.0 ns', '11.0 ns'], '  with its cost before and after');
    match(row('sink ^= i;')[2], /^\+\d+\.\d\d pp$/, '  and the change of its share');
    // Where there is no room for both, texts before are shown only of removed lines.
    const sources = await page.$$eval('#view-source .compared .code-row', all => all.map(r => [...r.querySelectorAll('.c-text')].filter(c => c.offsetParent && c.textContent.trim()).map(c => [c.textContent.trim(), c.getBoundingClientRect().left < innerWidth - 40])));
    const sourceOf = text => sources.find(s => s.some(c => c[0] === text));
    equal([sourceOf('sink += x;'), sourceOf('sink -= 1;'), sourceOf('sink |= 4;')], [look === 'narrow' ? [['sink += x;', true]] : [['sink += x;', true], ['sink += x;', true]], [['sink -= 1;', true]], [['sink |= 4;', true]]], '  texts begin in sight');
    await axe(page, '  axe has no complaint');
    await fitsWidth(page, '  it fits the window');
    await screenshot(page, `compared-${look}`);
    await compareCode(page, look);
    await page.click('#view-source button:text-is("Lines")');
    await ready(page);
    await page.click('#view-source button:text-is("The side after alone")');
    await ready(page);
    check(await page.isVisible('#view-source .code-box:not(.compared) .code-row'), '  a button shows the side after alone');
    await noProblems(page, `${look}: no console error, no policy violation`);
    await page.context().close();
  }
});
