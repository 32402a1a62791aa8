// SPDX-License-Identifier: Apache-2.0
// trend.js URL: the view Trend with the data of tests/e2e/query/changing_service.sh, in light, dark and narrow windows.
'use strict';
const { run, check, equal, match, openPage, noProblems, axe, screenshot, fitsWidth } = require('./support');

const [url] = process.argv.slice(2);
const HASH = '/#view=trend&from=now-3d&function=hash';
const ready = page => page.waitForFunction(() => document.querySelector('[role=tabpanel]:not([hidden])')?.getAttribute('aria-busy') === 'false');
const rows = page => page.$$eval('#view-trend tbody tr', all => all.map(tr => [...tr.cells].map(td => td.textContent)));
const keysOf = page => Object.fromEntries(new URLSearchParams(new URL(page.url()).hash.slice(1)));

async function look(browser) {
  for (const [look, options] of [['light', { width: 1440, height: 900 }], ['dark', { dark: true, width: 1440, height: 900 }], ['narrow', { width: 360, height: 740 }]]) {
    const page = await openPage(browser, url + HASH, options);
    await ready(page);
    const shown = await rows(page), api = await (await page.request.get(`${url}/api/v1/query/trend?from=now-3d&function=hash`)).json();
    const steps = api.series[0].points.map((p, i) => [p, api.all[i]]).filter(([, all]) => all[2]).reverse();
    check(shown.length === 24 && shown.every((r, i) => r[1] === steps[i][0][1].toLocaleString('en') && r[2] === (100 * steps[i][0][1] / steps[i][1][1]).toFixed(2) + '%'),
      `${look}: each hour has the cost and share of the API`, [shown[0], steps[0]]);
    equal(shown.map(r => r[6]).filter(Boolean), ['version: api 1.0 → 2.0'], '  and the deploy is in its hour');
    await axe(page, '  axe has no complaint');
    await fitsWidth(page, '  it fits the window');
    await screenshot(page, `trend-${look}`);
    if (look === 'light') await useChart(page);
    await noProblems(page, `${look}: no console error, no policy violation`);
    await page.context().close();
  }
}
async function useChart(page) {
  await page.focus('#view-trend canvas');
  let said = '';
  for (let i = 0; i < 168 && !/new version/.test(said); i++) {
    await page.keyboard.press('ArrowLeft');
    said = await page.textContent('#view-trend .readout');
  }
  match(said, /: 7\.\d+% · self 7\.\d+% · new version: api 1\.0 → 2\.0/, '  the keyboard reads hours and deploys');
  await page.click('#view-trend button:text-is("Cost")');
  await ready(page);
  equal(keysOf(page).scale, 'values', '  the scale is in the link');
  await page.reload();
  await ready(page);
  equal(await page.getAttribute('#view-trend button:text-is("Cost")', 'aria-pressed'), 'true', '  and stays after a reload');
  await page.fill('#view-trend input', 'f3');
  await page.press('#view-trend input', 'Enter');
  await page.waitForFunction(() => /^f3\.isra/.test(document.querySelector('#view-trend h2').textContent));
  match(await page.textContent('#view-trend .changes .bar'), /1–24 of 48 steps/, '  a function that a build renamed is one');
  await page.fill('#view-trend input', 'nothing');
  await page.press('#view-trend input', 'Enter');
  await page.waitForFunction(() => /No hour of this time/.test(document.querySelector('#view-trend').textContent));
  check(await page.isHidden('#view-trend table'), '  a name that no function has says so');
}
const isTrend = (page, name, text) => page.waitForFunction(n => document.querySelector('#tab-trend').getAttribute('aria-selected') === 'true' &&
  document.querySelector('#view-trend h2').textContent === n, name).then(() => check(true, text));

async function follow(browser) {
  const page = await openPage(browser, url + '/#view=top&from=now-3d', { width: 1440, height: 900 });
  await ready(page);
  await page.locator('#view-top tbody tr', { has: page.locator('button.link:text-is("hash")') }).locator('a:text-is("Trend")').click();
  await isTrend(page, 'hash', 'a row of the table leads to the trend in one click');
  await page.goto(url + '/#view=flame&from=now-3d');
  await page.waitForSelector('#tab-flame[aria-selected=true]');
  await ready(page);
  await page.focus('#view-flame canvas');
  check(await page.isDisabled('#view-flame button:text-is("Show trend")'), 'the root has no trend');
  for (let i = 0; i < 2; i++) await page.keyboard.press('ArrowDown');
  const name = (await page.textContent('#view-flame .flame-status')).replace(/ — .*/, '');
  await page.click('#view-flame button:text-is("Show trend")');
  await isTrend(page, name, '  so does a frame');
  await page.goBack();
  await page.waitForSelector('#tab-flame[aria-selected=true]');
  await ready(page);
  await page.focus('#view-flame canvas');
  await page.keyboard.press('t');
  await isTrend(page, name, '  and its key');
  await page.goto(url + '/#view=changes');
  await page.waitForSelector('#view-changes tbody button:text-is("hash")');
  await page.click('#view-changes tbody button:text-is("hash")');
  await isTrend(page, 'hash', '  and a change');
  equal(keysOf(page).selector, 'service_name="api"', '  of its service');
  await page.goto(url + '/#view=trend&from=now-3d');
  await page.waitForFunction(() => document.querySelector('#view-trend h2').textContent && document.querySelector('#view-trend tbody tr'));
  match(await page.textContent('#view-trend h2'), /^(hash|swing|f\d+)/, 'without a function it is that of the most expensive one');
  await noProblems(page, 'no console error, no policy violation');
}

run(async browser => {
  await look(browser);
  await follow(browser);
});
