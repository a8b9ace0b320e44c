ALTER TABLE order_lines ALTER COLUMN order_id TYPE bigint;
ALTER TABLE orders ALTER COLUMN id TYPE bigint;
