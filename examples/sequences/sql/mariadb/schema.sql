CREATE TABLE invoice_numbers (
  series VARCHAR(40) PRIMARY KEY,
  counter BIGINT NOT NULL
);
CREATE TABLE invoices (
  number BIGINT PRIMARY KEY,
  customer VARCHAR(40) NOT NULL
);
INSERT INTO invoice_numbers VALUES ('invoices', 0);
