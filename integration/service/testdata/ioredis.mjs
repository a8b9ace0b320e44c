import { readFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import { keep, loop } from './loop.mjs';

let client;

await loop({
  async connect({ port, user, password, ca }) {
    client?.disconnect();
    client = new Redis({ host: '127.0.0.1', port, username: user, password, lazyConnect: true, tls: ca && { ca: readFileSync(ca) } });
    let event;
    client.on('error', (error) => (event = error));
    await client.connect().catch((error) => Promise.reject(Object.assign(error, { event })));
  },
  call: ({ args }) => client.call(...args),
  keep: ({ args }) => keep(client, () => client.call(...args)),
  method: ({ args: [name, ...args] }) => client[name](...args),
  async pipeline({ commands }) {
    const pipeline = client.pipeline();
    for (const args of commands) pipeline.call(...args);
    return (await pipeline.exec()).map(([error, value]) => error ?? value);
  },
  async cluster({ port }) {
    const cluster = new Redis.Cluster([{ host: '127.0.0.1', port }], { lazyConnect: true, clusterRetryStrategy: () => null });
    cluster.on('error', () => {}); // connect returns it
    try {
      await cluster.connect();
    } finally {
      cluster.disconnect();
    }
  },
});
