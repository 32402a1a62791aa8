// SPDX-License-Identifier: Apache-2.0
// perf.js URL: performance of the flame graph in the browser: time from the last byte of the response to the first frame, time
// of each frame during interaction, and memory. CPU times are the main thread's in Chromium's trace, so that other load on the
// machine is not included. Exits with 1 if the first frame (elapsed, best of three) or the animation frames (CPU) exceed the
// limits of docs/performance.md. The responses are generated here; the page is the service's.
'use strict';
const fs = require('fs');
const { run, check, openPage, noProblems, screenshot } = require('./support');

const url = process.argv[2];
const MOST = 1048576, MOVES = 120;
const REST_MS = 250, REST_CPU_S = 0.02, REST_ROUNDS = 60;
const BUDGET_MS = { 20000: 500, [MOST]: 3000 }, FRAME_MS = 16.7;

const quantile = (values, q) => [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(q * values.length))];

// A tree of n nodes, 499 deep, of 20,000 functions: each stack branches off the previous one at some depth.
function makeAnswer(n) {
  let seed = 16;
  const random = most => (seed = Math.imul(seed, 1103515245) + 12345 >>> 0) % most;
  const parent = new Int32Array(n), frame = new Int32Array(n), self = new Float64Array(n), total = new Float64Array(n), open = [0];
  for (let i = 1, depth = 0, goal = 499; i < n; i++) {
    if (depth >= goal) {
      self[open[depth]] = (1 + random(1000)) * 1e6;
      depth = random(depth);
      goal = depth + 1 + random(499 - depth);
    }
    parent[i] = open[depth++];
    open[depth] = i;
    frame[i] = random(20000);
  }
  self[n - 1] = 1e6;
  for (let i = n - 1; i >= 0; i--) { total[i] += self[i]; if (i) total[parent[i]] += total[i]; }
  const nodes = Array.from({ length: n }, (_, i) => `[${i ? parent[i] : -1},${i ? frame[i] : -1},${self[i]},${total[i]},${i % 900}]`);
  const frames = Array.from({ length: 20000 }, (_, i) => [`ns${i % 40}::function_${i}`, `src/file_${i % 700}.c`, `/usr/lib/lib${i % 12}.so`, i % 9 === 1 ? 1 : i % 11 === 2 ? 2 : 0, '']);
  const now = Date.now();
  return `{"version":1,"type":"process_cpu:cpu:nanoseconds:cpu:nanoseconds","unit":"nanoseconds","focus":null,"inverted":false,"names":"short",
    "sides":[{"selector":"","from_ms":${now - 3600e3},"to_ms":${now},"total":${total[0]},"samples":6000}],"frames":${JSON.stringify(frames)},"left_out":0,"nodes":[${nodes.join(',')}]}`;
}

// CPU seconds of all processes of the browser.
async function sumCpu(session) {
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  return processInfo.reduce((sum, p) => sum + p.cpuTime, 0);
}

// Wait until the browser has opened the window: its own UI is a page in a process of its own, and with two CPUs the seconds
// that this takes would be included in the results.
async function waitForRest(browser) {
  const session = await browser.newBrowserCDPSession();
  for (let before = -1, now = await sumCpu(session), rounds = 0; now - before > REST_CPU_S && rounds < REST_ROUNDS; rounds++) {
    await new Promise(done => setTimeout(done, REST_MS));
    before = now;
    now = await sumCpu(session);
  }
  await session.detach();
}

// From the end of the response to the second animation frame after the graph is shown, in a page that is already loaded.
async function measureFirst(browser, nodes, body) {
  const page = await openPage(browser, `${url}/api/v1/query/types`);
  await page.addInitScript(() => {
    performance.setResourceTimingBufferSize(1000);
    new MutationObserver(() => {
      const status = document.querySelector('.flame-status');
      if (window.drawnAt || !status || !status.textContent) return;
      window.drawnAt = -1;
      requestAnimationFrame(() => requestAnimationFrame(() => { window.drawnAt = performance.now(); performance.mark('drawn'); }));
    }).observe(document, { subtree: true, childList: true, characterData: true });
  });
  await page.route('**/api/v1/query/flame?*', route => route.fulfill({ contentType: 'application/json', body }));
  await page.goto(`${url}/#view=traces&from=now-1h&to=now`);
  await page.waitForSelector('[role=tabpanel]:not([hidden])[aria-busy=false]');
  await waitForRest(browser);
  const events = await trace(browser, page, async () => {
    await page.evaluate(address => { location.hash = address; }, `#view=flame&from=now-1h&to=now&max_nodes=${nodes}`);
    await page.waitForFunction(() => window.drawnAt > 0, null, { timeout: 300000, polling: 50 });
  });
  const [drawn, answered] = await page.evaluate(() => {
    const e = performance.getEntriesByType('resource').find(r => r.name.includes('query/flame'));
    return [window.drawnAt, e.responseEnd];
  });
  const end = events.find(e => e.name === 'drawn'), begin = end.ts - (drawn - answered) * 1000;
  const cpu = events.filter(e => e.name === 'RunTask' && e.pid === end.pid && e.tid === end.tid && e.ts >= begin && e.ts <= end.ts).reduce((sum, e) => sum + (e.tdur || 0), 0);
  return { page, ms: drawn - answered, cpu: cpu / 1000 };
}

async function trace(browser, page, work) {
  await browser.startTracing(page, { categories: ['devtools.timeline', 'disabled-by-default-devtools.timeline', 'blink.user_timing'] });
  await work();
  return JSON.parse(await browser.stopTracing()).traceEvents;
}

// CPU milliseconds of each animation frame.
const traceFrames = async (browser, page, work) =>
  (await trace(browser, page, work)).filter(e => e.name === 'FireAnimationFrame' && e.ph === 'X').map(e => (e.tdur === undefined ? e.dur : e.tdur) / 1000);

async function measureMoves(browser, page) {
  const box = await page.locator('canvas >> nth=-1').boundingBox(), x = box.x + box.width / 2, y = box.y + box.height / 2;
  await page.focus('[role=tabpanel]:not([hidden]) canvas');
  for (let i = 0; i < 4; i++) await page.keyboard.press('+');
  const drag = await traceFrames(browser, page, async () => {
    await page.mouse.move(x, y);
    await page.mouse.down();
    for (let i = 0; i < MOVES; i++) await page.mouse.move(x + 300 * Math.sin(i / 8), y - 200 * Math.sin(i / 20));
    await page.mouse.up();
  });
  await page.mouse.move(x, y);
  const zoom = await traceFrames(browser, page, async () => {
    await page.keyboard.down('Control');
    for (let i = 0; i < MOVES; i++) await page.mouse.wheel(0, i < MOVES / 2 ? -80 : 80);
    await page.keyboard.up('Control');
  });
  const scroll = await traceFrames(browser, page, async () => {
    await page.keyboard.press('Home');
    for (let i = 0; i < MOVES; i++) await page.mouse.wheel(0, i % 40 < 20 ? 120 : -120);
  });
  return { drag, zoom, scroll };
}

async function measureMemory(browser, page) {
  const session = await page.context().newCDPSession(page);
  await session.send('HeapProfiler.collectGarbage');
  await session.send('Performance.enable');
  const { metrics } = await session.send('Performance.getMetrics');
  const heap = metrics.find(m => m.name === 'JSHeapUsedSize').value;
  const { processInfo } = await (await browser.newBrowserCDPSession()).send('SystemInfo.getProcessInfo');
  const resident = processInfo.filter(p => p.type === 'renderer').map(p => Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${p.id}/status`, 'utf8'))[1]));
  return { heap: heap / 2 ** 20, resident: Math.max(...resident) / 1024 };
}

run(async browser => {
  for (const nodes of [20000, MOST]) {
    const times = [], cpus = [], body = makeAnswer(nodes);
    let page = null;
    for (let i = 0; i < 3; i++) {
      if (page) await page.context().close();
      const first = await measureFirst(browser, nodes, body);
      times.push(first.ms);
      cpus.push(first.cpu);
      ({ page } = first);
    }
    const best = Math.min(...times), list = all => all.map(t => t.toFixed(0)).join(', ');
    console.log(`${nodes.toLocaleString('en')} nodes, ${(body.length / 1e6).toFixed(1)} MB of answer: drawn after ${list(times)} ms, of which CPU ${list(cpus)} ms`);
    check(best < BUDGET_MS[nodes], `the first picture of ${nodes.toLocaleString('en')} nodes takes less than ${BUDGET_MS[nodes]} ms`, best);
    const moves = await measureMoves(browser, page);
    for (const [what, frames] of Object.entries(moves)) {
      const p95 = quantile(frames, 0.95);
      console.log(`  ${what}: ${frames.length} frames, p50 ${quantile(frames, 0.5).toFixed(1)} ms, p95 ${p95.toFixed(1)} ms, worst ${Math.max(...frames).toFixed(1)} ms`);
      check(frames.length > 20 && p95 < FRAME_MS, `  ${what} takes less than ${FRAME_MS} ms of each frame, p95`, p95);
    }
    const memory = await measureMemory(browser, page);
    console.log(`  memory: ${memory.heap.toFixed(0)} MiB of JavaScript heap, the process ${memory.resident.toFixed(0)} MiB`);
    await screenshot(page, `perf-${nodes}`);
    await noProblems(page, '  without a console error');
    await page.context().close();
  }
});
