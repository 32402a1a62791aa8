// SPDX-License-Identifier: Apache-2.0
// speedscope.js INDEX.html DIR FILE...: speedscope's page opens each file; prints its most expensive function.
'use strict';
const fs = require('fs');
const path = require('path');
const { run, match, openPage, noProblems } = require('../browser/support');

const [index, dir, ...files] = process.argv.slice(2);

run(async browser => {
  for (const file of files) {
    // The way in which speedscope's command passes a file to its page.
    const name = path.basename(file);
    const script = path.join(dir, 'profile.js');
    fs.writeFileSync(script, `speedscope.loadFileFromBase64(${JSON.stringify(name)}, "${fs.readFileSync(file).toString('base64')}")`);
    const page = await openPage(browser, `file://${index}#localProfilePath=${script}`, { expected: [/GL Driver Message/] }); // of its drawing without a GPU
    await page.waitForFunction(n => document.body.innerText.includes(n), name);
    await page.keyboard.press('3'); // the table
    await page.waitForFunction(() => document.body.innerText.includes('Symbol Name'));
    match((await page.evaluate(() => document.body.innerText)).replace(/\s+/g, ' '), /\(90%\) 900(,000,000|\.00ms) \(90%\) leaf /,
      `${name}: speedscope has the function and its share`);
    await noProblems(page, '  and no complaint');
    await page.context().close();
  }
});
