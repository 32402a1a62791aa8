// SPDX-License-Identifier: Apache-2.0
// Profiles itself for three seconds with @pyroscope/nodejs: sdk.js URL
const Pyroscope = require('@pyroscope/nodejs');

Pyroscope.init({ serverAddress: process.argv[2], appName: 'node-sdk', tags: { region: 'eu' }, flushIntervalMs: 1000,
                 wall: { collectCpuTime: true, samplingDurationMs: 1000 } });
Pyroscope.start();
const kept = [], end = Date.now() + 3000;

function work() {
    let sum = 0;
    for (let i = 0; i < 1e6; i++)
        sum += Math.sqrt(i);
    kept.push(new Array(1000).fill(sum));
    if (Date.now() < end)
        setImmediate(work);
    else
        Pyroscope.stop().then(() => { console.log('ok - the SDK profiled itself'); process.exit(0); });
}
work();
