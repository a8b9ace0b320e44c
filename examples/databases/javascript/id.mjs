// IDs of tickflake in JavaScript: strings of decimal digits, as they come in JSON.

const EPOCH = 1735689600000n // of the default layout, in ms: 2025-01-01T00:00:00Z

// decode returns the time, node and sequence of an ID of the default layout.
export function decode(id) {
  const bits = BigInt(id)
  return {
    time: new Date(Number((bits >> 22n) + EPOCH)),
    node: Number((bits >> 12n) & 0x3ffn),
    sequence: Number(bits & 0xfffn),
  }
}

// compare puts IDs in order of time: orders.sort((a, b) => compare(a.id, b.id)).
export function compare(a, b) {
  return a.length - b.length || (a < b ? -1 : a > b ? 1 : 0)
}
