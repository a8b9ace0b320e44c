-- name: CreateOrder :exec
INSERT INTO orders (id, customer, replaces) VALUES ($1, $2, $3);

-- name: ImportOrders :copyfrom
INSERT INTO orders (id, customer) VALUES ($1, $2);

-- name: GetOrder :one
SELECT id, customer, replaces FROM orders WHERE id = $1;

-- name: OrdersBetween :many
SELECT id, customer, replaces FROM orders WHERE id BETWEEN sqlc.arg(lo) AND sqlc.arg(hi) ORDER BY id;
