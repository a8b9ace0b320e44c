import { readFileSync } from 'node:fs';
import { createClient, createCluster } from 'redis';
import { keep, loop } from './loop.mjs';

let client;

await loop({
  async connect({ port, user, password, ca }) {
    client?.destroy();
    client = undefined;
    const opened = createClient({ socket: { host: '127.0.0.1', port, tls: ca !== undefined, ca: ca && readFileSync(ca) }, username: user, password });
    // After an error, even a wrong password, connect tries again until it succeeds.
    const failed = new Promise((_, reject) => opened.on('error', reject));
    failed.catch(() => {}); // later errors: calls return them
    try {
      await Promise.race([opened.connect(), failed]);
    } catch (error) {
      opened.destroy();
      throw error;
    }
    client = opened;
  },
  call: ({ args }) => client.sendCommand(args),
  keep: ({ args }) => keep(client, () => client.sendCommand(args)),
  method: ({ args: [name, ...args] }) => client[name](...args),
  async pipeline({ commands }) {
    const results = await Promise.allSettled(commands.map((args) => client.sendCommand(args)));
    return results.map(({ reason, value }) => reason ?? value);
  },
  async cluster({ port }) {
    const cluster = createCluster({ rootNodes: [{ socket: { host: '127.0.0.1', port } }] });
    cluster.on('error', () => {}); // connect returns it
    await cluster.connect();
  },
});
