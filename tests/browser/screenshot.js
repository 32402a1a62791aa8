// SPDX-License-Identifier: Apache-2.0
// screenshot.js URL FILE.png: the screenshot of the README: the flame graph of the recorded profile, below its chart.
'use strict';
const { run, openPage, noProblems } = require('./support');

const [url, file] = process.argv.slice(2);

run(async browser => {
  const page = await openPage(browser, url + '/#from=now-15m&by=service_name&selector=' + encodeURIComponent('service_name=~"python3.11|cc1"'),
    { width: 1200, height: 700 });
  await page.waitForFunction(() => {
    const shown = document.querySelector('[role=tabpanel]:not([hidden])');
    return shown && shown.getAttribute('aria-busy') === 'false' && shown.querySelector('canvas');
  });
  await page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));
  await page.screenshot({ path: file });
  await noProblems(page, 'the picture is made');
});
