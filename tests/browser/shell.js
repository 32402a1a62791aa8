// SPDX-License-Identifier: Apache-2.0
// shell.js URL: the service's page with the recorded profile: every view, in light, dark and narrow windows.
'use strict';
const { run, check, equal, match, openPage, noProblems, axe, screenshot, fitsWidth } = require('./support');

const url = process.argv[2];
const VIEWS = ['flame', 'top', 'diff', 'missing'];
const LOOKS = [['light', {}], ['dark', { dark: true }], ['narrow', { width: 360, height: 740 }]];

// The view that is shown has its answer.
const ready = page => page.waitForFunction(() => {
  const shown = document.querySelector('[role=tabpanel]:not([hidden])');
  return shown && shown.getAttribute('aria-busy') === 'false';
});

async function look(browser) {
  for (const [name, options] of LOOKS) {
    const page = await openPage(browser, url + '/', options);
    for (const view of VIEWS) {
      await page.click('#tab-' + view);
      await ready(page);
      equal(await page.getAttribute('#tab-' + view, 'aria-selected'), 'true', `${name}: the tab ${view} is selected`);
      check(await page.isHidden('#error'), `  without an error`, await page.textContent('#error'));
      await axe(page, `  axe has no complaint`);
      await fitsWidth(page, `  it fits the window`);
      await screenshot(page, `${view}-${name}`);
    }
    await noProblems(page, `${name}: no console error, no policy violation`);
    await page.context().close();
  }
}

run(async browser => {
  await look(browser);
  const page = await openPage(browser, url + '/');
  await ready(page);

  await page.click('#tab-top');
  await ready(page);
  match(page.url(), /#view=top&from=now-15m&to=now$/, 'the selection is in the address');
  await page.goBack();
  await page.waitForSelector('#tab-flame[aria-selected=true]');
  await page.goForward();
  await page.waitForSelector('#tab-top[aria-selected=true]');
  check(true, 'the browser goes back and forward through selections');

  await page.focus('#tab-top');
  await page.keyboard.press('ArrowRight');
  await page.waitForSelector('#tab-diff[aria-selected=true]:focus');
  check(true, 'arrow keys move between tabs');
});
