// SPDX-License-Identifier: Apache-2.0
// source.js missing URL BUILD-ID PATH: the source view if neither sources nor code are stored.
// source.js shown URL LINES.json LINES.txt CODE.json: with both, compared with the results of the query API and `cairn query`.
'use strict';
const fs = require('fs');
const { run, check, equal, match, openPage, noProblems, axe, screenshot, fitsWidth } = require('./support');

const [mode, url, ...files] = process.argv.slice(2);
const DARK = ['dark', { dark: true }], NARROW = ['narrow', { width: 360, height: 740 }]; // light mode was tested before
const address = (keys = {}) => url + '/#' + new URLSearchParams({ view: 'source', function: 'burn', from: 'now-1h', to: 'now', ...keys });
const ready = page => page.waitForFunction(() => document.querySelector('#view-source')?.getAttribute('aria-busy') === 'false');
const currentText = page => page.textContent('#view-source .code-box:not([hidden]) .code-row.current');
const press = (page, key) => page.press('#view-source .code-box:not([hidden]) .code-scroll', key);

async function lookAtMissing(browser) {
  const [id, path] = files;
  const page = await openPage(browser, address(), { permissions: ['clipboard-read', 'clipboard-write'] });
  await ready(page);
  match(await page.textContent('.missing'), new RegExp(`no sources of build-id ${id} are stored`), 'without sources, the reason is shown');
  equal(await page.textContent('.missing code'), `cairn-upload --server ${url} --sources DIR ${path}`, '  and the command');
  await page.click('.missing button:text-is("Copy")');
  await page.waitForSelector('.missing >> text=Copied');
  equal(await page.evaluate(() => navigator.clipboard.readText()), `cairn-upload --server ${url} --sources DIR ${path}`, '  which can be copied');
  match(await currentText(page), /burn/, '  and lines with their cost, without text');
  await axe(page, '  axe has no complaint');
  await screenshot(page, 'source-missing');
  await page.click('#view-source button[value=code]');
  await page.waitForFunction(() => /executable/.test(document.querySelector('.missing')?.textContent));
  match(await page.textContent('.missing'), new RegExp(`no executable of build-id ${id} is stored`), 'without the executable, that is said');
  equal(await page.textContent('.missing code'), `cairn-upload --server ${url} --executables ${path}`, '  and the command');
  await noProblems(page, '  no console error, no policy violation');
}

// The most expensive line of the displayed file.
function hottest(lines, file) {
  return lines.rows.filter(r => r.file === file).sort((a, b) => b.flat - a.flat || b.cumulative - a.cumulative || a.line - b.line)[0];
}

async function lookAtLines(browser, lines, text) {
  const file = lines.files.find(f => f.file.endsWith('/work.c')).file, hot = hottest(lines, file);
  const page = await openPage(browser, address({ file }));
  await ready(page);
  const shown = await page.evaluate(() => {
    const row = document.querySelector('.code-row.current'), of = c => row.querySelector(c)?.textContent;
    return { self: of('.self b') || '', all: of('.all b'), line: of('.c-line'), text: row.querySelector('.c-text').firstChild.textContent };
  });
  equal(shown.line, String(hot.line), 'the line that costs most is the first that is shown');
  equal(shown.text.trim().replace(/\\u\{202e\}/, '\u202e'), hot.source.trim(), '  with its text');
  // `cairn query --lines` has the same numbers: "FLAT CUMULATIVE LINE TEXT".
  const said = text.split('\n').map(l => /^ *(.+?) {2,}(\S.*?) +(\d+)  /.exec(l)).find(m => m && m[3] === String(hot.line));
  check(said, '  that line is in the answer of the command', text);
  equal([shown.self || '0', shown.all], [said[1].replace(/^0 ns$/, '0'), said[2]], '  and with the cost that the command has');
  equal(await page.evaluate(() => window.reached), undefined, '  nothing in the text is run');
  equal(await page.getAttribute('#view-source .code-scroll', 'aria-rowcount'), '20002', 'all 20,000 lines are there');
  check(await page.locator('#view-source .code-row').count() < 150, '  of which only those in sight exist');

  await press(page, 'n');
  const second = lines.rows.filter(r => r.file === file).sort((a, b) => b.flat - a.flat || b.cumulative - a.cumulative || a.line - b.line)[1];
  match(await currentText(page), new RegExp(`${second.line}`), 'n goes to the second');
  await press(page, 'p');
  match(await currentText(page), new RegExp(`${hot.line}`), '  and p back');
  await press(page, 'Home');
  match(await currentText(page), /line 1 /, 'Home goes to the first line');
  await press(page, 'End');
  match(await currentText(page), /sink;/, '  End to the last');

  const site = lines.rows.find(r => r.file === file && r.inlined?.some(c => c.function === 'mix'));
  const open = page.locator('#view-source .code-row', { hasText: 'mix(i)' }).locator('button.sites');
  await press(page, 'n');
  await open.waitFor();
  await open.click();
  const call = page.locator('#view-source .code-row.site', { hasText: 'mix' });
  check(await call.count() === 1 && site, 'the call that was inlined opens at its line');
  match(await call.locator('.all b').textContent(), /\d/, '  with its cost');
  await axe(page, 'axe has no complaint');
  await screenshot(page, 'source-inlined');
  await call.locator('button').click();
  await page.waitForFunction(() => /function=mix/.test(location.hash));
  await ready(page);
  match(await currentText(page), /sink \+= i \* 31/, '  and leads to the inlined function');
  await noProblems(page, 'no console error, no policy violation');
  await page.context().close();
}

async function lookAtCode(browser, code) {
  const all = code.ranges.flatMap(r => r.instructions), hot = [...all].sort((a, b) => (b.flat || 0) - (a.flat || 0) || (b.cumulative || 0) - (a.cumulative || 0))[0];
  const page = await openPage(browser, address());
  await ready(page);
  await page.click('#view-source button[value=code]');
  await page.waitForSelector('.code-row.code.current');
  equal((await page.textContent('.code-row.current .c-line')).trim(), hot.address.slice(2), 'the instruction that costs most is the first that is shown');
  match(await currentText(page), new RegExp(hot.mnemonic), '  with its mnemonic');
  check(await page.locator('.code-row.place', { hasText: /for \(|mix|sink|sink \^= i/ }).count() > 0, '  and lines of source between instructions');
  const jump = all.find(i => i.flow === 'jump' && all.some(o => o.address === i.target));
  const link = page.locator('.code-row', { hasText: jump.mnemonic }).locator('button.link', { hasText: jump.target }).first();
  await link.click();
  equal((await page.textContent('.code-row.current .c-line')).trim(), jump.target.slice(2), 'a jump leads to its target');
  await axe(page, 'axe has no complaint');
  await screenshot(page, 'disassembly');
  await page.selectOption('#view-source select[aria-label=Syntax]', 'att');
  await page.waitForFunction(() => /%r|%e/.test(document.querySelector('.code-rows:not([hidden])')?.closest('#view-source').textContent));
  check(true, "AT&T's syntax can be chosen");
  await noProblems(page, 'no console error, no policy violation');
  await page.context().close();
}

async function lookAtAll(browser) {
  const looks = [['lines', {}, DARK], ['lines', {}, NARROW], ['code', { panel: 'code' }, DARK], ['code', { panel: 'code' }, NARROW], ['top', { function: '' }, NARROW]];
  for (const [panel, keys, [name, options]] of looks) {
    const page = await openPage(browser, address(keys), options);
    await ready(page);
    check(await page.locator('#view-source .code-row').count() < 150, `${panel}, ${name}: only the rows in sight exist`);
    if (panel === 'lines') check(await page.locator('#view-source .code-row.current').isVisible(), '  and the line that costs most is one of them');
    await axe(page, '  axe has no complaint');
    await fitsWidth(page, '  it fits the window');
    await screenshot(page, `source-${panel}-${name}`);
    await noProblems(page, '  no console error, no policy violation');
    await page.context().close();
  }
}

run(async browser => {
  if (mode === 'missing') return lookAtMissing(browser);
  const lines = JSON.parse(fs.readFileSync(files[0])), text = fs.readFileSync(files[1], 'utf8'), code = JSON.parse(fs.readFileSync(files[2]));
  await lookAtLines(browser, lines, text);
  await lookAtCode(browser, code);
  await lookAtAll(browser);
});
