// Reads {"strings": [ID...]} and writes how JavaScript reads them.
import { text } from 'node:stream/consumers'
import { compare, decode } from '../id.mjs'

const { strings } = JSON.parse(await text(process.stdin))
console.log(JSON.stringify({
  decoded: strings.map((id) => ({ id, ...decode(id) })),
  sorted: [...strings].sort(compare),
}))
