CREATE TABLE orders (
  id serial PRIMARY KEY,
  item text NOT NULL
);
CREATE TABLE order_lines (
  order_id integer NOT NULL REFERENCES orders (id),
  quantity integer NOT NULL
);
