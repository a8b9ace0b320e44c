-- before
CREATE TABLE orders (
  id INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  item VARCHAR(40) NOT NULL
);
CREATE TABLE order_lines (
  order_id INT NOT NULL,
  quantity INT NOT NULL,
  CONSTRAINT lines_of_order FOREIGN KEY (order_id) REFERENCES orders (id)
);

-- old
INSERT INTO orders (item) VALUES ('ink') RETURNING id;

-- widen
ALTER TABLE order_lines DROP FOREIGN KEY lines_of_order;
ALTER TABLE orders MODIFY id BIGINT NOT NULL AUTO_INCREMENT;
ALTER TABLE order_lines
  MODIFY order_id BIGINT NOT NULL,
  ADD CONSTRAINT lines_of_order FOREIGN KEY (order_id) REFERENCES orders (id);

-- done
ALTER TABLE order_lines DROP FOREIGN KEY lines_of_order;
ALTER TABLE orders MODIFY id BIGINT NOT NULL;
ALTER TABLE order_lines
  ADD CONSTRAINT lines_of_order FOREIGN KEY (order_id) REFERENCES orders (id);

-- back
ALTER TABLE order_lines DROP FOREIGN KEY lines_of_order;
ALTER TABLE orders MODIFY id BIGINT NOT NULL AUTO_INCREMENT;
ALTER TABLE order_lines
  ADD CONSTRAINT lines_of_order FOREIGN KEY (order_id) REFERENCES orders (id);

-- take
ALTER TABLE orders AUTO_INCREMENT = 1010000;
SELECT max(id) FROM orders WHERE id < 1010000;

-- new
INSERT INTO orders (id, item) VALUES (1009999, 'pen');
DELETE FROM orders WHERE id = 1009999;

-- largest
SELECT max(id) FROM orders;
