// SPDX-License-Identifier: Apache-2.0
'use strict';
const { run, check, equal, openPage, noProblems, axe, screenshot, fitsWidth } = require('./support');

const [url, ...words] = process.argv.slice(2);
const proxyHeader = words[0] === '--proxy' ? words[1] : '';
const token = words[0], name = words[words.length - 1];
const SELECTION = '#view=top&from=now-1h&to=now&selector=' + encodeURIComponent('service_name="zstd"');
const DATA = /\/usr\/bin\/zstd/; // an object of its functions
const OPTIONS = { ignoreHTTPSErrors: true, expected: [/status of 401/] };

// The response for the current view has arrived.
const ready = page => page.waitForFunction(() => {
  const shown = document.querySelector('[role=tabpanel]:not([hidden])');
  return shown && shown.getAttribute('aria-busy') === 'false';
});

async function signIn(page, text) {
  await page.fill('#sign-in-token', text);
  await page.click('#sign-in button');
}

const statusOf = (page, path) => page.evaluate(async p => (await fetch(p)).status, path);

async function lookAtForm(browser) {
  for (const [look, options] of [['light', {}], ['dark', { dark: true }], ['narrow', { width: 360, height: 740 }]]) {
    const page = await openPage(browser, url + '/' + SELECTION, { ...OPTIONS, ...options });
    await page.waitForSelector('#sign-in[open]');
    equal(await page.evaluate(() => document.activeElement.id), 'sign-in-token', `${look}: the form asks for a token`);
    await axe(page, '  axe has no complaint');
    await fitsWidth(page, '  it fits the window');
    await screenshot(page, 'sign-in-' + look);
    await noProblems(page, '  no console error, no policy violation');
    await page.context().close();
  }
}

async function useSession(browser) {
  const page = await openPage(browser, url + '/' + SELECTION, OPTIONS), context = page.context();
  await page.waitForSelector('#sign-in[open]');
  equal(await statusOf(page, 'api/v1/query/types'), 401, 'nothing is answered before');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  await page.waitForSelector('#sign-in[open]');
  check(true, 'Escape does not lead past the form');

  await signIn(page, 'not-the-token');
  await page.waitForSelector('#sign-in-error:not([hidden])');
  equal(await page.textContent('#sign-in-error'), 'Unknown token.', 'a wrong token is an error in words');
  await axe(page, '  axe has no complaint');

  await Promise.all([page.waitForNavigation(), signIn(page, ` ${token} `)]);
  await page.waitForSelector('#sign-out');
  await ready(page);
  equal(await page.textContent('.account-name'), name, 'the token signs in, and the page says who');
  check(await page.isHidden('#error') && await page.locator('#sign-in').count() === 0, '  without an error', await page.textContent('#error'));
  check(DATA.test(await page.textContent('#view-top')), '  the data of the link is shown');
  equal(new URL(page.url()).hash, SELECTION, '  whose selection is in the address as before');
  check(!page.url().includes(token), '  the token is not');
  const kept = await page.evaluate(() => JSON.stringify([document.cookie, { ...localStorage }, { ...sessionStorage }, document.documentElement.outerHTML]));
  check(!kept.includes(token), '  nor in storage or the page', kept.slice(0, 500));
  equal(await page.evaluate(() => document.cookie), '', '  and scripts see no cookie');
  const secure = url.startsWith('https:');
  const cookies = (await context.cookies()).map(c => [c.name, c.httpOnly, c.secure, c.sameSite, c.path]);
  equal(cookies, [[secure ? '__Host-cairn' : 'cairn', true, secure, 'Strict', '/']], '  the browser has it');
  await axe(page, '  axe has no complaint');
  await screenshot(page, 'signed-in');
  await fitsWidth(page, '  it fits the window');
  equal([await statusOf(page, 'store/'), await statusOf(page, 'metrics')], [401, 401], 'the session opens what the page needs alone');

  await page.reload();
  await ready(page);
  equal(await page.textContent('.account-name'), name, 'it outlasts a reload');
  const other = await context.newPage();
  await other.goto(url + '/' + SELECTION.replace('top', 'flame'));
  await other.waitForSelector('#view-flame canvas');
  await ready(other);
  check(await other.isHidden('#error') && await other.locator('#sign-in').count() === 0, 'and a link in another tab shows data at once');
  await noProblems(page, 'no console error, no policy violation');

  await Promise.all([page.waitForNavigation(), page.click('#sign-out')]);
  await page.waitForSelector('#sign-in[open]');
  equal([await statusOf(page, 'api/v1/query/types'), (await context.cookies()).length], [401, 0], 'signing out ends it, and the cookie is gone');
  check(!DATA.test(await page.textContent('body')), '  and with it what was shown');
  await other.reload();
  await other.waitForSelector('#sign-in[open]');
  check(true, '  in the other tab too');
  await Promise.all([page.waitForNavigation(), signIn(page, token)]);
  await page.waitForSelector('#sign-out');
  await ready(page);
  check(DATA.test(await page.textContent('#view-top')), 'signing in again shows the same');
  await context.clearCookies();
  await page.click('#refresh');
  await page.waitForSelector('#sign-in[open]');
  check(true, 'a session that ends while the page is open leads to the form');
  await noProblems(page, 'no console error, no policy violation');
  await context.close();
}

async function comeByProxy(browser) {
  const page = await openPage(browser, url + '/' + SELECTION, { extraHTTPHeaders: { [proxyHeader]: name } });
  await page.waitForSelector('.account-name');
  await ready(page);
  equal(await page.textContent('.account-name'), name, 'a user whom a proxy names is signed in, and the page says who');
  check(await page.locator('#sign-in').count() === 0 && await page.isHidden('#error'), '  without a form or an error', await page.textContent('#error'));
  check(DATA.test(await page.textContent('#view-top')), '  the data of the link is shown');
  equal((await page.context().cookies()).length, 0, '  and no cookie is needed');
  await axe(page, '  axe has no complaint');
  await noProblems(page, 'no console error, no policy violation');
  await page.context().close();
}

run(async browser => {
  if (proxyHeader) return comeByProxy(browser);
  if (url.startsWith('https:')) await lookAtForm(browser); // once
  await useSession(browser);
});
