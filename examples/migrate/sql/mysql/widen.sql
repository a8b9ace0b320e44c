ALTER TABLE order_lines DROP FOREIGN KEY lines_of_order;
ALTER TABLE orders MODIFY id BIGINT NOT NULL AUTO_INCREMENT;
ALTER TABLE order_lines
  MODIFY order_id BIGINT NOT NULL,
  ADD CONSTRAINT lines_of_order FOREIGN KEY (order_id) REFERENCES orders (id);
