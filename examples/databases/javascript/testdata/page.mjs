// Fetches an order and sends it back, as a page does.
// Usage: node page.mjs URL-OF-A-NEW-ORDER URL-OF-ORDERS

const [create, orders] = process.argv.slice(2)
const order = await (await fetch(create, { method: 'POST' })).json()
const answer = await fetch(`${orders}/${order.id}`, { method: 'PUT', body: JSON.stringify(order) })
console.log(JSON.stringify({ type: typeof order.id, status: answer.status, body: await answer.text() }))
