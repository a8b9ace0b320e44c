WITH next AS (
  UPDATE invoice_numbers SET counter = counter + 1 WHERE series = 'invoices' RETURNING counter
)
INSERT INTO invoices (number, customer) SELECT counter, 'Ada' FROM next RETURNING number;
