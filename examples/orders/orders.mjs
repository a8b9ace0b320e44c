// An HTTP service that numbers orders. POST /orders with {"customer": "Ada"} answers
// {"id": "123…", "number": 1, "customer": "Ada"}. The ID and the number come from tickflake,
// through an ordinary Redis client.
//
//     node orders.mjs [PORT [URL]]
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient, ErrorReply } from 'redis';

const [port = '8081', url = 'redis://127.0.0.1:6380'] = process.argv.slice(2);

// A call fails at once while there is no connection, and retry calls again. (By default a
// call would wait for a connection without any bound.)
const tickflake = createClient({ url, disableOfflineQueue: true, socket: { reconnectStrategy: (n) => Math.min(2 ** n * 10, 500) } });
tickflake.on('error', (error) => console.error('tickflake:', error.message));

// retry repeats a call for up to ten seconds. That is safe: a number whose answer was lost is
// never issued again. It is a gap.
async function retry(call) {
  const end = Date.now() + 10_000;
  for (let wait = 10; ; wait = Math.min(2 * wait, 500)) {
    try {
      return await call();
    } catch (error) {
      const passing = !(error instanceof ErrorReply) || /^(TRYAGAIN|LOADING) /.test(error.message);
      if (!passing || Date.now() > end) throw error;
    }
    await sleep(wait * (0.5 + Math.random() / 2));
  }
}

async function order(customer) {
  const [id, number] = await Promise.all([
    retry(() => tickflake.sendCommand(['ID'])), // a string: a JavaScript number would lose bits
    retry(() => tickflake.incr('orders')),
  ]);
  return { id, number, customer };
}

const server = createServer(async (request, response) => {
  const answer = (status, body) => response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body) + '\n');
  if (request.method !== 'POST' || request.url !== '/orders') return answer(404, { error: 'want POST /orders' });
  if (!(Number(request.headers['content-length']) <= 10_000)) return answer(413, { error: 'want a body of at most 10000 bytes' });
  let customer;
  try {
    ({ customer } = await json(request));
    if (typeof customer !== 'string') throw new TypeError('no customer');
  } catch {
    return answer(400, { error: 'want {"customer": "…"}' });
  }
  try {
    answer(200, await order(customer));
  } catch (error) {
    console.error('order:', error.message);
    answer(503, { error: 'no number, try again later' });
  }
});

await tickflake.connect();
server.listen(Number(port), '127.0.0.1', () => console.error(`listening on http://127.0.0.1:${server.address().port}`));

process.once('SIGTERM', () => server.close(() => tickflake.close()));
