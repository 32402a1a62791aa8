// SPDX-License-Identifier: Apache-2.0
// changes.js URL: the view Changes with the data of tests/e2e/query/changing_service.sh, in light, dark and narrow windows.
'use strict';
const { run, check, equal, match, openPage, noProblems, axe, screenshot, fitsWidth } = require('./support');

const [url] = process.argv.slice(2);
const ready = page => page.waitForFunction(() => document.querySelector('[role=tabpanel]:not([hidden])')?.getAttribute('aria-busy') === 'false');
const rows = page => page.$$eval('#view-changes tbody tr', all => all.map(tr => [...tr.cells].map(td => td.textContent)));
const keysOf = page => Object.fromEntries(new URLSearchParams(new URL(page.url()).hash.slice(1)));

async function look(browser) {
  for (const [look, options] of [['light', { width: 1440, height: 900 }], ['dark', { dark: true, width: 1440, height: 900 }], ['narrow', { width: 360, height: 740 }]]) {
    const page = await openPage(browser, url + '/#view=changes', options);
    await ready(page);
    const shown = await rows(page);
    equal(shown.map(r => r.slice(1, 3)), [['api', 'hash']], `${look}: the function that costs more is listed`);
    match(shown[0].join('|'), /\|▲ \+\d+\.\d%\|\+.*\|version 1\.0 → 2\.0\|costs more\|/, '  by how much, and since which version');
    await axe(page, '  axe has no complaint');
    await fitsWidth(page, '  it fits the window');
    await screenshot(page, `changes-${look}`);
    if (look === 'light') await follow(page);
    await noProblems(page, `${look}: no console error, no policy violation`);
    await page.context().close();
  }
}

async function follow(page) {
  await page.check('#view-changes input[type=checkbox]');
  await page.waitForFunction(() => document.querySelectorAll('#view-changes tbody tr').length > 2);
  equal(keysOf(page).all, '1', 'that others are shown, too, is in the link');
  const texts = (await rows(page)).map(r => r.join('|'));
  check(texts.some(t => /swing.*went away/.test(t)), 'what went away says so', texts);
  await page.click('#view-changes th button:text-is("Function")');
  equal(keysOf(page).sort, 'function', 'the order is in the link');
  const names = async () => (await rows(page)).map(r => r[2]), sorted = await names();
  equal(sorted, [...sorted].sort((a, b) => a.localeCompare(b, 'en')), '  by name');
  await page.reload();
  await ready(page);
  equal(await names(), sorted, '  a reload leaves it');
  await page.uncheck('#view-changes input[type=checkbox]');
  await page.waitForFunction(() => document.querySelectorAll('#view-changes tbody tr').length === 1);
  await page.click('#view-changes tbody button:text-is("Compare")');
  await ready(page);
  const { view, base_to, from } = keysOf(page);
  equal([view, base_to], ['diff', from], 'a row leads to the comparison of the time before and after');
  match(await page.locator('#view-diff tbody tr').first().textContent(), /hash/, '  whose greatest change is the function');
}

run(browser => look(browser));
