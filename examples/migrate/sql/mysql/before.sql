CREATE TABLE orders (
  id INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  item VARCHAR(40) NOT NULL
);
CREATE TABLE order_lines (
  order_id INT NOT NULL,
  quantity INT NOT NULL,
  CONSTRAINT lines_of_order FOREIGN KEY (order_id) REFERENCES orders (id)
);
