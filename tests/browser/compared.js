// SPDX-License-Identifier: Apache-2.0
// compared.js URL: the lines of two builds beside each other, with the data of tests/e2e/query/two_builds.sh.
'use strict';
const { run, check, equal, match, openPage, noProblems, axe, screenshot, fitsWidth } = require('./support');

const [url] = process.argv.slice(2);
const ready = page => page.waitForFunction(() => document.querySelector('[role=tabpanel]:not([hidden])')?.getAttribute('aria-busy') === 'false');
const keysOf = page => Object.fromEntries(new URLSearchParams(new URL(page.url()).hash.slice(1)));
const COMPARISON = '#view=diff&shown=table&compare=label&label=version&before=old&after=new&from=now-1h';

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
    await axe(page, '  axe has no complaint');
    await fitsWidth(page, '  it fits the window');
    await screenshot(page, `compared-${look}`);
    await page.click('#view-source button:text-is("The side after alone")');
    await ready(page);
    check(await page.isVisible('#view-source .code-box:not(.compared) .code-row'), '  a button shows the side after alone');
    await noProblems(page, `${look}: no console error, no policy violation`);
    await page.context().close();
  }
});
