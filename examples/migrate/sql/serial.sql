-- before
CREATE TABLE orders (
  id serial PRIMARY KEY,
  item text NOT NULL
);
CREATE TABLE order_lines (
  order_id integer NOT NULL REFERENCES orders (id),
  quantity integer NOT NULL
);

-- old
INSERT INTO orders (item) VALUES ('ink') RETURNING id;

-- widen
ALTER TABLE order_lines ALTER COLUMN order_id TYPE bigint;
ALTER TABLE orders ALTER COLUMN id TYPE bigint;

-- done
ALTER TABLE orders ALTER COLUMN id DROP DEFAULT;

-- back
ALTER TABLE orders ALTER COLUMN id SET DEFAULT nextval('orders_id_seq');
