// SPDX-License-Identifier: Apache-2.0
// shell.js URL FILE: the service's page with the recorded profile: every view, in light, dark and narrow windows; and a saved
// page with one flame graph.
'use strict';
const { run, check, equal, match, openPage, noProblems, axe, screenshot, fitsWidth } = require('./support');

const [url, saved] = process.argv.slice(2);
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
    await noProblems(page, '  no console error, no policy violation');
    await page.context().close();
  }
}

// What a function's name or a library's mistake might try.
async function tryPolicy(browser) {
  for (const [name, address] of [['the service', url + '/'], ['a saved page', 'file://' + saved]]) {
    const page = await openPage(browser, address, { expected: [/Content Security Policy|^console: policy:|TrustedHTML|TrustedScript/] });
    // From a timer, as what the debugger evaluates itself may do more.
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

run(async browser => {
  await look(browser);
  await lookAtSaved(browser);
  await tryPolicy(browser);
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
