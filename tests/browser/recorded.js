// SPDX-License-Identifier: Apache-2.0
// recorded.js FILE: all views of a standalone page written by `cairn record -o FILE`, of a program whose function burn has
// nearly all of the cost.
'use strict';
const { run, check, equal, match, openPage, noProblems, axe, screenshot, fitsWidth } = require('./support');
const { pathToFileURL } = require('url');

const address = pathToFileURL(process.argv[2]).href;
const panel = '[role=tabpanel]:not([hidden])', grid = `${panel} table[role=grid]`;
const ready = page => page.waitForFunction(() => document.querySelector('[role=tabpanel]:not([hidden])')?.getAttribute('aria-busy') === 'false');
const press = async (page, ...keys) => { for (const k of keys) await page.keyboard.press(k); };
const status = page => page.textContent(`${panel} .flame-status`);
const share = text => Number(/(\d+\.\d\d)%/.exec(text)[1]);

async function useViews(page) {
  match(await page.textContent('#about'), /^CPU time · \d.* in [\d,]+ samples, /, 'the recording is summed up');
  await page.fill(`${panel} input[type=search]`, '^burn$');
  await press(page, 'Enter');
  const found = await page.textContent(`${panel} input[type=search] ~ [role=status]`);
  check(share(found) > 50, 'a search finds the function that costs most', found);
  await page.focus(`${panel} canvas`);
  await press(page, 'Home', 'n');
  match(await status(page), /^burn — .*work\.c:\d+ · .*\/work$/, '  and leads to it, with line and object');
  await press(page, 'Enter', 'Shift+F10');
  await page.waitForSelector('[role=menu] :focus');
  const entries = await page.$$eval('[role=menuitem]', all => all.map(e => e.textContent));
  check(!entries.some(e => /source/i.test(e)) && entries.includes('Callers and callees'), '  a menu has what works without a service', entries);
  await press(page, 'Escape');
  await page.locator(`${panel} button:has-text("Reverse")`).click();
  await page.waitForSelector(`${panel} button[aria-pressed=true]:has-text("Reverse")`);
  await ready(page);
  await page.focus(`${panel} canvas`);
  await press(page, 'Home', 'ArrowDown');
  match(await status(page), /^(burn|mix|more) — /, '  reversed, it stands on top');
  await axe(page, '  axe has no complaint');

  await page.click('#tab-top');
  await ready(page);
  const rows = () => page.$$eval(`${grid} tbody tr`, trs => trs.map(tr => [...tr.cells].map(c => c.textContent)));
  await page.locator(`${grid} th button:text-is("Function")`).click();
  await page.fill(`${panel} .table-box input[type=search]`, '^(burn|main)$');
  equal((await rows()).map(r => r[4]), ['burn', 'main'], 'the table sorts and filters');
  equal(await page.locator(`${grid} a`).count(), 0, '  without links to sources');
  await page.focus(grid);
  await press(page, 'End', 'Home', 'Enter');
  await page.waitForSelector('#tab-sandwich[aria-selected=true]');
  await ready(page);
  equal(await page.textContent(`${panel} h2.name`), 'burn', '  Enter opens callers and callees');
  equal(await page.$eval(`${panel} .sandwich table`, t => t.tBodies[0].rows[0].cells[2].textContent), 'main', '  of the recording');
  await axe(page, '  axe has no complaint');
}

run(async browser => {
  for (const [look, options] of [['light', {}], ['dark', { dark: true }], ['narrow', { width: 360, height: 740 }]]) {
    const page = await openPage(browser, address, options);
    await ready(page);
    await fitsWidth(page, `${look}: it fits the window`);
    await screenshot(page, 'recorded-' + look);
    if (look === 'light') await useViews(page);
    else
      for (const view of ['flame', 'top', 'sandwich']) {
        await page.click('#tab-' + view);
        await ready(page);
        await axe(page, `  ${view}: axe has no complaint`);
        await fitsWidth(page, '  it fits the window');
        await screenshot(page, `recorded-${view}-${look}`);
      }
    await noProblems(page, '  no console error, no policy violation');
    await page.context().close();
  }
});
