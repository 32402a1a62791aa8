// SPDX-License-Identifier: Apache-2.0
'use strict';
const fs = require('fs');
const path = require('path');
const { chromium } = require('playwright-core');

const WAIT_MS = 60000;
const out = process.env.CAIRN_BROWSER_OUT;
const axeSource = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const opened = [];
let failed = 0;

function check(good, name, detail) {
  if (!good) failed++;
  console.log((good ? 'ok - ' : 'not ok - ') + name.replace(/[\r\n#]/g, ' '));
  if (!good && detail !== undefined)
    for (const line of String(typeof detail === 'string' ? detail : JSON.stringify(detail, null, 1)).split('\n').slice(0, 60)) console.log('  ' + line);
}
const equal = (got, want, name) =>
  check(JSON.stringify(got) === JSON.stringify(want), name, `got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
const match = (text, pattern, name) => check(pattern.test(text), name, `${JSON.stringify(text)} does not match ${pattern}`);

// options: width, height, dark, reducedMotion, and those of browser.newContext(). Requests to other hosts than the service are
// problems, too. `expected` are patterns of console errors that the test provokes.
async function openPage(browser, url, options = {}) {
  const { width = 1280, height = 800, dark = false, reducedMotion = false, expected = [], ...rest } = options;
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: dark ? 'dark' : 'light',
    reducedMotion: reducedMotion ? 'reduce' : 'no-preference', timezoneId: 'UTC', locale: 'en-GB', ...rest });
  const page = await context.newPage();
  page.problems = [];
  page.expected = expected;
  page.setDefaultTimeout(WAIT_MS);
  const note = text => { if (!page.expected.some(p => p.test(text))) page.problems.push(text); };
  page.on('console', m => { if (m.type() === 'error' || m.type() === 'warning') note(`console: ${m.text()} ${m.location().url || ''}`); });
  page.on('pageerror', e => note(`exception: ${e.stack || e}`));
  const origin = url.startsWith('file:') ? 'nothing' : new URL(url).origin;
  page.on('request', r => {
    if (!/^(data|blob|file|chrome-extension):/.test(r.url()) && new URL(r.url()).origin !== origin) note(`request to ${r.url()}`);
  });
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', e =>
      console.error(`policy: ${e.effectiveDirective} ${e.blockedURI} ${e.sourceFile}:${e.lineNumber} ${e.sample}`));
  });
  opened.push(page);
  await page.goto(url);
  return page;
}

async function noProblems(page, name) {
  check(page.problems.length === 0, name, page.problems.join('\n'));
  page.problems = [];
}

// The current view violates no rule of WCAG 2.2 AA and axe's best practices.
async function axe(page, name, options = {}) {
  if (!await page.evaluate(() => typeof axe !== 'undefined')) await page.evaluate(axeSource);
  const result = await page.evaluate(o => axe.run(document, o), { resultTypes: ['violations'], ...options });
  check(result.violations.length === 0, name,
    result.violations.map(v => `${v.id}: ${v.help}\n` + v.nodes.slice(0, 5).map(n => `  ${n.target}: ${n.failureSummary.replace(/\n/g, ' ')}`).join('\n')).join('\n'));
}

async function screenshot(page, name) {
  if (!out) return;
  fs.mkdirSync(out, { recursive: true });
  // In narrow windows the page scrolls.
  await page.screenshot({ path: path.join(out, name + '.png'), fullPage: page.viewportSize().width < 700 });
}

// Nothing is wider than the window.
async function fitsWidth(page, name) {
  const [content, room] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
  check(content <= room, name, `the page is ${content} px wide in ${room} px`);
}

async function run(main) {
  let browser = null;
  try {
    browser = await chromium.launch({
      executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
      timeout: WAIT_MS,
      args: ['--disable-dev-shm-usage', '--force-device-scale-factor=1', '--hide-scrollbars', '--disable-quic', '--disable-gpu',
        ...(process.getuid() === 0 ? ['--no-sandbox'] : [])],
    });
    await main(browser);
  } catch (e) {
    check(false, 'the script ends without an exception', e.stack || String(e));
    for (const page of opened) if (!page.isClosed()) await screenshot(page, 'failed-' + opened.indexOf(page)).catch(() => {});
  }
  for (const page of opened) if (page.problems.length) await noProblems(page, 'no console error or policy violation was left');
  if (browser) await browser.close();
  process.exit(failed ? 1 : 0);
}

module.exports = { run, check, equal, match, openPage, noProblems, axe, screenshot, fitsWidth, WAIT_MS };
