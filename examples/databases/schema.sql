CREATE TABLE orders (
  id       BIGINT NOT NULL PRIMARY KEY,
  customer VARCHAR(100) NOT NULL,
  replaces BIGINT NULL,
  FOREIGN KEY (replaces) REFERENCES orders (id)
);
