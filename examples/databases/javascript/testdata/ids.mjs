// Reads {"strings": [ID...], "numbers": [ID...]} and writes how JavaScript reads them.
import { text } from 'node:stream/consumers'
import { compare, decode } from '../id.mjs'

const { strings, numbers } = JSON.parse(await text(process.stdin))
console.log(JSON.stringify({
  decoded: strings.map((id) => ({ id, ...decode(id) })),
  sorted: [...strings].sort(compare),
  numbers: numbers.map((id) => ({ id: String(id), exact: Number.isSafeInteger(id) })),
}))
