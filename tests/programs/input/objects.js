// objects.js - a Node.js program of many objects: maps, strings and buffers, worker threads that
// hand buffers over, compression and hashing in the thread pool. It prints digests.
// usage: node objects.js COUNT
'use strict';
const {Worker, isMainThread, parentPort, workerData} = require('worker_threads');
const crypto = require('crypto');
const zlib = require('zlib');
const {promisify} = require('util');

function generator(seed) {
  return limit => (seed = (seed * 16807) % 2147483647) % limit;
}

const digest = data => crypto.createHash('sha256').update(data).digest('hex');

function makeRecords(count, seed) {
  const random = generator(seed);
  return Array.from({length: count}, (_, i) => ({
    id: i,
    name: 'n' + random(1e6).toString(36).repeat(1 + random(9)),
    tags: Array.from({length: random(8)}, () => 't' + random(300)),
    value: random(1e9) / 1000,
  }));
}

// What one worker does: objects, text, native buffers, compression without the thread pool.
function work({count, seed}) {
  const records = makeRecords(count, seed);
  const byTag = new Map();
  for (const record of records)
    for (const tag of record.tags) {
      if (!byTag.has(tag)) byTag.set(tag, new Set());
      byTag.get(tag).add(record.name);
    }
  const text = JSON.stringify([...byTag].map(([tag, names]) => [tag, [...names].sort()]).sort());
  const pieces = [];
  for (let at = 0; at < text.length; at += 997) pieces.push(Buffer.from(text.slice(at, at + 997)));
  const joined = Buffer.concat(pieces.reverse());
  const packed = zlib.deflateSync(joined);
  if (!zlib.inflateSync(packed).equals(joined)) throw new Error('inflate differs');
  return {digest: digest(joined), buffer: new Uint8Array(joined)};
}

function inWorker(data) {
  return new Promise((resolve, reject) => {
    const worker = new Worker(__filename, {workerData: data});
    worker.on('message', resolve);
    worker.on('error', reject);
  });
}

async function thread_pool(buffers) {
  const lines = await Promise.all(buffers.map(async (buffer, i) => {
    const packed = await promisify(zlib.gzip)(buffer, {level: 1 + i % 9});
    const key = await promisify(crypto.scrypt)(digest(buffer), 'salt' + i, 64, {N: 1024});
    const back = await promisify(zlib.gunzip)(packed);
    return `${packed.length} ${digest(back)} ${key.toString('hex')}`;
  }));
  return lines.join('\n');
}

async function main(count) {
  const results = [];
  for (let round = 0; round < 3; round++)
    results.push(...await Promise.all(
        [1, 2, 3].map(n => inWorker({count, seed: 100 * round + n}))));
  for (const result of results)
    console.log(result.digest, result.buffer.length, digest(result.buffer));
  console.log(await thread_pool(results.map(result => Buffer.from(result.buffer))));
  console.log(work({count: 2 * count, seed: 9}).digest);
}

if (isMainThread) {
  main(Number(process.argv[2] || 10000));
} else {
  const result = work(workerData);
  parentPort.postMessage(result, [result.buffer.buffer]);
}
