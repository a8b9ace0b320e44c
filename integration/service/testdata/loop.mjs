// Runs a client for a test: reads one JSON request per line, does it, and writes one JSON
// answer per line.
import { createInterface } from 'node:readline';

// describe returns a value with its type in JavaScript, so that the test sees whether bits
// were lost.
function describe(value) {
  if (value === null || value === undefined) return { type: 'null', text: '' };
  if (Array.isArray(value)) return { type: 'array', items: value.map(describe) };
  if (value instanceof Error) return failure(value);
  if (typeof value === 'object') return { type: 'object', text: JSON.stringify(value) };
  return { type: typeof value, text: String(value) };
}

function failure(error) {
  const causes = [error.message, error.lastNodeError?.message, error.cause?.message, error.event?.message];
  return { type: 'error', class: error.constructor.name, text: causes.filter(Boolean).join(': ') };
}

let kept;

// keep begins a call, and returns when the client has tried twice to connect again. The
// handler "kept" returns what the call returns.
export function keep(client, call) {
  kept = call();
  kept.catch(() => {}); // "kept" returns it
  return new Promise((resolve) => {
    let tries = 0;
    client.on('reconnecting', () => ++tries === 2 && resolve());
  });
}

// loop calls handlers[request.do](request) for each request.
export async function loop(handlers) {
  for await (const line of createInterface({ input: process.stdin })) {
    const request = JSON.parse(line);
    let answer;
    try {
      answer = describe(request.do === 'kept' ? await kept : await handlers[request.do](request));
    } catch (error) {
      answer = failure(error);
    }
    process.stdout.write(JSON.stringify(answer) + '\n');
  }
  process.exit(0);
}
