CREATE TABLE orders (
  id       BIGINT PRIMARY KEY,
  customer TEXT NOT NULL,
  replaces BIGINT REFERENCES orders
);
