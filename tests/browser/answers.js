// SPDX-License-Identifier: Apache-2.0
// answers.js URL: the questions that bring people to the page, answered from its start with a bounded number of interactions; the
// table of services has the numbers of the API.
'use strict';
const { run, check, equal, match, openPage, noProblems, axe, screenshot, fitsWidth } = require('./support');

const [url] = process.argv.slice(2);
const ready = page => page.waitForFunction(() => document.querySelector('[role=tabpanel]:not([hidden])')?.getAttribute('aria-busy') === 'false');
const rowOf = (page, name) => page.locator('#view-services tbody tr', { has: page.locator(`button.link:text-is("${name}")`) });
const keysOf = page => Object.fromEntries(new URLSearchParams(new URL(page.url()).hash.slice(1)));

// Each click, key and choice in a list is an interaction; a text is one.
function countInteractions(page) {
  let count = 0;
  const counted = f => async (...args) => { count++; await f(...args); await ready(page); };
  return { click: counted(target => (typeof target === 'string' ? page.locator(target) : target).click()), press: counted((target, key) => page.press(target, key)),
    choose: counted((target, value) => page.selectOption(target, value)), type: counted((target, text) => page.fill(target, text)),
    atMost: (most, name) => check(count <= most, `${name}, in at most ${most} interactions`, `${count} interactions`) };
}
async function open(browser, options) {
  const page = await openPage(browser, url + '/', options);
  await ready(page);
  return page;
}

async function findRegression(browser) {
  const page = await open(browser), user = countInteractions(page);
  await user.click('#range');
  await user.click('.time-presets button:text-is("Last 2 days")');
  match(await rowOf(page, 'checkout').textContent(), /1\.4\.2 → 1\.5\.0/, 'the deploy of yesterday is in the row of its service');
  await user.click(rowOf(page, 'checkout').locator('button:has-text("Compare with 1.4.2")'));
  const { label, before, after } = keysOf(page);
  equal([label, before, after], ['version', '1.4.2', '1.5.0'], '  the comparison is that of the two versions');
  match(await page.locator('#view-diff tbody tr').first().textContent(), /▲ \+20\.51 pp.*hash/, '  the function that became slower is the first of the changes');
  await user.click(page.locator('#view-diff tbody tr').first().locator('a.link'));
  equal([keysOf(page).view, keysOf(page).function, keysOf(page).line], ['source', 'hash', '7'], '  its line is shown');
  user.atMost(4, 'which function and line became slower with the deploy');
  await noProblems(page, '  no console error, no policy violation');
}
// Since when, and by how much, of each service.
async function seeChangeSinceDeploy(browser) {
  const page = await open(browser), user = countInteractions(page);
  await user.click('#range');
  await user.click('.time-presets button:text-is("Last 2 days")');
  await user.choose('#view-services select', 'deploy');
  match(await rowOf(page, 'checkout').textContent(), /▲ \+\d+\.\d%.*1\.4\.2 → 1\.5\.0/, 'the change since the deploy is in the row of its service');
  check(!/%.*%.*[▲▼]/.test(await rowOf(page, 'frontend').textContent()), '  a service without a deploy has none');
  equal(keysOf(page).against, 'deploy', '  which is in the link');
  await page.reload();
  await ready(page);
  match(await page.textContent('#view-services'), /since the last deploy/, '  and stays after a reload');
  await axe(page, '  axe has no complaint');
  user.atMost(3, 'what the last deploys cost');
  await noProblems(page, '  no console error, no policy violation');
}
// From the table of a short range, whose time before has no samples, the comparison of the last two versions is offered.
async function findOlderVersion(browser) {
  const page = await open(browser), user = countInteractions(page);
  await user.click(rowOf(page, 'checkout').locator('button:has-text("Compare with the time before")'));
  match(await page.textContent('#view-diff .empty'), /The baseline has no samples.*version 1\.4\.2 → 1\.5\.0, last 7 days/, 'without samples before, the versions of the last days are offered');
  await user.click('#view-diff .empty button:has-text("1.4.2")');
  match(await page.locator('#view-diff tbody tr').first().textContent(), /▲ \+20\.51 pp.*hash/, '  which leads to the change');
  user.atMost(2, 'which function became slower, from a short range');
  await noProblems(page, '  no console error, no policy violation');
}
// A deploy of another build with the same version.
async function findBuild(browser) {
  const page = await open(browser), user = countInteractions(page);
  match(await rowOf(page, 'worker').textContent(), /aaaaaaaa → bbbbbbbb/, 'another build is in the row of its service, although its version is the same');
  await page.focus('#series canvas');
  let said = '';
  for (let i = 0; i < 120 && !/new build/.test(said); i++) {
    await page.keyboard.press('ArrowLeft');
    said = await page.textContent('.readout');
  }
  match(said, /new build: worker workd aaaaaaaa → bbbbbbbb/, '  and a mark in the chart');
  await user.click(rowOf(page, 'worker').locator('button:has-text("Compare with aaaaaaaa")'));
  const { label, before, after } = keysOf(page);
  equal([label, before.slice(0, 8), after.slice(0, 8)], ['process_executable_build_id_gnu', 'aaaaaaaa', 'bbbbbbbb'], '  the comparison is that of the two builds');
  match(await page.locator('#view-diff tbody tr').first().textContent(), /▲ \+4\.17 pp.*sort/, '  the function that became slower is the first of the changes');
  user.atMost(1, 'which function became slower with the build');
  await noProblems(page, '  no console error, no policy violation');
}
// The same from Compare, in whose panel the deploys of the range are.
async function chooseDeploy(browser) {
  const page = await openPage(browser, url + '/#view=diff&from=now-15m&to=now');
  await ready(page);
  await page.click('#view-diff .sides-chip');
  await page.click('.sides-panel button:text-is("worker workd aaaaaaaa → bbbbbbbb")');
  await ready(page);
  const { selector, label, before } = keysOf(page);
  equal([selector, label, before.slice(0, 8)], ['service_name="worker"', 'process_executable_build_id_gnu', 'aaaaaaaa'], 'a deploy in the range is chosen as the sides of a comparison');
  match(await page.textContent('.sides-chip'), /aaaaaaaa → bbbbbbbb$/, '  which the button tells');
  await page.waitForSelector('#view-diff .flame canvas');
  await noProblems(page, '  no console error, no policy violation');
}
async function findMissing(browser) {
  const page = await open(browser), user = countInteractions(page);
  await user.click('#tab-debuginfo');
  match(await page.textContent('#view-debuginfo'), /names.*Reason.*Build id/, 'the page lists what lacks symbols, and why');
  user.atMost(1, 'which build-ids lack symbols');
}
async function findPayers(browser) {
  const page = await open(browser), user = countInteractions(page);
  await user.click('#filter');
  await user.type('#filter-panel input', '^malloc$');
  await user.press('#filter-panel input', 'Enter');
  const shown = await page.locator('#view-services tbody tr').allTextContents();
  const api = await (await page.request.get(`${url}/api/v1/query/services?from=now-15m&focus=%5Emalloc%24`)).json();
  equal(shown.map(t => /checkout|frontend|batch/.exec(t)[0]), api.rows.map(r => r.labels.service_name), 'the services that pay for malloc are listed by their cost in it');
  user.atMost(3, 'who pays for malloc');
}
async function findTrace(browser) {
  const page = await open(browser), user = countInteractions(page);
  await user.click('#tab-traces');
  await user.type('#view-traces input', '4bf92f3577b34da6a3ce929d0e0e4736');
  await user.press('#view-traces input', 'Enter');
  match(decodeURIComponent(keysOf(page).selector || ''), /trace_id="4bf92f3577b34da6a3ce929d0e0e4736"/, 'the profile of a trace is shown');
  user.atMost(3, 'what did this trace do');
}
async function findContainers(browser) {
  const page = await open(browser), user = countInteractions(page);
  await user.choose('#by', 'container_name');
  match(await page.locator('#view-services tbody tr').first().textContent(), /^shop-1/, 'containers are listed by their cost');
  user.atMost(2, 'which containers burn CPU');
}

async function lookAtServices(browser) {
  for (const [look, options] of [['light', { width: 1440, height: 900 }], ['dark', { dark: true, width: 1440, height: 900 }], ['narrow', { width: 360, height: 740 }]]) {
    const page = await open(browser, options);
    const shown = await page.$$eval('#view-services tbody tr', all => all.map(tr => [...tr.cells].slice(1, 8).map(td => td.textContent)));
    const answer = await (await page.request.get(`${url}/api/v1/query/services?from=now-15m`)).json();
    equal(shown.map(r => [r[0], r[6]]), answer.rows.map(r => [r.labels.service_name, r.samples.toLocaleString('en')]), `${look}: the services of the API are shown`);
    const cores = answer.rows.map(r => r.value / 1e6 / (answer.to_ms - answer.from_ms));
    check(shown.every((r, i) => Math.abs(r[1] - cores[i]) < 0.0051), '  their cost is in cores', [shown, cores]);
    equal(shown.map(r => r[2]), answer.rows.map(r => (100 * r.value / answer.total).toFixed(2) + '%'), '  their shares are of the total');
    await axe(page, '  axe has no complaint');
    await fitsWidth(page, '  it fits the window');
    await screenshot(page, `services-${look}`);
    await noProblems(page, '  no console error, no policy violation');
    await page.context().close();
  }
  const page = await open(browser);
  await rowOf(page, 'frontend').locator('input').check();
  check(await page.isDisabled('button:text-is("Compare the two ticked")'), 'one ticked row is not compared');
  await rowOf(page, 'batch').locator('input').check();
  await page.click('button:text-is("Compare the two ticked")');
  await ready(page);
  const { base_selector, selector } = keysOf(page);
  equal([base_selector, selector], ['{service_name="frontend"}', 'service_name="batch"'], '  two are');
  await page.goBack();
  await page.waitForSelector('#tab-services[aria-selected=true]');
  await ready(page);
  await rowOf(page, 'frontend').locator('button.link').focus();
  await page.keyboard.press('Enter');
  await page.waitForSelector('#tab-flame[aria-selected=true]');
  equal(keysOf(page).selector, 'service_name="frontend"', 'a service leads to its flame graph, by the keyboard');
  await noProblems(page, '  no console error, no policy violation');
}

run(async browser => {
  await lookAtServices(browser);
  for (const question of [findRegression, seeChangeSinceDeploy, findOlderVersion, findBuild, chooseDeploy, findMissing, findPayers, findTrace, findContainers]) await question(browser);
});
